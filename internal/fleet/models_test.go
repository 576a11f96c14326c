package fleet

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control"
	"millrace/internal/plan"
	"millrace/internal/stream"
)

// noNulls wants lists where there is nothing, for programs that go through them.
func noNulls(t *testing.T, what string, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if at := strings.Index(string(b), ":null"); at >= 0 {
		t.Errorf("%s has a null: …%s", what, b[max(0, at-60):min(len(b), at+10)])
	}
}

func TestModelsBegin(t *testing.T) {
	f := newFleet(t, "r1", memory(t), nil)
	noNulls(t, "network", f.Network())
	noNulls(t, "plan", f.Plan())
	noNulls(t, "streams", f.Streams("", 10))
	noNulls(t, "stream", f.Stream("live/a"))
	noNulls(t, "events", f.Events(EventFilter{}, 0, 10))
	noNulls(t, "quality", f.Quality())
	noNulls(t, "rechecks", f.Rechecks())
	noNulls(t, "routers", f.Routers())
	noNulls(t, "path", f.ExplainPath("a", "live/a"))
	noNulls(t, "stats", f.Stats())
	if _, ok := f.Node("a"); ok {
		t.Error("there is a node")
	}
	if r := f.Path("a", "live/a"); r.Reason != "no_upstream" || r.Choices == nil {
		t.Errorf("a path: %+v", r)
	}
}

// spread is the small system with a stream from the center over a relay to two edges.
func spread() []*node {
	nodes := network()
	one := func(source bool, from string, viewers int, delay float64) []control.Carried {
		return []control.Carried{{Name: "live/show", Source: source, Epoch: 1_700_000_000_000, From: from, Bitrate: 500_000, Viewers: viewers, Delay: delay}}
	}
	nodes[0].streams = one(true, "", 0, 0)
	nodes[1].streams = one(false, "center-1", 0, 12)
	nodes[3].streams = one(false, "relay-a", 7, 20)
	nodes[4].streams = one(false, "relay-a", 2, 25)
	nodes[3].viewers, nodes[3].load = 7, 3_500_000
	return nodes
}

func TestModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, "r1", memory(t), func(c *Config) { c.URL, c.Program = "http://r1:8080", "v1" })
		nodes := spread()
		for i := range 30 {
			nodes[3].samples = []plan.Sample{{From: "relay-a", To: "edge-a1", At: time.Now(), RTT: 4 * time.Millisecond, Loss: 0.2, Probes: 100, OK: true}}
			nodes[3].events = []control.Event{{Number: uint64(i), At: time.Now(), Kind: "switch", Stream: "live/show", From: "relay-b", To: "relay-a", Reason: "slow"}}
			live(t, time.Second, r.Fleet, nodes...)
		}
		m := r.Network()
		noNulls(t, "network", m)
		if m != r.Network() {
			t.Error("the map of one second is made twice")
		}
		if m.Totals.Up != 7 || m.Totals.Streams != 1 || m.Totals.Viewers != 7 || len(m.Datacenters) != 3 || !m.Store || m.Plan == 0 {
			t.Errorf("the map: %+v %+v", m.Totals, m.Datacenters)
		}
		if len(m.Routers) != 1 || !m.Routers[0].Leader || !m.Routers[0].Self || m.Routers[0].Nodes != 7 || m.Routers[0].URL == "" {
			t.Errorf("routers: %+v", m.Routers)
		}
		at := slices.IndexFunc(m.Links, func(l LinkRow) bool { return l.From == "relay-a" && l.To == "edge-a1" })
		if at < 0 || m.Links[at].Streams != 1 || m.Links[at].Rate != 500_000 || m.Links[at].Loss == 0 || m.Links[at].Grade != GradePoor {
			t.Fatalf("links: %+v", m.Links)
		}
		l, ok := r.Link("relay-a", "edge-a1")
		noNulls(t, "link", l)
		if !ok || len(l.Trend) < 12 || len(l.Carried) != 1 || len(l.Events) != 30 || l.Cost != m.Links[at].Cost || l.Trend[len(l.Trend)-1].RTT != 4 {
			t.Errorf("a link: %+v, %d points, %d streams, %d events", l.LinkRow, len(l.Trend), len(l.Carried), len(l.Events))
		}
		n, ok := r.Node("edge-a1")
		noNulls(t, "node", n)
		if !ok || n.Viewers != 7 || n.CarriedAll != 1 || len(n.Trend) < 12 || len(n.In) == 0 || len(n.Why.Pool) == 0 || n.OrdersDue || n.URL == "" {
			t.Errorf("a node: %+v", n)
		}
		p := r.Plan()
		noNulls(t, "plan", p)
		if p.Pools[0].Node != "center-1" || p.Pools[0].Downstream == 0 || p.Pools[6].Role != "edge" {
			t.Errorf("pools: %+v", p.Pools)
		}
		s := r.Stream("live/show")
		noNulls(t, "stream", s)
		got := []string{}
		for _, n := range s.Tree {
			got = append(got, fmt.Sprintf("%s<%s %d %g %d", n.Node, n.Upstream, n.Hops, n.Delay, n.Downstream))
		}
		if want := []string{"center-1< 0 0 1", "relay-a<center-1 1 12 2", "edge-a1<relay-a 2 32 0", "edge-a2<relay-a 2 37 0"}; !slices.Equal(got, want) {
			t.Errorf("the tree is %v, want %v", got, want)
		}
		if s.Copies != 3 || s.Viewers != 9 || s.Deepest != 2 || s.Since.Year() != 2023 || !strings.HasSuffix(s.Tree[2].Play, ":8080/live/show.flv") || s.Tree[0].Play != "" {
			t.Errorf("the stream: %+v", s)
		}
		if q := r.Streams("SHOW", 5); q.Matched != 1 || q.Total != 1 {
			t.Errorf("search by name: %+v", q)
		}
		if q := r.Streams("center", 5); q.Matched != 1 {
			t.Errorf("search by source: %+v", q)
		}
		if q := r.Streams("other", 5); q.Matched != 0 {
			t.Errorf("search for nothing: %+v", q)
		}
		if e := r.ExplainPath("edge-b1", "live/show"); e.Answer.Source != "center-1" || len(e.Ways) == 0 {
			t.Errorf("a path: %+v", e)
		}
		noNulls(t, "stats", r.Stats())
		if st := r.Stats(); st.Nodes != 7 || st.Up != 7 || !st.Leader || st.Links != 1 || st.Carried != 4 {
			t.Errorf("figures: %+v", st)
		}
	})
}

// TestIngest publishes at an edge, which pushes to the center: the tree begins there.
func TestIngest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, "r1", memory(t), nil)
		nodes := spread()
		center, edge := nodes[0], nodes[5]
		center.streams[0].From = edge.ID
		edge.streams = []control.Carried{{Name: "live/show", Epoch: center.streams[0].Epoch, Bitrate: 500_000}}
		live(t, 5*time.Second, r.Fleet, nodes...)
		s := r.Stream("live/show")
		got := []string{}
		for _, n := range s.Tree {
			got = append(got, fmt.Sprintf("%s<%s %d %g %d", n.Node, n.Upstream, n.Hops, n.Delay, n.Downstream))
			if n.Source != (n.Node == center.ID) || n.Ingest != (n.Node == edge.ID) {
				t.Errorf("%s: source %v, ingest %v", n.Node, n.Source, n.Ingest)
			}
		}
		if want := []string{"edge-b1< 0 0 1", "center-1<edge-b1 1 0 1", "relay-a<center-1 2 12 2", "edge-a1<relay-a 3 32 0", "edge-a2<relay-a 3 37 0"}; !slices.Equal(got, want) {
			t.Errorf("the tree is %v, want %v", got, want)
		}
		if s.Source != center.ID || s.Ingest != edge.ID || s.Copies != 4 || s.Deepest != 3 {
			t.Errorf("the stream: %+v", s.StreamRow)
		}
		if q := r.Streams("edge-b1", 5); q.Matched != 1 || q.Streams[0].Ingest != edge.ID {
			t.Errorf("search by the ingest node: %+v", q)
		}
		// Others still find it at the center.
		if e := r.ExplainPath("edge-b2", "live/show"); e.Answer.Source != center.ID {
			t.Errorf("a path: %+v", e.Answer)
		}
	})
}

// TestTwin starts another program under the name of a node: all routers say so, and no
// longer than it goes on.
func TestTwin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		a, b := run(t, "r1", s, nil), run(t, "r2", s, nil)
		nodes := network()
		other := newNode("edge-a1", plan.Edge, "b")
		other.boot, other.started, other.from = "OTHER", other.started.Add(time.Second), netip.MustParseAddr("198.51.100.8")
		is := func(what string, want Denied) {
			t.Helper()
			for _, r := range []*running{a, b} {
				for _, n := range r.Network().Nodes {
					got := Denied{}
					if n.Denied != nil {
						got = *n.Denied
					}
					if n.ID == other.ID && got != want || n.ID != other.ID && got != (Denied{}) {
						t.Errorf("%s: %s says that %s is refused: %+v", what, r.cfg.Router, n.ID, got)
					}
					if n.ID == other.ID && n.Datacenter != "a" {
						t.Errorf("%s: the node is another one: %+v", what, n)
					}
				}
			}
		}
		live(t, 5*time.Second, a.Fleet, nodes...)
		is("before", Denied{})
		for range 12 {
			if _, why, _ := a.Heartbeat(time.Now(), other.message(), other.from); why != control.IdentityTaken {
				t.Fatalf("it is refused for %v", why)
			}
			live(t, 3*time.Second, a.Fleet, nodes...)
		}
		is("meanwhile", Denied{"identity_taken", "198.51.100.8"})
		if n := len(a.Events(EventFilter{Kind: KindRefused}, 0, 100).Events); n < 2 || n > 4 {
			t.Errorf("%d events in 36 s", n)
		}
		live(t, 31*time.Second, a.Fleet, nodes...)
		is("after that", Denied{})
	})
}

// TestTreeChanges kills a relay: the tree is without it.
func TestTreeChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, "r1", memory(t), nil)
		nodes := spread()
		live(t, 5*time.Second, r.Fleet, nodes...)
		live(t, 6*time.Second, r.Fleet, append(nodes[:1:1], nodes[2:]...)...)
		s := r.Stream("live/show")
		if slices.ContainsFunc(s.Tree, func(n StreamNode) bool { return n.Node == "relay-a" }) || len(s.Tree) != 3 {
			t.Errorf("the tree: %+v", s.Tree)
		}
		if n, _ := r.Node("relay-a"); n.Streams != 0 || n.CarriedAll != 0 {
			t.Errorf("the dead relay carries %d", n.Streams)
		}
		live(t, 3*time.Second, r.Fleet, nodes...)
		if s := r.Stream("live/show"); len(s.Tree) != 4 {
			t.Errorf("after it returned: %+v", s.Tree)
		}
	})
}

func TestPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, "r1", memory(t), nil)
		nodes := spread()
		live(t, 5*time.Second, r.Fleet, nodes...)
		f := func(node string, name stream.Name, source, reason string) {
			t.Helper()
			got := r.Path(node, name)
			if got.Source != source || got.Reason != reason {
				t.Errorf("%s %s: %+v", node, name, got)
			}
			for _, c := range got.Choices {
				if c.Node == node || c.URL == "" {
					t.Errorf("%s is sent to %+v", node, c)
				}
			}
			if reason != "source" && reason != "unknown" && len(got.Choices) == 0 {
				t.Errorf("%s is sent nowhere", node)
			}
		}
		f("edge-b1", "live/show", "center-1", "direct")
		f("center-1", "live/show", "center-1", "source")
		f("edge-b1", "live/other", "", "pool")
		f("nobody", "live/show", "", "unknown")
		live(t, 6*time.Second, r.Fleet, append([]*node{newNode("center-2", plan.Center, "north")}, nodes[1:]...)...)
		f("edge-b1", "live/show", "", "pool")
	})
}

func TestEvents(t *testing.T) {
	now := time.Now()
	l := newEventLog("r1")
	e := control.Event{Number: 1, At: now, Kind: "switch", Stream: "live/a", From: "x", To: "y", Reason: "slow"}
	l.fromNode(now, "edge-1", "B", []control.Event{e})
	l.fromNode(now, "edge-1", "B", []control.Event{e})
	l.fromRouter(now, l.takeUntold())
	if got := l.find(0, 10, (&EventFilter{}).takes); len(got.Events) != 1 || got.Total != 1 || got.Kinds[0] != "switch" {
		t.Fatalf("what was told three times: %+v", got)
	}
	f := func(filter EventFilter, want int) {
		t.Helper()
		if got := l.find(0, 10, filter.takes); len(got.Events) != want {
			t.Errorf("%+v: %d events, want %d", filter, len(got.Events), want)
		}
	}
	f(EventFilter{Kind: "switch", Reason: "slow", Stream: "live/a", Node: "edge-1"}, 1)
	f(EventFilter{Node: "x"}, 1)
	f(EventFilter{Node: "y"}, 1)
	f(EventFilter{Node: "z"}, 0)
	f(EventFilter{Kind: "splice"}, 0)
	f(EventFilter{Stream: "live/b"}, 0)
	f(EventFilter{Reason: "fast"}, 0)
	// Numbers rise, also within one moment, and what is too old is forgotten.
	last := uint64(0)
	for i := range 2 * maxEvents {
		l.add(now, Event{ID: fmt.Sprint(i), Kind: "x"})
		if l.last <= last || l.last > math.MaxInt64>>10 {
			t.Fatalf("number %d after %d", l.last, last)
		}
		last = l.last
	}
	if n := len(l.list); n > maxEvents || n < maxEvents/2 || len(l.ids) != n || len(l.untold) > maxUntold {
		t.Errorf("%d events, %d ids and %d untold are kept", n, len(l.ids), len(l.untold))
	}
	after := l.list[len(l.list)-4].Number
	if got := l.find(after, 10, (&EventFilter{}).takes); len(got.Events) != 3 || got.Events[0].Number != last || got.Next != last {
		t.Errorf("after %d: %+v", after, got)
	}
	// Who is refused again and again makes one event in a while.
	l = newEventLog("r1")
	for i := range 100 {
		l.refuse(now.Add(time.Duration(i)*time.Second/10), "edge-1", "", "replayed", "", false)
	}
	for i := range 10_000 {
		l.refuse(now, fmt.Sprint(i), "", "replayed", "", false)
	}
	if n := len(l.find(0, 9999, (&EventFilter{Node: "edge-1"}).takes).Events); n != 1 || len(l.refused) > maxRefusers {
		t.Errorf("%d events, %d are remembered", n, len(l.refused))
	}
}

// TestStrangersMakeFewEvents: who has no key of the cluster can claim any name, and must
// not push out what happened, nor hide that nodes are refused.
func TestStrangersMakeFewEvents(t *testing.T) {
	f := newFleet(t, "r1", memory(t), nil)
	now, from := time.Now(), addressOf("edge-1")
	for i := range 100_000 {
		why := []control.Refusal{control.BadSignature, control.Unsigned, control.TooBig, control.BadRequest}[i%4]
		f.Refused(now.Add(time.Duration(i)*time.Millisecond), fmt.Sprintf("ghost-%d", i), from, why, "no")
	}
	if n := f.Events(EventFilter{}, 0, 1).Total; n < 10*maxStrangers || n > 11*maxStrangers {
		t.Errorf("100,000 refusals in 100 s made %d events, want %d", n, 10*maxStrangers)
	}
	f.Refused(now.Add(100*time.Second), "edge-1", from, control.ClockSkew, "set the clock")
	if n := len(f.Events(EventFilter{Node: "edge-1"}, 0, 10).Events); n != 1 {
		t.Errorf("a node is refused, and there are %d events of it", n)
	}
}

func TestGrades(t *testing.T) {
	f := func(cost, promised float64, measured bool, want Grade) {
		t.Helper()
		if got := gradeOf(cost, promised, measured); got != want {
			t.Errorf("%g of %g: %s, want %s", cost, promised, got, want)
		}
	}
	f(5, 5, false, GradeUnknown)
	f(5, 5, true, GradeGood)
	f(17.5, 5, true, GradeGood)
	f(18, 5, true, GradeFair)
	f(65, 5, true, GradeFair)
	f(66, 5, true, GradePoor)
	f(100, 80, true, GradeGood)
	f(200, 80, true, GradeFair)
	f(300, 80, true, GradePoor)
}
