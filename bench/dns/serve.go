package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/miekg/dns"

	"millrace/internal/frontend"
	"millrace/internal/geo"
	"millrace/internal/sched"
)

const (
	zone  = "example.com"
	names = 5000 // that are asked for, below zone
)

func nameOf(i int) string { return fmt.Sprintf("s%d.live.%s.", i, zone) }

// serveOurs runs the scheduler's name server on edges that are all up, in 50 regions
// with 4 ISPs, for which the coverage has 12,800 networks.
func serveOurs(ctx context.Context, addr string, edges int) error {
	view, err := newView(edges)
	if err != nil {
		return err
	}
	s := sched.New()
	s.Swap(view)
	cfg := frontend.DefaultDNSConfig()
	cfg.RateLimit = 1_000_000 // counted as ever, and never reached: the load is one network
	d, err := frontend.NewDNS(cfg, s, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	if err := d.Listen(ctx, addr); err != nil {
		return err
	}
	return d.Run(ctx)
}

func newView(edges int) (*sched.View, error) {
	var coverage strings.Builder
	for i := range networks {
		fmt.Fprintf(&coverage, "%v r%d isp%d\n", network(i), i/37%50, i/5%4)
	}
	c, err := geo.ParseCoverage([]byte(coverage.String()))
	if err != nil {
		return nil, err
	}
	table, err := geo.NewTable(c, nil, geo.Options{})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	s := &sched.Snapshot{
		Version: 1,
		Zones:   []sched.Zone{{Name: zone, NS: []sched.NameServer{{Host: "ns1." + zone, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.53")}}}}},
		Domains: []sched.Domain{{Name: "*.live." + zone, Zone: zone, ECS: true, Answers: 3}},
	}
	for i := range 50 {
		lat, lon := float64(i%10)*5, float64(i/10)*20
		s.Regions = append(s.Regions, sched.Region{Name: fmt.Sprintf("r%d", i), Lat: &lat, Lon: &lon})
	}
	// The state stays as it is: nothing probes here, so it has to be fresh for the whole run.
	up := sched.Health{Status: sched.Up, At: now.Add(time.Hour), Up: now.Add(time.Hour)}
	state := &sched.State{At: now}
	for i := range edges {
		id := fmt.Sprintf("e%04d", i)
		s.Nodes = append(s.Nodes, sched.Node{
			ID: id, Role: "edge", Region: fmt.Sprintf("r%d", i%50), ISPs: []string{fmt.Sprintf("isp%d", i/50%4)},
			Capacity: 1e9, HTTPPort: 80, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)})},
		})
		state.Nodes = append(state.Nodes, sched.NodeState{ID: id, Load: int64(i*7919%700) * 1e6, V4: up})
	}
	p, err := sched.Compile(s, table.Pairs())
	if err != nil {
		return nil, err
	}
	return sched.NewView(p, table, state), nil
}

// serveFixed is the least that a program does with the library: it has each message
// read, and sends back one packet that was made before, with the id of the question.
func serveFixed(ctx context.Context, addr string) error {
	m := new(dns.Msg)
	m.SetQuestion(nameOf(0), dns.TypeA)
	m.Response, m.Authoritative = true, true
	for i := range 3 {
		m.Answer = append(m.Answer, &dns.A{
			Hdr: dns.RR_Header{Name: nameOf(0), Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.IPv4(198, 18, 0, byte(i+1)),
		})
	}
	o := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}, Option: []dns.EDNS0{clientSubnet(network(0))}}
	o.SetUDPSize(1232)
	m.Extra = append(m.Extra, o)
	m.Compress = true
	packet, err := m.Pack()
	if err != nil {
		return err
	}
	pc, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp", addr)
	if err != nil {
		return err
	}
	s := &dns.Server{PacketConn: pc, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		out := make([]byte, len(packet))
		copy(out, packet)
		out[0], out[1] = byte(q.Id>>8), byte(q.Id)
		_, _ = w.Write(out)
	})}
	stop := context.AfterFunc(ctx, func() { _ = s.Shutdown() })
	defer stop()
	return s.ActivateAndServe()
}
