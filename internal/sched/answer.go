package sched

import (
	"math"
	"net/netip"
	"time"
)

// answer writes down what was found.
func (d *decision) answer(a *Answer) {
	if d.shared > 1 {
		a.Bits = max(a.Bits, d.spread)
	}
	a.Bits = d.mapped + max(min(a.Bits, d.client.Bits()), 0)
	a.N = min(d.found, d.want)
	if a.SelfOK = d.selfCost < inf; a.SelfOK {
		a.SelfCost = d.selfCost
	}
	a.TTL = time.Duration(a.Domain.TTL)
	if a.N == 0 {
		a.Reason, a.TTL = NoEdges, time.Duration(a.Domain.DegradedTTL)
		return
	}
	if a.Reason = d.reason(); a.Reason == Degraded || d.held(d.top[0].node) {
		a.TTL = time.Duration(a.Domain.DegradedTTL)
	}
	if a.Near = a.N; a.Reason != Degraded {
		a.Near = max(min(d.shared, a.N), 1)
	}
	for i := range a.N {
		d.candidate(d.top[i].node, a.Reason, &a.Candidates[i])
	}
	d.weigh(a.Candidates[:a.N])
}

// reason returns the reason of an answer with candidates.
func (d *decision) reason() Reason {
	n := d.top[0].node
	switch {
	case d.poor, d.despite, d.v.old(d.now):
		return Degraded
	case d.pinned:
		return Pinned
	case d.static(d.plan.cellOf[n])-d.gain(n) > d.nearest+float32(d.plan.Costs.Margin):
		return Spilled
	}
	return Placed
}

// held reports whether n is kept though it seems down.
func (d *decision) held(n int32) bool { return !d.poor && d.table.byNode[n] > d.v.load[n] }

// candidate fills in c for node n.
func (d *decision) candidate(n int32, r Reason, c *Candidate) {
	p := d.plan
	row := d.row[p.cellOf[n]]
	c.Node, c.Index, c.Reason = &p.Nodes[n], n, r
	c.Coverage, c.Quality = row.coverage, float32(d.fade*row.quality)
	c.Stream = 0 - d.gain(n) // not -0
	c.Cost = d.costOf(n)
	c.Load, c.Health = d.v.load[n], 0
	if d.poor {
		c.Load = min(c.Load, maxPoorLoad)
		c.Health = float32(math.Round(float64(d.table.byNode[n]-c.Load)/poorStep) * poorStep)
	} else if d.held(n) {
		c.Health = float32(p.Costs.Held)
		if r == Placed || r == Spilled {
			c.Reason = Held
		}
	}
	c.Addr4, c.Addr6 = d.address(0, n), d.address(1, n)
}

// address returns the address of n for clients of a family, IPv4 (0) or IPv6 (1), if
// it was asked for and is not worse off than the one that n was found by.
func (d *decision) address(f int, n int32) netip.Addr {
	why := d.v.why[f][n]
	if d.families&(1<<f) == 0 || !d.poor && why != None && why != Held {
		return netip.Addr{}
	}
	return d.plan.addr[f][n]
}

// weigh gives candidates their weights: the parts of the clients that each would get
// of those of all, the largest as 100.
func (d *decision) weigh(list []Candidate) {
	const most = 100
	var parts [MaxWant]float64
	largest := 0.0
	for i := range list {
		c := &list[i]
		parts[i] = d.plan.share[c.Index] * math.Exp(-float64(c.Cost-d.best)/d.plan.falloff)
		largest = max(largest, parts[i])
	}
	for i := range list {
		list[i].Weight = uint16(max(1, math.Round(parts[i]/largest*most)))
	}
}
