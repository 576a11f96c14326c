package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"millrace/internal/runtest"
	"millrace/internal/session"
)

// metricName is millrace_<package>_<what>_<unit>; a plain count has no unit.
var metricName = regexp.MustCompile(`^millrace_(node|session|stream|rtmp|httpflv|listen|upstream|quality|routing|control|sched|recheck)(_[a-z0-9]+)+$`)

func TestFigures(t *testing.T) {
	tr := routed(t, newRouterOf(t), "edge-1", "edge", "httpflv:\n  shards: 2\n")
	seen, kinds := map[string]bool{}, map[string]bool{}
	for _, f := range tr.figures() {
		if !metricName.MatchString(f.Name) {
			t.Errorf("%s is not named millrace_<package>_<what>_<unit>", f.Name)
		}
		if f.Counter != strings.HasSuffix(f.Name, "_total") {
			t.Errorf("%s: counter %v, but a name ends in _total if and only if it is one", f.Name, f.Counter)
		}
		if f.Help == "" || len(f.Labels)%2 != 0 {
			t.Errorf("%s: help %q, labels %v", f.Name, f.Help, f.Labels)
		}
		series := f.Name + "{" + strings.Join(f.Labels, ",") + "}"
		if seen[series] {
			t.Errorf("%s comes twice", series)
		}
		seen[series], kinds[f.Name] = true, true
	}
	for _, want := range []string{"millrace_httpflv_viewers", "millrace_rtmp_connections", "millrace_listen_connections"} {
		if !kinds[want] {
			t.Errorf("%s is missing", want)
		}
	}
	if !seen["millrace_listen_accepted_total{listener,http}"] || !seen["millrace_httpflv_busy_ratio{shard,1}"] {
		t.Errorf("series are %v", seen)
	}
}

// TestScrape reads the figures as Prometheus does.
func TestScrape(t *testing.T) {
	tr := built(t, "")
	tr.publish(t, "live/a")
	tr.start(t)
	runtest.Get(t, tr.url("http", "/live/none.flv"))
	status, text := runtest.Get(t, tr.url("admin", "/metrics"))
	if status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	ours := 0
	for name := range families {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		ours++
		if !metricName.MatchString(name) {
			t.Errorf("%s is not named millrace_<package>_<what>_<unit>", name)
		}
	}
	if ours < 20 {
		t.Errorf("only %d families of ours", ours)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		series, _, _ := strings.Cut(line, " ")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if seen[series] {
			t.Errorf("%s comes twice", series)
		}
		seen[series] = true
	}
	refused := families["millrace_session_refused_total"].GetMetric()
	if len(refused) != 1 || refused[0].GetCounter().GetValue() != 1 || !strings.Contains(refused[0].String(), session.NotFound.String()) {
		t.Errorf("refusals are %v", refused)
	}
}
