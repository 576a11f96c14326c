package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"millrace/tools/pull"
)

func TestFlags(t *testing.T) {
	f := func(ok bool, args ...string) pull.Config {
		t.Helper()
		cfg, _, err := parse(args)
		if err == nil {
			err = cfg.Validate()
		}
		if (err == nil) != ok {
			t.Errorf("%v: %v", args, err)
		}
		return cfg
	}
	cfg := f(true, "--url", "http://h/a.flv", "--url", "http://h/b.flv", "--viewers", "5", "--pid", "1", "--pid", "2",
		"--slow", "0.25@1000", "--frozen", "0.5", "--thaw", "5s", "--http10", "--rate", "200")
	if len(cfg.URLs) != 2 || !slices.Equal(cfg.PIDs, []int{1, 2}) || cfg.Slow != .25 || cfg.SlowRate != 1000 || cfg.Thaw != 5*time.Second {
		t.Errorf("%+v", cfg)
	}
	cfg = f(true, "--url", "http://h/s%d.flv", "--streams", "3")
	if want := []string{"http://h/s0.flv", "http://h/s1.flv", "http://h/s2.flv"}; !slices.Equal(cfg.URLs, want) || !cfg.Numbered {
		t.Errorf("%+v", cfg)
	}
	f(false)
	f(false, "--url", "http://h/a.flv", "--streams", "3")
	f(false, "--url", "http://h/a.flv", "--slow", "0.1")
	f(false, "--url", "http://h/a.flv", "--slow", "x@1")
	f(false, "--url", "http://h/a.flv", "--pid", "me")
	f(false, "--url", "http://h/a.flv", "extra")
}

func TestReportFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	want := pull.Report{Seconds: 2, Bytes: 5, Faults: map[string]uint64{"missing": 3}}
	if err := write(file, &want); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got pull.Report
	if err := json.Unmarshal(b, &got); err != nil || got.Bytes != 5 || got.Faults["missing"] != 3 || got.OK() {
		t.Errorf("%+v, %v", got, err)
	}
}
