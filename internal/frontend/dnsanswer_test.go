package frontend

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// records is a reply's sections in one line, for comparison.
func records(m *dns.Msg) string {
	var out []string
	for _, s := range []struct {
		name string
		list []dns.RR
	}{{"", m.Answer}, {"auth ", m.Ns}, {"add ", m.Extra}} {
		for _, rr := range s.list {
			if rr.Header().Rrtype != dns.TypeOPT {
				out = append(out, s.name+strings.Join(strings.Fields(rr.String()), " "))
			}
		}
	}
	return strings.Join(out, "; ")
}

func TestAnswers(t *testing.T) {
	c := newDNSClient(newTestDNS(t))
	const soa = "example.com. 45 IN SOA ns1.example.com. hostmaster.example.com. 2026 3600 600 604800 45"
	const soaShort = "example.com. 30 IN SOA ns1.example.com. hostmaster.example.com. 2026 3600 600 604800 45"
	const cdnSOA = `cdn.example.com. 60 IN SOA ns1.example.com. dns.admin.example.com. 7 3600 600 604800 60`
	const apexSOA = "apex.test. 10 IN SOA a.ns.apex.test. hostmaster.apex.test. 7 3600 600 604800 60"
	f := func(name string, kind uint16, rcode int, want string) {
		t.Helper()
		m := c.ask(t, question(name, kind))
		if got := records(m); m.Rcode != rcode || got != want {
			t.Errorf("%s %s: %s\n  got %s\n want %s", name, dns.TypeToString[kind], dns.RcodeToString[m.Rcode], got, want)
		}
		if served := rcode == dns.RcodeSuccess || rcode == dns.RcodeNameError; m.Authoritative != served {
			t.Errorf("%s %s: authoritative is %v", name, dns.TypeToString[kind], m.Authoritative)
		}
	}
	a := func(name string) string {
		return fmt.Sprintf("%[1]s. 30 IN A 198.203.0.1; %[1]s. 30 IN A 198.203.0.2; %[1]s. 30 IN A 198.203.0.3", name)
	}

	// Names that players ask for.
	f("live.example.com", dns.TypeA, 0, a("live.example.com"))
	f("lIvE.eXample.COM", dns.TypeA, 0, a("lIvE.eXample.COM"))
	f("mixed.example.com", dns.TypeA, 0, a("mixed.example.com"))
	f("live.example.com", dns.TypeAAAA, 0, "live.example.com. 30 IN AAAA 2001:db8:cb00:7109::1; "+
		"live.example.com. 30 IN AAAA 2001:db8:cb00:7109::2; live.example.com. 30 IN AAAA 2001:db8:cb00:7109::3")
	for _, kind := range []uint16{dns.TypeTXT, dns.TypeMX, dns.TypeHTTPS, dns.TypeNS, dns.TypeSOA, dns.TypeCNAME, dns.TypeDS, dns.TypeRRSIG, dns.TypeSRV, 65000} {
		f("live.example.com", kind, 0, "auth "+soa)
	}
	f("live.example.com", dns.TypeANY, 0, `live.example.com. 3600 IN HINFO "RFC8482" ""`)
	f("live.example.com", dns.TypeCAA, 0, `live.example.com. 3600 IN CAA 0 issue "letsencrypt.org"; `+
		`live.example.com. 3600 IN CAA 128 iodef "mailto:a b@example.com"`)
	f("none.example.com", dns.TypeA, 0, "auth "+soaShort)
	f("four.example.com", dns.TypeA, 0, a("four.example.com"))
	f("four.example.com", dns.TypeAAAA, 0, "auth "+soaShort)
	f("gone.example.com", dns.TypeA, dns.RcodeServerFailure, "")

	// Wildcards (RFC 4592).
	f("x.app.example.com", dns.TypeA, 0, a("x.app.example.com"))
	f("x.y.z.app.example.com", dns.TypeA, 0, a("x.y.z.app.example.com"))
	f("x.app.example.com", dns.TypeMX, 0, "auth "+soa)
	f("*.app.example.com", dns.TypeA, 0, a("*.app.example.com"))
	f("own.app.example.com", dns.TypeA, 0, a("own.app.example.com"))
	f("x.own.app.example.com", dns.TypeA, dns.RcodeNameError, "auth "+soa)
	f("app.example.com", dns.TypeA, 0, "auth "+soa)

	// Empty non-terminals, and names that do not exist.
	for _, kind := range []uint16{dns.TypeA, dns.TypeANY, dns.TypeCAA, dns.TypeNS} {
		f("b.c.example.com", kind, 0, "auth "+soa)
		f("c.example.com", kind, 0, "auth "+soa)
	}
	f("x.b.c.example.com", dns.TypeA, dns.RcodeNameError, "auth "+soa)
	f("nothing.example.com", dns.TypeA, dns.RcodeNameError, "auth "+soa)
	f("x.live.example.com", dns.TypeA, dns.RcodeNameError, "auth "+soa)
	f(strings.Repeat("a.", 100)+"example.com", dns.TypeA, dns.RcodeNameError, "auth "+soa)

	// Zones.
	f("example.com", dns.TypeSOA, 0, strings.Replace(soa, " 45 ", " 3600 ", 1))
	f("EXAMPLE.com", dns.TypeSOA, 0, strings.Replace(strings.Replace(soa, " 45 ", " 3600 ", 1), "example", "EXAMPLE", 1))
	f("example.com", dns.TypeNS, 0, "example.com. 3600 IN NS ns1.example.com.; example.com. 3600 IN NS ns2.example.com.; "+
		"example.com. 3600 IN NS ns.elsewhere.net.; add ns1.example.com. 3600 IN A 192.0.2.53; "+
		"add ns1.example.com. 3600 IN AAAA 2001:db8::53; add ns2.example.com. 3600 IN A 192.0.2.54")
	f("example.com", dns.TypeA, 0, "auth "+soa)
	f("example.com", dns.TypeANY, 0, `example.com. 3600 IN HINFO "RFC8482" ""`)
	f("apex.test", dns.TypeA, 0, a("apex.test"))
	f("apex.test", dns.TypeTXT, 0, "auth "+apexSOA)
	f("deep.down.apex.test", dns.TypeA, 0, a("deep.down.apex.test"))
	f("ns.apex.test", dns.TypeA, 0, "auth "+apexSOA)
	f("a.ns.apex.test", dns.TypeA, 0, "auth "+apexSOA)
	f("apex.test", dns.TypeCAA, 0, "auth "+apexSOA)

	// A zone inside another one.
	f("play.cdn.example.com", dns.TypeA, 0, a("play.cdn.example.com"))
	f("x.cdn.example.com", dns.TypeA, dns.RcodeNameError, "auth "+cdnSOA)
	f("cdn.example.com", dns.TypeMX, 0, "auth "+cdnSOA)
	f("cdn.example.com", dns.TypeDS, 0, "auth "+soa) // of the upper side
	f("example.com", dns.TypeDS, 0, "auth "+soa)     // whose upper side is not here

	// Name servers.
	f("ns1.example.com", dns.TypeA, 0, "ns1.example.com. 3600 IN A 192.0.2.53")
	f("ns1.example.com", dns.TypeAAAA, 0, "ns1.example.com. 3600 IN AAAA 2001:db8::53")
	f("ns2.example.com", dns.TypeAAAA, 0, "auth "+soa)

	// Others' names, and what is not done.
	for _, name := range []string{".", "com", "elsewhere.org", "xexample.com", "example.com.org", "elsewhere.net"} {
		f(name, dns.TypeA, dns.RcodeRefused, "")
	}
	for _, name := range []string{"example.com", "live.example.com", "elsewhere.org"} {
		f(name, dns.TypeAXFR, dns.RcodeRefused, "")
		f(name, dns.TypeIXFR, dns.RcodeRefused, "")
		f(name, dns.TypeMAILB, dns.RcodeNotImplemented, "")
		f(name, dns.TypeTKEY, dns.RcodeFormatError, "")
	}
}

func TestSubnetDecides(t *testing.T) {
	c := newDNSClient(newTestDNS(t))
	f := func(name, prefix string, wantFirst string, wantScope int) {
		t.Helper()
		m := c.ask(t, edns(question(name, dns.TypeA), 1232, clientSubnet(prefix)))
		s := subnetOf(m)
		if s == nil {
			t.Fatalf("%s from %s: no client subnet in the reply", name, prefix)
		}
		asked := clientSubnet(prefix)
		if s.Family != asked.Family || s.SourceNetmask != asked.SourceNetmask || !s.Address.Equal(asked.Address) {
			t.Errorf("%s from %s: echoed as %v", name, prefix, s)
		}
		first := ""
		if len(m.Answer) > 0 {
			first = m.Answer[0].(*dns.A).A.String()
		}
		if first != wantFirst || int(s.SourceScope) != wantScope {
			t.Errorf("%s from %s: %s scope %d, want %s scope %d", name, prefix, first, s.SourceScope, wantFirst, wantScope)
		}
	}
	f("live.example.com", "1.2.3.0/24", "198.1.2.1", 16)
	f("live.example.com", "1.2.3.4/32", "198.1.2.1", 16)
	f("live.example.com", "1.2.0.0/16", "198.1.2.1", 16)
	f("live.example.com", "1.0.0.0/12", "198.1.0.1", 12)
	f("live.example.com", "2a00:1:2:3::/64", "198.42.0.1", 64)
	f("x.app.example.com", "1.2.3.0/24", "198.1.2.1", 16)
	const resolver = "198.203.0.1"
	f("live.example.com", "0.0.0.0/0", resolver, 0)
	f("live.example.com", "::/0", resolver, 0)
	f("live.example.com", "10.1.2.0/24", resolver, 8) // RFC 7871, 10
	f("live.example.com", "::ffff:1.2.3.0/120", resolver, 0)
	f("plain.example.com", "1.2.3.0/24", resolver, 0)
	f("none.example.com", "1.2.3.0/24", "", 0) // RFC 7871, 7.4
	f("nothing.example.com", "1.2.3.0/24", "", 0)
	f("elsewhere.org", "1.2.3.0/24", "", 0)
	f("ns1.example.com", "1.2.3.0/24", "192.0.2.53", 0)

	if m := c.ask(t, edns(question("live.example.com", dns.TypeA), 1232)); subnetOf(m) != nil {
		t.Error("a client subnet that nobody asked for")
	}
	// As dig sends /0.
	none := &dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET}
	if s := subnetOf(c.ask(t, edns(question("live.example.com", dns.TypeA), 1232, none))); s == nil || s.Family != 0 || s.SourceScope != 0 {
		t.Errorf("/0 of no family is echoed as %v", s)
	}
	// The second of two does not count, and is not echoed.
	m := c.ask(t, edns(question("live.example.com", dns.TypeA), 1232, clientSubnet("1.2.3.0/24"), clientSubnet("9.9.9.0/24")))
	if got := m.Answer[0].(*dns.A).A.String(); got != "198.1.2.1" || len(m.IsEdns0().Option) != 1 {
		t.Errorf("two client subnets: %s, %d options", got, len(m.IsEdns0().Option))
	}
	st := c.r.d.Stats()
	if st.ECS["used"] != 8 || st.ECS["private"] != 1 || st.ECS["unused"] == 0 || st.ECS["absent"] != 1 {
		t.Errorf("counted as %v", st.ECS)
	}
}

func TestEDNS(t *testing.T) {
	c := newDNSClient(newTestDNS(t))
	m := c.ask(t, question("live.example.com", dns.TypeA))
	if m.IsEdns0() != nil {
		t.Error("EDNS for a client that did not ask for it")
	}
	m = c.ask(t, edns(question("live.example.com", dns.TypeA), 4096))
	if o := m.IsEdns0(); o == nil || o.UDPSize() != 1232 || o.Version() != 0 || o.Do() {
		t.Errorf("got %v", m.IsEdns0())
	}
	q := edns(question("live.example.com", dns.TypeA), 4096)
	q.IsEdns0().SetDo()
	if m = c.ask(t, q); !m.IsEdns0().Do() {
		t.Error("the DO bit is not copied")
	}
	q = edns(question("live.example.com", dns.TypeA), 4096, clientSubnet("1.2.3.0/24"))
	q.IsEdns0().SetVersion(1)
	if m = c.ask(t, q); m.Rcode != dns.RcodeBadVers || len(m.Answer) > 0 || m.IsEdns0().Version() != 0 || len(m.IsEdns0().Option) > 0 {
		t.Errorf("version 1: %v", m)
	}
	// Unknown options are ignored and not echoed.
	m = c.ask(t, edns(question("live.example.com", dns.TypeA), 1232, &dns.EDNS0_LOCAL{Code: 65001, Data: []byte{1, 2, 3}}, &dns.EDNS0_PADDING{Padding: make([]byte, 100)}))
	if m.Rcode != 0 || len(m.IsEdns0().Option) > 0 {
		t.Errorf("unknown options: %v", m)
	}
	q = edns(edns(question("live.example.com", dns.TypeA), 1232), 1232)
	if m = c.ask(t, q); m.Rcode != dns.RcodeFormatError {
		t.Errorf("two OPT records: %v", m)
	}
}

func TestSizes(t *testing.T) {
	cookie := &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0123456789abcdef"}
	address := clientSubnet("2a00::1/128")
	f := func(name string, kind uint16, limit, want int, change func(c *dnsClient, m *dns.Msg)) {
		t.Helper()
		c := newDNSClient(newTestDNS(t, func(cfg *DNSConfig) { cfg.MaxUDPSize = 900 }))
		q := question(name, kind)
		change(c, q)
		b, err := q.Pack()
		if err != nil {
			t.Fatal(err)
		}
		reply := c.raw(b)
		m := unpack(t, reply)
		whole := 8
		if kind == dns.TypeNS {
			whole = 13
		}
		if m.Truncated != (want < whole) || len(m.Answer) != want || len(reply) > limit {
			t.Errorf("%d bytes with %d records, truncated is %v, want %d records", len(reply), len(m.Answer), m.Truncated, want)
		}
		if (m.IsEdns0() != nil) != (q.IsEdns0() != nil) {
			t.Error("no OPT record in the reply, or one that was not asked for")
		}
		if st := c.r.d.Stats(); (st.Truncated == 1) != m.Truncated {
			t.Errorf("truncated is counted as %d", st.Truncated)
		}
	}
	f(longName, dns.TypeAAAA, 512, 8, func(*dnsClient, *dns.Msg) {})
	f(longName, dns.TypeAAAA, 512, 8, func(_ *dnsClient, m *dns.Msg) { edns(m, 0) })
	f(longName, dns.TypeAAAA, 512, 8, func(_ *dnsClient, m *dns.Msg) { edns(m, 511) })
	f(longName, dns.TypeAAAA, 512, 7, func(_ *dnsClient, m *dns.Msg) { edns(m, 512, address) })
	f(longName, dns.TypeAAAA, 512, 6, func(_ *dnsClient, m *dns.Msg) { edns(m, 100, address, cookie) })
	f(longName, dns.TypeAAAA, 530, 7, func(_ *dnsClient, m *dns.Msg) { edns(m, 530, address, cookie) })
	f(longName, dns.TypeAAAA, 900, 8, func(_ *dnsClient, m *dns.Msg) { edns(m, 553, address, cookie) })
	f(longName, dns.TypeAAAA, 552, 7, func(_ *dnsClient, m *dns.Msg) { edns(m, 552, address, cookie) })
	f(longName, dns.TypeAAAA, 900, 8, func(c *dnsClient, m *dns.Msg) { edns(m, 0, address, cookie); c.tcp = true })
	f("big.test", dns.TypeNS, 512, 6, func(*dnsClient, *dns.Msg) {})
	f("big.test", dns.TypeNS, 900, 11, func(_ *dnsClient, m *dns.Msg) { edns(m, 65535) })
	f("big.test", dns.TypeNS, 1100, 13, func(c *dnsClient, _ *dns.Msg) { c.tcp = true })
}

// TestNegativeThatDoesNotFit has an SOA too long for 512 bytes behind a long question:
// without it the reply must not be cached (RFC 2308, 5), so it is asked for again.
func TestNegativeThatDoesNotFit(t *testing.T) {
	c := newDNSClient(newTestDNS(t))
	q := question(strings.Replace(longName, "example.com", "big.test", 1), dns.TypeA)
	if m := c.ask(t, q); !m.Truncated || m.Rcode != dns.RcodeNameError || len(m.Ns) > 0 {
		t.Errorf("got %v", m)
	}
	c.tcp = true
	if m := c.ask(t, q); m.Truncated || m.Rcode != dns.RcodeNameError || len(m.Ns) != 1 {
		t.Errorf("got %v over TCP", m)
	}
}
