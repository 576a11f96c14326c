package failover

import "sort"

// cursor walks over one track of the window, beside the units of a connection:
//
//	window      a b c d e f g|
//	                  ^next  ^end
//	connection    b c d'...            d' is compared with d to g
type cursor struct {
	next, end int
	repeats   int64 // how far times of equal payloads may be apart, in ms
	matched   bool  // the connection has shown a unit of the window
}

// around is how far, in ms, equal payloads are looked for, to know if there are more
// than one. Times never fall within a track.
const around = 1000

// outcome is what a cursor finds a unit to be.
type outcome uint8

const (
	fresh     outcome = iota // newer than all that was forwarded
	duplicate                // forwarded already
	late                     // its time is over, and it was not forwarded
)

// cursor returns one at the oldest unit. Payloads that stand in the window more than
// once are told apart by their times, so these may differ by less than half of a
// frame only.
func (r *ring) cursor() cursor {
	n, span := r.density()
	return cursor{next: r.oldest(), end: r.total, repeats: min(max(span/int64(2*n)-1, minRepeats), maxRepeats)}
}

// step looks for a unit with the given digest and mapped time at or behind the
// cursor, moves behind it, and returns how many it passed over and by how much the
// window's time is later. Among equal payloads the one nearest in time is meant, so
// that a stretch of silence is not mistaken for itself a little later; but the very
// next one is if it is less than a frame off, as neighbours stay neighbours however
// times are rounded.
func (c *cursor) step(r *ring, sum uint64, dts int64) (o outcome, skipped int, off int64) {
	if c.next >= c.end {
		return fresh, 0, 0
	}
	if off = r.time(c.next) - dts; c.matched && r.sum(c.next) == sum && max(off, -off) <= 2*c.repeats+1 {
		c.next++
		return duplicate, 0, off
	}
	best, equal := -1, 0
	distance := int64(sameTime + 1)
	from := c.next + sort.Search(c.end-c.next, func(i int) bool { return r.time(c.next+i) >= dts-around })
	for i := from; i < c.end; i++ {
		d := r.time(i) - dts
		if d > around {
			break
		}
		if r.sum(i) != sum {
			continue
		}
		equal++
		if distance > max(d, -d) {
			if best, distance, off = i, max(d, -d), d; d == 0 {
				break
			}
		}
	}
	switch {
	case best >= 0 && (equal == 1 || distance <= c.repeats):
		if c.matched {
			skipped = best - c.next
		}
		c.next, c.matched = best+1, true
		return duplicate, skipped, off
	case dts > r.last:
		return fresh, 0, 0
	}
	return late, 0, 0
}

// density returns how many units took how many ms lately; n is at least 1.
func (r *ring) density() (n int, span int64) {
	n = min(r.total-r.oldest()-1, 64)
	if n < 1 {
		return 1, 0
	}
	return n, r.last - r.time(r.total-1-n)
}

// missing estimates how many units would have stood between the newest one and dts,
// at the density of the newest ones.
func (r *ring) missing(dts int64) int {
	n, span := r.density()
	if span <= 0 || dts <= r.last {
		return 0
	}
	return max(0, int(float64(dts-r.last)*float64(n)/float64(span)+0.5)-1)
}
