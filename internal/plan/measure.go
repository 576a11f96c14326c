package plan

import "slices"

// Measure returns at most so many upstreams, beyond its pool, that a node should measure
// links from, so that its next plan knows them: the nearest that are open, those of
// another failure domain than the first of its pool before the others. Centers have
// none.
func (v *View) Measure(id string, most int) []string {
	i, ok := v.ids[id]
	if !ok || v.nodes[i].tier == tierCenter || v.nodes[i].tier == tierNone {
		return nil
	}
	pool := v.plan.Pools[id]
	domain := none
	if len(pool) > 0 {
		if first, ok := v.ids[pool[0].Upstream]; ok {
			domain = v.nodes[first].domain
		}
	}
	var out []string
	for _, same := range [...]bool{false, true} {
		for _, up := range v.near[v.nodes[i].cell] {
			n := &v.nodes[up]
			switch {
			case len(out) >= most:
				return out
			case up == i, n.why != None, n.tier >= v.nodes[i].tier, v.rules.banned(up, i), (n.domain == domain) != same:
				continue
			case v.cfg.Flat && n.tier == tierRelay:
				continue
			case slices.ContainsFunc(pool, func(c Choice) bool { return c.Upstream == n.ID }):
				continue
			}
			out = append(out, n.ID)
		}
	}
	return out
}

// Hop is what a link costs whoever pulls over it, for what it is and how it measured.
type Hop struct {
	Cost     float64 // ms, without money and load
	Promised float64 // ms, by distance and ISPs
	Measured bool
	Crosses  bool // it leaves the region or the ISP
}

// Hop returns what a link costs, and whether there are the two nodes. It looks up little,
// so that it can be asked of every link.
func (v *View) Hop(from, to string) (Hop, bool) {
	a, okA := v.ids[from]
	b, okB := v.ids[to]
	if !okA || !okB {
		return Hop{}, false
	}
	parts := v.parts(a, b)
	_, measured := slices.BinarySearchFunc(v.links[b], a, func(m measured, from int32) int { return int(m.from) - int(from) })
	return Hop{Cost: parts.quality(), Promised: v.promised(a, b), Measured: measured, Crosses: v.crosses(a, b)}, true
}
