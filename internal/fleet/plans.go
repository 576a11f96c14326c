package fleet

import (
	"cmp"
	"slices"
	"time"
)

// tierOrder is how roles are shown.
var tierOrder = map[string]int{"center": 0, "relay": 1, "edge": 2}

// Plan returns the plan in force.
func (f *Fleet) Plan() *Plan {
	out := &Plan{Origin: f.origin(), Pools: []PoolRow{}, Centers: []string{}, Edits: f.Edits(), Took: float64(time.Duration(f.counts.took.Load())) / 1e6}
	fr := f.frame.Load()
	if fr == nil {
		return out
	}
	for _, r := range fr.routers {
		if r.Leader {
			out.Leader = r.ID
		}
	}
	in := f.published.Load()
	if in == nil {
		return out
	}
	p := in.plan
	out.Version, out.At, out.Frozen, out.Stats, out.Centers = p.Version, p.At.UTC(), p.Frozen, p.Stats, orEmpty(p.Centers)
	downstream := map[string]int{}
	for _, pool := range p.Pools {
		if len(pool) > 0 {
			downstream[pool[0].Upstream]++
		}
	}
	for i := range fr.nodes {
		n := &fr.nodes[i]
		of := n.identity
		out.Pools = append(out.Pools, PoolRow{
			Node: of.ID, Role: of.Role, Datacenter: of.Datacenter, Region: of.Region, State: n.state, Demand: n.demand, Follows: !n.down && !f.ordersDueAt(n),
			Pool: orEmpty(p.Pools[of.ID]), Downstream: downstream[of.ID], Edited: n.edited,
		})
	}
	slices.SortFunc(out.Pools, func(a, b PoolRow) int {
		return cmp.Or(cmp.Compare(tierOrder[a.Role], tierOrder[b.Role]), cmp.Compare(a.Datacenter, b.Datacenter), cmp.Compare(a.Node, b.Node))
	})
	return out
}

// Routers returns the routers, this one first.
func (f *Fleet) Routers() []RouterRow {
	if fr := f.frame.Load(); fr != nil {
		return fr.routers
	}
	return []RouterRow{}
}
