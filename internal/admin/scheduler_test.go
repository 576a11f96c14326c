package admin

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/control"
	"millrace/internal/probe"
	"millrace/internal/sched"
)

// placing is a scheduler with an admin server that runs: four edges and a center, of
// which one edge is well over both families.
func placing(t *testing.T, cfg Config) *bench {
	t.Helper()
	now := time.Now()
	addr := func(s ...string) (out []netip.Addr) {
		for _, a := range s {
			out = append(out, netip.MustParseAddr(a))
		}
		return out
	}
	plan, err := sched.Compile(&sched.Snapshot{
		Version: 42,
		Nodes: []sched.Node{
			{ID: "center", Role: "center", Region: "north", Addresses: addr("192.0.2.1"), Capacity: 1000},
			{ID: "full", Role: "edge", Region: "north", Datacenter: "n1", Addresses: addr("192.0.2.3"), HTTPPort: 80, Capacity: 1000},
			{ID: "gone", Role: "edge", Region: "north", Addresses: addr("192.0.2.4"), HTTPPort: 80, Capacity: 1000, Drain: true},
			{ID: "new", Role: "edge", Region: "south", Addresses: addr("192.0.2.5"), HTTPPort: 80, Capacity: 1000},
			{ID: "well", Role: "edge", Region: "north", ISPs: []string{"*"}, Addresses: addr("192.0.2.2", "2001:db8::2"), HTTPPort: 80, Capacity: 1000},
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	up := sched.Health{Status: sched.Up, At: now, Up: now}
	view := sched.NewView(plan, nil, &sched.State{At: now, Nodes: []sched.NodeState{
		{ID: "full", Load: 1000, Viewers: 9, V4: up},
		{ID: "gone", V4: up},
		{ID: "well", Load: 250, Viewers: 3, V4: up, V6: up},
	}})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, client: &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}}
	b.serve(cfg, ln, Program{
		Kind: "scheduler", ID: "here", Role: "scheduler", Version: "1.2.3", Started: now, Draining: b.draining.Load,
		API: NewScheduler(SchedulerSources{
			View:   func() *sched.View { return view },
			Keeper: func() control.Status { return control.Status{Nodes: 5, Made: now, Took: time.Millisecond} },
			Probes: func() probe.Stats { return probe.Stats{Targets: 5, Outcomes: map[string]uint64{"up": 7}} },
			Peers:  func() []control.PeerStatus { return []control.PeerStatus{{Server: "http://there:8091", At: now}} },
			Server: func() control.ServerStats {
				return control.ServerStats{Waiting: 3, Refused: map[string]uint64{"unsigned": 2}}
			},
			Explain: func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("explained") },
		}),
	}, slog.New(slog.DiscardHandler))
	return b
}

func TestPlacedNodes(t *testing.T) {
	b := placing(t, DefaultConfig())
	f := func(query, want string) PlacedNodes {
		t.Helper()
		var got PlacedNodes
		b.get("/v1/nodes"+query, &got)
		var ids []string
		for _, n := range got.Nodes {
			ids = append(ids, n.ID)
		}
		if s := strings.Join(ids, " "); s != want {
			t.Errorf("%s: %s, want %s", query, s, want)
		}
		return got
	}
	all := f("", "center full gone new well")
	f("?region=north", "center full gone well")
	f("?region=north&datacenter=n1", "full")
	f("?why=offered", "well")
	f("?why=unknown_health", "new")
	if page := f("?limit=2", "center full"); page.Matching != 5 || page.Next != "full" || page.Version != 42 {
		t.Errorf("the first page is %+v", page)
	}
	f("?limit=3&after=full", "gone new well")

	for i, want := range []struct{ v4, v6 string }{
		{"not_edge", "not_edge"}, {"full", "family"}, {"draining", "family"}, {"unknown_health", "family"}, {"offered", "offered"},
	} {
		if n := all.Nodes[i]; n.V4.Why != want.v4 || n.V6.Why != want.v6 {
			t.Errorf("%s: %s, %s; want %+v", n.ID, n.V4.Why, n.V6.Why, want)
		}
	}
	var one PlacedNode
	b.get("/v1/nodes/well", &one)
	if one.Used != 0.25 || one.Viewers != 3 || one.V6.Address.String() != "2001:db8::2" || one.V4.Status != "up" || one.Weight != 1 {
		t.Errorf("one node is %+v", one)
	}
	b.get("/v1/nodes/gone", &one)
	if len(one.Marks) != 1 || one.Marks[0] != "draining" || one.Draining {
		t.Errorf("a node that an operator drains is %+v", one)
	}
	for path, want := range map[string]int{
		"/v1/nodes?why=moody": 400, "/v1/nodes?limit=0": 400, "/v1/nodes/nobody": 404, "/v1/streams": 404, "/v1/nodes/": 404,
	} {
		if status, body := b.ask("GET", path); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, body, want)
		}
	}
	if status, _ := b.ask("POST", "/v1/nodes"); status != 405 {
		t.Errorf("POST: %d", status)
	}
}

func TestSchedulerStatus(t *testing.T) {
	b := placing(t, DefaultConfig())
	var got SchedulerStatus
	b.get("/v1/status", &got)
	if s := got.State; s.Edges != 4 || s.V4["offered"] != 1 || s.V4["full"] != 1 || s.V6["family"] != 3 || s.Load != 1250 || s.Capacity != 4000 || s.Viewers != 12 {
		t.Errorf("the state is %+v", s)
	}
	if got.Snapshot.Nodes != 5 || got.Probes.Targets != 5 || len(got.Peers) != 1 || got.Server == nil || got.Server.Waiting != 3 {
		t.Errorf("the status is %+v", got)
	}
	if _, body := b.ask("GET", "/v1/explain"); body != "explained" {
		t.Errorf("explained as %q", body)
	}
	if _, body := b.ask("GET", "/"); !strings.Contains(body, "/v1/explain") || !strings.Contains(body, "/healthz") || strings.Contains(body, "/v1/streams") {
		t.Errorf("the overview is\n%s", body)
	}
}

func TestSchedulerMetrics(t *testing.T) {
	b := placing(t, DefaultConfig())
	b.want(b.scrape(), map[string]float64{
		"millrace_scheduler_info{revision=,role=scheduler,version=1.2.3}": 1,
		"millrace_sched_snapshot_version{}":                               42,
		"millrace_sched_edges{}":                                          4,
		"millrace_sched_edges_by_reason{family=v4,reason=offered}":        1,
		"millrace_sched_edges_by_reason{family=v4,reason=unhealthy}":      0,
		"millrace_sched_edges_by_reason{family=v6,reason=family}":         3,
		"millrace_sched_edges_load_bytes_per_second{}":                    1250,
		"millrace_sched_view_build_seconds{}":                             0.001,
		"millrace_probe_probes_total{outcome=up}":                         7,
		"millrace_control_waiting{}":                                      3,
		"millrace_control_refused_total{reason=unsigned}":                 2,
		"millrace_control_peer_alive{peer=http://there:8091}":             1,
	})
}

// TestSchedulerAccess: the rules of access are those of a node.
func TestSchedulerAccess(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Token = token
	b := placing(t, cfg)
	if status, body := b.ask("GET", "/v1/explain"); status != 401 {
		t.Errorf("without the token: %d %s", status, body)
	}
	status, body := b.ask("GET", "/v1/nodes", "Authorization", "Bearer "+token)
	var got PlacedNodes
	if err := json.Unmarshal([]byte(body), &got); status != 200 || err != nil {
		t.Errorf("with the token: %d %s", status, body)
	}
	b.draining.Store(true)
	if status, _ := b.ask("GET", "/healthz"); status != 503 {
		t.Errorf("draining: %d", status)
	}
}
