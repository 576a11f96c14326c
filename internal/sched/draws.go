package sched

import "math"

// draws is a weighted rendezvous: each edge draws a number from the client and its own
// id, exponentially distributed with its weight as the rate, and the lowest win. Of
// two edges, each wins as often as its share of the weight of both says, whoever else
// draws: an edge that goes moves only its own clients.
type draws struct {
	key, odd uint64 // of the client and the stream
	k        int    // how many are looked for
	found    int
	top      [MaxWant]drawn // the first found are valid, the lowest first
}

// drawn is an edge and what it drew.
type drawn struct {
	node   int32
	number float64
}

// number returns 64 bits for an edge, of which the highest are mixed best: the hash of
// its id, changed and multiplied by what comes from the client. These are well mixed
// themselves, so one multiplication does; winners and runners-up pass a chi² test.
func number(hash, key, odd uint64) uint64 { return (hash ^ key) * odd }

// firstBits is how many bits of a number are looked at first.
const firstBits = 31

// limit returns what the first bits of a number times its scale must not be above to
// have a chance: -ln(1-u) ≥ u, so no draw is lower than u times scale times factor. It
// is a little higher than needed, for what rounding may do.
func (d *draws) limit(factor float64) float32 {
	if d.found < d.k {
		return inf
	}
	return float32(d.top[d.k-1].number / factor * (1 << firstBits) * (1 + 1e-5))
}

// first returns the first bits of a number.
func first(x uint64) float32 { return float32(int64(x >> (64 - firstBits))) }

// drawers are a range of one cell's edges that draw.
type drawers struct {
	from, to int32   // in the table
	factor   float64 // of their draws
	allowed  *nodeSet
	carriers bool // only those that carry the stream, or only those that do not
}

// drawRange lets edges draw. Nearly all cannot be among the lowest, which their first
// bits tell: this is the loop that a decision over thousands of near edges spends its
// time in.
func (s *search) drawRange(r drawers) {
	hash := s.table.hash[r.from:r.to]
	scale := s.table.scale[r.from:r.to][:len(hash)]
	key, odd, limit := s.key, s.odd, s.limit(r.factor)
	for i, h := range hash {
		if x := number(h, key, odd); first(x)*scale[i] <= limit {
			limit = s.drawOne(&r, i, x, limit)
		}
	}
}

// drawCarrying is drawRange for those that carry a stream which many carry.
func (s *search) drawCarrying(r drawers) {
	hash := s.table.hash[r.from:r.to]
	scale := s.table.scale[r.from:r.to][:len(hash)]
	node := s.table.node[r.from:r.to][:len(hash)]
	key, odd, limit, set := s.key, s.odd, s.limit(r.factor), s.carry.set
	for i, h := range hash {
		x := number(h, key, odd)
		if first(x)*scale[i] <= limit && set[node[i]>>6]&(1<<(node[i]&63)) != 0 {
			limit = s.drawOne(&r, i, x, limit)
		}
	}
}

// drawOne notes edge i of the range, which may be among the lowest. It returns the
// limit for the others.
func (s *search) drawOne(r *drawers, i int, x uint64, limit float32) float32 {
	at := int(r.from) + i
	n := s.table.node[at]
	if s.bonus > 0 && s.carry.has(n) != r.carriers || r.allowed != nil && !r.allowed.has(n) {
		return limit
	}
	s.put(n, x, float64(s.table.scale[at])*r.factor)
	return s.limit(r.factor)
}

// draw lets one edge draw.
func (d *draws) draw(node int32, hash uint64, scale float64) {
	d.put(node, number(hash, d.key, d.odd), scale)
}

// put notes an edge that drew x, if it is among the lowest.
func (d *draws) put(node int32, x uint64, scale float64) {
	const most = 53 // bits of a float64
	u := (float64(x>>(64-most)) + 0.5) / (1 << most)
	number := -math.Log1p(-u) * scale
	if d.found == d.k {
		if !before(number, node, d.top[d.k-1]) {
			return
		}
		d.found--
	}
	i := d.found
	for ; i > 0 && before(number, node, d.top[i-1]); i-- {
		d.top[i] = d.top[i-1]
	}
	d.top[i] = drawn{node, number}
	d.found++
}

// before reports whether a draw is lower; nodes are by id.
func before(number float64, node int32, than drawn) bool {
	return number < than.number || number == than.number && node < than.node
}
