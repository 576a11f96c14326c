// Package address is what settings and limits make of the addresses of peers: lists of
// prefixes that hold them, and what counts as one source.
//
// Peers are compared in their IPv4 form where they have one. The package does no I/O and
// reads no clock.
package address

import (
	"fmt"
	"net/netip"
	"strings"
)

// MaxPrefixes is how many prefixes a list may have: each is compared with each peer.
const MaxPrefixes = 4096

// Source returns what an address is counted as: itself for IPv4, and for IPv6 the /64
// that one customer has (RFC 6177), with as many addresses as it likes. What is no
// address is a source of its own.
func Source(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return a
	}
	p, _ := a.Prefix(64) // always in range
	return p.Addr()
}

// ParsePrefixes reads CIDR prefixes and single addresses.
func ParsePrefixes(list []string) ([]netip.Prefix, error) {
	if len(list) > MaxPrefixes {
		return nil, fmt.Errorf("has %d entries, must have 0 to %d", len(list), MaxPrefixes)
	}
	out := make([]netip.Prefix, 0, len(list))
	for _, s := range list {
		p, err := parsePrefix(strings.TrimSpace(s))
		if err != nil {
			return nil, fmt.Errorf("%q is not an address or a CIDR prefix such as 10.0.0.0/8 or 2001:db8::/32", s)
		}
		out = append(out, p)
	}
	return out, nil
}

func parsePrefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		a = a.Unmap().WithZone("")
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// Within reports whether one of list holds a.
func Within(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
