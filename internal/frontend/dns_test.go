package frontend

import (
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"millrace/internal/geo"
	"millrace/internal/sched"
)

// fixedDecider decides by simple rules that a test can follow.
type fixedDecider struct {
	view   *sched.View
	decide func(q *sched.Query, a *sched.Answer)
}

func (f *fixedDecider) Decide(_ time.Time, q *sched.Query, a *sched.Answer) {
	*a = sched.Answer{Reason: sched.UnknownDomain}
	f.decide(q, a)
}

func (f *fixedDecider) Explain(time.Time, *sched.Query) sched.Explanation { return sched.Explanation{} }
func (f *fixedDecider) View() *sched.View                                 { return f.view }

// edgesFor is the rule: three edges whose addresses show the client's place, which
// is its first 16 bits (32 of IPv6). Networks of private use have no place.
func edgesFor(q *sched.Query, a *sched.Answer) {
	c := q.Client.Addr().AsSlice()
	a.Bits, a.Place.Source = min(4*len(c), q.Client.Bits()), geo.SourceCoverage
	if q.Client.Addr().IsPrivate() || q.Client.Addr().IsLoopback() {
		a.Place.Source, a.Place.Bits, a.Bits = geo.SourcePrivate, min(8, q.Client.Bits()), min(8, q.Client.Bits())
	}
	a.Reason, a.TTL = sched.Placed, 30*time.Second
	switch q.Domain {
	case "none.example.com":
		a.Reason, a.N = sched.NoEdges, 0
		return
	case "gone.example.com":
		a.Reason = sched.UnknownDomain
		return
	case longName:
		a.N = sched.MaxWant
	case "four.example.com":
		a.N = 3
		if q.Families == sched.V6 {
			a.Reason, a.N = sched.NoEdges, 0
			return
		}
	default:
		a.N = 3
	}
	a.Near = a.N
	for i := range a.N {
		if q.Families&sched.V4 != 0 {
			a.Candidates[i].Addr4 = netip.AddrFrom4([4]byte{198, c[0], c[1], byte(i + 1)})
		}
		if q.Families&sched.V6 != 0 {
			a.Candidates[i].Addr6 = netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, c[0], c[1], c[2], c[3], 15: byte(i + 1)})
		}
	}
}

func addrs(list ...string) (out []netip.Addr) {
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

// longName is one that leaves little room in 512 bytes: 250 bytes in wire form.
var longName = strings.Repeat(strings.Repeat("x", 61)+".", 3) + strings.Repeat("y", 50) + ".example.com"

// testPlan has zones inside one another, wildcards, empty non-terminals, and names of
// name servers in and outside of zones.
func testPlan(t testing.TB) *sched.Plan {
	t.Helper()
	domain := func(name string, ecs bool) sched.Domain {
		return sched.Domain{Name: name, ECS: ecs, TTL: sched.Duration(time.Minute)}
	}
	var many []sched.NameServer
	for i := range 13 {
		many = append(many, sched.NameServer{Host: fmt.Sprintf("ns%d.%s.net", i, strings.Repeat("n", 50))})
	}
	p, err := sched.Compile(&sched.Snapshot{
		Version: 7,
		Zones: []sched.Zone{
			{
				Name: "example.com", CAA: []string{"0 issue letsencrypt.org", `128 iodef "mailto:a b@example.com"`},
				NS: []sched.NameServer{
					{Host: "ns1.example.com", Addresses: addrs("192.0.2.53", "2001:db8::53")},
					{Host: "ns2.Example.com.", Addresses: addrs("192.0.2.54")},
					{Host: "ns.elsewhere.net", Addresses: addrs("192.0.2.55")},
				},
				Minimum: sched.Duration(45 * time.Second), Serial: 2026,
			},
			{Name: "cdn.example.com", NS: []sched.NameServer{{Host: "ns1.example.com", Addresses: addrs("192.0.2.53")}}, Mbox: "dns.admin@example.com"},
			{Name: "big.test", NS: many, Mbox: longName},
			{Name: "apex.test.", NS: []sched.NameServer{{Host: "a.ns.apex.test"}}, TTL: sched.Duration(10 * time.Second)},
		},
		Domains: []sched.Domain{
			domain("live.example.com", true), domain("plain.example.com", false), domain("Mixed.Example.com", true),
			domain("*.app.example.com", true), domain("own.app.example.com", true), domain("a.b.c.example.com", true),
			domain("none.example.com", true), domain("gone.example.com", true), domain("four.example.com", true),
			domain(longName, true), domain("play.cdn.example.com", true),
			domain("apex.test", true), domain("*.apex.test", true), domain("elsewhere.org", true),
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// newTestDNS returns a DNS for testPlan whose rates never matter.
func newTestDNS(t testing.TB, change ...func(*DNSConfig)) *DNS {
	t.Helper()
	cfg := DefaultDNSConfig()
	cfg.RateLimit, cfg.ErrorLimit = 0, 0
	cfg.CookieSecrets = []string{strings.Repeat("5a", 16)}
	for _, f := range change {
		f(&cfg)
	}
	d, err := NewDNS(cfg, &fixedDecider{view: &sched.View{Plan: testPlan(t)}, decide: edgesFor}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// dnsClient asks a DNS in process.
type dnsClient struct {
	r    responder
	addr netip.Addr
	tcp  bool
	now  time.Time
}

func newDNSClient(d *DNS) *dnsClient {
	return &dnsClient{
		r: responder{d: d, count: &d.conns.count}, addr: netip.MustParseAddr("203.0.113.9"),
		now: time.Unix(1_700_000_000, 0),
	}
}

func (c *dnsClient) raw(msg []byte) []byte {
	return c.r.respond(c.now, peer{addr: c.addr, tcp: c.tcp}, msg, nil)
}

// failer is what tests and properties have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// ask sends m and reads the reply; it is nil if there is none.
func (c *dnsClient) ask(t failer, m *dns.Msg) *dns.Msg {
	t.Helper()
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return unpack(t, c.raw(b))
}

func unpack(t failer, b []byte) *dns.Msg {
	t.Helper()
	if b == nil {
		return nil
	}
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		t.Fatalf("reply %x: %v", b, err)
	}
	return m
}

func question(name string, kind uint16) *dns.Msg {
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(name), kind)
	m.RecursionDesired = false
	return m
}

// edns adds an OPT record with options.
func edns(m *dns.Msg, size uint16, options ...dns.EDNS0) *dns.Msg {
	o := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}, Option: options}
	o.SetUDPSize(size)
	m.Extra = append(m.Extra, o)
	return m
}

func clientSubnet(p string) *dns.EDNS0_SUBNET {
	prefix := netip.MustParsePrefix(p)
	family := uint16(familyIPv4)
	if prefix.Addr().Is6() {
		family = familyIPv6
	}
	return &dns.EDNS0_SUBNET{
		Code: dns.EDNS0SUBNET, Family: family, SourceNetmask: uint8(prefix.Bits()),
		Address: prefix.Masked().Addr().AsSlice(),
	}
}

func subnetOf(m *dns.Msg) *dns.EDNS0_SUBNET {
	if o := m.IsEdns0(); o != nil {
		for _, e := range o.Option {
			if s, ok := e.(*dns.EDNS0_SUBNET); ok {
				return s
			}
		}
	}
	return nil
}

// swapDecider is a fixedDecider whose view changes.
type swapDecider struct {
	*fixedDecider
	now atomic.Pointer[sched.View]
}

func (s *swapDecider) View() *sched.View { return s.now.Load() }
