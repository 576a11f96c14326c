package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"millrace/internal/runtest"
)

// metricName is millrace_<package>_<what>_<unit>; a plain count has no unit.
var metricName = regexp.MustCompile(`^millrace_(scheduler|sched|geo|dns|http|probe|control|listen)(_[a-z0-9]+)+$`)

// TestScrape reads the figures as Prometheus does.
func TestScrape(t *testing.T) {
	tr := built(t, "address: {internal: \"127.0.0.1:0\"}\ncluster: {keys: [a-key-that-all-nodes-share]}\n")
	tr.start(t)
	tr.ask(t, "play.live.test.", dns.TypeA)
	tr.ask(t, "elsewhere.test.", dns.TypeA)
	runtest.Get(t, "http://"+tr.addr("http")+"/nothing")
	status, text := runtest.Get(t, "http://"+tr.addr("admin")+"/metrics")
	if status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	ours := 0
	for name, f := range families {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		ours++
		if !metricName.MatchString(name) {
			t.Errorf("%s is not named millrace_<package>_<what>_<unit>", name)
		}
		if counter := f.GetType().String() == "COUNTER"; counter != strings.HasSuffix(name, "_total") || f.GetHelp() == "" {
			t.Errorf("%s: counter %v, but a name ends in _total if and only if it is one; help %q", name, counter, f.GetHelp())
		}
	}
	if ours < 30 {
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
	for _, want := range []string{
		`millrace_dns_replies_total{code="NOERROR"}`, `millrace_dns_replies_total{code="REFUSED"}`,
		`millrace_http_requests_total{face="none",reason="not_found"}`, `millrace_listen_connections{listener="internal"}`,
		`millrace_sched_edges_by_reason{family="v4",reason="offered"}`, `millrace_control_waiting`,
		`millrace_scheduler_draining`, `millrace_probe_targets`,
	} {
		if !seen[want] {
			t.Errorf("%s is missing", want)
		}
	}
}
