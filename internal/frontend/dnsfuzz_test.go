package frontend

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"pgregory.net/rapid"
)

// canonical packs m without compression, which makes two messages comparable.
func canonical(t failer, m *dns.Msg) []byte {
	t.Helper()
	c := m.Copy()
	c.Compress = false
	for _, rr := range c.Ns { // the case of a zone's own name is as it was asked, or not
		rr.Header().Name = dns.CanonicalName(rr.Header().Name)
	}
	b, err := c.Pack()
	if err != nil {
		t.Fatalf("%v: %v", err, m)
	}
	return b
}

// compare asks both servers and fails where they differ.
func compare(t failer, c *dnsClient, msg []byte, m *dns.Msg) {
	t.Helper()
	f := &reference{plan: c.r.d.zones.Load().plan, secrets: c.r.d.settings.Load().secrets, size: c.r.d.settings.Load().MaxUDPSize}
	want := f.reply(c.now, c.addr, c.tcp, m)
	got := unpack(t, c.raw(msg))
	if got == nil {
		t.Fatalf("no reply to %v", m)
	}
	if !bytes.Equal(canonical(t, got), canonical(t, want)) {
		t.Fatalf("asked from %v: %v\ngot: %v\nwant: %v", c.addr, m, got, want)
	}
}

// drawMsg draws a well-formed query of the kinds that resolvers, tools and attackers
// send.
func drawMsg(t *rapid.T) *dns.Msg {
	names := []string{
		".", "com.", "example.com.", "live.example.com.", "plain.example.com.", "x.app.example.com.", "app.example.com.", "*.app.example.com.",
		"own.app.example.com.", "x.own.app.example.com.", "b.c.example.com.", "a.b.c.example.com.", "none.example.com.", "gone.example.com.",
		"four.example.com.", "ns1.example.com.", "ns2.example.com.", "play.cdn.example.com.", "cdn.example.com.", "nope.cdn.example.com.",
		"apex.test.", "x.apex.test.", "ns.apex.test.", "a.ns.apex.test.", "x.ns.apex.test.", "big.test.", "elsewhere.org.", longName + ".",
	}
	name := rapid.SampledFrom(names).Draw(t, "name")
	if rapid.Bool().Draw(t, "deeper") && len(name) < 200 {
		name = rapid.StringMatching(`([a-z0-9*_-]{1,12}\.){1,3}`).Draw(t, "labels") + strings.TrimPrefix(name, ".")
	}
	flips := rapid.Uint64().Draw(t, "case")
	name = strings.Map(func(r rune) rune {
		if flips = flips>>1 | flips<<63; flips&1 == 1 && 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, name)
	kinds := []uint16{
		dns.TypeA, dns.TypeA, dns.TypeAAAA, dns.TypeAAAA, dns.TypeSOA, dns.TypeNS, dns.TypeCAA, dns.TypeANY, dns.TypeTXT, dns.TypeDS,
		dns.TypeAXFR, dns.TypeIXFR, dns.TypeMAILB, dns.TypeOPT, dns.TypeHTTPS, dns.TypeRRSIG, 0, 65535,
	}
	m := question(name, rapid.SampledFrom(kinds).Draw(t, "type"))
	m.Id = rapid.Uint16().Draw(t, "id")
	m.Question[0].Qclass = rapid.SampledFrom([]uint16{1, 1, 1, 1, 1, 1, 3, 255, 0}).Draw(t, "class")
	m.RecursionDesired, m.CheckingDisabled = rapid.Bool().Draw(t, "rd"), rapid.Bool().Draw(t, "cd")
	m.AuthenticatedData, m.Zero = rapid.Bool().Draw(t, "ad"), rapid.Bool().Draw(t, "z")
	m.Opcode = rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 5, 15}).Draw(t, "opcode")
	switch rapid.IntRange(0, 20).Draw(t, "odd") {
	case 0:
		m.Question = nil
	case 1:
		m.Question = append(m.Question, m.Question[0])
	}
	if rapid.IntRange(0, 4).Draw(t, "edns") > 0 {
		var options []dns.EDNS0
		if rapid.Bool().Draw(t, "subnet") {
			options = append(options, drawSubnet(t))
		}
		if rapid.Bool().Draw(t, "cookie") {
			n := rapid.SampledFrom([]int{8, 8, 16, 24, 24, 40}).Draw(t, "cookie length")
			c := rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "cookie")
			options = append(options, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: hex.EncodeToString(c)})
		}
		if rapid.Bool().Draw(t, "other") {
			options = append(options, &dns.EDNS0_LOCAL{Code: 65001, Data: rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "data")})
		}
		size := rapid.OneOf(rapid.Uint16(), rapid.Uint16Range(500, 1300)).Draw(t, "size")
		edns(m, size, options...)
		if rapid.IntRange(0, 9).Draw(t, "version") == 0 {
			m.IsEdns0().SetVersion(rapid.Uint8().Draw(t, "version"))
		}
		if rapid.Bool().Draw(t, "do") {
			m.IsEdns0().SetDo()
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "extra") == 0 {
		m.Extra = append(m.Extra, &dns.A{Hdr: dns.RR_Header{Name: "live.example.com.", Rrtype: dns.TypeA, Class: 1}, A: []byte{1, 2, 3, 4}})
	}
	return m
}

func drawSubnet(t *rapid.T) *dns.EDNS0_SUBNET {
	var b [16]byte
	copy(b[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address"))
	if rapid.Bool().Draw(t, "private") {
		b[0] = 10
	}
	a := netip.AddrFrom16(b)
	if rapid.Bool().Draw(t, "v4") {
		a = netip.AddrFrom4([4]byte(b[:4]))
	}
	return clientSubnet(netip.PrefixFrom(a, rapid.IntRange(0, a.BitLen()).Draw(t, "bits")).String())
}

func TestAgainstTheLibrary(t *testing.T) {
	d := newTestDNS(t)
	rapid.Check(t, func(t *rapid.T) {
		c := newDNSClient(d)
		c.tcp = rapid.Bool().Draw(t, "tcp")
		if rapid.Bool().Draw(t, "v6 client") {
			c.addr = netip.MustParseAddr("2a00:1450::9")
		}
		m := drawMsg(t)
		b, err := m.Pack()
		if err != nil {
			t.Skip(err)
		}
		compare(t, c, b, m)
	})
}

// FuzzDNS gives any bytes to the server. Whatever they are, the reply has the form
// of one, and says what the reference says if the library reads them as they are.
func FuzzDNS(f *testing.F) {
	for _, m := range []*dns.Msg{
		question("live.example.com", dns.TypeA), question("big.test", dns.TypeNS), question("x.app.example.com", dns.TypeANY),
		edns(question("live.example.com", dns.TypeAAAA), 1232, clientSubnet("1.2.3.0/24")),
		edns(question("LIVE.example.com", dns.TypeAAAA), 4096, clientSubnet("2a00::/56"), &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0123456789abcdef"}),
		edns(new(dns.Msg), 512, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0123456789abcdef"}),
		new(dns.Msg).SetUpdate("example.com."), new(dns.Msg).SetIxfr("example.com.", 1, "a.", "b."),
	} {
		b, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, false)
		f.Add(b[:len(b)-3], true)
		f.Add(append(b, 0), false)
	}
	d := newTestDNS(f)
	f.Fuzz(func(t *testing.T, b []byte, tcp bool) {
		if len(b) > maxQuery {
			return
		}
		c := newDNSClient(d)
		c.tcp = tcp
		asked := bytes.Clone(b)
		reply := c.raw(b)
		if !bytes.Equal(asked, b) {
			t.Fatal("the message was changed")
		}
		checkForm(t, b, reply, tcp)
		m := new(dns.Msg)
		if m.Unpack(b) != nil || m.Response || reply == nil {
			return
		}
		if own, err := m.Pack(); err == nil && bytes.Equal(own, b) && plainQuery(m) {
			compare(t, c, b, m)
		}
	})
}

// plainQuery reports whether a message has none of what the library reads more
// loosely than the standards have it.
func plainQuery(m *dns.Msg) bool {
	opts := 0
	for _, rr := range m.Extra {
		o, ok := rr.(*dns.OPT)
		if !ok {
			continue
		}
		if opts++; o.Hdr.Name != "." {
			return false
		}
		for _, e := range o.Option {
			switch e := e.(type) {
			case *dns.EDNS0_SUBNET:
				b := ednsOption(e)
				if _, ok := parseECS(b); !ok {
					return false
				}
			case *dns.EDNS0_COOKIE:
				if !wellFormedCookie(len(e.Cookie) / 2) {
					return false
				}
			}
		}
	}
	return opts <= 1 && (len(m.Ns) == 0 || m.Opcode != dns.OpcodeQuery)
}

// ednsOption is the content of an option as the library packs it.
func ednsOption(e dns.EDNS0) []byte {
	b := make([]byte, 256)
	n, err := dns.PackRR(&dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}, Option: []dns.EDNS0{e}}, b, 0, nil, false)
	if err != nil {
		return nil
	}
	return b[optLen+optionHeader : n]
}

// checkForm is what holds for every reply.
func checkForm(t *testing.T, b, reply []byte, tcp bool) {
	t.Helper()
	if len(b) < headerLen || b[2]&0x80 != 0 {
		if reply != nil {
			t.Fatalf("a reply to what is no query: %x", reply)
		}
		return
	}
	if reply == nil {
		t.Fatal("no reply to a query")
	}
	m := unpack(t, reply)
	asked := binary.BigEndian.Uint16(b[2:])
	switch {
	case m.Id != binary.BigEndian.Uint16(b):
		t.Fatal("another id")
	case !m.Response, m.RecursionAvailable, m.AuthenticatedData, m.Zero, m.Opcode != int(asked>>opcodeShift&opcodeMask):
		t.Fatalf("flags %v", m.MsgHdr)
	case !tcp && len(reply) > 1232, m.Truncated && tcp:
		t.Fatalf("%d bytes, truncated is %v", len(reply), m.Truncated)
	case len(m.Question) == 1 && !bytes.HasPrefix(b[headerLen:], reply[headerLen:headerLen+len(wire(m.Question[0].Name))+4]):
		t.Fatal("another question")
	case len(m.Question) == 0 && len(m.Answer)+len(m.Ns) > 0:
		t.Fatal("records without a question")
	}
	served := m.Rcode == dns.RcodeSuccess || m.Rcode == dns.RcodeNameError
	if !served && len(m.Answer)+len(m.Ns) > 0 {
		t.Fatalf("records with %s", dns.RcodeToString[m.Rcode])
	}
	// What is no answer is at most longer by the OPT record, with a cookie in it.
	if !served && len(reply) > len(b)+serverCookieLen {
		t.Fatalf("%d bytes for %d bytes", len(reply), len(b))
	}
	if m.Rcode == dns.RcodeSuccess && len(m.Question) == 1 && !m.Truncated && len(m.Answer) == 0 && len(m.Ns) != 1 {
		t.Fatal("an empty answer without an SOA")
	}
	if s := subnetOf(m); s != nil && !bytes.Contains(b, []byte{0, byte(s.Family), s.SourceNetmask, 0}) {
		t.Fatal("a client subnet that was not asked")
	}
}
