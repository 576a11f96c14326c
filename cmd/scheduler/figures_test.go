package main

import (
	"regexp"
	"testing"

	"github.com/miekg/dns"

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
	values := runtest.Scrape(t, "http://"+tr.addr("admin")+"/metrics", metricName, 30)
	for _, want := range []string{
		`millrace_dns_replies_total{code="NOERROR"}`, `millrace_dns_replies_total{code="REFUSED"}`,
		`millrace_http_requests_total{face="none",reason="not_found"}`, `millrace_listen_connections{listener="internal"}`,
		`millrace_sched_edges_by_reason{family="v4",reason="offered"}`, `millrace_control_waiting`,
		`millrace_scheduler_draining`, `millrace_probe_targets`,
	} {
		if values[want] == "" {
			t.Errorf("%s is missing", want)
		}
	}
}
