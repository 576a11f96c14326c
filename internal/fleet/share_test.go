package fleet

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control"
	"millrace/internal/plan"
	"millrace/internal/store"
)

// leader returns who of the two plans.
func leader(t *testing.T, a, b *running) (*running, *running) {
	t.Helper()
	now := time.Now()
	switch {
	case a.leads(now) && b.leads(now):
		t.Fatal("both routers plan")
	case a.leads(now):
		return a, b
	case b.leads(now):
		return b, a
	}
	t.Fatal("no router plans")
	return nil, nil
}

// TestTwoRouters shares the nodes between two routers.
func TestTwoRouters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		a, b := run(t, "r1", s, nil), run(t, "r2", s, nil)
		nodes := network()
		nodes[3].streams = carry(40, "relay-a")
		nodes[0].streams = []control.Carried{{Name: "live/s1", Source: true, Epoch: 1, Bitrate: 1000}}
		both := func(span time.Duration) {
			t.Helper()
			for range span / time.Second {
				for i, n := range nodes {
					n.beat(t, [...]*Fleet{a.Fleet, b.Fleet}[i%2])
				}
				time.Sleep(time.Second)
			}
			time.Sleep(beside)
		}
		both(6 * time.Second)
		for _, r := range []*running{a, b} {
			m := r.Network()
			if m.Totals.Up != len(nodes) || m.Totals.Streams != 40 || len(m.Routers) != 2 {
				t.Errorf("%s sees %+v, routers %+v", m.Router, m.Totals, m.Routers)
			}
			if st := r.Stream("live/s1"); !st.Known || st.Source != "center-1" || st.Nodes != 2 {
				t.Errorf("%s sees the stream as %+v", m.Router, st)
			}
		}
		leader(t, a, b)
		if a.Plan().Version == 0 || a.Plan().Version != b.Plan().Version {
			t.Errorf("plans %d and %d", a.Plan().Version, b.Plan().Version)
		}
		for _, n := range nodes {
			if x, y := a.Orders(n.ID), b.Orders(n.ID); x == nil || y == nil || x.Token() != y.Token() {
				t.Errorf("the routers give %s different orders: %+v and %+v", n.ID, a.ordersOf(n.ID), b.ordersOf(n.ID))
			}
		}
		if x, y := a.bundles.in.Load().bundle.Version, b.bundles.in.Load().bundle.Version; x != y {
			t.Errorf("snapshots %v and %v", x, y)
		}
		// Nothing changes hands while both live.
		both(60 * time.Second)
		if e := a.Events(EventFilter{Kind: KindLeader}, 0, 10); len(e.Events) != 1 {
			t.Errorf("the lease changed hands: %+v", e.Events)
		}
		if e := b.Events(EventFilter{Kind: KindNodeDown}, 0, 10); len(e.Events) != 0 {
			t.Errorf("nodes went down: %+v", e.Events)
		}
		// Samples heard by one count at the other.
		nodes[3].samples = []plan.Sample{{From: "relay-a", To: "edge-a1", At: time.Now(), RTT: 9 * time.Millisecond, OK: true}}
		nodes[3].events = []control.Event{{Number: 1, At: time.Now(), Kind: "switch", Stream: "live/s1", From: "relay-a", To: "relay-b", Reason: "slow"}}
		nodes[3].players = []control.Players{{Region: "north", ISP: "telecom", Started: 2, FirstByte: 100}}
		both(4 * time.Second)
		for _, r := range []*running{a, b} {
			if l, ok := r.Link("relay-a", "edge-a1"); !ok || l.RTT != 9 {
				t.Errorf("a link is %+v", l)
			}
			if e := r.Events(EventFilter{Kind: "switch", Stream: "live/s1"}, 0, 10); len(e.Events) != 1 || e.Events[0].Node != "edge-a1" {
				t.Errorf("events: %+v", e.Events)
			}
			if q := r.Quality(); len(q) != 1 || q[0].FirstByte != 50 || q[0].Datacenter != "a" {
				t.Errorf("players: %+v", q)
			}
		}
	})
}

// TestTakeover ends the router that plans as kill -9 would: the other one plans within
// three seconds, and nobody is moved.
func TestTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &flaky{Store: memory(t)}
		a, b := run(t, "r1", s, nil), run(t, "r2", s, nil)
		nodes := network()
		live(t, 6*time.Second, a.Fleet, nodes...)
		first, second := leader(t, a, b)
		version := second.Plan().Version
		s.silence.Store(&first.cfg.Router) // what it says does not arrive
		began := time.Now()
		for !second.leads(time.Now()) {
			for _, n := range nodes {
				n.beat(t, second.Fleet)
			}
			time.Sleep(100 * time.Millisecond)
			if time.Since(began) > 3*time.Second {
				t.Fatal("nobody plans after three seconds")
			}
		}
		live(t, 10*time.Second, second.Fleet, nodes...)
		if first.leads(time.Now()) {
			t.Error("the one that cannot reach the store believes that it plans")
		}
		if p := second.Plan(); p.Version != version {
			t.Errorf("the plan went from %d to %d", version, p.Version)
		}
		if e := second.Events(EventFilter{Kind: KindNodeDown}, 0, 10); len(e.Events) > 0 {
			t.Errorf("nodes went down: %+v", e.Events)
		}
		if e := second.Events(EventFilter{Kind: KindRouterDown}, 0, 10); len(e.Events) != 1 {
			t.Errorf("events of routers: %+v", e.Events)
		}
		if n := second.Network(); n.Routers[1].Up || n.Routers[1].Leader {
			t.Errorf("routers: %+v", n.Routers)
		}
		at := second.Plan().At
		live(t, 12*time.Second, second.Fleet, nodes...)
		if !second.Plan().At.After(at) {
			t.Error("the new one publishes nothing")
		}
		// The old one returns, and does not take the lease back.
		s.silence.Store(nil)
		live(t, 10*time.Second, second.Fleet, nodes...)
		if !second.leads(time.Now()) || first.leads(time.Now()) {
			t.Error("the lease changed hands again")
		}
		if first.Plan().Version != second.Plan().Version || !first.Plan().At.Equal(second.Plan().At) {
			t.Error("the one that returned has another plan")
		}
	})
}

// TestHandover ends the router that plans in order: the other plans at once.
func TestHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		a, b := run(t, "r1", s, nil), run(t, "r2", s, nil)
		nodes := network()
		live(t, 5*time.Second, a.Fleet, nodes...)
		first, second := leader(t, a, b)
		first.stop()
		time.Sleep(time.Second)
		if !second.leads(time.Now()) {
			t.Error("nobody plans a second after the other one has left")
		}
	})
}

// TestEditOnEither makes edits on both routers and looks for them on the other.
func TestEditOnEither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		a, b := run(t, "r1", s, nil), run(t, "r2", s, nil)
		nodes := network()
		live(t, 6*time.Second, a.Fleet, nodes...)
		ctx := t.Context()
		for i, r := range []*running{a, b} {
			other := [...]*running{b, a}[i]
			other.Orders("edge-a1") // who has never asked is not told
			up := [...]string{"relay-b", "relay-a"}[i]
			d, err := r.Edit(ctx, KeyEdits, uint64(i), []byte(`{"pins":[{"node":"edge-a1","upstreams":["`+up+`"]}]}`), "ann", "try "+up)
			if err != nil {
				t.Fatal(err)
			}
			live(t, 4*time.Second, a.Fleet, nodes...)
			if e := other.Edits(); e.Version != d.Version || e.Author != "ann" || len(e.Edits.Pins) != 1 || e.Edits.Pins[0].Upstreams[0] != up {
				t.Errorf("the other router has %+v", e)
			}
			for _, r := range []*running{a, b} {
				if o := r.ordersOf("edge-a1"); o.Pool[0].Node != up {
					t.Errorf("pinned to %s, and the pool is %v", up, ids(o.Pool))
				}
				if e := r.Events(EventFilter{Kind: KindEdit}, 0, 10); len(e.Events) != i+1 {
					t.Errorf("events: %+v", e.Events)
				}
			}
			if !slices.Contains(other.told(), "edge-a1") {
				t.Error("edge-a1 was not told by the other router")
			}
		}
	})
}

// TestStoreAway takes the store from both: all that was decided stays, for as long as it
// takes, and what was missed is caught up with.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &flaky{Store: memory(t)}
		a, b := run(t, "r1", s, nil), run(t, "r2", s, nil)
		nodes := network()
		both := func(span time.Duration, nodes ...*node) {
			t.Helper()
			for range span / time.Second {
				for i, n := range nodes {
					n.beat(t, [...]*Fleet{a.Fleet, b.Fleet}[i%2])
				}
				time.Sleep(time.Second)
			}
			time.Sleep(beside)
		}
		both(6*time.Second, nodes...)
		version, orders := a.Plan().Version, a.Orders("edge-a1").Token()
		s.away.Store(true)
		both(120*time.Second, nodes...)
		for _, r := range []*running{a, b} {
			if p := r.Plan(); p.Version != version || r.leads(time.Now()) {
				t.Errorf("plan %d, leads %v", p.Version, r.leads(time.Now()))
			}
			if o := r.Orders("edge-a1"); o.Token() != orders {
				t.Error("orders have changed")
			}
			if n := r.Network(); n.Totals.Up != len(nodes) || n.Store {
				t.Errorf("%s counts on %d nodes, store %v", n.Router, n.Totals.Up, n.Store)
			}
			if route := r.Path("edge-a1", "live/a"); len(route.Choices) == 0 {
				t.Errorf("paths: %+v", route)
			}
			if _, err := r.Edit(t.Context(), KeyEdits, 0, []byte("{}"), "ann", ""); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("an edit: %v", err)
			}
			if e := r.Events(EventFilter{Kind: KindStoreDown}, 0, 10); len(e.Events) != 1 {
				t.Errorf("events: %+v", e.Events)
			}
		}
		s.away.Store(false)
		both(6*time.Second, nodes...)
		leader(t, a, b)
		if p := a.Plan(); p.Version != version {
			t.Errorf("the plan went from %d to %d", version, p.Version)
		}
		both(20*time.Second, nodes[:6]...)
		if p, q := a.Plan(), b.Plan(); p.Version == version || p.Version != q.Version {
			t.Errorf("after a node has died the plans are %d and %d", p.Version, q.Version)
		}
	})
}

// TestEventsOutliveAnOutage: what happens while the store is away for a moment is told
// to the other router after that.
func TestEventsOutliveAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &flaky{Store: memory(t)}
		a, b := run(t, "r1", s, nil), run(t, "r2", s, nil)
		nodes := network()
		live(t, 5*time.Second, a.Fleet, nodes...)
		s.away.Store(true)
		nodes[3].events = []control.Event{{Number: 1, At: time.Now(), Kind: "switched", Stream: "live/a"}}
		live(t, 3*time.Second, a.Fleet, nodes...)
		s.away.Store(false)
		live(t, 3*time.Second, a.Fleet, nodes...)
		for _, r := range []*running{a, b} {
			if e := r.Events(EventFilter{Kind: "switched"}, 0, 10); len(e.Events) != 1 {
				t.Errorf("%s knows %+v", r.cfg.Router, e.Events)
			}
		}
	})
}

// TestTwoOfOneName lets two machines go by one name, each at another router: one stays.
func TestTwoOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		a, b := run(t, "r1", s, nil), run(t, "r2", s, nil)
		first, second := newNode("edge-1", plan.Edge, "a"), newNode("edge-1", plan.Edge, "b")
		time.Sleep(5 * time.Second)
		second.boot, second.started = "OTHER", time.Now()
		second.from = addressOf("another")
		live(t, 3*time.Second, a.Fleet, first)
		taken := 0
		for range 10 {
			if _, why, _ := b.Heartbeat(time.Now(), second.message(), second.from); why == control.IdentityTaken {
				taken++
			}
			first.beat(t, a.Fleet)
			time.Sleep(time.Second)
		}
		if taken != 10 {
			t.Errorf("the second was refused %d times of 10", taken)
		}
	})
}
