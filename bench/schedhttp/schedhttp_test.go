package main

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"millrace/internal/geo"
	"millrace/internal/sched"
)

func TestReadAnswer(t *testing.T) {
	f := func(answer, want string) {
		t.Helper()
		r := bufio.NewReader(strings.NewReader(answer))
		err := readAnswer(r, "302")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", answer, err, want)
		}
		if rest, _ := r.Peek(1); err == nil && string(rest) != "x" {
			t.Errorf("%q: stopped at %q", answer, rest)
		}
	}
	const head = "HTTP/1.1 302 Found\r\nContent-Type: text/plain\r\n"
	f(head+"Content-Length: 2\r\n\r\nabx", "")
	f(head+"Content-Length: 0\r\n\r\nx", "")
	f("HTTP/1.1 404 Not Found\r\n\r\n", "want 302")
	f("HTTP", "EOF")
	f(head, "EOF")
	f(head+"\r\n", "without Content-Length")
	f(head+"Content-Length: x\r\n\r\n", "invalid syntax")
	f(head+"Content-Length: 9\r\n\r\nab", "EOF")
}

func TestMedian(t *testing.T) {
	f := func(want float64, costs ...float64) {
		t.Helper()
		var all []result
		for _, c := range costs {
			all = append(all, result{perSecond: c})
		}
		if got := median(all, func(r result) float64 { return r.perSecond }); got != want {
			t.Errorf("median of %v is %v, want %v", costs, got, want)
		}
	}
	f(3, 3)
	f(2, 3, 1)
	f(2, 9, 1, 2)
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		got, goal float64
		want      string
	}{{0.5, 0, ""}, {0.5, 0.6, ", at least 0.60  MISSED"}, {0.6, 0.6, ", at least 0.60  reached"}} {
		if got := verdict(c.got, c.goal); got != c.want {
			t.Errorf("%v of %v: %q, want %q", c.got, c.goal, got, c.want)
		}
	}
}

// Each client of the load is in a region that has edges of its ISP.
func TestWorld(t *testing.T) {
	c, err := geo.ParseCoverage([]byte(coverage()))
	if err != nil {
		t.Fatal(err)
	}
	table, err := geo.NewTable(c, nil, geo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := sched.Compile(snapshot(1000), table.Pairs())
	if err != nil {
		t.Fatal(err)
	}
	pairs := map[geo.Pair]bool{}
	for _, n := range plan.Nodes {
		pairs[geo.Pair{Region: n.Region, ISP: n.ISPs[0]}] = true
	}
	for _, e := range c.Entries() {
		if !pairs[e.Pair] {
			t.Errorf("no edge for %v", e.Pair)
		}
	}
	if s := state(plan, time.Now()); len(s.Nodes) != 1000 {
		t.Errorf("%d nodes", len(s.Nodes))
	}
}
