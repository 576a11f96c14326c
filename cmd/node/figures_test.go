package main

import (
	"maps"
	"regexp"
	"strings"
	"testing"

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
	values := runtest.Scrape(t, tr.url("admin", "/metrics"), metricName, 20)
	refused := map[string]string{}
	for series, v := range values {
		if strings.HasPrefix(series, "millrace_session_refused_total") {
			refused[series] = v
		}
	}
	if want := map[string]string{`millrace_session_refused_total{protocol="http-flv",reason="` + session.NotFound.String() + `"}`: "1"}; !maps.Equal(refused, want) {
		t.Errorf("refusals are %v, want %v", refused, want)
	}
}
