package plan

import (
	"cmp"
	"math"
	"slices"
)

// planner is a plan in the making.
type planner struct {
	*world
	used   []float64 // bytes/s that an upstream sends by this plan, viewers included
	backup []float64 // bytes/s of the nodes whose second choice it is
	behind []float64 // ms from an upstream to the streams
	blind  bitset    // upstreams without an upstream of their own
	pools  [][]pick  // by node
	old    [][]int32 // pools of the old plan, by node
	moved  int
}

// pick is a choice before it is written down.
type pick struct {
	candidate
	reason Reason
}

// candidate is an upstream that a node may choose.
type candidate struct {
	up     int32
	fixed  float64 // ms of all but the load
	weight float64 // by which the load term is divided
}

const none = int32(-1)

func newPlanner(w *world, old *Plan) *planner {
	n := len(w.nodes)
	p := &planner{
		world: w, used: make([]float64, n), backup: make([]float64, n), behind: make([]float64, n),
		blind: newBitset(n), pools: make([][]pick, n), old: make([][]int32, n),
	}
	if old == nil {
		return p // with no plan before, all load is that of the nodes to be planned
	}
	for i := range w.nodes {
		p.used[i] = w.nodes[i].load
	}
	for i := range w.nodes {
		for at, c := range old.Pools[w.nodes[i].ID] {
			up, ok := w.ids[c.Upstream]
			if !ok {
				up = none
			} else if at == 0 {
				p.used[up] -= w.nodes[i].demand
			}
			p.old[i] = append(p.old[i], up)
		}
	}
	for i := range p.used {
		p.used[i] = max(p.used[i], 0) // what is left is not of the plan
	}
	return p
}

// room is what of the capacity of up may still be given away.
func (p *planner) room(up int32) float64 { return p.cfg.MaxUse*p.nodes[up].capacity - p.used[up] }

// cost is what c costs with more bytes/s on it than now.
func (p *planner) cost(c *candidate, more float64) float64 {
	return c.fixed + p.cfg.Costs.loadCost((p.used[c.up]+more)/p.nodes[c.up].capacity)/c.weight
}

// threshold is by how much another choice must cost less for one of the old plan to
// be left.
func (p *planner) threshold(cost float64) float64 { return max(p.cfg.GainMS, p.cfg.GainShare*cost) }

// tierOf is what the upstreams of one tier of nodes look like.
type tierOf struct {
	p     *planner
	tier  tier
	ups   []int32
	may   bitset
	lists map[int32][]candidate // ups by cell of the node, the cheapest first if nothing was measured
	seen  []int32               // node+1 for which an upstream was looked at last
}

func (p *planner) upstreamsOf(t tier) *tierOf {
	o := &tierOf{p: p, tier: t, may: newBitset(len(p.nodes)), lists: map[int32][]candidate{}, seen: make([]int32, len(p.nodes))}
	if t == tierEdge && !p.cfg.Flat {
		for _, r := range p.tiers[tierRelay] {
			if !p.blind.has(r) {
				o.ups = append(o.ups, r)
			}
		}
	}
	o.ups = append(o.ups, p.tiers[tierCenter]...)
	for _, up := range o.ups {
		o.may.add(up)
	}
	return o
}

// skips is the cost of leaving out the relays.
func (o *tierOf) skips(up int32) float64 {
	if o.tier == tierEdge && !o.p.cfg.Flat && o.p.nodes[up].tier == tierCenter {
		return o.p.cfg.Costs.SkipTier
	}
	return 0
}

// candidate returns up as a choice of node i.
func (o *tierOf) candidate(i, up int32) candidate {
	b := o.p.parts(up, i)
	b.Tier, b.Behind = o.skips(up), o.p.behind[up]
	return candidate{up, Cost(b), b.Weight}
}

// list returns all upstreams for nodes of the cell of i, by what is promised.
func (o *tierOf) list(i int32) []candidate {
	n := &o.p.nodes[i]
	if list, ok := o.lists[n.cell]; ok {
		return list
	}
	list := make([]candidate, 0, len(o.ups))
	for _, up := range o.ups {
		m := &o.p.nodes[up]
		b := Breakdown{Delay: o.p.promised(up, i), Tier: o.skips(up), Behind: o.p.behind[up], Weight: m.weight}
		if o.p.crosses(up, i) {
			b.Money = o.p.cfg.Costs.Money * m.price
		}
		list = append(list, candidate{up, Cost(b), b.Weight})
	}
	slices.SortFunc(list, candidate.compare)
	o.lists[n.cell] = list
	return list
}

func (c candidate) compare(d candidate) int {
	return cmp.Or(cmp.Compare(c.fixed, d.fixed), cmp.Compare(c.up, d.up))
}

// open reports whether node i may choose up at all.
func (o *tierOf) open(i, up int32) bool {
	return up != none && up != i && o.may.has(up) && !o.p.rules.banned(up, i)
}

// candidates returns the choices of node i, the cheapest first: the nearest, those
// that it measured, those that it has, and some of another failure domain.
func (o *tierOf) candidates(i int32) []candidate {
	list := o.list(i)
	out := make([]candidate, 0, o.p.cfg.Candidates+len(o.p.links[i])+maxPool)
	domain, mixed := int32(-1), false
	take := func(up int32) bool {
		if o.seen[up] == i+1 || !o.open(i, up) {
			return false
		}
		o.seen[up] = i + 1
		out = append(out, o.candidate(i, up))
		mixed = mixed || domain != -1 && domain != o.p.nodes[up].domain
		domain = o.p.nodes[up].domain
		return true
	}
	at := 0
	for ; at < len(list) && len(out) < o.p.cfg.Candidates; at++ {
		take(list[at].up)
	}
	for _, m := range o.p.links[i] {
		take(m.from)
	}
	for _, up := range o.p.old[i] {
		if up != none {
			take(up)
		}
	}
	for others := 0; !mixed && at < len(list) && others < 1; at++ {
		if o.p.nodes[list[at].up].domain != domain && take(list[at].up) {
			others++
		}
	}
	slices.SortFunc(out, candidate.compare)
	return out
}

// best returns the cheapest of list with room for a demand that is not except, and what
// it costs; -1 if there is none.
func (p *planner) best(list []candidate, demand float64, except int32) (at int, cost float64) {
	at, cost = -1, math.Inf(1)
	for i := range list {
		c := &list[i]
		if c.fixed >= cost {
			break // and load makes nothing cheaper
		}
		if c.up == except || p.room(c.up) < demand {
			continue
		}
		if v := p.cost(c, demand); v < cost {
			at, cost = i, v
		}
	}
	return at, cost
}
