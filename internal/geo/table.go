package geo

import (
	"math/bits"
	"net/netip"
	"slices"
)

// Table answers where an address is. It is immutable and safe from any goroutine.
type Table struct {
	places []Place // by the value of a range; those below named have no names
	pairs  []Pair  // the first is empty
	index  map[Pair]int32
	v4, v6 family
	stats  Stats
}

// Values of ranges: those of places without names come first.
const (
	unknown uint32 = iota
	private
	named
)

// Stats is what a table holds.
type Stats struct {
	Coverage  int        `json:"coverage"` // CIDRs of the coverage file
	Databases []Database `json:"databases,omitempty"`
	Ranges4   int        `json:"ranges4"` // disjoint ranges of IPv4
	Ranges6   int        `json:"ranges6"`
	Pairs     int        `json:"pairs"` // of region and ISP, without the empty one
}

// family is the runs of IPv4 or IPv6, laid out for looking up.
type family struct {
	starts []key
	values []uint32
	// Addresses from base on are cut into buckets of 1<<shift (of the higher half of
	// a key), so that the range of starts fills them; what is below is in the first.
	// below holds how many runs start in the buckets before each. It leaves little to
	// the binary search, whatever part of the address space the runs are in.
	base  uint64
	shift int
	below []uint32
}

// maxBucketBits bounds the memory of buckets to one MB.
const maxBucketBits = 18

func newFamily(r runs) family {
	f := family{starts: make([]key, len(r)), values: make([]uint32, len(r))}
	for i, run := range r {
		f.starts[i], f.values[i] = run.start, run.value
	}
	n := min(bits.Len(uint(len(r))), maxBucketBits)
	if len(r) > 1 { // the first starts at zero, far from the others
		f.base = r[1].start.hi
		f.shift = max(bits.Len64(r[len(r)-1].start.hi-f.base)-n, 0)
	}
	f.below = make([]uint32, 1<<n+1)
	for _, run := range r {
		f.below[f.bucket(run.start)+1]++
	}
	for i := 1; i < len(f.below); i++ {
		f.below[i] += f.below[i-1]
	}
	return f
}

func (f *family) bucket(a key) int {
	if a.hi < f.base {
		return 0
	}
	return int(min((a.hi-f.base)>>f.shift, uint64(len(f.below)-2)))
}

// find returns the run that a is in.
func (f *family) find(a key) int {
	b := f.bucket(a)
	// All runs before lo start below a, all from hi on start above it.
	lo, hi := int(f.below[b]), int(f.below[b+1])
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if a.less(f.starts[mid]) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo - 1
}

// end returns the last address of run i.
func (f *family) end(i int) key {
	if i+1 < len(f.starts) {
		return f.starts[i+1].prev()
	}
	return last
}

// uniform returns the length of the largest prefix around a that is inside run i,
// which a is in.
func (f *family) uniform(a key, i int) int {
	n := 0
	if i > 0 {
		n = a.common(f.starts[i].prev()) + 1
	}
	if i+1 < len(f.starts) {
		n = max(n, a.common(f.starts[i+1])+1)
	}
	return n
}

// maxInside bounds how many of the runs inside a prefix are looked at. A resolver
// sends a /24, and a file that cuts a /24 into more is not worth the time.
const maxInside = 32

// widest returns the run with most of the addresses from..to among the first of
// them; i is the run of from. One that has no names wins only over others like it.
func (f *family) widest(from, to key, i int) int {
	best, size := i, key{}
	for range maxInside {
		end := f.end(i)
		if to.less(end) {
			end = to
		}
		n, known, bestKnown := end.minus(from), f.values[i] >= named, f.values[best] >= named
		if known && !bestKnown || known == bestKnown && size.less(n) {
			best, size = i, n
		}
		if end == to {
			break
		}
		from = end.next()
		i++
	}
	return best
}

// Locate returns where the addresses of p are. Of a prefix with several answers it
// returns a known one that has most of it. An IPv4 address in IPv6 form is looked up
// as IPv4. An invalid p is unknown. It does not allocate.
func (t *Table) Locate(p netip.Prefix) Place {
	a, n := p.Addr(), p.Bits()
	if n < 0 {
		return t.places[0]
	}
	mapped := 0
	if a.Is4In6() && n >= 96 {
		a, n, mapped = a.Unmap(), n-96, 96
	}
	f := &t.v6
	if a.Is4() {
		f = &t.v4
	}
	from, to := keyOf(a).span(n)
	i := f.find(from)
	if f.end(i).less(to) {
		place := t.places[f.values[f.widest(from, to, i)]]
		place.Bits = n + mapped
		return place
	}
	place := t.places[f.values[i]]
	place.Bits = f.uniform(from, i) + mapped
	return place
}

// Pairs returns the distinct pairs of region and ISP that Locate can answer with, by
// name. The first is the empty pair, of unknown addresses. The caller must not change
// them.
func (t *Table) Pairs() []Pair { return t.pairs }

// Find returns the place of a region and an ISP that the caller was given.
func (t *Table) Find(region, isp string) Place {
	p := Place{Pair: Pair{region, isp}, Source: SourceGiven, Index: -1}
	if i, ok := t.index[p.Pair]; ok {
		p.Index = i
	}
	return p
}

// Stats returns what t holds.
func (t *Table) Stats() Stats {
	s := t.stats
	s.Databases = slices.Clone(s.Databases)
	return s
}
