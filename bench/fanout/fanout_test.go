package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"millrace/tools/pull"
)

func TestReadmeHasEveryScenario(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range scenarios {
		if seen[s.name] {
			t.Errorf("two scenarios are called %s", s.name)
		}
		seen[s.name] = true
		if !strings.Contains(string(readme), "| `"+s.name+"` |") {
			t.Errorf("README.md has no line for %s", s.name)
		}
	}
}

func TestMedian(t *testing.T) {
	f := func(want float64, costs ...float64) {
		t.Helper()
		var all []*outcome
		for _, c := range costs {
			all = append(all, &outcome{Report: pull.Report{Servers: []pull.Server{{CPUPerGB: c}}}})
		}
		if got := median(all, cpuOf); got != want {
			t.Errorf("median of %v is %v, want %v", costs, got, want)
		}
	}
	f(0)
	f(3, 3)
	f(2, 3, 1)
	f(2, 9, 1, 2)
	f(2.5, 9, 1, 2, 3)
}

func TestCompareSaysWhatWasReached(t *testing.T) {
	one := func(cpu, p50 float64) []*outcome {
		o := &outcome{Report: pull.Report{Servers: []pull.Server{{CPUPerGB: cpu}}}}
		o.Report.Normal.Delay = pull.Quantiles{Count: 1, P50: p50, P99: 2 * p50}
		return []*outcome{o}
	}
	f := func(got map[string][]*outcome, g goals, reached, missed int) {
		t.Helper()
		var out strings.Builder
		b := &bench{out: &out}
		b.compare(got, g)
		if r, m := strings.Count(out.String(), "reached"), strings.Count(out.String(), "MISSED"); r != reached || m != missed {
			t.Errorf("%d reached, %d missed, want %d and %d:\n%s", r, m, reached, missed, out.String())
		}
	}
	all := map[string][]*outcome{"node": one(1, 10), "floor": one(.8, 10), "lalserver": one(2, 5)}
	f(all, goals{floor: 1.3, lal: 0.55, p50: 10, p99: 20}, 4, 0)
	f(all, goals{floor: 1.2, lal: 0.45, perGB: 0.6, p50: 9, p99: 19}, 0, 5)
	f(map[string][]*outcome{"node": one(1, 10)}, goals{floor: 1.3, lal: 0.55}, 0, 0)
	f(map[string][]*outcome{"floor": one(1, 10)}, goals{floor: 1.3, perGB: 1}, 0, 0)
}

func TestLalConfigIsOneThing(t *testing.T) {
	b := &bench{dir: t.TempDir()}
	file, err := b.lalConfig("127.0.0.1:1", "127.0.0.1:2")
	if err != nil {
		t.Fatal(err)
	}
	j, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var conf struct {
		RTMP        struct{ Addr string }
		DefaultHTTP struct {
			Addr string `json:"http_listen_addr"`
		} `json:"default_http"`
	}
	if err := json.Unmarshal(j, &conf); err != nil || conf.RTMP.Addr != "127.0.0.1:1" || conf.DefaultHTTP.Addr != "127.0.0.1:2" {
		t.Errorf("%+v, %v", conf, err)
	}
}
