package sched

import (
	"math"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestOrderOfInput wants the same answer whatever the order of the rows.
func TestOrderOfInput(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := fromRapid(rt)
		w := anyWorld(rt, d)
		v := w.view()
		shuffled := *w
		shuffled.Nodes = rapid.Permutation(w.Nodes).Draw(rt, "nodes")
		shuffled.Regions = rapid.Permutation(w.Regions).Draw(rt, "regions")
		shuffled.Domains = rapid.Permutation(w.Domains).Draw(rt, "domains")
		shuffled.Overrides = rapid.Permutation(w.Overrides).Draw(rt, "overrides")
		shuffled.Quality = rapid.Permutation(w.Quality).Draw(rt, "quality")
		shuffled.state.Nodes = rapid.Permutation(w.state.Nodes).Draw(rt, "states")
		other := shuffled.view()
		for range 5 {
			q := w.anyQuery(d)
			if got, want := decided(other, q), decided(v, q); got != want {
				rt.Fatalf("%+v: got %s\nwant %s", q, got, want)
			}
		}
	})
}

// TestNeverEmpty wants an answer wherever an edge of the domain could serve the query.
func TestNeverEmpty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := anyWorld(rt, fromRapid(rt))
		v := w.view()
		q := w.anyQuery(fromRapid(rt))
		var a Answer
		v.Decide(start, &q, &a)
		could := 0
		for i := range w.Nodes {
			if w.serves(&w.Nodes[i], a.Domain, &q) {
				could++
			}
		}
		want := q.Want
		if want == 0 {
			want = a.Domain.Answers
		}
		if a.N > want || a.N > could || a.N == 0 && could > 0 || (a.Reason == NoEdges) != (a.N == 0) {
			rt.Fatalf("%d candidates (%v), %d wanted, %d edges could serve", a.N, a.Reason, want, could)
		}
		seen := map[string]bool{}
		for i := range a.N {
			c := &a.Candidates[i]
			if seen[c.Node.ID] || !w.serves(c.Node, a.Domain, &q) || !c.Addr4.IsValid() && !c.Addr6.IsValid() ||
				c.Weight < 1 || c.Weight > 100 || c.Cost != c.Cost || math.IsInf(float64(c.Cost), 0) {
				rt.Fatalf("candidate %d of %s", i, told(&a))
			}
			sum := c.Coverage + c.Quality + c.Stream + c.Load + c.Health
			if math.Abs(float64(c.Cost-sum)) > 0.001*(1+math.Abs(float64(sum))) {
				rt.Fatalf("cost %v is not the sum %v", c.Cost, sum)
			}
			seen[c.Node.ID] = true
		}
	})
}

// serves reports whether a node could serve a query at all.
func (w *world) serves(n *Node, d *Domain, q *Query) bool {
	f := q.Families
	if f == 0 {
		f = bothFamilies
	}
	https := q.HTTPS
	if d.Scheme != "" {
		https = d.Scheme == "https"
	}
	has := func(a netip.Addr) bool { return FamilyOf(a)&f != 0 }
	return n.Role == roleEdge && inGroups(n, d.Groups) && slices.ContainsFunc(n.Addresses, has) && (!https || n.HTTPSPort != 0)
}

// TestEligible wants no candidate that takes no new viewers while the reason is not
// that nothing else is left.
func TestEligible(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := anyWorld(rt, fromRapid(rt))
		v := w.view()
		q := w.anyQuery(fromRapid(rt))
		var a Answer
		if v.Decide(start, &q, &a); a.Reason == Degraded {
			return
		}
		for i := range a.N {
			c := &a.Candidates[i]
			s := w.of(c.Node.ID)
			if c.Node.Drain || c.Node.UnderAttack || s.Draining || s.UnderAttack || s.Load >= c.Node.Capacity {
				rt.Fatalf("%s takes no new viewers: %s", c.Node.ID, told(&a))
			}
			for f, addr := range [...]netip.Addr{c.Addr4, c.Addr6} {
				h := s.family(f)
				well := h.Status == Up && start.Sub(h.Up) <= 10e9
				if addr.IsValid() && !well && v.Why(c.Index, 1<<f) != Held {
					rt.Fatalf("%s is not well over %v: %s", c.Node.ID, addr, told(&a))
				}
			}
		}
	})
}

// TestBits wants the promise of an ECS scope kept: clients that share the first Bits
// bits get the same answer.
func TestBits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := fromRapid(rt)
		w := anyWorld(rt, d)
		v := w.view()
		for range 20 {
			q := w.anyQuery(d)
			var a Answer
			v.Decide(start, &q, &a)
			n := q.Client.Bits()
			if a.Bits < 0 || a.Bits > n {
				rt.Fatalf("%v: %d bits", q.Client, a.Bits)
			}
			other := q
			length := n
			if a.Bits < n { // then a client with fewer or more bits known may share them, too
				length = d.n("length", a.Bits, q.Client.Addr().BitLen())
			}
			if q.Client.Addr().Is4In6() {
				length = max(length, 96)
			}
			other.Client = netip.PrefixFrom(mixed(d, q.Client.Addr(), a.Bits), length)
			if got, want := decided(v, other), told(&a); got != want {
				rt.Fatalf("%v gets, with %d bits, %s\nbut %v gets %s", q.Client, a.Bits, want, other.Client, got)
			}
		}
	})
}

// mixed returns a with bits changed, but not the first n.
func mixed(d draw, a netip.Addr, n int) netip.Addr {
	b := a.AsSlice()
	if a.Is4In6() {
		n = max(n, 96)
	}
	for i := n; i < 8*len(b); i++ {
		if d.yes("bit") {
			b[i/8] ^= 1 << (7 - i%8)
		}
	}
	out, _ := netip.AddrFromSlice(b)
	return out
}

// TestExplainAgrees wants explanations of what is decided.
func TestExplainAgrees(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := anyWorld(rt, fromRapid(rt))
		v := w.view()
		q := w.anyQuery(fromRapid(rt))
		var a Answer
		v.Decide(start, &q, &a)
		e := v.Explain(start, &q)
		if len(e.Candidates) != a.N || e.Reason != a.Reason || e.Bits != a.Bits || len(e.Rules) != 7 {
			rt.Fatalf("explained %+v\ndecided %s", e, told(&a))
		}
		for i, c := range e.Candidates {
			if c != a.Candidates[i].trace() {
				rt.Fatalf("candidate %d: explained %+v\ndecided %s", i, c, told(&a))
			}
		}
	})
}

// TestEvictShare wants no more edges of a group out for their health than configured.
func TestEvictShare(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := fromRapid(rt)
		w := anyWorld(rt, d)
		w.Health.EvictShare = d.f("share", 0, 1)
		v := w.view()
		for f, family := range [...]Families{V4, V6} {
			all, out := map[string]int{}, map[string]int{}
			for i := range v.Plan.Nodes {
				n := &v.Plan.Nodes[i]
				s := w.of(n.ID)
				if n.Role != roleEdge || !v.Plan.addr[f][i].IsValid() || s.family(f).lastUp().IsZero() ||
					n.Drain || n.UnderAttack || s.Draining || s.UnderAttack {
					continue
				}
				r := v.Why(int32(i), family)
				gone := r == Unhealthy || r == StaleHealth
				if gone && s.Load >= n.Capacity {
					continue // it would take no new viewers if it were well
				}
				groups := n.Groups
				if len(groups) == 0 {
					groups = []string{""}
				}
				for _, g := range groups {
					all[g]++
					if gone {
						out[g]++
					}
				}
			}
			for g, n := range out {
				most := int(w.Health.EvictShare * float64(all[g]))
				if w.Health.EvictShare > 0 {
					most = max(most, 1)
				}
				if n > most {
					rt.Fatalf("group %q over %v: %d of %d are out, at most %d may be", g, family, n, all[g], most)
				}
			}
		}
	})
}
