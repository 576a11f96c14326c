package sched

import (
	"cmp"
	"slices"
	"time"
)

// poorStep is by how much each step of badness sets edges back that are not eligible:
// more than all figures of a cost together, so that badness goes before cost.
const poorStep = 10 * longest

// maxPoorLoad bounds the load of an edge that is not eligible: it may be full.
const maxPoorLoad = longest

// judge says for each node and family whether it is eligible, and what its load costs.
func (v *View) judge(nodes []*NodeState) {
	v.load = make([]float32, len(nodes))
	full := make([]bool, len(nodes))
	for i, s := range nodes {
		if s != nil {
			used := float64(s.Load) / float64(v.Plan.Nodes[i].Capacity)
			full[i] = used >= 1
			v.load[i] = float32(v.Plan.Costs.loadCost(used))
		}
	}
	for f := range v.why {
		v.why[f] = make([]Reason, len(nodes))
		for i, s := range nodes {
			v.why[f][i] = v.reason(int32(i), f, s, full[i])
		}
		v.hold(f, nodes, full)
	}
}

// loadCost returns what it costs to use an edge of whose capacity a part is used: Load
// at half of it, without bound towards all of it.
func (c *Costs) loadCost(used float64) float64 {
	switch {
	case used <= 0:
		return 0
	case used >= 1: // full; the fuller, the worse
		return min(used, 2) * maxPoorLoad / 2
	}
	return c.Load * used / (1 - used)
}

// reason returns why a node is not eligible over a family, None if it is.
func (v *View) reason(i int32, f int, s *NodeState, full bool) Reason {
	n := &v.Plan.Nodes[i]
	switch {
	case n.Role != roleEdge:
		return NotEdge
	case !v.Plan.addr[f][i].IsValid():
		return Family
	}
	if r := v.health(s, f); r != None {
		return r
	}
	return v.busy(n, s, full)
}

// busy returns why a node that is well takes no new viewers.
func (v *View) busy(n *Node, s *NodeState, full bool) Reason {
	switch {
	case n.Drain || s.Draining:
		return Draining
	case n.UnderAttack || s.UnderAttack:
		return UnderAttack
	case full:
		return Full
	}
	return None
}

// health returns why a node is not well over a family, None if it is.
func (v *View) health(s *NodeState, f int) Reason {
	if s == nil {
		return UnknownHealth
	}
	h := s.family(f)
	fresh := func(t time.Time) bool { return v.State.At.Sub(t) <= time.Duration(v.Plan.Health.Fresh) }
	switch {
	case h.At.IsZero():
		return UnknownHealth
	case h.Status == Up && fresh(h.lastUp()):
		return None
	case h.Status == Down && fresh(h.At):
		return Unhealthy
	}
	return StaleHealth
}

// family returns the health of a node over IPv4 (0) or IPv6 (1).
func (s *NodeState) family(f int) *Health {
	if f == 0 {
		return &s.V4
	}
	return &s.V6
}

// hold keeps edges that are out for their health when too many of their group are: if
// so many seem down at once, it is the observers' view that is doubtful. It keeps those
// that were seen up last. Who takes no new viewers for another reason does not count.
func (v *View) hold(f int, nodes []*NodeState, full []bool) {
	type group struct{ all, out []int32 }
	groups := map[string]*group{}
	add := func(name string, i int32, out bool) {
		g := groups[name]
		if g == nil {
			g = &group{}
			groups[name] = g
		}
		g.all = append(g.all, i)
		if out {
			g.out = append(g.out, i)
		}
	}
	for i, s := range nodes {
		r := v.why[f][i]
		out := r == Unhealthy || r == StaleHealth
		if s == nil || s.family(f).lastUp().IsZero() || !out && r != None && r != Full ||
			out && v.busy(&v.Plan.Nodes[i], s, full[i]) != None {
			continue
		}
		names := v.Plan.Nodes[i].Groups
		if len(names) == 0 {
			add("", int32(i), out)
		}
		for _, name := range names {
			add(name, int32(i), out)
		}
	}
	share := v.Plan.Health.EvictShare
	for _, g := range groups { // each marks nodes of its own accord: the order does not count
		allowed := int(share * float64(len(g.all)))
		if share > 0 {
			allowed = max(allowed, 1)
		}
		if len(g.out) <= allowed {
			continue
		}
		slices.SortFunc(g.out, func(a, b int32) int {
			return cmp.Or(nodes[b].family(f).lastUp().Compare(nodes[a].family(f).lastUp()), cmp.Compare(a, b))
		})
		for _, i := range g.out[:len(g.out)-allowed] {
			v.why[f][i] = Held
		}
	}
}

// costs returns what load and health cost each node for queries of one kind, infinite
// for nodes that are not in the table: the eligible ones, and the rest of those that
// could serve such a query.
func (v *View) costs(nodes []*NodeState, families Families, https bool) (good, poor []float32) {
	good, poor = make([]float32, len(nodes)), make([]float32, len(nodes))
	for i, s := range nodes {
		good[i], poor[i] = inf, inf
		if https && v.Plan.Nodes[i].HTTPSPort == 0 {
			continue
		}
		for f := range v.why {
			if families&(1<<f) == 0 {
				continue
			}
			switch r := v.why[f][i]; r {
			case NotEdge, Family:
			case None:
				good[i] = v.load[i]
			case Held:
				good[i] = min(good[i], v.load[i]+float32(v.Plan.Costs.Held))
			default:
				poor[i] = min(poor[i], min(v.load[i], maxPoorLoad)+float32(v.badness(s, f, r)*poorStep))
			}
		}
		if good[i] < inf {
			poor[i] = inf
		}
	}
	return good, poor
}

// badness returns how bad a choice an edge is that is not eligible: 0 when it is well
// but full, more the longer ago it was seen up, and more than that when it would turn
// viewers away.
func (v *View) badness(s *NodeState, f int, r Reason) int {
	const never = 5
	if s == nil {
		return never
	}
	bad := never
	if up := s.family(f).lastUp(); !up.IsZero() {
		switch age := v.State.At.Sub(up); {
		case r != Unhealthy && r != StaleHealth:
			bad = 0
		case age <= time.Minute:
			bad = 1
		case age <= 10*time.Minute:
			bad = 2
		case age <= time.Hour:
			bad = 3
		default:
			bad = 4
		}
	}
	switch r {
	case UnderAttack:
		bad += never + 1
	case Draining:
		bad += 2 * (never + 1)
	}
	return bad
}
