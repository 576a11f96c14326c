package frontend

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/miekg/dns"
	"pgregory.net/rapid"
)

// subnet returns the content of an option that names p as asked.
func subnet(p netip.Prefix) []byte {
	family := byte(familyIPv4)
	if p.Addr().Is6() {
		family = familyIPv6
	}
	return append([]byte{0, family, byte(p.Bits()), 0}, p.Masked().Addr().AsSlice()[:(p.Bits()+7)/8]...)
}

func TestECSEveryLength(t *testing.T) {
	for _, addr := range []netip.Addr{
		netip.MustParseAddr("255.255.255.255"), netip.MustParseAddr("0.0.0.0"), netip.MustParseAddr("1.2.3.4"),
		netip.MustParseAddr("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), netip.MustParseAddr("2001:db8:5::1"),
	} {
		for bits := range addr.BitLen() + 1 {
			p := netip.PrefixFrom(addr, bits).Masked()
			option := subnet(p)
			e, ok := parseECS(option)
			if !ok || e.prefix != p || !e.present() {
				t.Fatalf("%v: got %v, %v", p, e.prefix, ok)
			}
			if e.names() != (bits > 0) {
				t.Errorf("%v: names is %v", p, e.names())
			}
			got := e.append(nil, bits/2)
			want := append([]byte{0, 8, 0, byte(len(option))}, option...)
			want[optionHeader+3] = byte(bits / 2)
			if !bytes.Equal(got, want) || e.size() != len(want) {
				t.Errorf("%v: reply has %x, want %x", p, got, want)
			}
		}
	}
}

func TestECSFaults(t *testing.T) {
	f := func(what string, option []byte, want bool) {
		t.Helper()
		if _, ok := parseECS(option); ok != want {
			t.Errorf("%s: well formed is %v, want %v", what, ok, want)
		}
	}
	f("empty", nil, false)
	f("no address, no scope", []byte{0, 1, 0}, false)
	f("/0 of IPv4", []byte{0, 1, 0, 0}, true)
	f("/0 of IPv6", []byte{0, 2, 0, 0}, true)
	f("/0 of no family, as dig sends it", []byte{0, 0, 0, 0}, true)
	f("/8 of no family", []byte{0, 0, 8, 0, 10}, false)
	f("/0 with an octet", []byte{0, 1, 0, 0, 0}, false)
	f("family 3", []byte{0, 3, 0, 0}, false)
	f("family 256", []byte{1, 0, 24, 0, 1, 2, 3}, false)
	f("family 257", []byte{1, 1, 24, 0, 1, 2, 3}, false)
	f("/24", []byte{0, 1, 24, 0, 1, 2, 3}, true)
	f("/24 with two octets", []byte{0, 1, 24, 0, 1, 2}, false)
	f("/24 with four octets", []byte{0, 1, 24, 0, 1, 2, 3, 0}, false)
	f("/20 with bits behind it", []byte{0, 1, 20, 0, 1, 2, 0x18}, false)
	f("/20", []byte{0, 1, 20, 0, 1, 2, 0x10}, true)
	f("/33 of IPv4", []byte{0, 1, 33, 0, 1, 2, 3, 4, 0}, false)
	f("/129 of IPv6", append([]byte{0, 2, 129, 0}, make([]byte, 17)...), false)
	f("a scope in a query", []byte{0, 1, 24, 24, 1, 2, 3}, false)
}

func TestECSOfMappedAddresses(t *testing.T) {
	e, ok := parseECS(subnet(netip.MustParsePrefix("::ffff:1.2.3.0/120")))
	if !ok || e.names() {
		t.Error("an IPv4 network in IPv6 form was taken for a client's, or for a fault")
	}
	if e, _ = parseECS(subnet(netip.MustParsePrefix("::/80"))); !e.names() {
		t.Error("::/80 names a network, whatever comes of it")
	}
}

// TestECSAgainstTheStandard draws options near the edge of being well formed and
// compares with the rules written down another way, and with the reading of the
// library, which lets more through.
func TestECSAgainstTheStandard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		family := rapid.SampledFrom([]int{0, 1, 1, 1, 2, 2, 2, 3, 256, 257}).Draw(t, "family")
		source := rapid.OneOf(rapid.IntRange(0, 34), rapid.IntRange(0, 130), rapid.IntRange(0, 255)).Draw(t, "source")
		scope := rapid.SampledFrom([]int{0, 0, 0, 0, 1, 24, 255}).Draw(t, "scope")
		n := max((source+7)/8+rapid.SampledFrom([]int{0, 0, 0, 0, 1, -1}).Draw(t, "more"), 0)
		octets := rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "octets")
		if rapid.Bool().Draw(t, "masked") && n > 0 {
			octets[n-1] &= byte(0xff << ((8 - source%8) % 8))
		}
		option := append([]byte{byte(family >> 8), byte(family), byte(source), byte(scope)}, octets...)

		want := scope == 0 && len(octets)*8 >= source && len(octets)*8 < source+8
		width := map[int]int{0: 0, 1: 32, 2: 128}
		w, known := width[family]
		want = want && known && source <= w
		var prefix netip.Prefix
		if want && w > 0 {
			full := make([]byte, w/8)
			copy(full, octets)
			a, _ := netip.AddrFromSlice(full)
			prefix = netip.PrefixFrom(a, source)
			want = prefix == prefix.Masked()
		}
		e, ok := parseECS(option)
		if ok != want {
			t.Fatalf("%x: well formed is %v, want %v", option, ok, want)
		}
		if !ok {
			return
		}
		if e.prefix != prefix {
			t.Fatalf("%x: prefix is %v, want %v", option, e.prefix, prefix)
		}
		m := new(dns.Msg)
		if err := m.Unpack(ednsMessage(e.append(nil, 0))); err != nil {
			t.Fatalf("%x: the library refuses what we echo: %v", option, err)
		}
		o := m.IsEdns0().Option[0].(*dns.EDNS0_SUBNET)
		if int(o.Family) != family || int(o.SourceNetmask) != source {
			t.Fatalf("%x: echoed as %v", option, o)
		}
	})
}

// TestScopeIsExact has the real policy decide: whoever is in the network that an answer
// says it is for gets the same answer, and it is never for more than was asked. If a
// resolver keeps the one for the other, nobody notices.
func TestScopeIsExact(t *testing.T) {
	d := bigDNS(t, 200)
	rapid.Check(t, func(t *rapid.T) {
		c := newDNSClient(d)
		ask := func(p netip.Prefix) (string, netip.Prefix) {
			m := c.ask(t, edns(question("s.live.example.com", dns.TypeA), 1232, clientSubnet(p.String())))
			s := subnetOf(m)
			if len(m.Answer) < 1 || len(m.Answer) > 3 || int(s.SourceScope) > p.Bits() {
				t.Fatalf("%v: %v", p, m)
			}
			return records(m), netip.PrefixFrom(p.Addr(), int(s.SourceScope)).Masked()
		}
		draw := func(bits *rapid.Generator[int]) netip.Prefix {
			a := [4]byte{0: rapid.SampledFrom([]byte{1, 10, 20, 21, 22, 23, 24, 100, 172, 192, 198, 203, 224}).Draw(t, "first")}
			copy(a[1:], rapid.SliceOfN(rapid.Byte(), 3, 3).Draw(t, "rest"))
			return netip.PrefixFrom(netip.AddrFrom4(a), bits.Draw(t, "bits")).Masked()
		}
		const spread = 24 // that the domain tells clients apart by: all of a shorter network are one client
		p := draw(rapid.IntRange(spread, 32))
		want, scope := ask(p)
		// Another client in the same scope.
		b := scope.Addr().As4()
		for i := scope.Bits(); i < 32; i++ {
			if rapid.Bool().Draw(t, "bit") {
				b[i/8] |= 0x80 >> (i % 8)
			}
		}
		other := netip.PrefixFrom(netip.AddrFrom4(b), rapid.IntRange(spread, 32).Draw(t, "other bits")).Masked()
		if got, its := ask(other); got != want || its != scope {
			t.Fatalf("%v: for %v, %s\n%v: for %v, %s", p, scope, want, other, its, got)
		}
	})
}

func TestScopeOfPrivateNetworks(t *testing.T) {
	c := newDNSClient(bigDNS(t, 200))
	f := func(prefix string, want int) {
		t.Helper()
		m := c.ask(t, edns(question("s.live.example.com", dns.TypeA), 1232, clientSubnet(prefix)))
		if s := subnetOf(m); int(s.SourceScope) != want {
			t.Errorf("%s: scope is %d, want %d", prefix, s.SourceScope, want)
		}
	}
	f("10.1.2.0/24", 8)
	f("172.20.0.0/24", 12)
	f("192.168.7.0/24", 16)
	f("100.64.0.0/10", 10)
	f("10.0.0.0/8", 8)
	f("127.0.0.1/32", 8)
	f("fd00:1::/48", 1) // with all else that is not 2000::/3
}

// ednsMessage is a query without a question, with an OPT record that has options.
func ednsMessage(options []byte) []byte {
	b := []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 41, 4, 208, 0, 0, 0, 0}
	b = binary.BigEndian.AppendUint16(b, uint16(len(options)))
	return append(b, options...)
}
