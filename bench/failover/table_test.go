package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/tools/drill"
)

func TestQuantile(t *testing.T) {
	f := func(q, want float64, v ...float64) {
		t.Helper()
		if got := quantile(v, q); got != want {
			t.Errorf("quantile %v of %v is %v, want %v", q, v, got, want)
		}
	}
	f(0.5, 0)
	f(0, 1, 3, 1, 2)
	f(0.5, 2, 3, 1, 2)
	f(1, 3, 3, 1, 2)
	f(0.99, 7, 7)
}

func TestWrite(t *testing.T) {
	f := func(c drill.Case, v drill.View, broken string, want string) {
		t.Helper()
		r := drill.Result{Seed: 9, Views: []drill.View{v}}
		if broken != "" {
			r.Broken = []string{broken}
		}
		var b strings.Builder
		good := write(&b, c, []drill.Result{r})
		if good != (want == "") || !strings.Contains(b.String(), want) {
			t.Errorf("%+v: good %v, want %q in\n%s", v, good, want, b.String())
		}
	}
	kill := drill.Case{Gap: 300 * time.Millisecond}
	f(kill, drill.View{Gap: 299}, "", "")
	f(kill, drill.View{Gap: 301}, "", "longest gap, ms")
	f(kill, drill.View{Gap: 299}, "the roof fell in", "seed 9: the roof fell in")
	f(kill, drill.View{Gap: 299, Missing: 1}, "", "frames missing")
	f(drill.Case{}, drill.View{Gap: 3000, Stalls: 1}, "", "")
	f(drill.Case{Stalls: true}, drill.View{Stalls: 1}, "", "MISSED")
	f(drill.Case{First: time.Second}, drill.View{First: 1001}, "", "MISSED")
}

// TestKept: what runs showed is there after an interruption, also one that cut a line.
func TestKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	k, err := openKept(path)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		if err := k.add(drill.Result{Seed: seed, Seconds: float64(seed)}); err != nil {
			t.Fatal(err)
		}
	}
	k.file.WriteString(`{"case":"x","se`)
	k.file.Close()
	if k, err = openKept(path); err != nil {
		t.Fatal(err)
	}
	if err := k.add(drill.Result{Seed: 3}); err != nil {
		t.Fatal(err)
	}
	k.file.Close()
	if k, err = openKept(path); err != nil {
		t.Fatal(err)
	}
	defer k.file.Close()
	if len(k.results) != 4 || k.results[2].Seconds != 2 {
		t.Errorf("kept: %v", k.results)
	}
}
