package sched

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"millrace/internal/stream"
)

// reference decides as README.md says, in the plainest way: each edge of the domain is
// looked at. It returns the edges in order and what they drew (those outside the
// window: what they cost, far above any draw).
func reference(v *View, q Query, a *Answer) (ids []string, drew map[string]float64) {
	p := v.Plan
	d := decision{v: v, q: q, now: start}
	d.client = unmapped(q.Client)
	d.domain = p.domain(q.Domain)
	d.locate(&Answer{})
	d.ask(a.Domain)
	d.prepare(a.Domain)

	// Overrides, the most specific first.
	banned, pinned := map[int32]bool{}, map[int32]bool{}
	for i := range p.overrides {
		o := &p.overrides[i]
		w := &o.When
		if w.Domain != "" && w.Domain != a.Domain.Name || w.Stream != "" && w.Stream != q.Stream ||
			w.Region != "" && p.atlas.regions[w.Region] != d.place.region || w.ISP != "" && p.atlas.isp(w.ISP) != d.place.isp ||
			w.Access != 0 && w.Access != q.Access || !o.Until.IsZero() && !start.Before(o.Until) ||
			w.Prefix.IsValid() && (w.Prefix.Bits() > d.client.Bits() || !w.Prefix.Contains(d.client.Addr())) {
			continue
		}
		for _, n := range o.ban.list {
			if !pinned[n] {
				banned[n] = true
			}
		}
		if len(pinned) == 0 {
			for _, n := range o.pin.list {
				if !banned[n] {
					pinned[n] = true
				}
			}
		}
	}
	t := v.tables[d.kind]
	all := func(int32) bool { return true }
	free := func(n int32) bool { return !banned[n] }
	for _, try := range []struct {
		t    *table
		with func(int32) bool
	}{{t.good, func(n int32) bool { return pinned[n] }}, {t.good, free}, {t.poor, free}, {t.good, all}, {t.poor, all}} {
		if ids, drew := d.rank(try.t, try.with); len(ids) > 0 {
			return ids[:min(len(ids), d.want)], drew
		}
	}
	return nil, nil
}

// rank orders the edges of a table that are allowed.
func (d *decision) rank(t *table, allowed func(int32) bool) (ids []string, drew map[string]float64) {
	carries := map[int32]bool{}
	for i := range d.v.State.Nodes {
		s := &d.v.State.Nodes[i]
		if n, ok := d.plan.byID[s.ID]; ok && d.q.Stream != "" && slices.Contains(s.Streams, d.q.Stream) {
			carries[n] = true
		}
	}
	costs := map[int32]float32{}
	best := inf
	for i := range d.plan.Nodes {
		n := int32(i)
		if c := d.plan.cellOf[n]; c >= 0 && inGroups(&d.plan.Nodes[n], d.plan.Domains[d.domain].Groups) && allowed(n) && t.byNode[n] < inf {
			cost := d.static(c) + t.byNode[n]
			if carries[n] {
				cost -= float32(d.plan.Costs.Carried)
			}
			costs[n], best = cost, min(best, cost)
		}
	}
	drew = map[string]float64{}
	for n, cost := range costs {
		id := d.plan.Nodes[n].ID
		ids = append(ids, id)
		if drew[id] = 1e12 + 1e6*float64(cost); cost <= best+float32(d.plan.Costs.Margin) {
			u := (float64(number(d.plan.hash[n], d.key, d.odd)>>11) + 0.5) / (1 << 53)
			drew[id] = -math.Log1p(-u) * math.Exp(float64(cost-best)/d.plan.falloff) / d.plan.share[n]
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(drew[a], drew[b]), cmp.Compare(a, b)) })
	return ids, drew
}

// TestReference wants the quick way and the plain one to agree.
func TestReference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := fromRapid(rt)
		w := anyWorld(rt, d)
		if d.one(4, "many") { // so many that carriers and targets are known as sets
			for i := range 130 {
				n := w.edge("m"+string(rune('a'+i%26))+string(rune('a'+i/26)), region(i%len(w.Regions)))
				n.Groups, n.Datacenter = []string{"g0"}, "many"
				s := w.of(n.ID)
				s.Load = int64(i) * 5e6
				if i%3 != 0 {
					s.Streams = []stream.Name{"live/s0"}
				}
			}
			switch d.n("all of them", 0, 3) {
			case 0:
				w.Overrides = append(w.Overrides, Override{ID: "many", Pin: []string{"dc:many"}})
			case 1:
				w.Overrides = append(w.Overrides, Override{ID: "many", Ban: []string{"dc:many"}})
			}
		}
		v := w.view()
		for range 10 {
			q := w.anyQuery(d)
			var a Answer
			v.Decide(start, &q, &a)
			want, drew := reference(v, q, &a)
			if len(want) != a.N {
				rt.Fatalf("%+v: %d candidates, want %v\n%s", q, a.N, want, told(&a))
			}
			for i, id := range want {
				got := a.Candidates[i].Node.ID
				if got != id && math.Abs(drew[got]-drew[id]) > 1e-5*drew[id] { // else it is for rounding to say
					rt.Fatalf("%+v: candidate %d is %s, want %v\n%s", q, i, got, want, told(&a))
				}
			}
		}
	})
}

// TestStatic wants the costs of each place to be what the formula says.
func TestStatic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := anyWorld(rt, fromRapid(rt))
		p := w.view().Plan
		for region, r := range p.atlas.regions {
			for isp, i := range p.atlas.isps {
				row := p.row(p.places.of(r, i, AccessUnknown))
				for c := range p.cells {
					n := &p.Nodes[p.cells[c].nodes[0]]
					want := p.atlas.distance(r, p.atlas.regions[n.Region])
					switch {
					case isp != "" && slices.Contains(n.ISPs, isp):
					case len(n.ISPs) == 0 || slices.Contains(n.ISPs, "*"):
						want += p.Costs.ISPAny
					case isp == "":
						want += p.Costs.ISPUnknown
					default:
						want += p.Costs.ISPOther
					}
					if got := row[c].coverage; got != float32(want) {
						rt.Fatalf("%s at %s to %s %v: %v, want %v", region, isp, n.Region, n.ISPs, got, want)
					}
				}
				for _, o := range p.orders {
					if len(o)%max(len(p.places.keys), 1) != 0 {
						rt.Fatal("an order is cut off")
					}
				}
			}
		}
	})
}
