package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/control"
	"millrace/internal/runtest"
	"millrace/internal/sched"
)

const clusterKey = "a key of some length"

// authority is a scheduler as its followers see it.
type authority struct {
	*control.Server
	url string
}

// Where players come from.
const (
	south = "127.0.0.1"
	north = "127.0.0.9"
)

// newAuthority starts an authority that knows two edges: here, which is in the north,
// and near, which is in the south.
func newAuthority(t *testing.T) *authority {
	t.Helper()
	cluster, err := auth.NewCluster(auth.ClusterConfig{Keys: []string{clusterKey}})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	a := &authority{}
	if a.Server, err = control.NewServer(control.DefaultServerConfig(), cluster, log); err != nil {
		t.Fatal(err)
	}
	edge := func(id, region, addr string) sched.Node {
		return sched.Node{
			ID: id, Role: "edge", Region: region, ISPs: []string{"*"}, Capacity: 125e6,
			Addresses: []netip.Addr{netip.MustParseAddr(addr)}, HTTPPort: 8080,
		}
	}
	b, err := control.NewBundle("test", 1, time.Now(), control.Contents{
		Snapshot: &sched.Snapshot{
			Nodes:   []sched.Node{edge("here", "north", "192.0.2.1"), edge("near", "south", "192.0.2.2")},
			Regions: []sched.Region{{Name: "north", Near: map[string]float64{"south": 40}}, {Name: "south"}},
			Domains: []sched.Domain{{Name: "play.test", Recheck: 20}},
			Costs:   sched.DefaultCosts(), Health: sched.DefaultHealth(),
		},
		Coverage: control.NewBlob([]byte(south + " south telecom\n" + north + " north telecom\n")),
	})
	if err != nil {
		t.Fatal(err)
	}
	a.Bundle(b)

	a.url, _ = runtest.Serve(t, a.Handle, a.Close)
	return a
}

// sees reports that near is up, or not.
func (a *authority) sees(up bool) {
	now := time.Now()
	a.Report(&control.Report{Observer: "scheduler", At: now, Observations: []sched.Observation{{
		Observer: "scheduler", Node: "near", Family: sched.V4, At: now, Up: up,
		Figures: &sched.Figures{},
	}}})
}

// arrive asks an edge as a player at an address does that came by a name.
func (tr *trial) arrive(t *testing.T, from, host, uri string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tr.url("http", uri), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	resp, err := (&http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp
}

func placingEdge(t *testing.T, from, state string) *trial {
	t.Helper()
	tr := built(t, fmt.Sprintf(`role: edge
id: here
cluster: {keys: [%s]}
scheduling: {from: ["%s"], state_file: %s, report_every: 100ms, capacity: 125MB}
`, clusterKey, from, state))
	tr.start(t)
	return tr
}

// TestPlacing: an edge sends players on by what it follows, each of them once, and goes
// on with what is on its disk.
func TestPlacing(t *testing.T) {
	a, state := newAuthority(t), filepath.Join(t.TempDir(), "snapshot")
	edge := placingEdge(t, a.url, state)
	var sent *http.Response
	runtest.Until(t, "a player is sent on", func() bool {
		a.sees(true)
		sent = edge.arrive(t, south, "play.test:8080", "/live/a.flv?x=1&mr=1-forged")
		return sent.StatusCode == http.StatusFound
	})
	to, err := url.Parse(sent.Header.Get("Location"))
	if err != nil || to.Scheme != "http" || to.Host != "192.0.2.2:8080" || to.Path != "/live/a.flv" || to.Query().Get("x") != "1" {
		t.Fatalf("sent to %v: %v", to, err)
	}
	if reason := sent.Header.Get("Millrace-Reason"); reason != "elsewhere" {
		t.Errorf("reason %q", reason)
	}
	// With the ticket it is served, or not, wherever it arrives.
	if resp := edge.arrive(t, south, "play.test", to.RequestURI()); resp.StatusCode != http.StatusNotFound {
		t.Errorf("with the ticket: %d, want 404", resp.StatusCode)
	}
	if resp := edge.arrive(t, south, "other.test", "/live/a.flv"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("for another name: %d, want 404", resp.StatusCode)
	}
	_, metrics := runtest.Get(t, edge.url("admin", "/metrics"))
	for _, want := range []string{
		`millrace_recheck_players_total{isp="telecom",outcome="sent_on",region="south",way="name"} `,
		`millrace_recheck_players_total{isp="",outcome="ticketed",region="",way="ticket"} 1`,
		`millrace_recheck_players_total{isp="",outcome="bad_ticket",region="",way="ticket"} `,
		`outcome="other_domain"`,
		"millrace_sched_snapshot_version 1", "millrace_sched_snapshot_age_seconds ",
		`millrace_control_questions_total{outcome="answered"} 1`,
		`millrace_control_peer_alive{peer="` + a.url + `"} 1`,
		`millrace_session_refused_total{protocol="http-flv",reason="elsewhere"} `,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	// A dead edge gets nobody.
	runtest.Until(t, "nobody is sent to an edge that is down", func() bool {
		a.sees(false)
		return edge.arrive(t, south, "play.test", "/live/a.flv").StatusCode == http.StatusNotFound
	})

	// Without any scheduler, from disk: the plan is there, and whether others live is not
	// known, so that everybody is served.
	alone := placingEdge(t, "http://127.0.0.1:1", state)
	runtest.Until(t, "the snapshot on disk is in use", func() bool {
		alone.arrive(t, south, "play.test", "/live/a.flv")
		_, metrics := runtest.Get(t, alone.url("admin", "/metrics"))
		return strings.Contains(metrics, `outcome="stale_view",region="south"`)
	})
	if resp := alone.arrive(t, south, "play.test", "/live/a.flv"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("alone: %d, want 404", resp.StatusCode)
	}
}

// TestPlacingWhileDraining: who comes to an edge that leaves is sent to one that stays.
func TestPlacingWhileDraining(t *testing.T) {
	a := newAuthority(t)
	edge := placingEdge(t, a.url, `""`)
	arrive := func(want int) func() bool {
		return func() bool {
			a.sees(true)
			return edge.arrive(t, north, "play.test", "/live/a.flv").StatusCode == want
		}
	}
	runtest.Until(t, "the other edge is known to be up", func() bool {
		a.sees(true)
		return edge.arrive(t, south, "play.test", "/live/a.flv").StatusCode == http.StatusFound
	})
	if !arrive(http.StatusNotFound)() {
		t.Error("whoever is right here is not served")
	}
	for _, s := range edge.http {
		s.Drain()
	}
	edge.observe(time.Now())
	runtest.Until(t, "it is sent on", arrive(http.StatusFound))
	if code, body := runtest.Get(t, edge.url("http", "/healthz")); code != http.StatusServiceUnavailable || body != "draining\n" {
		t.Errorf("healthz: %d %q", code, body)
	}
}
