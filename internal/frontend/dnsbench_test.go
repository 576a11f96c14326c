package frontend

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"millrace/internal/geo"
	"millrace/internal/sched"
)

// bigDNS returns a DNS for one domain on edges that are all up, in 50 regions with 4
// ISPs, for which the coverage has 12,800 networks.
func bigDNS(t testing.TB, edges int) *DNS {
	t.Helper()
	now := time.Unix(1_700_000_000, 0)
	var coverage strings.Builder
	for i := range 12_800 {
		fmt.Fprintf(&coverage, "%d.%d.%d.0/20 r%d isp%d\n", 20+i>>12, i>>4&255, i&15<<4, i/37%50, i/5%4)
	}
	c, err := geo.ParseCoverage([]byte(coverage.String()))
	if err != nil {
		t.Fatal(err)
	}
	table, err := geo.NewTable(c, nil, geo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &sched.Snapshot{
		Version: 1, Zones: []sched.Zone{{Name: "example.com", NS: []sched.NameServer{{Host: "ns1.example.com", Addresses: addrs("192.0.2.53")}}}},
		Domains: []sched.Domain{{Name: "*.live.example.com", ECS: true, Answers: 3}},
	}
	state := &sched.State{At: now}
	for i := range 50 {
		lat, lon := float64(i%10)*5, float64(i/10)*20
		s.Regions = append(s.Regions, sched.Region{Name: fmt.Sprintf("r%d", i), Lat: &lat, Lon: &lon})
	}
	up := sched.Health{Status: sched.Up, At: now, Up: now}
	for i := range edges {
		id := fmt.Sprintf("e%04d", i)
		s.Nodes = append(s.Nodes, sched.Node{
			ID: id, Role: "edge", Region: fmt.Sprintf("r%d", i%50), ISPs: []string{fmt.Sprintf("isp%d", i/50%4)}, Capacity: 1e9, HTTPPort: 80,
			Addresses: []netip.Addr{netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}), netip.MustParseAddr(fmt.Sprintf("2001:db8:e::%x", i+1))},
		})
		state.Nodes = append(state.Nodes, sched.NodeState{ID: id, Load: int64(i*7919%700) * 1e6, V4: up, V6: up})
	}
	p, err := sched.Compile(s, table.Pairs())
	if err != nil {
		t.Fatal(err)
	}
	scheduler := sched.New()
	scheduler.Swap(sched.NewView(p, table, state))
	cfg := DefaultDNSConfig()
	cfg.RateLimit, cfg.ErrorLimit = 1_000_000, 1_000_000
	d, err := NewDNS(cfg, scheduler, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// packed returns m as bytes.
func packed(t testing.TB, m *dns.Msg) []byte {
	t.Helper()
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// scenes are what a server is asked.
func scenes(t testing.TB) map[string][]byte {
	const name = "Stream1.live.example.com"
	cookie := &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0123456789abcdef" + strings.Repeat("01", 16)}
	return map[string][]byte{
		"A":                      packed(t, question(name, dns.TypeA)),
		"A with ECS":             packed(t, edns(question(name, dns.TypeA), 1232, clientSubnet("20.7.3.0/24"))),
		"AAAA, ECS of IPv6":      packed(t, edns(question(name, dns.TypeAAAA), 1232, clientSubnet("2a00::/56"))),
		"A with ECS and cookie":  packed(t, edns(question(name, dns.TypeA), 1232, clientSubnet("20.7.3.0/24"), cookie)),
		"A with private ECS":     packed(t, edns(question(name, dns.TypeA), 1232, clientSubnet("10.0.0.0/24"))),
		"TXT":                    packed(t, question(name, dns.TypeTXT)),
		"no such name":           packed(t, question("nothing.example.com", dns.TypeA)),
		"a name of others":       packed(t, question(strings.Repeat("a.", 120)+"org", dns.TypeA)),
		"version of EDNS":        packed(t, func() *dns.Msg { m := edns(question(name, dns.TypeA), 1232); m.IsEdns0().SetVersion(1); return m }()),
		"an answer is malformed": packed(t, question(name, dns.TypeA))[:30],
	}
}

// TestNoMemory wants a message to cost no memory, whatever it is.
func TestNoMemory(t *testing.T) {
	d := bigDNS(t, 200)
	buf := make([]byte, 0, maxUDP)
	for name, msg := range scenes(t) {
		for _, tcp := range []bool{false, true} {
			c := newDNSClient(d)
			if n := testing.AllocsPerRun(100, func() { c.r.respond(c.now, peer{addr: c.addr, tcp: tcp}, msg, buf) }); n != 0 {
				t.Errorf("%s: %v allocations", name, n)
			}
		}
	}
}

// BenchmarkDNS is a reply without its sockets: what a core does beside the kernel's
// work. In bench/dns it is measured with that.
func BenchmarkDNS(b *testing.B) {
	d := bigDNS(b, 1000)
	buf := make([]byte, 0, maxUDP)
	for name, msg := range scenes(b) {
		b.Run(name, func(b *testing.B) {
			c := newDNSClient(d)
			at := len(msg) - 3 // the octets of an IPv4 client subnet
			i := uint32(0)
			b.ReportAllocs()
			for b.Loop() {
				if name == "A with ECS" { // each query from another network
					i++
					msg[at] = 20 + byte(i&1)
					binary.BigEndian.PutUint16(msg[at+1:], uint16(i*40503))
				}
				c.r.respond(c.now, peer{addr: c.addr}, msg, buf)
			}
		})
	}
}
