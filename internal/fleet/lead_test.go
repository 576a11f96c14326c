package fleet

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control"
	"millrace/internal/plan"
)

func ids(list []control.Target) []string {
	out := []string{}
	for _, t := range list {
		out = append(out, t.Node)
	}
	return out
}

func TestPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, "r1", memory(t), nil)
		nodes := network()
		live(t, 8*time.Second, r.Fleet, nodes...)
		p := r.Plan()
		if p.Version == 0 || p.Leader != "r1" || len(p.Pools) != len(nodes) {
			t.Fatalf("the plan: %+v", p)
		}
		for _, row := range p.Pools {
			switch {
			case row.Role == plan.Center:
			case len(row.Pool) == 0:
				t.Errorf("%s has no upstream", row.Node)
			case !row.Follows:
				t.Errorf("%s does not follow the orders that it was told of", row.Node)
			}
		}
		o := r.makeOrders("edge-a1")
		if o == nil || r.Orders("edge-a1").Token() != o.Token() {
			t.Fatal("an edge has no orders, or others each time")
		}
		e := r.ordersOf("edge-a1")
		if len(e.Pool) == 0 || e.Pool[0].URL == "" || !slices.Equal(ids(e.Peers), []string{"edge-a2"}) || !slices.Equal(ids(e.Centers), []string{"center-1"}) ||
			len(e.Measure) < len(e.Pool) || !e.Paths {
			t.Errorf("the orders of an edge: %+v", e)
		}
		if c := r.ordersOf("center-1"); len(c.Pool) != 0 || len(c.Centers) != 0 {
			t.Errorf("the orders of a center: %+v", c)
		}
		if r.Orders("nobody") != nil {
			t.Error("a node that nobody knows has orders")
		}
	})
}

// TestPlanStays wants nothing published, and nobody told, while nothing changes.
func TestPlanStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, "r1", memory(t), nil)
		nodes := network()
		live(t, 5*time.Second, r.Fleet, nodes...)
		version := r.Plan().Version
		r.told()
		live(t, 60*time.Second, r.Fleet, nodes...)
		if p := r.Plan(); p.Version != version {
			t.Errorf("the plan went from %d to %d by itself", version, p.Version)
		}
		if told := r.told(); len(told) > 0 {
			t.Errorf("told %v of new orders", told)
		}
		if at := r.Plan().At; time.Since(at) > figuresEvery+2*time.Second {
			t.Errorf("the figures are of %v", at)
		}
	})
}

func TestNodeDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, "r1", memory(t), nil)
		nodes := network()
		live(t, 5*time.Second, r.Fleet, nodes...)
		r.told()
		dead := r.ordersOf("edge-a1").Pool[0].Node
		left := slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool { return n.ID == dead })
		live(t, 6*time.Second, r.Fleet, left...)
		for _, n := range left {
			if o := r.ordersOf(n.ID); slices.Contains(ids(o.Pool), dead) || slices.Contains(ids(o.Peers), dead) || slices.Contains(ids(o.Centers), dead) {
				t.Errorf("%s is told of the dead %s: %+v", n.ID, dead, o)
			}
		}
		if !slices.Contains(r.told(), "edge-a1") {
			t.Error("edge-a1 was not told that it has new orders")
		}
		if e := r.Events(EventFilter{Kind: KindNodeDown}, 0, 10); len(e.Events) != 1 || e.Events[0].Node != dead {
			t.Errorf("events: %+v", e.Events)
		}
		if n, ok := r.Node(dead); !ok || n.State != NodeDown {
			t.Errorf("the dead node is shown as %+v", n)
		}
		// It comes back, and is used again.
		live(t, 40*time.Second, r.Fleet, nodes...)
		if e := r.Events(EventFilter{Kind: KindNodeUp, Node: dead}, 0, 10); len(e.Events) != 2 {
			t.Errorf("events: %+v", e.Events)
		}
		if n, _ := r.Node(dead); n.State != NodeUp {
			t.Errorf("the node that returned is %s", n.State)
		}
	})
}

// TestForgotten wants a node that is silent for long gone, but not when nobody is heard.
func TestForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, "r1", memory(t), func(c *Config) { c.Forget = time.Minute })
		nodes := network()
		live(t, 5*time.Second, r.Fleet, nodes...)
		live(t, 70*time.Second, r.Fleet, nodes[:6]...)
		if _, ok := r.Node("edge-b2"); ok {
			t.Error("edge-b2 is still known")
		}
		if e := r.Events(EventFilter{Kind: KindNodeGone}, 0, 10); len(e.Events) != 1 {
			t.Errorf("events: %+v", e.Events)
		}
		if n := len(r.bundles.in.Load().bundle.Snapshot.Nodes); n != 3 {
			t.Errorf("%d edges are offered to schedulers", n)
		}
		time.Sleep(10 * time.Minute) // cut off
		if n := r.Network(); len(n.Nodes) != 6 || n.Totals.Up != 0 {
			t.Errorf("%d nodes are known, %d of them up", len(n.Nodes), n.Totals.Up)
		}
		if n := len(r.bundles.in.Load().bundle.Snapshot.Nodes); n != 3 {
			t.Errorf("%d edges are offered to schedulers", n)
		}
	})
}

// TestRestart wants a router that begins again to serve what was, and to plan nothing
// until it has heard of the nodes.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		nodes := network()
		r := run(t, "r1", s, nil)
		live(t, 12*time.Second, r.Fleet, nodes...)
		before, bundle := r.Plan(), r.bundles.in.Load().bundle.Version
		orders := r.Orders("edge-a1").Token()
		r.stop()
		time.Sleep(10 * time.Minute)

		r = run(t, "r1", s, nil)
		time.Sleep(time.Second)
		if o := r.Orders("edge-a1"); o == nil || o.Token() != orders {
			t.Error("the orders are others, or gone")
		}
		if len(r.Network().Nodes) != len(nodes) {
			t.Errorf("%d nodes are known", len(r.Network().Nodes))
		}
		time.Sleep(2 * time.Second)
		for range 4 { // nodes come back one after the other
			live(t, time.Second, r.Fleet, nodes[:3]...)
		}
		live(t, 10*time.Second, r.Fleet, nodes...)
		if p := r.Plan(); p.Version != before.Version {
			t.Errorf("the plan went from %d to %d", before.Version, p.Version)
		}
		if is := r.bundles.in.Load().bundle.Version; is != bundle {
			t.Errorf("the snapshot went from %v to %v", bundle, is)
		}
		if e := r.Events(EventFilter{Kind: KindNodeDown}, 0, 10); len(e.Events) > 0 {
			t.Errorf("events: %+v", e.Events)
		}
		// It is told of who never comes back.
		if r.told() != nil {
			t.Error("nodes were told of new orders")
		}
	})
}

// TestRestartLess wants nodes that do not come back after the router taken for dead.
func TestRestartLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		nodes := network()
		r := run(t, "r1", s, nil)
		live(t, 12*time.Second, r.Fleet, nodes...)
		r.stop()
		r = run(t, "r1", s, nil)
		live(t, 15*time.Second, r.Fleet, nodes[:6]...)
		if e := r.Events(EventFilter{Kind: KindNodeDown}, 0, 10); len(e.Events) != 1 || e.Events[0].Node != "edge-b2" {
			t.Errorf("events: %+v", e.Events)
		}
		if o := r.ordersOf("edge-b1"); len(o.Peers) != 0 {
			t.Errorf("edge-b1 shares streams with %v", ids(o.Peers))
		}
	})
}

func TestConfig(t *testing.T) {
	f := func(want string, change func(*Config)) {
		t.Helper()
		c := DefaultConfig()
		c.Router = "r1"
		change(&c)
		if err := c.Validate(); (err == nil) != (want == "") || err != nil && !contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	f("", func(*Config) {})
	f("id", func(c *Config) { c.Router = "a b" })
	f("every", func(c *Config) { c.Every = 0 })
	f("twice the interval", func(c *Config) { c.Interval = 2 * time.Second })
	f("grace", func(c *Config) { c.Grace = time.Second })
	f("forget", func(c *Config) { c.Forget = time.Second })
	f("lease", func(c *Config) { c.Lease = 0 })
	f("capacity", func(c *Config) { c.Capacity = 0 })
	f("max_nodes", func(c *Config) { c.MaxNodes = 0 })
	f("max_streams", func(c *Config) { c.MaxStreams = -1 })
	f("", func(c *Config) { c.Paths = false })
	f("pool", func(c *Config) { c.Plan.Pool = 0 })
}
