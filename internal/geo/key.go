package geo

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// key is an address as a number of 128 bits. An IPv4 address is in the highest 32 of
// them, so that the length of a prefix means the same in both families.
type key struct{ hi, lo uint64 }

var last = key{^uint64(0), ^uint64(0)}

func keyOf(a netip.Addr) key {
	if a.Is4() {
		b := a.As4()
		return key{uint64(binary.BigEndian.Uint32(b[:])) << 32, 0}
	}
	b := a.As16()
	return key{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

func (a key) less(b key) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

// next is a+1; that of last is zero.
func (a key) next() key {
	lo, carry := bits.Add64(a.lo, 1, 0)
	return key{a.hi + carry, lo}
}

// prev is a-1; that of zero is last.
func (a key) prev() key {
	lo, borrow := bits.Sub64(a.lo, 1, 0)
	return key{a.hi - borrow, lo}
}

// minus is a-b.
func (a key) minus(b key) key {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	return key{a.hi - b.hi - borrow, lo}
}

// span returns the first and the last address of the prefix of n bits around a.
func (a key) span(n int) (from, to key) {
	host := key{^uint64(0) >> min(n, 64), ^uint64(0) >> max(n-64, 0)}
	if n >= 64 {
		host.hi = 0
	}
	return key{a.hi &^ host.hi, a.lo &^ host.lo}, key{a.hi | host.hi, a.lo | host.lo}
}

// common is how many bits a and b have in common from the left.
func (a key) common(b key) int {
	if a.hi != b.hi {
		return bits.LeadingZeros64(a.hi ^ b.hi)
	}
	return 64 + bits.LeadingZeros64(a.lo^b.lo)
}

// with is a with bit n set, counted from the left.
func (a key) with(n int) key {
	if n < 64 {
		return key{a.hi | 1<<(63-n), a.lo}
	}
	return key{a.hi, a.lo | 1<<(127-n)}
}
