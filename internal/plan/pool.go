package plan

import (
	"math"
	"slices"
)

// backupShare is how much of the demand of a node counts at its second choice: the
// upstreams of one failure domain die together, those of all do not, but their nodes
// should find the neighbours unequal to no more than they can bear.
const backupShare = 0.25

// fill makes the pools of nodes whose first choices are placed.
func (a *assignment) fill() {
	for k, i := range a.who {
		if a.at[k].up == none {
			continue
		}
		first := pick{a.at[k], a.why(k)}
		a.pools[i] = append(a.pools[i], first)
		if len(a.old[i]) > 0 && a.old[i][0] != first.up {
			a.moved++
		}
		a.fillPins(i)
		for len(a.pools[i]) < a.cfg.Pool {
			next, ok := a.next(k)
			if !ok {
				break
			}
			if len(a.pools[i]) == 1 {
				a.backup[next.up] += backupShare * a.demand(k)
			}
			a.pools[i] = append(a.pools[i], next)
		}
	}
}

// why returns the reason of a first choice, from how it stands now.
func (a *assignment) why(k int) Reason {
	c := &a.at[k]
	switch a.state[k] {
	case pinned:
		return Pinned
	case over:
		return OverCapacity
	}
	cost := a.cost(c, 0)
	if at, other := a.best(a.choices[k], a.demand(k), c.up); at >= 0 && other < cost-slight {
		return Kept
	}
	for i := range a.choices[k] {
		if o := &a.choices[k][i]; o.up != c.up && o.fixed < c.fixed-slight && a.room(o.up) < a.demand(k) {
			return Spilled
		}
	}
	return Cheapest
}

// fillPins adds the pins of node i after the first.
func (a *assignment) fillPins(i int32) {
	if a.pools[i][0].reason != Pinned {
		return
	}
	for _, up := range a.rules.pins[i] {
		if len(a.pools[i]) < a.cfg.Pool && a.mayPin(i, up) && !has(a.pools[i], up) {
			a.pools[i] = append(a.pools[i], pick{a.of.candidate(i, up), Pinned})
		}
	}
}

func has(pool []pick, up int32) bool {
	return slices.ContainsFunc(pool, func(p pick) bool { return p.up == up })
}

// next returns the next choice of k: the second of another failure domain than the
// first if there is one, those after it the cheapest. What the old plan had there stays
// unless another one gains more than the threshold.
func (a *assignment) next(k int) (pick, bool) {
	i := a.who[k]
	pool := a.pools[i]
	demand := a.demand(k)
	domain := a.nodes[pool[0].up].domain
	apart := len(pool) == 1 && slices.ContainsFunc(a.choices[k], func(c candidate) bool { return a.nodes[c.up].domain != domain })
	old := none
	if len(a.old[i]) > len(pool) {
		old = a.old[i][len(pool)]
	}
	var best, had pick
	cheapest, cost, hadCost := math.Inf(1), math.Inf(1), math.Inf(1) // of all; of those that may be; of the old one
	for _, c := range a.choices[k] {
		if has(pool, c.up) {
			continue
		}
		v := a.reserve(&c, demand)
		if a.room(c.up) < demand {
			v += full // one with room is better, whatever it costs
		}
		cheapest = min(cheapest, v)
		if apart && a.nodes[c.up].domain == domain {
			continue
		}
		if c.up == old {
			had, hadCost = pick{c, Kept}, v
		}
		if v < cost {
			best, cost = pick{c, Cheapest}, v
		}
	}
	switch {
	case math.IsInf(cost, 1):
		return pick{}, false
	case !math.IsInf(hadCost, 1) && hadCost-cost <= a.threshold(hadCost):
		if hadCost-cost > slight {
			return had, true
		}
		best = had
	}
	best.reason = Cheapest
	switch v := min(cost, hadCost); {
	case cheapest < v-slight:
		best.reason = OtherDomain
	case v >= full:
		best.reason = OverCapacity
	}
	return best, true
}

// full is more than any cost.
const full = 1e9

// reserve is what c costs as a choice that is used when those before it are gone.
func (a *assignment) reserve(c *candidate, demand float64) float64 {
	return c.fixed + a.cfg.Costs.loadCost((a.used[c.up]+a.backup[c.up]+demand)/a.nodes[c.up].capacity)/c.weight
}
