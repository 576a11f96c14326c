package sched

import "math"

var inf = float32(math.Inf(1))

// search looks for the best edges of a table, for one place and stream.
type search struct {
	plan  *Plan
	row   []static // by cell
	order []int32  // cells that the domain may use, by least cost
	has   []bool   // cells that the domain may use
	fade  float32  // what is left of quality
	carry carrying
	bonus float32 // of who carries the stream; 0: nobody does
	self  int32   // the node that asks, -1: none
	want  int

	// Found out.
	table    *table
	best     float32 // cost of the best edge
	window   float32 // cost up to which edges share the clients
	nearest  float32 // cost, without load, of the best cell with an edge that is well
	selfCost float32 // infinite if self cannot be in the answer
	shared   int     // how many of those found are within the window
	draws
}

// static returns the cost of a cell's edges but for load, health and stream.
func (s *search) static(c int32) float32 {
	return s.row[c].coverage + float32(s.fade*s.row[c].quality)
}

// run searches all edges of t that are allowed; nil allows all. It finds none only if
// there is none.
func (s *search) run(t *table, allowed *nodeSet) {
	s.begin(t, allowed)
	s.findBest(allowed)
	if s.bonus > 0 {
		s.findBestCarrier(allowed)
	}
	if s.best == inf {
		return
	}
	s.window = s.best + float32(s.plan.Costs.Margin)
	if s.bonus > 0 {
		s.drawCarriers(allowed)
	}
	s.drawCells(allowed)
	s.shared = s.found
	if s.found < s.want {
		s.fillUp(allowed)
	}
}

// runFew searches a few edges.
func (s *search) runFew(t *table, list []int32) {
	s.begin(t, nil)
	s.selfCost = inf
	for _, n := range list {
		cost := s.costOf(n)
		s.best = min(s.best, cost)
		if n == s.self {
			s.selfCost = cost
		}
	}
	if s.best == inf {
		return
	}
	s.window = s.best + float32(s.plan.Costs.Margin)
	for _, n := range list {
		if cost := s.costOf(n); cost <= s.window {
			s.draw(n, s.plan.hash[n], s.falls(cost)/s.plan.share[n])
		}
	}
	s.shared = s.found
	for _, n := range list {
		if cost := s.costOf(n); s.shared < s.want && cost > s.window && cost < inf {
			s.fill(n, cost)
		}
	}
}

func (s *search) begin(t *table, allowed *nodeSet) {
	s.table, s.found, s.shared, s.best, s.nearest, s.selfCost = t, 0, 0, inf, inf, inf
	if s.self >= 0 && (allowed == nil || allowed.has(s.self)) {
		s.selfCost = s.costOf(s.self)
	}
}

// findBest finds the least cost of an edge. Cells are in the order of what they cost at
// least, so it stops at the first that cannot be better.
func (s *search) findBest(allowed *nodeSet) {
	t := s.table
	for _, c := range s.order {
		if s.row[c].least() >= s.best {
			break
		}
		cost := s.static(c)
		if allowed == nil {
			s.best = min(s.best, cost+t.least[c])
			if t.well[c] {
				s.nearest = min(s.nearest, cost)
			}
			continue
		}
		for i := t.off[c]; i < t.off[c+1]; i++ {
			if allowed.has(t.node[i]) {
				s.best = min(s.best, cost+t.cost[i])
				break
			}
		}
		if cost < s.nearest && s.anyWell(c, allowed) {
			s.nearest = cost
		}
	}
}

// anyWell reports whether one of a cell's edges is allowed and well, be it full.
func (s *search) anyWell(c int32, allowed *nodeSet) bool {
	if !s.table.well[c] {
		return false
	}
	for _, n := range s.plan.cells[c].nodes {
		if allowed.has(n) && s.table.isWell[n] {
			return true
		}
	}
	return false
}

// findBestCarrier lowers the best cost to that of the best edge that carries the
// stream, if that is lower.
func (s *search) findBestCarrier(allowed *nodeSet) {
	if s.carry.set == nil {
		for _, n := range s.carry.list {
			if allowed == nil || allowed.has(n) {
				s.best = min(s.best, s.costOf(n))
			}
		}
		return
	}
	for _, c := range s.order {
		if s.row[c].least()-s.bonus >= s.best {
			break
		}
		if cost := s.static(c) - s.bonus; cost+s.table.least[c] < s.best {
			s.best = min(s.best, cost+s.leastCarrying(c, s.best-cost, allowed))
		}
	}
}

// leastCarrying returns the cost of the best of a cell's edges that carries a stream
// which many carry; infinite if there is none, or none below a bound.
func (s *search) leastCarrying(c int32, below float32, allowed *nodeSet) float32 {
	from, to := s.table.off[c], s.table.off[c+1]
	node, set := s.table.node[from:to], s.carry.set
	for i, n := range node {
		if set[n>>6]&(1<<(n&63)) == 0 || allowed != nil && !allowed.has(n) {
			continue
		}
		if cost := s.table.cost[int(from)+i]; cost < below {
			return cost
		}
		break
	}
	return inf
}

// costOf returns what a node costs, infinite if it is not in the table or not for the
// domain.
func (s *search) costOf(n int32) float32 {
	c := s.plan.cellOf[n]
	if c < 0 || !s.has[c] {
		return inf
	}
	return s.static(c) + s.table.byNode[n] - s.gain(n)
}

// gain returns what n gains by carrying the stream.
func (s *search) gain(n int32) float32 {
	if s.bonus > 0 && s.carry.has(n) {
		return s.bonus
	}
	return 0
}

// falls returns by what factor draws grow for an edge that is worse than the best.
func (s *search) falls(cost float32) float64 {
	return math.Exp(float64(cost-s.best) / s.plan.falloff)
}

// drawCarriers lets those draw that carry the stream and are within the window thanks
// to it.
func (s *search) drawCarriers(allowed *nodeSet) {
	if s.carry.set == nil {
		for _, n := range s.carry.list {
			if cost := s.costOf(n); cost <= s.window && (allowed == nil || allowed.has(n)) {
				s.draw(n, s.plan.hash[n], s.falls(cost)/s.plan.share[n])
			}
		}
		return
	}
	t := s.table
	for _, c := range s.order {
		if s.row[c].least()-s.bonus > s.window {
			break
		}
		cost := s.static(c) - s.bonus
		if cost+t.least[c] <= s.window {
			to := t.within(c, s.window, s.static(c), s.bonus)
			s.drawCarrying(drawers{t.off[c], to, s.falls(cost + t.least[c]), allowed, true})
		}
	}
}

// drawCells lets the edges within the window draw, but those that carry the stream.
func (s *search) drawCells(allowed *nodeSet) {
	t := s.table
	for _, c := range s.order {
		if s.row[c].least() > s.window {
			break
		}
		cost := s.static(c)
		if cost+t.least[c] > s.window {
			continue
		}
		if i := t.off[c]; t.off[c+1]-i == 1 && first(number(t.hash[i], s.key, s.odd))*t.scale[i] > s.limit(1) {
			continue // not worth the exponential of its factor, which is not below 1
		}
		to := t.within(c, s.window, cost, 0)
		s.drawRange(drawers{t.off[c], to, s.falls(cost + t.least[c]), allowed, false})
	}
}

// within returns the end of the edges of a cell that cost at most so much.
func (t *table) within(c int32, window, static, bonus float32) int32 {
	lo, hi := t.off[c], t.off[c+1]
	if static+t.cost[hi-1]-bonus <= window {
		return hi
	}
	for lo < hi {
		if mid := (lo + hi) / 2; static+t.cost[mid]-bonus <= window {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
