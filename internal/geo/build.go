package geo

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// MaxPairs bounds the pairs of region and ISP in a table: who indexes by pair has a
// list of edges for each. A plan has some tens of regions and ISPs.
const MaxPairs = 1 << 14

// NewTable compiles what a coverage file and an mmdb file say; mmdb may be nil. The
// error says what is wrong with which of them. It does not keep mmdb.
func NewTable(c Coverage, mmdb []byte, opt Options) (*Table, error) {
	b := newBuilder()
	var files [][]byte
	if mmdb != nil {
		files = append(files, mmdb)
	}
	under, err := b.databases(append(files, opt.More...), opt)
	if err != nil {
		return nil, err
	}
	addresses := make([]valued, len(special))
	for i, p := range special {
		addresses[i] = valued{p, private}
	}
	entries := make([]valued, len(c.entries))
	for i, e := range c.entries {
		if e.Pair != (Pair{}) { // else it is a hole: unknown
			entries[i].value = b.value(e.Pair, SourceCoverage)
		}
		entries[i].prefix = e.Prefix
	}
	for i := range under {
		under[i] = overlay(flattenFamily(addresses, i), under[i], b.fill)
		under[i] = overlay(flattenFamily(entries, i), under[i], b.fill)
	}
	b.stats.Coverage = len(c.entries)
	return b.table(under)
}

// table makes the table of all runs. It keeps the places that they use.
func (b *builder) table(all families) (*Table, error) {
	t := &Table{stats: b.stats, index: map[Pair]int32{{}: 0}}
	t.places = append(t.places, b.places[:named]...)
	kept := make([]uint32, len(b.places)) // where in t.places; 0 from named on is nowhere yet
	kept[private] = private
	for _, r := range all {
		for i, run := range r {
			if run.value >= named && kept[run.value] == 0 {
				kept[run.value] = uint32(len(t.places))
				t.places = append(t.places, b.places[run.value])
			}
			r[i].value = kept[run.value]
		}
	}
	t.v4, t.v6 = newFamily(all[0]), newFamily(all[1])
	t.stats.Ranges4, t.stats.Ranges6 = len(all[0]), len(all[1])

	for _, p := range t.places {
		if _, ok := t.index[p.Pair]; !ok {
			t.index[p.Pair] = 0
		}
	}
	if len(t.index)-1 > MaxPairs {
		return nil, fmt.Errorf("coverage and mmdb files name %d pairs of a region and an ISP, at most %d are of use: give fewer ISPs a name of their own, or list those that count in the map of ISPs",
			len(t.index)-1, MaxPairs)
	}
	t.pairs = slices.SortedFunc(maps.Keys(t.index), func(a, b Pair) int {
		return cmp.Or(strings.Compare(a.Region, b.Region), strings.Compare(a.ISP, b.ISP))
	})
	for i, p := range t.pairs {
		t.index[p] = int32(i)
	}
	for i := range t.places {
		t.places[i].Index = t.index[t.places[i].Pair]
	}
	t.stats.Pairs = len(t.pairs) - 1
	return t, nil
}

// families is one list of runs for IPv4 and one for IPv6.
type families [2]runs

// valued is a prefix with a value.
type valued struct {
	prefix netip.Prefix
	value  uint32
}

// flattenFamily is flatten for the sorted prefixes of IPv4 (0) or IPv6 (1).
func flattenFamily(prefixes []valued, family int) runs {
	var in []nested
	for _, p := range prefixes {
		if p.prefix.Addr().Is4() == (family == 0) {
			from, to := keyOf(p.prefix.Addr()).span(p.prefix.Bits())
			in = append(in, nested{from, to, p.value})
		}
	}
	return flatten(in)
}

// builder numbers the places of a table while it is made.
type builder struct {
	places []Place
	values map[Place]uint32
	filled map[[2]uint32]uint32 // what fill has answered
	stats  Stats
}

func newBuilder() *builder {
	b := &builder{values: map[Place]uint32{}, filled: map[[2]uint32]uint32{}}
	b.value(Pair{}, SourceUnknown) // is unknown
	b.value(Pair{}, SourcePrivate) // is private
	return b
}

func (b *builder) value(pair Pair, s Source) uint32 {
	p := Place{Pair: pair, Source: s}
	v, ok := b.values[p]
	if !ok {
		v = uint32(len(b.places))
		b.values[p] = v
		b.places = append(b.places, p)
	}
	return v
}

// fill returns the place over with what it leaves open taken from the place under it.
func (b *builder) fill(over, under uint32) uint32 {
	if over == unknown || under == unknown || over == under {
		return max(over, under)
	}
	v, ok := b.filled[[2]uint32{over, under}]
	if !ok {
		v = over
		if o, u := b.places[over], b.places[under]; over != private {
			pair := o.Pair
			if pair.Region == "" {
				pair.Region = u.Region
			}
			if pair.ISP == "" {
				pair.ISP = u.ISP
			}
			v = b.value(pair, o.Source)
		}
		b.filled[[2]uint32{over, under}] = v
	}
	return v
}
