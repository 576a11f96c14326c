package sched

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestLeastBad wants the edges that are not eligible in the order of how bad they are.
func TestLeastBad(t *testing.T) {
	w := newWorld(t)
	w.Health.EvictShare = 1
	at := func(id string, status Status, up time.Duration) *NodeState {
		w.edge(id, "r0")
		s := w.of(id)
		s.V4 = Health{Status: status, At: start, Up: start.Add(-up)}
		s.V6 = s.V4
		return s
	}
	at("a-draining", Up, 0).Draining = true
	at("b-never", Down, 0).V4.Up = time.Time{}
	w.of("b-never").V6 = w.of("b-never").V4
	at("c-attacked", Up, 0).UnderAttack = true
	at("d-hours", Down, 3*time.Hour)
	at("e-hour", Down, time.Hour)
	at("f-minutes", Down, 5*time.Minute)
	at("g-now", Down, 30*time.Second)
	at("h-full", Up, 0).Load = 1e9
	want := []string{"h-full", "g-now", "f-minutes", "e-hour", "d-hours", "b-never", "c-attacked", "a-draining"}
	q := client("11.0.0.1")
	q.Want = MaxWant
	var a Answer
	w.view().Decide(start, &q, &a)
	var got []string
	for i := range a.N {
		got = append(got, a.Candidates[i].Node.ID)
	}
	if !slices.Equal(got, want) || a.Reason != Degraded || a.TTL != 5*time.Second {
		t.Errorf("got %v (%v, %v), want %v", got, a.Reason, a.TTL, want)
	}
}

// TestHeldTTL wants an answer whose best edge seems down to be short-lived: whoever gets
// it should not be left with a dead one for longer than it takes another to come back.
func TestHeldTTL(t *testing.T) {
	f := func(what string, down []string, best string, reason Reason, ttl time.Duration) {
		t.Helper()
		w := duo(t)
		for i, id := range down {
			h := Health{Status: Down, At: start, Up: start.Add(-time.Duration(len(down)-i) * time.Minute)}
			w.of(id).V4, w.of(id).V6 = h, h
		}
		q := client("10.1.0.1")
		var a Answer
		w.view().Decide(start, &q, &a)
		if c := a.Candidates[0]; c.Node.ID != best || c.Reason != reason || a.TTL != ttl {
			t.Errorf("%s: %s", what, told(&a))
		}
	}
	f("both are well", nil, "bj", Placed, time.Minute)
	f("the nearest is down", []string{"bj"}, "sh", Placed, time.Minute)
	f("both are down, one is kept", []string{"sh", "bj"}, "bj", Held, 5*time.Second)
}

// TestSelf wants an edge to learn how it compares to the best for a viewer of its own.
func TestSelf(t *testing.T) {
	w := duo(t)
	q := client("10.1.0.1")
	f := func(what, self string, ok bool, worse float32) {
		t.Helper()
		q.Self = self
		var a Answer
		w.view().Decide(start, &q, &a)
		if a.SelfOK != ok || ok && a.SelfCost-a.Candidates[0].Cost != worse || !ok && a.SelfCost != 0 {
			t.Errorf("%s: ok %v, cost %v; %s", what, a.SelfOK, a.SelfCost, told(&a))
		}
	}
	f("the best", "bj", true, 0)
	f("another", "sh", true, 50) // 20 ms away, and at another ISP
	f("nobody", "", false, 0)
	f("unknown", "xx", false, 0)
	q.Stream, w.of("sh").Streams = "live/show0", streams(1)
	f("another that carries the stream", "sh", true, 40)
	w.of("sh").Draining = true
	f("one that takes no new viewers", "sh", false, 0)
	w.of("sh").Draining = false
	w.Overrides = []Override{{ID: "o", Ban: []string{"sh"}}}
	f("a banned one", "sh", false, 0)
	w.Overrides = []Override{{ID: "o", Pin: []string{"sh"}}}
	f("one that is pinned", "sh", true, 0)
	f("one that is not pinned", "bj", false, 0)
}

// TestOldView wants answers from a view that nobody renews to be short-lived, and else
// the same.
func TestOldView(t *testing.T) {
	v := duo(t).view()
	q := client("10.1.0.1")
	var fresh, old Answer
	v.Decide(start.Add(10*time.Second), &q, &fresh)
	v.Decide(start.Add(24*time.Hour), &q, &old)
	if fresh.Reason != Placed || fresh.TTL != time.Minute {
		t.Errorf("fresh: %v %v", fresh.Reason, fresh.TTL)
	}
	if old.Reason != Degraded || old.TTL != 5*time.Second || old.Candidates[0].Node != fresh.Candidates[0].Node {
		t.Errorf("old: %v %v", old.Reason, old.TTL)
	}
}

// TestSchedulerSwap wants each answer to be of one view, while views are swapped.
func TestSchedulerSwap(t *testing.T) {
	s := New()
	q := client("10.1.0.1")
	var a Answer
	if s.Decide(start, &q, &a); a.Reason != UnknownDomain || a.N != 0 {
		t.Errorf("before the first view: %v", a.Reason)
	}
	if e := s.Explain(start, &q); len(e.Rules) != 1 || e.Reason != UnknownDomain {
		t.Errorf("before the first view: %+v", e)
	}
	views := []*View{duo(t).view(), big(t, 50, 3, 2).view()}
	var done sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		done.Go(func() {
			q, a := client("10.1.0.1"), Answer{}
			for {
				select {
				case <-stop:
					return
				default:
				}
				s.Decide(start, &q, &a)
				for i := range a.N {
					c := &a.Candidates[i]
					if c.Node.ID != views[0].Plan.Nodes[c.Index%2].ID && c.Node.ID != views[1].Plan.Nodes[c.Index].ID {
						t.Errorf("candidate %d is of no view", i)
						return
					}
				}
			}
		})
	}
	for i := range 2000 {
		s.Swap(views[i%2])
	}
	close(stop)
	done.Wait()
}

// TestExplanation wants the figures of an answer told, rule by rule, as JSON.
func TestExplanation(t *testing.T) {
	w := duo(t)
	w.edge("relay", "bj").Role = roleRelay
	w.edge("down", "bj")
	w.of("down").V4.Status, w.of("down").V6.Status = Down, Down
	for i := range 30 {
		w.edge(fmt.Sprintf("x%d", i), "bj").Drain = true
	}
	w.Overrides = []Override{{ID: "no-sh", Ban: []string{"sh"}, When: When{Region: "bj"}}}
	w.Quality = []Quality{{Region: "bj", Node: "bj", Delay: 20, Samples: 50, At: start}}
	w.of("bj").Load, w.of("bj").Streams = 5e8, streams(1)
	q := client("10.1.0.1")
	q.Stream, q.Self = "live/show0", "sh"
	e := w.view().Explain(start, &q)
	b, err := json.MarshalIndent(e, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range e.Rules {
		got[r.Name] = r.Did
		for _, d := range r.Dropped {
			got[r.Name+" "+d.Reason.String()] = fmt.Sprintf("%d %d %s", d.Count, len(d.Nodes), d.Nodes[0])
		}
	}
	want := map[string]string{
		"override": "the most specific first: no-sh", "override banned": "1 1 sh",
		"eligibility":           "2 of 34 nodes are eligible over both",
		"eligibility not_edge":  "1 1 relay",
		"eligibility unhealthy": "1 1 down", "eligibility draining": "30 20 x0",
		"coverage":  "the client is in bj at telecom (coverage); the nearest of 3 kinds of edges costs 0.0 ms",
		"quality":   "measurements change the cost of 1 of 3 kinds of edges, by 5.0 to 5.0 ms; their age leaves 100 % of them",
		"stream":    "1 nodes carry it and gain 10 ms",
		"load":      "with it, the best costs 0.0 ms; bj is at 50 % of its capacity; without load and stream, the nearest that is well costs 5.0 ms",
		"spreading": "only bj costs at most 5.0 ms (the best and 5 ms more)",
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: got %q\nwant %q", k, got[k], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
	if e.Self == nil || e.Self.OK || e.Reason != Placed || e.Candidates[0].Quality != 5 || e.Candidates[0].Load != 5 {
		t.Errorf("got %s", b)
	}
}

// TestWords wants each word read back as what it was written for.
func TestWords(t *testing.T) {
	for f := range bothFamilies + 1 {
		var back Families
		if b, _ := f.MarshalText(); back.UnmarshalText(b) != nil || back != f {
			t.Errorf("families %d: %s", f, b)
		}
	}
	for a := range accesses {
		var back Access
		if b, _ := a.MarshalText(); back.UnmarshalText(b) != nil || back != a {
			t.Errorf("access %d: %s", a, b)
		}
	}
	for s := range statuses {
		var back Status
		if b, _ := s.MarshalText(); back.UnmarshalText(b) != nil || back != s {
			t.Errorf("status %d: %s", s, b)
		}
	}
	seen := map[string]bool{}
	for _, r := range Reasons() {
		if w := r.String(); w == "" || seen[w] {
			t.Errorf("reason %d: %q", r, w)
		} else {
			seen[w] = true
		}
	}
	for _, s := range []fmt.Stringer{Reason(200), Access(200), Status(200), Families(200)} {
		if s.String() == "" {
			t.Errorf("%T(200) has no word", s)
		}
	}
	for _, v := range []interface{ UnmarshalText([]byte) error }{new(Families), new(Access), new(Status), new(Duration)} {
		if v.UnmarshalText([]byte("nonsense")) == nil {
			t.Errorf("%T takes nonsense", v)
		}
	}
}

// TestStateJSON wants a state to come back from JSON as it was.
func TestStateJSON(t *testing.T) {
	w := duo(t)
	w.of("bj").Streams, w.of("bj").V6 = streams(2), Health{}
	b, err := json.Marshal(&w.state)
	if err != nil {
		t.Fatal(err)
	}
	var got State
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	q := client("10.1.0.1")
	q.Stream = "live/show0"
	want := decided(w.view(), q)
	w.state = got
	if again := decided(w.view(), q); again != want {
		t.Errorf("got %s\nwant %s", again, want)
	}
}
