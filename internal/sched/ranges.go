package sched

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"slices"
	"sort"
)

// ranges cuts the addresses of a family where a prefix of an override begins or ends:
// in each piece, all addresses are in the same prefixes.
type ranges struct {
	starts []netip.Addr // ascending, the first is the family's first; empty: no prefix
	lists  [][]int32    // overrides, by piece
}

// newRanges cuts the addresses of IPv4 or IPv6 for a list of overrides.
func newRanges(all []override, list []int32, v4 bool) (r ranges) {
	var prefixes []int32
	cut := map[netip.Addr]bool{}
	for _, i := range list {
		p := all[i].When.Prefix
		if p.Addr().Is4() != v4 {
			continue
		}
		prefixes = append(prefixes, i)
		cut[p.Addr()] = true
		if end := lastOf(p).Next(); end.IsValid() {
			cut[end] = true
		}
	}
	if len(prefixes) == 0 {
		return r
	}
	if v4 {
		cut[netip.IPv4Unspecified()] = true
	} else {
		cut[netip.IPv6Unspecified()] = true
	}
	for a := range cut {
		r.starts = append(r.starts, a)
	}
	slices.SortFunc(r.starts, netip.Addr.Compare)
	// Prefixes by their begin: those around a piece are found as it is passed.
	slices.SortStableFunc(prefixes, func(a, b int32) int {
		return all[a].When.Prefix.Addr().Compare(all[b].When.Prefix.Addr())
	})
	var around []int32
	for _, start := range r.starts {
		for len(prefixes) > 0 && all[prefixes[0]].When.Prefix.Addr() == start {
			around, prefixes = append(around, prefixes[0]), prefixes[1:]
		}
		around = slices.DeleteFunc(around, func(i int32) bool { return !all[i].When.Prefix.Contains(start) })
		r.lists = append(r.lists, slices.Sorted(slices.Values(around)))
	}
	return r
}

// find returns the overrides whose prefixes a is in, and how many of its bits decided
// that. It does not allocate.
func (r *ranges) find(a netip.Addr) (list []int32, n int) {
	if len(r.starts) == 0 {
		return nil, 0
	}
	i := sort.Search(len(r.starts), func(i int) bool { return a.Less(r.starts[i]) }) - 1
	if i > 0 {
		n = common(a, r.starts[i].Prev()) + 1
	}
	if i+1 < len(r.starts) {
		n = max(n, common(a, r.starts[i+1])+1)
	}
	return r.lists[i], n
}

// lastOf returns the last address of p.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().As16()
	from := p.Bits() + 128 - p.Addr().BitLen()
	for i := from; i < 128; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	if p.Addr().Is4() {
		return netip.AddrFrom16(b).Unmap()
	}
	return netip.AddrFrom16(b)
}

// common returns how many bits two addresses of one family have in common.
func common(a, b netip.Addr) int {
	x, y := a.As16(), b.As16()
	n := 128
	if hi := binary.BigEndian.Uint64(x[:8]) ^ binary.BigEndian.Uint64(y[:8]); hi != 0 {
		n = bits.LeadingZeros64(hi)
	} else if lo := binary.BigEndian.Uint64(x[8:]) ^ binary.BigEndian.Uint64(y[8:]); lo != 0 {
		n = 64 + bits.LeadingZeros64(lo)
	}
	return n - (128 - a.BitLen())
}
