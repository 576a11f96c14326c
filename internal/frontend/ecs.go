package frontend

import "net/netip"

// ecs is the client subnet of a query (RFC 7871). The zero value is a query without
// one.
type ecs struct {
	// option is the option's content as it came, inside the query; nil for none.
	option []byte
	// prefix is the network of the client; not valid where the option names none.
	prefix netip.Prefix
}

// Families of a client subnet (IANA address family numbers).
const (
	familyNone = 0 // an option without an address, as dig sends it for /0
	familyIPv4 = 1
	familyIPv6 = 2
)

// ecsHeader is the length of an option's content without its address: family,
// source prefix length, scope prefix length.
const ecsHeader = 4

// parseECS reads the content of an option, which it keeps. It reports whether the
// option is well formed; RFC 7871 (6, 7.2.1) wants FORMERR for one that is not, and
// for no other: an unknown family, a prefix longer than addresses are, a scope in a
// query, more or fewer octets than the prefix needs, bits set behind the prefix.
func parseECS(option []byte) (ecs, bool) {
	if len(option) < ecsHeader {
		return ecs{}, false
	}
	family, source, scope := int(option[0])<<8|int(option[1]), int(option[2]), option[3]
	octets := option[ecsHeader:]
	if scope != 0 || len(octets) != (source+7)/8 {
		return ecs{}, false
	}
	var addr netip.Addr
	switch {
	case family == familyNone && source == 0:
		return ecs{option: option}, true
	case family == familyIPv4 && source <= 32:
		var a [4]byte
		copy(a[:], octets)
		addr = netip.AddrFrom4(a)
	case family == familyIPv6 && source <= 128:
		var a [16]byte
		copy(a[:], octets)
		addr = netip.AddrFrom16(a)
	default:
		return ecs{}, false
	}
	if spare := len(octets)*8 - source; spare > 0 && octets[len(octets)-1]&(1<<spare-1) != 0 {
		return ecs{}, false
	}
	return ecs{option: option, prefix: netip.PrefixFrom(addr, source)}, true
}

// present reports whether the query has the option.
func (e *ecs) present() bool { return e.option != nil }

// names reports whether the option names a network that an answer can be made for.
// One of length 0 asks not to be told apart. An IPv4 network written as IPv6 is no
// network that a resolver could have clients in.
func (e *ecs) names() bool {
	return e.prefix.IsValid() && e.prefix.Bits() > 0 && !(e.prefix.Addr().Is4In6() && e.prefix.Bits() >= 96)
}

// append adds the whole option for the reply: family, source prefix length and
// address as they were asked (RFC 7871, 7.2.1), and the scope.
func (e *ecs) append(b []byte, scope int) []byte {
	b = append(b, 0, optionECS, byte(len(e.option)>>8), byte(len(e.option)))
	b = append(b, e.option[:3]...)
	b = append(b, byte(scope))
	return append(b, e.option[ecsHeader:]...)
}

// size is how many bytes append adds.
func (e *ecs) size() int {
	if !e.present() {
		return 0
	}
	return optionHeader + len(e.option)
}
