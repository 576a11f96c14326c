package plan

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// small is two centers, two relays in two datacenters, three edges.
func small() *Network {
	n := &Network{Regions: regions(), Demand: map[string]int64{}, Scores: NewScores(DefaultHalves())}
	n.add("c1", Center, "dc-n", "north", "*")
	n.add("c2", Center, "dc-e", "east", "*")
	n.add("r1", Relay, "dc-n", "north", "*")
	n.add("r2", Relay, "dc-e", "east", "*")
	n.add("e1", Edge, "dc-n", "north", "*")
	n.add("e2", Edge, "dc-n", "north", "*")
	n.add("e3", Edge, "dc-e", "east", "*")
	return n
}

func wantPools(t *testing.T, p *Plan, want string) {
	t.Helper()
	var got []string
	for _, id := range sortedIDs(p.Pools, nil) {
		got = append(got, id+":"+strings.Join(p.upstreams(id), ","))
	}
	if s := strings.Join(got, " "); s != want {
		t.Errorf("pools\n%s\nwant\n%s", s, want)
	}
}

const smallPools = "e1:r1,r2,c1 e2:r1,r2,c1 e3:r2,r1,c2 r1:c1,c2 r2:c2,c1"

func TestMake(t *testing.T) {
	n := small()
	p := Make(start, n, nil, config())
	wantPools(t, p, smallPools)
	if p.Version != 1 || !slices.Equal(p.Centers, []string{"c1", "c2"}) || p.Stats.Placed != 5 || p.Stats.Unplaced != 0 {
		t.Errorf("%+v", p)
	}
	if got := fmt.Sprint(p.Members["e1"]); got != "[{e1 1 104857600} {e2 1 104857600}]" {
		t.Errorf("members of e1: %s", got)
	}
	if c := p.Pools["e1"][0]; c.Reason != Cheapest || p.Pools["e1"][1].Reason != Cheapest {
		t.Errorf("%+v", p.Pools["e1"])
	}
	flat := config()
	flat.Flat = true
	wantPools(t, Make(start, n, nil, flat), "e1:c1,c2 e2:c1,c2 e3:c2,c1 r1:c1,c2 r2:c2,c1")
}

// TestEdits is what each kind of edit does to the small network.
func TestEdits(t *testing.T) {
	by := By{Author: "ann", Comment: "why"}
	over := By{Until: start}
	f := func(name string, e Edits, want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			if err := e.Validate(); err != nil {
				t.Fatal(err)
			}
			n := small()
			old := Make(start, n, nil, config())
			n.Edits = e
			wantPools(t, Make(start, n, old, config()), want)
		})
	}
	f("pin", Edits{Pins: []Pin{{Node: "e1", Upstreams: []string{"r2"}, By: by}}}, "e1:r2,r1,c1 e2:r1,r2,c1 e3:r2,r1,c2 r1:c1,c2 r2:c2,c1")
	f("pin of two", Edits{Pins: []Pin{{Node: "e1", Upstreams: []string{"c2", "r2"}}}}, "e1:c2,r2,r1 e2:r1,r2,c1 e3:r2,r1,c2 r1:c1,c2 r2:c2,c1")
	f("pin of a datacenter, and of one of it", Edits{Pins: []Pin{
		{Node: "e2", Upstreams: []string{"c1"}}, {Node: "dc:dc-n", Upstreams: []string{"r2"}},
	}}, "e1:r2,r1,c1 e2:c1,r2,r1 e3:r2,r1,c2 r1:c1,c2 r2:c2,c1")
	f("pin to an edge and to nobody", Edits{Pins: []Pin{{Node: "e1", Upstreams: []string{"e3", "x"}}}}, smallPools)
	f("pin of a stream", Edits{Pins: []Pin{{Node: "e1", Stream: "live/a", Upstreams: []string{"r2"}}}}, smallPools)
	f("ban", Edits{Bans: []Ban{{From: "r1", To: "e1"}}}, "e1:r2,c1,c2 e2:r1,r2,c1 e3:r2,r1,c2 r1:c1,c2 r2:c2,c1")
	f("ban for all", Edits{Bans: []Ban{{From: "r1", To: "*"}}}, "e1:r2,c1,c2 e2:r2,c1,c2 e3:r2,c1,c2 r1:c1,c2 r2:c2,c1")
	f("ban of a datacenter", Edits{Bans: []Ban{{From: "dc:dc-n", To: "dc:dc-e"}}}, "e1:r1,r2,c1 e2:r1,r2,c1 e3:r2,c2 r1:c1,c2 r2:c2")
	f("ban that is over", Edits{Bans: []Ban{{From: "r1", To: "e1", By: over}}}, smallPools)
	f("weight", Edits{Weights: []Weight{{From: "r1", To: "dc:dc-n", Weight: 0.01}}}, "e1:r2,c1,c2 e2:r2,c1,c2 e3:r2,r1,c2 r1:c1,c2 r2:c2,c1")
	f("price", Edits{Prices: []Price{{Node: "r2", Price: 1}}}, "e1:r1,c2,c1 e2:r1,c2,c1 e3:r2,r1,c2 r1:c1,c2 r2:c2,c1")
	f("capacity", Edits{Capacities: []Capacity{{Node: "r1", Capacity: 1 << 20}}}, "e1:r2,c1,c2 e2:r2,c1,c2 e3:r2,c1,c2 r1:c1,c2 r2:c2,c1")
	f("drain", Edits{Drains: []Drain{{Node: "dc:dc-e"}}}, "e1:r1,c1 e2:r1,c1 e3:r1,c1 r1:c1 r2:c1")
	f("frozen", Edits{Frozen: &Freeze{}, Bans: []Ban{{From: "r1", To: "*"}}}, smallPools)
	f("frozen no more", Edits{Frozen: &Freeze{By: over}, Bans: []Ban{{From: "r1", To: "e1"}}}, "e1:r2,c1,c2 e2:r1,r2,c1 e3:r2,r1,c2 r1:c1,c2 r2:c2,c1")
}

// TestFrozen wants the dead gone from a frozen plan, and new nodes served.
func TestFrozen(t *testing.T) {
	n := small()
	old := Make(start, n, nil, config())
	n.Edits.Frozen = &Freeze{}
	n.node("r1").Alive = false
	n.add("e4", Edge, "dc-e", "east", "*").Capacity = 1 << 20
	p := Make(start, n, old, config())
	wantPools(t, p, "e1:r2,c1 e2:r2,c1 e3:r2,c2 e4:r2,c1,c2 r2:c2,c1")
	if !p.Frozen || p.Version != 2 || p.Stats.Moved != 2 {
		t.Errorf("%+v", p)
	}
	n.node("r2").Alive, n.node("c1").Alive = false, false
	wantPools(t, Make(start, n, old, config()), "e1:c2 e2:c2 e3:c2 e4:c2")
}

// TestVersion counts what nodes follow, and nothing else.
func TestVersion(t *testing.T) {
	n := small()
	p := Make(start, n, nil, config())
	n.node("r1").Load = 10 << 20
	same := Make(start.Add(time.Second), n, p, config())
	if same.Version != 1 || same.Pools["e1"][0].Cost == p.Pools["e1"][0].Cost {
		t.Errorf("version %d for another cost", same.Version)
	}
	n.node("e2").Alive = false
	if next := Make(start, n, same, config()); next.Version != 2 || len(next.Members["e1"]) != 1 {
		t.Errorf("version %d after a member died", next.Version)
	}
	n.node("e2").Alive, n.node("e2").Draining = true, true
	if next := Make(start, n, same, config()); next.Version != 2 || next.Members["e1"][1].Weight != 0 || len(next.Pools["e2"]) != 3 {
		t.Errorf("a draining member: %+v", next)
	}
}

// TestPlanIsKept writes a plan and reads it again, as nodes and routers do.
func TestPlanIsKept(t *testing.T) {
	n := small()
	p := Make(start, n, nil, config())
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var q Plan
	if err := json.Unmarshal(b, &q); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(p, &q) {
		t.Errorf("%+v became %+v", p, q)
	}
	if next := Make(start, n, &q, config()); !next.Follows(p) || next.Version != p.Version {
		t.Errorf("from the plan that was kept: %+v", next)
	}
	var r Reason
	if err := r.UnmarshalText([]byte("because")); err == nil {
		t.Error("an unknown reason is read")
	}
}

// TestQualitySteers slows a link and heals it: the plan moves away within ten seconds,
// stays away while it is bad, and comes back once.
func TestQualitySteers(t *testing.T) {
	n := small()
	p := Make(start, n, nil, config())
	now := start
	var moves []string
	run := func(seconds int, rtt time.Duration) {
		for range seconds {
			now = now.Add(time.Second)
			for _, link := range [][2]string{{"r1", "e1"}, {"r2", "e1"}, {"c1", "e1"}} {
				s := Sample{From: link[0], To: link[1], At: now, OK: true, RTT: 24 * ms, Probes: 5}
				if link[0] == "r1" {
					// With some noise: every fourth sample half as much again.
					if s.RTT = rtt; now.Unix()%4 == 0 {
						s.RTT = rtt * 3 / 2
					}
				}
				n.Scores.Take(now, "e1", []Sample{s}, everybody)
			}
			next := Make(now, n, p, config())
			if was, is := p.upstreams("e1"), next.upstreams("e1"); was[0] != is[0] {
				moves = append(moves, fmt.Sprintf("%s after %v", is[0], now.Sub(start)))
			}
			p = next
		}
	}
	run(60, 2*ms)
	if len(moves) > 0 {
		t.Fatalf("moved while nothing happened: %v", moves)
	}
	run(10, 200*ms)
	if len(moves) != 1 || p.upstreams("e1")[0] != "r2" {
		t.Fatalf("ten seconds after the link was slowed: %v", moves)
	}
	run(60, 200*ms)
	run(300, 2*ms)
	if len(moves) != 2 || p.upstreams("e1")[0] != "r1" {
		t.Errorf("five minutes after it was healed: %v", moves)
	}
	t.Log(moves)
}

// TestSecondDomain wants the second choice far away rather than beside the first.
func TestSecondDomain(t *testing.T) {
	n := small()
	n.add("r3", Relay, "dc-n", "north", "*")
	p := Make(start, n, nil, config())
	pool := p.Pools["e1"]
	if first := pool[0].Upstream; first != "r1" && first != "r3" || pool[1].Upstream != "r2" || pool[1].Reason != OtherDomain || pool[2].Reason != Cheapest {
		t.Errorf("%+v", pool)
	}
	n.node("r2").Domain = "fiber-7"
	for _, id := range []string{"r1", "r3", "c1"} {
		n.node(id).Domain = "fiber-7"
	}
	if pool = Make(start, n, nil, config()).Pools["e1"]; pool[1].Upstream != "c2" {
		t.Errorf("c2 alone is not on the fiber: %+v", pool)
	}
}

// TestCapacity fills relays beyond what they have.
func TestCapacity(t *testing.T) {
	n := small()
	for _, id := range []string{"e1", "e2", "e3"} {
		n.Demand[id] = 60 << 20
	}
	p := Make(start, n, nil, config())
	firsts := map[string]int{}
	spilled := 0
	for _, id := range []string{"e1", "e2", "e3"} {
		firsts[p.upstreams(id)[0]]++
		if p.Pools[id][0].Reason == Spilled {
			spilled++
		}
	}
	if firsts["r1"] != 1 || firsts["r2"] != 1 || firsts["c1"]+firsts["c2"] != 1 || spilled != 1 || p.Stats.OverCapacity != 0 {
		t.Errorf("three of 60 MB/s over relays of 90: %v, %v", firsts, p.Pools)
	}
	for i := range n.Nodes {
		n.Nodes[i].Capacity = 10 << 20
	}
	p = Make(start, n, nil, config())
	if p.Stats.OverCapacity != 3 || p.Pools["e1"][0].Reason != OverCapacity {
		t.Errorf("nothing has room: %+v", p.Stats)
	}
	for i := range n.Nodes {
		n.Nodes[i].Capacity = 0
	}
	p = Make(start, n, nil, config())
	if p.Stats.Unplaced != 5 || p.Pools["e1"] == nil {
		t.Errorf("nobody has a capacity: %+v", p)
	}
}

// TestNearOptimum compares plans with the best there are, found by trying all, on small
// networks where capacity is short.
func TestNearOptimum(t *testing.T) {
	sum, best := 0.0, 0.0
	worst := 1.0
	for seed := range uint64(60) {
		n, cfg := optimumNetwork(seed)
		p := Make(start, n, nil, cfg)
		if p.Stats.OverCapacity > 0 {
			continue
		}
		least := optimum(n, cfg)
		got := p.Stats.Cost
		sum, best = sum+got, best+least
		worst = max(worst, got/least)
	}
	if sum > best*1.05 || worst > 1.2 {
		t.Errorf("the plans cost %.3f of the best, the worst of them %.3f", sum/best, worst)
	}
	t.Logf("the plans cost %.4f of the best, the worst of them %.3f", sum/best, worst)
}
