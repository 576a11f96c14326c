package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// NodeExplanation tells why the pool of a node is as it is.
type NodeExplanation struct {
	Node       string      `json:"node"`
	Known      bool        `json:"known"`
	Upstream   Reason      `json:"upstream"` // why others do not pull from it; none: they may
	Use        float64     `json:"use"`      // share of its capacity that is planned, 0…
	Demand     int64       `json:"demand"`   // bytes/s
	Version    uint64      `json:"version"`  // of the plan
	Frozen     bool        `json:"frozen"`
	Pool       []Choice    `json:"pool"`       // as planned
	Candidates []Candidate `json:"candidates"` // as they stand now, those that are open first, by cost
	Downstream []string    `json:"downstream"` // whose first choice it is
	Edits      []string    `json:"edits"`      // that name it, in words
}

// Candidate is an upstream that a node could have.
type Candidate struct {
	Upstream string    `json:"upstream"`
	Cost     float64   `json:"cost"`
	Parts    Breakdown `json:"parts"`
	Place    int       `json:"place"`  // in the pool, from 1; 0: it is not in it
	Reason   Reason    `json:"reason"` // of the choice, or why it is none
}

// maxCandidates is how many an explanation names.
const maxCandidates = 50

// ExplainNode tells why the pool of a node is as it is. It is for people: it looks at
// every node.
func (v *View) ExplainNode(id string) NodeExplanation {
	e := NodeExplanation{Node: id, Version: v.plan.Version, Frozen: v.plan.Frozen, Pool: v.plan.Pools[id], Candidates: []Candidate{}, Downstream: []string{}, Edits: []string{}}
	i, ok := v.ids[id]
	if !ok {
		e.Upstream = Unknown
		return e
	}
	n := &v.nodes[i]
	p := v.standing()
	e.Known, e.Upstream, e.Demand = true, n.why, int64(n.demand)
	if n.capacity > 0 {
		e.Use = p.used[i] / n.capacity
	}
	for j := range v.nodes {
		up := &v.nodes[j]
		if pool := v.plan.Pools[up.ID]; len(pool) > 0 && pool[0].Upstream == id {
			e.Downstream = append(e.Downstream, up.ID)
		}
		if up.tier >= n.tier || n.tier == tierNone {
			continue
		}
		e.Candidates = append(e.Candidates, p.trace(i, int32(j), e.Pool))
	}
	slices.SortStableFunc(e.Candidates, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), cmp.Compare(a.Cost, b.Cost))
	})
	e.Candidates = e.Candidates[:min(len(e.Candidates), maxCandidates)]
	v.net.Edits.each(v.at, func(from, to, text string) {
		if v.names(from, i) || v.names(to, i) {
			e.Edits = append(e.Edits, text)
		}
	})
	return e
}

// order puts what is in the pool first, then what is open.
func (c *Candidate) order() int {
	switch {
	case c.Place > 0:
		return c.Place
	case c.Reason == Dearer || c.Reason == Full:
		return maxPool + 1
	}
	return maxPool + 2
}

// standing is the load of all nodes as the plan has it.
func (v *View) standing() *planner {
	p := newPlanner(v.world, v.plan)
	for i := range p.old {
		if len(p.old[i]) > 0 && p.old[i][0] != none {
			p.used[p.old[i][0]] += v.nodes[i].demand
		}
		if pool := v.plan.Pools[v.nodes[i].ID]; v.nodes[i].tier == tierRelay && len(pool) > 0 {
			p.behind[i] = pool[0].Cost
		}
	}
	return p
}

func (p *planner) trace(i, up int32, pool []Choice) Candidate {
	n := &p.nodes[up]
	c := Candidate{Upstream: n.ID, Reason: n.why}
	if n.capacity > 0 {
		c.Parts = p.breakdown(up, i)
		c.Cost = Cost(c.Parts)
	}
	at := slices.IndexFunc(pool, func(c Choice) bool { return c.Upstream == n.ID })
	switch {
	case at >= 0:
		c.Place, c.Reason = at+1, pool[at].Reason
	case n.why != None:
	case p.rules.banned(up, i):
		c.Reason = Banned
	case n.tier == tierRelay && p.cfg.Flat:
		c.Reason = WrongRole
	case n.tier == tierRelay && len(p.tiers[tierCenter]) > 0 && len(p.old[up]) == 0:
		c.Reason = Blind
	case p.room(up) < p.nodes[i].demand:
		c.Reason = Full
	default:
		c.Reason = Dearer
	}
	return c
}

// names reports whether an edit's word is for a node.
func (v *View) names(word string, i int32) bool {
	n := v.nodes[i].Node
	return word != "" && (word == all || word == n.ID || n.Datacenter != "" && word == datacenterMark+n.Datacenter)
}

// each tells all edits that hold, in words; from and to are the nodes they name.
func (e *Edits) each(now time.Time, f func(from, to, text string)) {
	tell := func(b *By, from, to, format string, args ...any) {
		if !b.holds(now) {
			return
		}
		text := fmt.Sprintf(format, args...)
		if b.Author != "" {
			text += " by " + b.Author
		}
		if b.Comment != "" {
			text += ": " + b.Comment
		}
		f(from, to, text)
	}
	for i := range e.Pins {
		p := &e.Pins[i]
		what := "all streams"
		if p.Stream != "" {
			what = string(p.Stream)
		}
		for _, up := range p.Upstreams {
			tell(&p.By, up, p.Node, "pin of %s to %v for %s", p.Node, p.Upstreams, what)
		}
	}
	for i := range e.Bans {
		b := &e.Bans[i]
		tell(&b.By, b.From, b.To, "ban of %s for %s", b.From, b.To)
	}
	for i := range e.Weights {
		w := &e.Weights[i]
		tell(&w.By, w.From, w.To, "weight %g of %s for %s", w.Weight, w.From, w.To)
	}
	for i := range e.Prices {
		p := &e.Prices[i]
		tell(&p.By, p.Node, "", "price %g of %s", p.Price, p.Node)
	}
	for i := range e.Capacities {
		c := &e.Capacities[i]
		tell(&c.By, c.Node, "", "capacity %d of %s", c.Capacity, c.Node)
	}
	for i := range e.Drains {
		d := &e.Drains[i]
		tell(&d.By, d.Node, "", "drain of %s", d.Node)
	}
}

// LinkExplanation tells what a link costs and why.
type LinkExplanation struct {
	From     string    `json:"from"`
	To       string    `json:"to"`
	Reason   Reason    `json:"reason"`   // why it cannot be used; none: it can
	Promised float64   `json:"promised"` // ms by distance and ISPs
	Measured bool      `json:"measured"`
	Figures  Figures   `json:"figures"` // zero if it was not measured
	Cost     float64   `json:"cost"`
	Parts    Breakdown `json:"parts"`
	Place    int       `json:"place"`   // in the pool of To, from 1; 0: it is not in it
	Crosses  bool      `json:"crosses"` // it leaves the region or the ISP, and is paid for
	Edits    []string  `json:"edits"`
}

// ExplainLink tells what it costs to to pull from from. It reads the Scores of the
// Network: who calls it agrees with who takes samples on a lock.
func (v *View) ExplainLink(from, to string) LinkExplanation {
	e := LinkExplanation{From: from, To: to, Edits: []string{}}
	a, okA := v.ids[from]
	b, okB := v.ids[to]
	switch {
	case !okA || !okB:
		e.Reason = Unknown
		return e
	case a == b:
		e.Reason = Self
		return e
	}
	p := v.standing()
	c := p.trace(b, a, v.plan.Pools[to])
	e.Cost, e.Parts, e.Place = c.Cost, c.Parts, c.Place
	switch c.Reason {
	case Dead, Draining, NoCapacity, Banned, Full, Blind:
		e.Reason = c.Reason
	}
	e.Promised, e.Crosses = v.promised(a, b), v.crosses(a, b)
	if v.net.Scores != nil {
		if l := v.net.Scores.Link(from, to); l != nil {
			e.Measured, e.Figures = true, l.Figures(v.at, v.cfg)
		}
	}
	v.net.Edits.each(v.at, func(f, t, text string) {
		if v.names(f, a) && (t == "" || v.names(t, b)) && !slices.Contains(e.Edits, text) {
			e.Edits = append(e.Edits, text)
		}
	})
	return e
}
