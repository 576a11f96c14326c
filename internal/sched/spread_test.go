package sched

import (
	"fmt"
	"math"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"millrace/internal/stream"
)

// crowd returns where each of n clients of the world's domain is sent.
func crowd(v *View, n int) []string {
	out := make([]string, n)
	var a Answer
	q := Query{Domain: v.Plan.Domains[0].Name, Want: 1}
	for i := range out {
		q.Client = netip.PrefixFrom(netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
		if v.Decide(start, &q, &a); a.N > 0 {
			out[i] = a.Candidates[0].Node.ID
		}
	}
	return out
}

// moved returns the part of clients that were sent elsewhere, and how many of them
// were not sent to one of the nodes given before.
func moved(before, after []string, nodes ...string) (part float64, others int) {
	n := 0
	for i := range before {
		if before[i] == after[i] {
			continue
		}
		n++
		of := false
		for _, id := range nodes {
			of = of || before[i] == id
		}
		if !of {
			others++
		}
	}
	return float64(n) / float64(len(before)), others
}

// flat is a world of n edges of one region that differ in load and weight only.
func flat(t tester, n int) *world {
	w := newWorld(t)
	w.Domains[0].Spread4 = 32
	for i := range n {
		w.edge(fmt.Sprintf("e%03d", i), "r0")
	}
	return w
}

// TestOneLeaves wants an edge that goes, or comes, to move its own share of the
// clients only: at most 1/N + 5 % where all are equal, and nobody else's clients.
func TestOneLeaves(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := fromRapid(rt)
		n := d.n("edges", 2, 40)
		w := flat(t, n)
		equal := d.yes("equal")
		for i := range w.Nodes {
			if !equal { // within the margin of one another
				w.Nodes[i].Weight = d.f("weight", 0.2, 3)
				w.state.Nodes[i].Load = int64(d.f("load", 0, 0.3) * 1e9)
			}
		}
		before := crowd(w.view(), 2000)
		gone := w.Nodes[d.n("gone", 0, n-1)].ID
		for name, leave := range map[string]func(w *world){
			"is removed": func(w *world) {
				for i := range w.Nodes {
					if w.Nodes[i].ID == gone {
						w.Nodes = append(append([]Node{}, w.Nodes[:i]...), w.Nodes[i+1:]...)
						return
					}
				}
			},
			"is drained":   func(w *world) { w.of(gone).Draining = true },
			"is attacked":  func(w *world) { w.of(gone).UnderAttack = true },
			"fills up":     func(w *world) { w.of(gone).Load = 2e9 },
			"falls silent": func(w *world) { w.of(gone).V4 = Health{}; w.of(gone).V6 = Health{} },
		} {
			less := *w
			less.state.Nodes = append([]NodeState{}, w.state.Nodes...)
			leave(&less)
			after := crowd(less.view(), 2000)
			part, others := moved(before, after, gone)
			if others > 0 {
				rt.Fatalf("%s: %d clients of others moved when it left", name, others)
			}
			if equal && part > 1/float64(n)+0.05 {
				rt.Fatalf("%s: %.3f of the clients moved, there are %d edges", name, part, n)
			}
			for i := range after {
				if after[i] == gone {
					rt.Fatalf("%s: client %d is sent there", name, i)
				}
			}
			// The other way round it comes, and nobody moves but to it.
			if back, _ := moved(after, before); back != part {
				rt.Fatalf("%s: %v moved there, %v back", name, part, back)
			}
		}
	})
}

// TestShares wants clients to be shared by weight times capacity, and by how much an
// edge is worse: a twentieth at the end of the margin.
func TestShares(t *testing.T) {
	w := flat(t, 4)
	w.Nodes[1].Weight = 2
	w.Nodes[2].Capacity /= 2
	w.state.Nodes[3].Load = 333_333_333 // costs 2.5 ms, half of the margin
	got := map[string]float64{}
	const n = 200_000
	for _, id := range crowd(w.view(), n) {
		got[id] += 1. / n
	}
	parts := map[string]float64{"e000": 1, "e001": 2, "e002": 0.5, "e003": math.Exp(-1.5)}
	sum := 0.0
	for _, p := range parts {
		sum += p
	}
	for id, p := range parts {
		if want := p / sum; math.Abs(got[id]-want) > 0.01 {
			t.Errorf("%s gets %.3f of the clients, want %.3f", id, got[id], want)
		}
	}
}

// TestEven wants no edge of many to get much more than another, for one client's
// streams as well as for many clients.
func TestEven(t *testing.T) {
	w := flat(t, 50)
	v := w.view()
	f := func(what string, got map[string]int, all int) {
		t.Helper()
		want := float64(all) / 50
		chi := 0.0
		for i := range w.Nodes {
			d := float64(got[w.Nodes[i].ID]) - want
			chi += d * d / want
		}
		// 49 degrees of freedom: a chi² above 94 happens once in 10,000 times.
		if chi > 94 {
			t.Errorf("%s: chi² is %.0f", what, chi)
		}
	}
	clients, second := map[string]int{}, map[string]int{}
	var a Answer
	q := Query{Domain: "live.example.com", Want: 2}
	for i := range 100_000 {
		q.Client = netip.PrefixFrom(netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
		v.Decide(start, &q, &a)
		clients[a.Candidates[0].Node.ID]++
		if a.Candidates[0].Node.ID == "e007" {
			second[a.Candidates[1].Node.ID]++
		}
	}
	f("clients", clients, 100_000)
	all := 0
	for _, n := range second {
		all += n
	}
	second["e007"] = all / 49
	f("runners-up of one edge", second, all+all/49)
	names := map[string]int{}
	for i := range 100_000 {
		q.Stream = stream.Name(fmt.Sprintf("live/s%d", i))
		v.Decide(start, &q, &a)
		names[a.Candidates[0].Node.ID]++
	}
	f("streams of one client", names, 100_000)
}

// TestSpill wants load to push clients to the next nearest before the near edge is
// full, and more of them the fuller it is.
func TestSpill(t *testing.T) {
	w := newWorld(t)
	w.coverage = "11.0.0.0/8 near *\n"
	w.Regions = []Region{{Name: "near"}, {Name: "far", Near: map[string]float64{"near": 20}}}
	w.edge("a", "near")
	w.edge("b", "far")
	last := 1000
	spilled := false
	for load := range 100 {
		w.of("a").Load = int64(load) * 1e7
		v := w.view()
		near := 0 // of 1000
		for _, id := range crowd(v, 1000) {
			if id == "a" {
				near++
			}
		}
		if near > last {
			t.Errorf("at %d %% of its capacity the near edge gets %d, before only %d", load, near, last)
		}
		last = near
		q := client("11.0.0.1")
		var a Answer
		v.Decide(start, &q, &a)
		switch {
		case load <= 70 && near < 1000:
			t.Errorf("at %d %% of its capacity the near edge gets only %d", load, near)
		case near == 0 && a.Reason != Spilled:
			t.Errorf("at %d %%: %v", load, told(&a))
		case near == 0 && !spilled:
			spilled = true
			t.Logf("nobody goes to the near edge from %d %% of its capacity on", load)
		case near == 1000 && a.Reason != Placed:
			t.Errorf("at %d %%: %v", load, told(&a))
		}
	}
	if !spilled {
		t.Error("clients were never sent elsewhere")
	}
}

// TestNear wants what is within the margin told from what only fills up.
func TestNear(t *testing.T) {
	w := newWorld(t)
	w.edge("a", "r0")
	w.edge("b", "r0")
	w.edge("c", "r1")
	var a Answer
	q := Query{Client: netip.MustParsePrefix("11.0.0.1/32"), Domain: w.Domains[0].Name, Region: "r0", Want: 3}
	if w.view().Decide(start, &q, &a); a.N != 3 || a.Near != 2 || a.Candidates[2].Node.ID != "c" {
		t.Errorf("%d of %d are near, want 2 of 3, the far one last", a.Near, a.N)
	}
	for i := range w.state.Nodes {
		down := Health{Status: Down, At: start}
		w.state.Nodes[i].V4, w.state.Nodes[i].V6 = down, down
	}
	if w.view().Decide(start, &q, &a); a.Reason != Degraded || a.Near != a.N {
		t.Errorf("%v: %d of %d are near, want all of a degraded answer", a.Reason, a.Near, a.N)
	}
	q.Domain = "nowhere.test"
	if w.view().Decide(start, &q, &a); a.Near != 0 {
		t.Errorf("%d are near of a domain that there is not", a.Near)
	}
}
