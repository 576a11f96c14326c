package main

import (
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"millrace/internal/admin"
	"millrace/internal/auth"
	"millrace/internal/config"
	"millrace/internal/control"
	"millrace/internal/run"
	"millrace/internal/runtest"
	"millrace/internal/sched"
)

// ask asks the scheduler for a name over DNS.
func (tr *trial) ask(t *testing.T, name string, kind uint16) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(name, kind)
	c := dns.Client{Timeout: 20 * time.Second}
	reply, _, err := c.Exchange(m, tr.addr("dns"))
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// TestRuns: all faces answer, and the operator sees how.
func TestRuns(t *testing.T) {
	tr := built(t, "")
	tr.start(t)
	if r := tr.ask(t, "play.live.test.", dns.TypeA); len(r.Answer) != 1 || !r.Authoritative {
		t.Errorf("DNS answers %v", r)
	}
	if code, body := runtest.Get(t, "http://"+tr.addr("http")+"/v1/resolve?domain=play.live.test&ip=127.0.0.9"); code != 200 || !strings.Contains(body, `"node":"edge-1"`) {
		t.Errorf("HTTP-DNS answers %d %s", code, body)
	}
	for path, want := range map[string]string{
		"/healthz":    "ok",
		"/v1/version": `"role":"scheduler"`,
		"/v1/nodes":   `"id":"edge-1"`,
		"/v1/status":  `"edges":1`,
		"/v1/explain?domain=play.live.test&ip=127.0.0.9": `"region": "here"`,
		"/": "/v1/explain",
	} {
		if code, body := runtest.Get(t, "http://"+tr.addr("admin")+path); code != 200 || !strings.Contains(body, want) {
			t.Errorf("%s answers %d %s, want %s", path, code, body, want)
		}
	}
}

// TestFollowed: with an internal address an edge gets what the scheduler works from,
// if it signs.
func TestFollowed(t *testing.T) {
	const key = "a-key-that-all-nodes-share"
	tr := built(t, "id: here\naddress: {internal: \"127.0.0.1:0\"}\ncluster: {keys: ["+key+"]}\n")
	tr.start(t)
	cfg := control.DefaultFollowerConfig()
	cfg.Servers = []string{"http://" + tr.addr("internal")}
	cluster, err := auth.NewCluster(auth.ClusterConfig{Keys: []string{key}, Skew: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	follower, err := control.NewFollower(cfg, "edge-1", cluster, nil, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	b, err := follower.Next(t.Context(), nil)
	if err != nil || b.Version.Origin != "here" || len(b.Snapshot.Nodes) != 1 {
		t.Errorf("followed: %+v, %v", b, err)
	}
	if code, body := runtest.Get(t, cfg.Servers[0]+"/v1/snapshot"); code < 400 || strings.Contains(body, "edge-1") {
		t.Errorf("without a signature: %d %s", code, body)
	}
	if code, _ := runtest.Get(t, cfg.Servers[0]+"/v1/nodes"); code != 404 {
		t.Errorf("another path: %d", code)
	}
	f := func(what string, size int, head string, status int) {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, cfg.Servers[0]+"/v1/snapshot", strings.NewReader(strings.Repeat("x", size)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Long", head)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != status || !strings.Contains(string(body), `"reason":"too_big"`) {
			t.Errorf("%s: %d %s", what, res.StatusCode, body)
		}
	}
	f("a big body", maxFollowerBody+1, "", 413)
	f("a big head", 0, strings.Repeat("x", maxFollowerHead), 431)
}

// TestPeers: what one scheduler sees of the edges counts for the other.
func TestPeers(t *testing.T) {
	const cluster = "cluster: {keys: [a-key-that-all-nodes-share]}\n"
	first := built(t, "id: first\naddress: {internal: \"127.0.0.1:0\"}\n"+cluster)
	first.start(t)
	second := built(t, "id: second\npeers: {servers: [\"http://"+first.addr("internal")+"\"], every: 100ms}\n"+cluster)
	second.start(t)
	runtest.AwaitGet(t, "http://"+second.addr("admin")+"/v1/status", `"observer":"first"`)
}

// TestLifeWithoutAdmin closes the admin port under a running scheduler: it answers on.
func TestLifeWithoutAdmin(t *testing.T) {
	tr := built(t, "")
	var err error
	if tr.admin, err = admin.New(tr.cfg.Admin, &runtest.Broken{}, admin.Program{Kind: "scheduler", API: admin.NewScheduler(tr.sources())}, tr.out.Log); err != nil {
		t.Fatal(err)
	}
	tr.start(t)
	tr.log.Await(t, "the scheduler goes on without its admin port")
	if r := tr.ask(t, "play.live.test.", dns.TypeA); len(r.Answer) != 1 {
		t.Errorf("DNS answers %v", r)
	}
}

// TestDrain: it is over when nobody asks any more, at the deadline when somebody
// always does, and at once when it must be.
func TestDrain(t *testing.T) {
	f := func(name string, deadline, want time.Duration, asks func(after time.Duration) uint64, hurryAfter time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := &scheduler{log: slog.New(slog.DiscardHandler)}
			hurry := make(chan struct{})
			if hurryAfter > 0 {
				time.AfterFunc(hurryAfter, func() { close(hurry) })
			}
			began := time.Now()
			s.drain(t.Context(), deadline, hurry, func() uint64 { return asks(time.Since(began)) })
			if took := time.Since(began); took != want {
				t.Errorf("%s: took %v, want %v", name, took, want)
			}
			if !s.draining.Load() {
				t.Errorf("%s: health checks are not told", name)
			}
		})
	}
	nobody := func(time.Duration) uint64 { return 7 }
	always := func(after time.Duration) uint64 { return uint64(after / time.Second) }
	until := func(d time.Duration) func(time.Duration) uint64 {
		return func(after time.Duration) uint64 { return uint64(min(after, d) / time.Millisecond) }
	}
	f("nobody asks", 25*time.Second, calm, nobody, 0)
	f("somebody always asks", 25*time.Second, 25*time.Second, always, 0)
	f("they notice after five seconds", 25*time.Second, 5*time.Second+calm, until(5*time.Second), 0)
	f("a second signal", 25*time.Second, time.Second, always, time.Second)
	f("a short deadline", time.Second, time.Second, nobody, 0)
	f("none", 0, 0, nobody, 0)
}

// TestAwaitHealth: nothing is answered before the edges have been looked at, but not
// for ever.
func TestAwaitHealth(t *testing.T) {
	plan, err := sched.Compile(&sched.Snapshot{Nodes: []sched.Node{
		{ID: "a", Role: "edge", Region: "r", HTTPPort: 80, Capacity: 1, Addresses: []netip.Addr{netip.IPv4Unspecified().Next()}},
		{ID: "b", Role: "center", Region: "r", HTTPPort: 80, Capacity: 1},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	known := &sched.State{Nodes: []sched.NodeState{{ID: "a", V6: sched.Health{Status: sched.Down}}}}
	f := func(name string, states map[time.Duration]*sched.State, want time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := &scheduler{decider: sched.New()}
			s.decider.Swap(sched.NewView(plan, nil, nil))
			for after, st := range states {
				time.AfterFunc(after, func() { s.decider.Swap(sched.NewView(plan, nil, st)) })
			}
			began := time.Now()
			s.awaitHealth(t.Context())
			if took := time.Since(began).Round(50 * time.Millisecond); took != want {
				t.Errorf("%s: waited %v, want %v", name, took, want)
			}
		})
	}
	f("at once", map[time.Duration]*sched.State{0: known}, 0)
	f("soon", map[time.Duration]*sched.State{500 * time.Millisecond: known}, 500*time.Millisecond)
	f("never", nil, patience)
}

// TestFitDescriptors: a scheduler runs with few descriptors too, and keeps some of
// them for DNS and probes.
func TestFitDescriptors(t *testing.T) {
	files := []config.Flag{{Name: "--nodes", Key: "files.nodes", Text: "n"}, {Name: "--domains", Key: "files.domains", Text: "d"}}
	loaded, err := config.Load(config.DefaultScheduler(), config.Sources{Flags: files})
	if err != nil {
		t.Fatal(err)
	}
	f := func(limit, connections, dns, probes, room int) {
		t.Helper()
		got, lowered, err := fitDescriptors(loaded, limit)
		if err != nil || got.Listen.MaxConnections != connections || got.DNS.MaxConnections != dns || got.Probe.Concurrency != probes {
			t.Errorf("%d: %d, %d, %d; %v, %v", limit, got.Listen.MaxConnections, got.DNS.MaxConnections, got.Probe.Concurrency, lowered, err)
		}
		if b := budget(&got, limit); b != room {
			t.Errorf("%d: room for %d, want %d", limit, b, room)
		}
	}
	def := config.DefaultScheduler()
	f(100_000, def.Listen.MaxConnections, 1000, 512, 100_000-run.SpareDescriptors-1512)
	f(1024, 768, 768, 512, 384)
	asked, err := config.Load(config.DefaultScheduler(), config.Sources{Flags: append(files, config.Flag{Name: "--set", Key: "dns.max_connections", Text: "5000"})})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := fitDescriptors(asked, 1024); err == nil || !strings.Contains(err.Error(), "--set: dns.max_connections is 5000") {
		t.Errorf("asked for too much: %v", err)
	}
}

// TestReloadsInTheBackground sends signals faster than the files are read.
func TestReloadsInTheBackground(t *testing.T) {
	tr := built(t, "")
	reload, end, over := make(chan os.Signal, 1), make(chan os.Signal, 3), make(chan error, 1)
	go func() { over <- tr.Run(run.Signals{Reload: reload, End: end}) }()
	for range 20 {
		reload <- syscall.SIGHUP
	}
	tr.log.Await(t, "reloaded")
	tr.log.Await(t, "files read again, nothing has changed")
	end <- syscall.SIGTERM
	end <- syscall.SIGTERM
	if err := <-over; err != nil {
		t.Error(err)
	}
}
