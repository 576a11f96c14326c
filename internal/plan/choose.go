package plan

import "math"

// choose puts the ways of q into a, the best first.
func (q *question) choose(a *PathAnswer) {
	for i := range q.n {
		if w := &q.ways[i]; a.has(q.v.nodes[w.over].ID) {
			w.closed = Pinned
		}
	}
	for len(a.Choices) < maxChoices {
		domain := int32(-1)
		if n := len(a.Choices); n > 0 {
			if up, ok := q.v.ids[a.Choices[n-1].Upstream]; ok {
				domain = q.v.nodes[up].domain
			}
		}
		at, why := q.pick(domain, false)
		if at < 0 && domain >= 0 {
			at, why = q.pick(-1, false)
		}
		if at < 0 && len(a.Choices) == 0 {
			if at, _ = q.pick(-1, true); at >= 0 {
				why = OverCapacity
			}
		}
		if at < 0 {
			return
		}
		q.add(a, at, why)
		q.ways[at].closed = Cheapest // it is in the answer
	}
}

// pick returns the way that the rules prefer, without those over a failure domain; full
// ones only if nothing else is asked for.
func (q *question) pick(domain int32, crowded bool) (at int, why Reason) {
	between := q.pickBetween(domain, crowded)
	direct := &q.ways[0]
	open := q.open(direct, domain, crowded)
	near, same := q.near()
	hot := len(q.at.Carriers) >= q.v.cfg.Hot
	bound := q.v.cfg.Bound
	switch {
	case between < 0 && !open:
		return -1, None
	case between < 0, open && near && same && !hot && direct.cost <= q.ways[between].cost+bound,
		open && q.ways[between].cost > direct.cost+bound:
		switch {
		case !same:
			return 0, DirectISP
		case !near:
			return 0, DirectFar
		}
		return 0, Direct
	}
	switch w := &q.ways[between]; {
	case w.rank == homeCarrier || w.rank == carrier:
		return between, Carrier
	case !same:
		return between, Bridged
	}
	return between, Between
}

// open reports whether a way may be picked; see pick.
func (q *question) open(w *way, domain int32, crowded bool) bool {
	return (w.closed == None || crowded && w.closed == Full) && (domain < 0 || q.v.nodes[w.over].domain != domain)
}

// near reports whether the source is near, and whether it is of the same ISP.
func (q *question) near() (near, same bool) {
	v := q.v
	a, b := &v.cells[v.nodes[q.node].cell], &v.cells[v.nodes[q.source].cell]
	return v.way(a.region, b.region) <= v.cfg.Near, v.meets(q.node, q.source)
}

// pickBetween returns the way over a node between of the best rank whose cheapest costs
// no more than the bound above the cheapest of all; -1 if none is open.
func (q *question) pickBetween(domain int32, crowded bool) int {
	var cheapest [straight]float64
	least := math.Inf(1)
	for r := range cheapest {
		cheapest[r] = math.Inf(1)
	}
	for i := 1; i < q.n; i++ {
		if w := &q.ways[i]; q.open(w, domain, crowded) {
			cheapest[w.rank] = min(cheapest[w.rank], w.cost)
			least = min(least, w.cost)
		}
	}
	if math.IsInf(least, 1) {
		return -1
	}
	r := homeCarrier
	for cheapest[r] > least+q.v.cfg.Bound {
		r++
	}
	// Which of those that are alike is a matter of the stream, the same for all who ask.
	best, owns, draw := -1, false, uint64(0)
	hash := q.streamHash()
	for i := 1; i < q.n; i++ {
		w := &q.ways[i]
		if w.rank != r || !q.open(w, domain, crowded) || w.cost > cheapest[r]+alike {
			continue
		}
		o, d := q.owner(w.over) == none, mix(hash^q.v.hashes[w.over])
		if best < 0 || o && !owns || o == owns && d > draw {
			best, owns, draw = i, o, d
		}
	}
	return best
}

// grow adds a choice to a and returns it, with the slice of hops that it had before.
func (a *PathAnswer) grow() *PathChoice {
	n := len(a.Choices)
	if n < cap(a.Choices) {
		a.Choices = a.Choices[:n+1]
	} else {
		a.Choices = append(a.Choices, PathChoice{Hops: make([]string, 0, maxHops)})
	}
	c := &a.Choices[n]
	*c = PathChoice{Hops: c.Hops[:0]}
	return c
}

// add writes a way into a.
func (q *question) add(a *PathAnswer, at int, why Reason) {
	v := q.v
	w := &q.ways[at]
	c := a.grow()
	c.Upstream, c.Reason = v.nodes[w.over].ID, why
	c.Parts = q.first(w.over)
	c.Hops = append(c.Hops, c.Upstream)
	if w.over != q.source {
		up, carries := q.at.Carriers[c.Upstream]
		if carries {
			c.Parts.Behind, _ = q.chain(w.over, up)
			c.Hops = q.hops(c.Hops, up)
		} else {
			c.Parts.Behind = q.behind(w.over)
			up := q.at.Source
			if o := q.owner(w.over); o != none {
				c.Hops = append(c.Hops, v.nodes[o].ID)
				if from, carries := q.at.Carriers[v.nodes[o].ID]; carries {
					up = from
				}
			}
			c.Hops = q.hops(c.Hops, up)
		}
	}
	c.Cost = Cost(c.Parts)
}

// hops adds the nodes from up to the source.
func (q *question) hops(to []string, up string) []string {
	for len(to) < maxHops {
		if up == "" {
			up = q.at.Source
		}
		to = append(to, up)
		if up == q.at.Source {
			break
		}
		up = q.at.Carriers[up]
	}
	return to
}

// pinned puts what operators want for the stream at the node, or for the node, first.
func (q *question) pinned(a *PathAnswer) {
	v := q.v
	for _, up := range v.rules.pinsOf(q.node, q.stream) {
		n := &v.nodes[up]
		if len(a.Choices) == maxChoices || up == q.node || !n.Alive || n.capacity <= 0 {
			continue
		}
		if up != q.source {
			if n.tier > tierRelay || n.tier >= v.nodes[q.node].tier {
				continue
			}
			if q.at != nil {
				if from, carries := q.at.Carriers[n.ID]; carries && q.source != none {
					if _, ok := q.chain(up, from); !ok {
						continue
					}
				}
			}
		}
		c := a.grow()
		c.Upstream, c.Reason = n.ID, Pinned
		c.Hops = append(c.Hops, n.ID)
		c.Parts = v.parts(up, q.node)
		c.Parts.Load = v.cfg.Costs.loadCost(n.load / n.capacity)
		c.Cost = Cost(c.Parts)
	}
}

// fallBack fills a up from the pool of the node.
func (q *question) fallBack(a *PathAnswer) {
	v := q.v
	for _, p := range v.plan.Pools[v.nodes[q.node].ID] {
		up, ok := v.ids[p.Upstream]
		if len(a.Choices) == maxChoices {
			return
		}
		if !ok || !v.nodes[up].Alive || a.has(p.Upstream) {
			continue
		}
		c := a.grow()
		c.Upstream, c.Cost, c.Parts, c.Reason = p.Upstream, p.Cost, p.Parts, Pool
		c.Hops = append(c.Hops, p.Upstream)
	}
}

func (a *PathAnswer) has(up string) bool {
	for i := range a.Choices {
		if a.Choices[i].Upstream == up {
			return true
		}
	}
	return false
}
