package main

import (
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/control"
	"millrace/internal/runtest"
	"millrace/internal/stream"
)

// routerOf is a router as nodes see it: it remembers what it hears and tells what it is
// given to tell.
type routerOf struct {
	*control.Server
	url  string
	stop func()

	// Guarded by mu.
	mu     sync.Mutex
	last   control.Heartbeat
	first  control.Identity
	heard  map[stream.Name]control.Carried
	events []control.Event
	played float64
	paper  *control.OrdersPaper
	route  control.Route
	asked  int // for paths
}

func (r *routerOf) Heartbeat(_ time.Time, h *control.Heartbeat, _ netip.Addr) (control.Ack, control.Refusal, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.Identity != nil {
		r.first = *h.Identity
	}
	for _, c := range h.Streams.Set {
		r.heard[c.Name] = c
	}
	for _, name := range h.Streams.Gone {
		delete(r.heard, name)
	}
	for _, p := range h.Players {
		r.played += p.Played
	}
	r.last, r.events = *h, append(r.events, h.Events...)
	return control.Ack{Router: "router-1", Sequence: h.Sequence, Interval: 200}, control.NotRefused, nil
}

func (r *routerOf) Refused(time.Time, string, netip.Addr, control.Refusal, string) {}

func (r *routerOf) Placeless(string) (control.Refusal, string) {
	return control.NoSnapshot, "nothing yet"
}

func (r *routerOf) Orders(string) *control.OrdersPaper {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paper
}

func (r *routerOf) Path(_ string, s stream.Name) control.Route {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	out := r.route
	out.Stream = s
	return out
}

// order has nodes told what to do.
func (r *routerOf) order(o control.Orders) {
	r.mu.Lock()
	o.Origin, o.Weight = "routers", 1
	r.paper = control.NewOrdersPaper(&o)
	r.mu.Unlock()
	r.OrdersChanged([]string{o.Node})
}

// newRouterOf starts a router.
func newRouterOf(t *testing.T) *routerOf {
	t.Helper()
	cluster, err := auth.NewCluster(auth.ClusterConfig{Keys: []string{clusterKey}, Skew: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	r := &routerOf{heard: map[stream.Name]control.Carried{}}
	if r.Server, err = control.NewServer(control.DefaultServerConfig(), cluster, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	r.Fleet(r)
	r.url, r.stop = runtest.Serve(t, r.Handle, r.Close)
	return r
}

// routed returns a node that works with a router.
func routed(t *testing.T, r *routerOf, id, role, text string) *trial {
	t.Helper()
	return built(t, "id: "+id+"\nrole: "+role+"\ncluster: {keys: [\""+clusterKey+"\"]}\nrouter:\n  servers: [\""+r.url+"\"]\n"+text)
}

// hears waits until what r has heard fulfils a condition.
func (r *routerOf) hears(t *testing.T, what string, cond func() bool) {
	t.Helper()
	runtest.Until(t, what, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return cond()
	})
}

// TestTellsRouters: a router hears what the node is, what it has and how its players
// fare, and that it drains.
func TestTellsRouters(t *testing.T) {
	r := newRouterOf(t)
	tr := routed(t, r, "center-1", "center", "  region: south\n  isps: [\"*\"]\n  groups: [default]\n  domain: hall-2\n  price: 0.5\n"+
		"datacenter: city\nscheduling: {capacity: 125MB}\n")
	tr.publish(t, "live/a")
	tr.start(t)
	r.hears(t, "a heartbeat", func() bool { return r.last.Sequence > 0 })
	i := r.first
	if i.ID != "center-1" || i.Role != "center" || i.Datacenter != "city" || i.Region != "south" || i.ISPs[0] != "*" || i.Groups[0] != "default" ||
		i.Domain != "hall-2" || i.Price != 0.5 || i.Weight != 1 || i.Capacity != 125e6 || i.Program == "" {
		t.Errorf("it says that it is %+v", i)
	}
	if want := tr.url("http", ""); i.URL != want || i.Push != strings.Replace(tr.url("rtmp", ""), "http", "rtmp", 1) ||
		i.Probe != strings.TrimPrefix(tr.url("probe", ""), "http://") || len(i.Addresses) != 1 || i.Addresses[0].String() != "127.0.0.1" || i.HTTPPort == 0 {
		t.Errorf("it is reached at %+v", i)
	}
	r.hears(t, "the stream", func() bool { c := r.heard["live/a"]; return c.Source && c.Epoch > 0 && c.From == "" })

	resp, err := http.Get(tr.url("http", "/live/a.flv"))
	if err != nil {
		t.Fatal(err)
	}
	r.hears(t, "a viewer", func() bool { return r.heard["live/a"].Viewers == 1 && r.last.Viewers == 1 })
	resp.Body.Close()
	report, err := http.Post(tr.url("http", "/v1/report"), "text/plain", strings.NewReader(`{"stream": "live/a", "played_ms": 3000, "first_frame_ms": 80}`))
	if err != nil {
		t.Fatal(err)
	}
	report.Body.Close()
	r.hears(t, "what the player says", func() bool { return r.played == 3 })
	runtest.Until(t, "the admin port shows it", func() bool {
		_, body := runtest.Get(t, tr.url("admin", "/v1/router"))
		return strings.Contains(body, `"router":"router-1"`) && strings.Contains(body, `"in_force":null`)
	})
	if _, text := runtest.Get(t, tr.url("admin", "/metrics")); !strings.Contains(text, "millrace_routing_alive 1") || !strings.Contains(text, `millrace_quality_reports_total{outcome="accepted"} 1`) {
		t.Errorf("the metrics are\n%s", text)
	}
	r.hears(t, "the viewer has left", func() bool { return r.last.Viewers == 0 })
	go tr.drain(t.Context(), schedule(time.Now(), 0, 0), nil)
	r.hears(t, "it drains", func() bool { return r.last.Draining })
}

// TestFollowsOrders: streams come from where the router says, stream by stream where it
// wants to be asked, and go on coming without it; a node that starts then has the orders
// on disk.
func TestFollowsOrders(t *testing.T) {
	r := newRouterOf(t)
	center := routed(t, r, "center-1", "center", "")
	center.publish(t, "live/a")
	center.publish(t, "live/b")
	center.start(t)
	state := filepath.Join(t.TempDir(), "orders")
	edge := routed(t, r, "edge-1", "edge", "  state_file: "+state+"\n")
	edge.start(t)
	plays := func(tr *trial, name string) func() bool {
		return func() bool {
			resp, err := http.Get(tr.url("http", "/live/"+name+".flv"))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			n, _ := io.ReadFull(resp.Body, make([]byte, 13))
			return resp.StatusCode == http.StatusOK && n == 13
		}
	}
	if plays(edge, "a")() {
		t.Error("the edge has a stream, and nobody has told from where")
	}
	up := control.Target{Node: "center-1", URL: center.url("http", ""), Probe: strings.TrimPrefix(center.url("probe", ""), "http://")}
	r.order(control.Orders{Version: 1, Node: "edge-1", Pool: []control.Target{up}, Measure: []control.Target{up}})
	edge.log.Await(t, "orders in force")
	runtest.Until(t, "it plays by the pool", plays(edge, "a"))
	r.hears(t, "where it is from, and its events", func() bool { return r.heard["live/a"].From == "center-1" && len(r.events) > 0 })
	r.hears(t, "the center has no viewers", func() bool { return r.last.Node == "center-1" && r.last.Viewers == 0 && r.last.Load > 0 })
	r.hears(t, "samples of the way", func() bool { return len(r.last.Samples) > 0 && r.last.Samples[0].To == "edge-1" })
	if r.asked != 0 {
		t.Error("it asks for paths without being told to")
	}

	r.mu.Lock()
	r.route = control.Route{Source: "center-1", Reason: "direct", Choices: []control.Target{up}}
	r.mu.Unlock()
	r.order(control.Orders{Version: 2, Node: "edge-1", Paths: true})
	runtest.Until(t, "the second orders are in force", func() bool { return len(edge.log.Lines(t, "orders in force")) > 1 })
	runtest.Until(t, "it plays by the path", plays(edge, "b"))
	r.hears(t, "a question for the path", func() bool { return r.asked > 0 })

	r.order(control.Orders{Version: 3, Node: "edge-1", Pool: []control.Target{up}})
	runtest.Until(t, "the third orders are in force", func() bool { return len(edge.log.Lines(t, "orders in force")) > 2 })
	r.stop()
	if !plays(edge, "a")() {
		t.Error("it does not play without the router")
	}
	late := routed(t, r, "edge-1", "edge", "  state_file: "+state+"\n")
	late.start(t)
	runtest.Until(t, "a node that starts without the router plays", plays(late, "b"))
	if !strings.Contains(late.log.String(), "beginning with the orders on disk") {
		t.Errorf("its log is\n%s", late.log)
	}
}

// TestOtherRouters: a reload puts another list of routers in force, and who plays goes on
// playing. The first router, and none any more, need a restart.
func TestOtherRouters(t *testing.T) {
	first, second := newRouterOf(t), newRouterOf(t)
	tr := routed(t, first, "edge-1", "edge", "")
	tr.publish(t, "live/a")
	tr.start(t)
	first.hears(t, "a heartbeat", func() bool { return first.last.Sequence > 0 })
	resp, err := http.Get(tr.url("http", "/live/a.flv"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := os.ReadFile(tr.file)
	if err != nil {
		t.Fatal(err)
	}
	to := func(url string) {
		t.Helper()
		tr.write(t, strings.ReplaceAll(string(text), first.url, url))
		tr.reload(tr.read())
	}
	to(second.url)
	if l := tr.log.Lines(t, "changed"); len(l) != 1 || l[0]["setting"] != "router.servers" || l[0]["new"] != "["+second.url+"]" {
		t.Errorf("told: %v", l)
	}
	second.hears(t, "a heartbeat, with the player", func() bool { return second.first.ID == "edge-1" && second.last.Viewers == 1 })
	second.order(control.Orders{Node: "edge-1", Version: 1, Paths: true, Pool: []control.Target{{Node: "center-9", URL: "http://127.0.0.1:1"}}})
	tr.log.Await(t, "orders in force")
	_, _ = tr.route(t.Context(), "live/b") // it does not know the stream
	second.hears(t, "a question for a path", func() bool { return second.asked == 1 })
	for what, server := range map[string]string{
		"orders": tr.routing.follower.Status().From, "paths": tr.routing.finder.Status().Server, "snapshots": tr.placing.follower.Status().From,
		"reports": tr.placing.peers.Status()[0].Server, "whereabouts": (*tr.routing.where.servers.Load())[0],
	} {
		if server != second.url {
			t.Errorf("%s are asked of %s, want %s", what, server, second.url)
		}
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 13)); err != nil {
		t.Errorf("the player was sent away: %v", err)
	}
	to("")
	if l := tr.log.Lines(t, "reload refused, the old settings stay"); len(l) != 1 {
		t.Errorf("an empty URL is taken: %v", l)
	}
	tr.write(t, strings.ReplaceAll(string(text), `["`+first.url+`"]`, "[]"))
	tr.reload(tr.read())
	if l := tr.log.Lines(t, "changed, but only a restart puts it in force"); len(l) != 1 || l[0]["setting"] != "router.servers" || tr.cfg.Router.Servers[0] != second.url {
		t.Errorf("without routers: told %v, in force %v", l, tr.cfg.Router.Servers)
	}
}

// TestWithoutRouters: the node says so.
func TestWithoutRouters(t *testing.T) {
	tr := built(t, "")
	tr.start(t)
	if code, body := runtest.Get(t, tr.url("admin", "/v1/router")); code != 404 || !strings.Contains(body, "--router") {
		t.Errorf("%d %s", code, body)
	}
}

func TestWordOf(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "peer_closed": "peer_closed", "NetStream.Publish.BadName": "netstream_publish_badname", "é-1": "_-1",
	} {
		if got := wordOf(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
	if got := wordOf(strings.Repeat("a", 100)); len(got) != 64 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestHostPort(t *testing.T) {
	for in, want := range map[string]string{
		"http://router": "router:80", "https://router/": "router:443", "http://[2001:db8::1]:8070": "[2001:db8::1]:8070", "http://10.0.0.1:1": "10.0.0.1:1",
	} {
		if got := hostPort(in); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}

// TestWhereabouts: the address on the way to the first router that has one.
func TestWhereabouts(t *testing.T) {
	w := newWhereabouts([]string{"http://no-such-host.invalid:1", "http://127.0.0.1:1"})
	if a, ok := w.look(t.Context()); !ok || a.String() != "127.0.0.1" {
		t.Errorf("found %v, %v", a, ok)
	}
	b := bound{port: 8080}
	given := []netip.Addr{netip.MustParseAddr("203.0.113.7")}
	f := func(b bound, given []netip.Addr, local netip.Addr, want string) {
		t.Helper()
		if got := b.hostOf(given, local); got != want {
			t.Errorf("%v, %v, %v: %q, want %q", b, given, local, got, want)
		}
	}
	local := netip.MustParseAddr("10.0.0.2")
	f(b, nil, netip.Addr{}, "")
	f(b, nil, local, "10.0.0.2")
	f(b, given, local, "203.0.113.7")
	f(bound{addr: netip.MustParseAddr("::1")}, given, local, "::1")
	if got := b.at("::1"); got != "[::1]:8080" {
		t.Errorf("at %s", got)
	}
}
