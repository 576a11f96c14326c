package sched

import (
	"net/netip"
	"strings"
)

const (
	anyISP         = "*"   // among the ISPs of a node: good from all
	datacenterMark = "dc:" // before the name of a datacenter in a pin or a ban
)

func isDatacenter(target string) bool { return strings.HasPrefix(target, datacenterMark) }

// canonical returns a DNS name as the maps have it.
func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// inside reports whether a name is a zone's or below it; both are canonical.
func inside(name, zone string) bool {
	rest, ok := strings.CutSuffix(name, zone)
	return ok && (rest == "" || strings.HasSuffix(rest, "."))
}

// maxHost is the longest DNS name as text, with a dot at the end.
const maxHost = 254

// folded is room for a name in its canonical form, on the stack.
type folded [maxHost]byte

// fold returns the canonical form of name, nil if it is too long to be a name.
func (f *folded) fold(name string) []byte {
	name = strings.TrimSuffix(name, ".")
	if len(name) > len(f) {
		return nil
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		f[i] = c
	}
	return f[:len(name)]
}

// Domain returns the domain that serves name, in any case and with or without a dot
// at the end: the one of that name, else the "*." domain of the longest parent; nil if
// there is none. It does not allocate.
func (p *Plan) Domain(name string) *Domain {
	if i := p.domain(name); i >= 0 {
		return &p.Domains[i]
	}
	return nil
}

// domain returns the index of a domain, -1 if there is none.
func (p *Plan) domain(name string) int32 {
	if i, ok := p.domains[name]; ok {
		return i
	}
	var buf folded
	b := buf.fold(name)
	if i, ok := p.domains[string(b)]; ok {
		return i
	}
	for i := 1; i < len(b); i++ {
		if b[i] == '.' {
			b[i-1] = '*' // its label is not looked at again
			if d, ok := p.domains[string(b[i-1:])]; ok {
				return d
			}
		}
	}
	return -1
}

// Zone returns the zone that name is in, the one with the longest name, in any case
// and with or without a dot at the end; nil if there is none. It does not allocate.
func (p *Plan) Zone(name string) *Zone {
	var buf folded
	for b := buf.fold(name); len(b) > 0; {
		if i, ok := p.zones[string(b)]; ok {
			return &p.Zones[i]
		}
		for len(b) > 0 && b[0] != '.' {
			b = b[1:]
		}
		if len(b) > 0 {
			b = b[1:]
		}
	}
	return nil
}

// unmapped returns an IPv4 prefix for one in IPv6 form, and any other as it is.
func unmapped(p netip.Prefix) netip.Prefix {
	if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return p
}
