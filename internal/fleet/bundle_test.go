package fleet

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control"
	"millrace/internal/plan"
	"millrace/internal/sched"
)

// placed is the edge of that id in the bundle in force.
func (r *running) placed(id string) *sched.Node {
	in := r.bundles.in.Load()
	if in == nil {
		return nil
	}
	for i := range in.bundle.Snapshot.Nodes {
		if n := &in.bundle.Snapshot.Nodes[i]; n.ID == id {
			return n
		}
	}
	return nil
}

func TestBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, "r1", memory(t), nil)
		nodes := network()
		nodes[6].Region = "nowhere" // that operators have not declared
		bad := newNode("edge-bad", plan.Edge, "a")
		bad.Addresses = nil
		nodes = append(nodes, bad)
		ctx := t.Context()
		edit := func(key string, based uint64, body string) {
			t.Helper()
			if _, err := r.Edit(ctx, key, based, []byte(body), "ann", ""); err != nil {
				t.Fatal(err)
			}
			live(t, 4*time.Second, r.Fleet, nodes...)
		}
		live(t, 5*time.Second, r.Fleet, nodes...)
		first := r.bundles.in.Load().bundle.Version
		if n := r.placed("edge-a1"); n == nil || n.HTTPPort != 8080 || n.Capacity != 1<<30 || n.Drain {
			t.Fatalf("an edge: %+v", n)
		}
		if r.placed("relay-a") != nil || r.placed("center-1") != nil || r.placed("edge-bad") != nil {
			t.Error("what is no edge, or none that can be offered, is offered")
		}
		if e := r.Events(EventFilter{Kind: KindLeftOut}, 0, 9); len(e.Events) != 1 || e.Events[0].Node != "edge-bad" || e.Events[0].Reason != "left_out" {
			t.Errorf("events: %+v", e.Events)
		}
		edit(KeyNetwork, 0, "regions:\n  - name: north\n    lat: 39.9\n    lon: 116.4\n")
		edit(KeyDomains, 0, "domains:\n  - name: play.example.com\noverrides:\n  - id: one\n    pin: [edge-a1]\n  - id: two\n    ban: [edge-b1]\n")
		edit(KeyCoverage, 0, "192.0.2.0/24 north telecom\n")
		edit(KeyEdits, 0, `{"drains":[{"node":"dc:a"}],"capacities":[{"node":"edge-b1","capacity":77}]}`)
		b := r.bundles.in.Load().bundle
		if n := r.Network().Domains; n != 1 {
			t.Errorf("the console is shown %d domains", n)
		}
		if len(b.Snapshot.Domains) != 1 || len(b.Snapshot.Regions) != 2 || b.Coverage == nil || len(b.Snapshot.Overrides) != 2 {
			t.Errorf("the snapshot: %+v", b.Snapshot)
		}
		if b.Version.Number <= first.Number || b.Version.Origin != first.Origin || b.Version.Token == first.Token {
			t.Errorf("versions %v and %v", first, b.Version)
		}
		if !r.placed("edge-a1").Drain || r.placed("edge-b1").Drain || r.placed("edge-b1").Capacity != 77 {
			t.Errorf("edits do not count: %+v %+v", r.placed("edge-a1"), r.placed("edge-b1"))
		}
		if _, err := b.Compile(nil); err != nil {
			t.Error(err)
		}
		// Loads and heartbeats make no new one; a silent edge stays.
		version := b.Version
		nodes[3].load, nodes[3].viewers = 5<<20, 40
		live(t, 30*time.Second, r.Fleet, append(nodes[:5:5], nodes[6:]...)...)
		if is := r.bundles.in.Load().bundle.Version; is != version {
			t.Errorf("version %v became %v by itself", version, is)
		}
		// An override of a node that is forgotten is passed over.
		live(t, 11*time.Minute, r.Fleet, append(nodes[:5:5], nodes[6:]...)...)
		if s := r.bundles.in.Load().bundle.Snapshot; r.placed("edge-b1") != nil || len(s.Overrides) != 1 {
			t.Errorf("after edge-b1 was forgotten: %+v", s.Overrides)
		}
	})
}

// TestSource follows what is published as the Keeper of a router does.
func TestSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, "r1", memory(t), nil)
		var have atomic.Pointer[control.Bundle]
		var times atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for {
				b, err := r.Source().Next(ctx, have.Load())
				if err != nil {
					return
				}
				times.Add(1)
				have.Store(b)
			}
		}()
		time.Sleep(time.Minute)
		if have.Load() != nil {
			t.Error("a bundle without an edge")
		}
		nodes := network()
		live(t, 5*time.Second, r.Fleet, nodes[:4]...)
		if b := have.Load(); b == nil || len(b.Snapshot.Nodes) != 1 {
			t.Fatalf("with an edge: %+v", b)
		}
		live(t, 8*time.Second, r.Fleet, nodes...)
		b := have.Load()
		if len(b.Snapshot.Nodes) != 4 {
			t.Errorf("%d edges", len(b.Snapshot.Nodes))
		}
		if s := r.Source().Status(); s.Kind != "router" || s.Version != b.Version {
			t.Errorf("status %+v", s)
		}
		before := times.Load()
		live(t, 20*time.Second, r.Fleet, nodes...)
		if times.Load() != before {
			t.Error("a bundle came without a change")
		}
	})
}

func TestObservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, "r1", memory(t), nil)
		nodes := network()
		edge := nodes[3]
		edge.Addresses = append(edge.Addresses, netip.MustParseAddr("2001:db9::1"), netip.MustParseAddr("203.0.9.9"))
		edge.load, edge.viewers, edge.streams = 1000, 3, carry(2, "")
		nodes[4].full, nodes[5].draining = true, true
		live(t, 5*time.Second, r.Fleet, nodes...)
		of := func(id string) (out []sched.Observation) {
			for _, o := range r.Report(time.Now()).Observations {
				if o.Node == id {
					out = append(out, o)
				}
			}
			return out
		}
		if got := of("edge-a1"); len(got) != 2 || got[0].Family == got[1].Family || !got[0].Up || got[0].Figures.Viewers != 3 ||
			len(got[0].Figures.Streams) != 2 || got[0].Observer != "r1" || time.Since(got[0].At) > 2*time.Second {
			t.Errorf("an edge of both families: %+v", got)
		}
		if got := of("edge-a2"); got[0].Figures.Load < 1<<30 {
			t.Errorf("an edge that is full: %+v", got[0].Figures)
		}
		if got := of("edge-b1"); !got[0].Draining || !got[0].Up {
			t.Errorf("an edge that drains: %+v", got)
		}
		if got := of("relay-a"); got != nil {
			t.Errorf("a relay is told of: %+v", got)
		}
		live(t, 6*time.Second, r.Fleet, nodes[:3]...)
		if got := of("edge-a1"); len(got) != 2 || got[0].Up || got[0].Error != "silent" || got[0].Figures != nil {
			t.Errorf("an edge that is silent: %+v", got)
		}
		r.heard.mu.Lock()
		defer r.heard.mu.Unlock()
		if r.heard.seen == nil {
			t.Error("the listener was told of nothing")
		}
	})
}

// TestQuality publishes what players report, and no more often than it tells something.
func TestQuality(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, "r1", memory(t), nil)
		nodes := network()
		report := func(span time.Duration, ms float64) {
			t.Helper()
			for range span / time.Second {
				nodes[3].players = []control.Players{{
					Region: "south", ISP: "telecom", Reports: 1, FirstFrames: 1, FirstFrame: ms, Played: 10, Stalls: 1, Stalled: 500, Closes: map[string]int{"left": 1},
				}}
				live(t, time.Second, r.Fleet, nodes...)
			}
		}
		report(90*time.Second, 400)
		rows := r.bundles.in.Load().bundle.Snapshot.Quality
		if len(rows) != 1 || rows[0].Region != "south" || rows[0].Node != "edge-a1" || rows[0].FirstFrame != 400 || rows[0].Stalls != 360 {
			t.Fatalf("rows of players: %+v", rows)
		}
		q := r.Quality()
		if len(q) != 1 || q[0].Stalled < 0.04 || q[0].Stalled > 0.05 || q[0].Closes["left"] == 0 {
			t.Errorf("for people: %+v", q)
		}
		report(2*time.Minute, 405)
		version := r.bundles.in.Load().bundle.Version
		report(3*time.Minute, 400)
		if is := r.bundles.in.Load().bundle.Version; is != version {
			t.Error("a new snapshot for next to nothing")
		}
		report(10*time.Minute, 2000)
		if rows := r.bundles.in.Load().bundle.Snapshot.Quality; len(rows) != 1 || rows[0].FirstFrame < 1500 {
			t.Errorf("after it got worse: %+v", rows)
		}
		live(t, 11*time.Minute, r.Fleet, nodes...)
		if rows := r.bundles.in.Load().bundle.Snapshot.Quality; len(rows) != 0 {
			t.Errorf("long after the last report: %+v", rows)
		}
	})
}
