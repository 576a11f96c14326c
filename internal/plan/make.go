package plan

import (
	"maps"
	"slices"
	"time"
)

// Make plans the pools of all nodes at once. old is the plan before, or nil; what it
// has stays unless another choice gains more than the threshold. While operators have
// frozen the plan, pools stay as they are but for dead nodes, and new nodes get one.
//
// Measured in README.md: 5,000 nodes with 20 candidates each take well below a second.
func Make(now time.Time, n *Network, old *Plan, cfg *Config) *Plan {
	w := newWorld(now, n, cfg)
	p := newPlanner(w, old)
	p.run()
	out := &Plan{At: now, Pools: make(map[string][]Choice, len(w.nodes)), Members: w.members(), Centers: w.centers()}
	if f := n.Edits.Frozen; f != nil && f.holds(now) && old != nil {
		out.Frozen = true
		p.freeze(old, out)
	} else {
		p.write(out)
	}
	out.stats(p)
	switch {
	case old == nil:
		out.Version = 1
	case old.Follows(out):
		out.Version = old.Version
	default:
		out.Version = old.Version + 1
	}
	return out
}

// run plans tier after tier: what a relay costs an edge is known when the relay has its center.
func (p *planner) run() {
	for _, t := range [...]tier{tierRelay, tierEdge} {
		var who []int32
		for i := range p.nodes {
			if p.nodes[i].Alive && p.nodes[i].tier == t {
				who = append(who, int32(i))
			}
		}
		o := p.upstreamsOf(t)
		if t == tierRelay && len(o.ups) == 0 {
			continue // without a center every relay is as good as the others
		}
		a := p.assign(o, who)
		a.fill()
		if t == tierRelay {
			p.standBehind(who)
		}
	}
}

// standBehind notes what the ways of relays to their centers cost, for those who pull from them.
func (p *planner) standBehind(relays []int32) {
	for _, i := range relays {
		if len(p.pools[i]) == 0 {
			p.blind.add(i)
			continue
		}
		c := &p.pools[i][0].candidate
		p.behind[i] = p.cost(c, 0)
	}
}

// write turns picks into choices.
func (p *planner) write(out *Plan) {
	for i := range p.nodes {
		n := &p.nodes[i]
		if !n.Alive || n.tier != tierRelay && n.tier != tierEdge {
			continue
		}
		pool := make([]Choice, 0, len(p.pools[i]))
		for _, c := range p.pools[i] {
			pool = append(pool, p.choice(int32(i), c.up, c.reason))
		}
		out.Pools[n.ID] = pool
	}
}

func (p *planner) choice(i, up int32, why Reason) Choice {
	b := p.breakdown(up, i)
	return Choice{Upstream: p.nodes[up].ID, Cost: Cost(b), Parts: b, Reason: why}
}

// breakdown returns what node i pays for up, all in all.
func (p *planner) breakdown(up, i int32) Breakdown {
	b := p.parts(up, i)
	b.Load = p.cfg.Costs.loadCost(p.used[up] / p.nodes[up].capacity)
	b.Behind = p.behind[up]
	if p.nodes[i].tier == tierEdge && !p.cfg.Flat && p.nodes[up].tier == tierCenter {
		b.Tier = p.cfg.Costs.SkipTier
	}
	return b
}

// freeze takes the pools of the old plan, without the dead; who has none left, or is
// new, gets what is planned now.
func (p *planner) freeze(old, out *Plan) {
	p.write(out)
	p.moved = 0
	for id := range out.Pools {
		was := old.Pools[id]
		var left []Choice
		for _, c := range was {
			if up, ok := p.ids[c.Upstream]; ok && p.nodes[up].Alive {
				left = append(left, c)
			}
		}
		if len(left) > 0 {
			out.Pools[id] = left
		}
		if now := out.Pools[id]; len(was) > 0 && len(now) > 0 && now[0].Upstream != was[0].Upstream {
			p.moved++
		}
	}
}

// members returns who shares streams with whom.
func (w *world) members() map[string][]Peer {
	type place struct {
		datacenter string
		tier       tier
	}
	byPlace := map[place][]Peer{}
	for i := range w.nodes {
		n := &w.nodes[i]
		if !n.Alive || n.Datacenter == "" || n.tier == tierNone {
			continue
		}
		peer := Peer{ID: n.ID, Weight: n.weight, Capacity: int64(n.capacity)}
		if n.why != None {
			peer.Weight = 0
		}
		at := place{n.Datacenter, n.tier}
		byPlace[at] = append(byPlace[at], peer)
	}
	out := make(map[string][]Peer, len(w.nodes))
	for i := range w.nodes {
		if n := &w.nodes[i]; n.Alive {
			if list := byPlace[place{n.Datacenter, n.tier}]; len(list) > 0 {
				out[n.ID] = list
			}
		}
	}
	return out
}

func (w *world) centers() []string {
	out := []string{}
	for i := range w.nodes {
		if n := &w.nodes[i]; n.Alive && n.tier == tierCenter {
			out = append(out, n.ID)
		}
	}
	return out
}

// stats sums up the pools of out.
func (out *Plan) stats(p *planner) {
	s := Stats{Moved: p.moved}
	for i := range p.nodes {
		pool, ok := out.Pools[p.nodes[i].ID]
		switch {
		case !ok:
			continue
		case len(pool) == 0:
			s.Unplaced++
			continue
		}
		s.Placed++
		s.Cost += pool[0].Cost
		if up, ok := p.ids[pool[0].Upstream]; ok && p.crosses(up, int32(i)) {
			s.Backhaul += int64(p.nodes[i].demand)
		}
		if pool[0].Reason == OverCapacity {
			s.OverCapacity++
		}
	}
	out.Stats = s
}

// Follows reports whether nodes that follow p would do the same under q: their
// upstreams in order, members and centers are equal. Costs and reasons may differ.
func (p *Plan) Follows(q *Plan) bool {
	return slices.Equal(p.Centers, q.Centers) &&
		maps.EqualFunc(p.Pools, q.Pools, sameUpstreams) && sameMembers(p.Members, q.Members)
}

func sameUpstreams(a, b []Choice) bool {
	return slices.EqualFunc(a, b, func(x, y Choice) bool { return x.Upstream == y.Upstream })
}

// sameMembers compares members; the slices are shared by datacenter, so that most are
// seen to be equal to one that was compared before.
func sameMembers(a, b map[string][]Peer) bool {
	if len(a) != len(b) {
		return false
	}
	type pair struct{ a, b *Peer }
	equal := map[pair]bool{}
	for id, x := range a {
		y, ok := b[id]
		if !ok || len(x) != len(y) {
			return false
		}
		if at := (pair{&x[0], &y[0]}); !equal[at] {
			if !slices.Equal(x, y) {
				return false
			}
			equal[at] = true
		}
	}
	return true
}
