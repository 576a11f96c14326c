package frontend

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// serveDNS listens at addr and runs d until the test ends.
func serveDNS(t testing.TB, d *DNS, addr string) netip.AddrPort {
	t.Helper()
	if err := d.Listen(t.Context(), addr); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return d.Addrs()[0]
}

// askOver asks over network and returns the reply.
func askOver(t testing.TB, network, addr string, m *dns.Msg) *dns.Msg {
	t.Helper()
	c := &dns.Client{Net: network, Timeout: time.Minute, UDPSize: 4096}
	out, _, err := c.Exchange(m, addr)
	if err != nil {
		t.Fatalf("%s %s: %v", network, addr, err)
	}
	return out
}

func TestSockets(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "[::1]", "[::]", "0.0.0.0", ""} {
		t.Run("at "+host, func(t *testing.T) {
			d := newTestDNS(t, func(c *DNSConfig) { c.Workers = 3 })
			if strings.HasPrefix(host, "[") && !hasIPv6() {
				t.Skip("skipped: this machine has no IPv6")
			}
			port := serveDNS(t, d, host+":0").Port()
			asked := []string{host}
			switch host {
			case "[::]", "":
				asked = []string{"127.0.0.1", "127.0.0.2", "127.1.2.3"}
				if hasIPv6() {
					asked = append(asked, "[::1]")
				}
			case "0.0.0.0":
				asked = []string{"127.0.0.1", "127.0.0.2", "127.1.2.3"}
			}
			for _, to := range asked {
				addr := fmt.Sprintf("%s:%d", to, port)
				for _, network := range []string{"udp", "tcp"} {
					// The socket of the client takes replies from addr alone.
					m := askOver(t, network, addr, question("live.example.com", dns.TypeA))
					if len(m.Answer) != 3 {
						t.Errorf("%s %s: %v", network, addr, m)
					}
				}
			}
		})
	}
}

func hasIPv6() bool {
	c, err := net.ListenPacket("udp6", "[::1]:0")
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

// TestManyAtOnce has clients ask over all workers at the same time; each gets the
// reply to its own question.
func TestManyAtOnce(t *testing.T) {
	d := newTestDNS(t, func(c *DNSConfig) { c.Workers = 4 })
	addr := serveDNS(t, d, "127.0.0.1:0").String()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			c, err := dns.Dial("udp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for j := range 50 {
				q := edns(question(fmt.Sprintf("h%d-%d.app.example.com", i, j), dns.TypeA), 1232,
					clientSubnet(fmt.Sprintf("%d.%d.0.0/24", 20+i, j)))
				_ = c.SetDeadline(time.Now().Add(time.Minute))
				if err := c.WriteMsg(q); err != nil {
					t.Error(err)
					return
				}
				m, err := c.ReadMsg()
				if err != nil || m.Id != q.Id || m.Question[0] != q.Question[0] || len(m.Answer) != 3 ||
					m.Answer[0].(*dns.A).A.String() != fmt.Sprintf("198.%d.%d.1", 20+i, j) {
					t.Errorf("asked %v: %v %v", q.Question, m, err)
					return
				}
			}
		})
	}
	wg.Wait()
	st := d.Stats()
	if st.UDP != 800 || st.Types["A"] != 800 || st.Codes["NOERROR"] != 800 || st.ECS["used"] != 800 || st.Reasons["placed"] != 800 {
		t.Errorf("counted as %+v", st)
	}
}

func TestPortIsTaken(t *testing.T) {
	addr := serveDNS(t, newTestDNS(t), "127.0.0.1:0")
	second := newTestDNS(t)
	if err := second.Listen(t.Context(), addr.String()); err == nil {
		t.Error("two servers share a port")
	}
	for _, bad := range []string{"", "127.0.0.1", "127.0.0.1:x", "no.such.host.invalid:0"} {
		if err := second.Listen(t.Context(), bad); err == nil {
			t.Errorf("listens at %q", bad)
		}
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// TestRateOverSockets floods from one address. Who comes over TCP, has a cookie, or stands
// elsewhere, is served all the same.
func TestRateOverSockets(t *testing.T) {
	d := newTestDNS(t, func(c *DNSConfig) { c.RateLimit, c.RateSlip, c.RateExempt = 1, 1, []string{"127.0.9.0/24"} })
	addr := serveDNS(t, d, "127.0.0.1:0").String()
	q := question("live.example.com", dns.TypeA)
	// over asks while the bucket of this address is empty. Where the machine was too slow
	// for that, it asks again: the answer would tell nothing.
	over := func(m *dns.Msg) *dns.Msg {
		for {
			for d.rates.allow(time.Now(), newRateKey(netip.MustParseAddr("127.0.0.1"), classAnswer), perSecond(1)) {
			}
			empty := time.Now()
			if out := askOver(t, "udp", addr, m); time.Since(empty) < time.Second {
				return out
			}
		}
	}
	m := over(q)
	if !m.Truncated || len(m.Answer) > 0 || m.Rcode != 0 {
		t.Errorf("over the rate: %v", m)
	}
	if m = askOver(t, "tcp", addr, q); len(m.Answer) != 3 {
		t.Errorf("over TCP: %v", m)
	}
	// A client that knows cookies learns ours instead, and comes back with it.
	withCookie := func(cookie string) *dns.Msg {
		return edns(question("live.example.com", dns.TypeA), 1232, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: cookie})
	}
	m = over(withCookie("0123456789abcdef"))
	if m.Rcode != dns.RcodeBadCookie || m.Truncated || len(m.Answer) > 0 {
		t.Errorf("with half a cookie: %v", m)
	}
	m = over(withCookie(m.IsEdns0().Option[0].(*dns.EDNS0_COOKIE).Cookie))
	if m.Rcode != 0 || len(m.Answer) != 3 {
		t.Errorf("with our cookie: %v", m)
	}
	// Names that do not exist have a bucket of their own, with no limit here.
	if m = askOver(t, "udp", addr, question("nothing.example.com", dns.TypeA)); m.Rcode != dns.RcodeNameError {
		t.Errorf("another kind of reply: %v", m)
	}
	for _, from := range []string{"127.0.9.1", "127.0.8.1"} {
		c := &dns.Client{Timeout: time.Minute, Dialer: &net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}}}
		m, _, err := c.Exchange(q, addr)
		if err != nil || len(m.Answer) != 3 {
			t.Errorf("from %s: %v %v", from, m, err)
		}
	}
	if st := d.Stats(); st.Slipped == 0 || st.Cookies["valid"] == 0 || st.Cookies["new"] == 0 {
		t.Errorf("counted as %+v", st)
	}
}

// TestRateDrops has no hints: what is over the rate gets nothing.
func TestRateDrops(t *testing.T) {
	c := newDNSClient(newTestDNS(t, func(c *DNSConfig) { c.ErrorLimit, c.RateSlip = 5, 0 }))
	got := 0
	for range 100 {
		if m := c.ask(t, question("elsewhere.org", dns.TypeA)); m != nil {
			got++
		}
	}
	if st := c.r.d.Stats(); got != 10 || st.Dropped["rate_limited"] != 90 {
		t.Errorf("%d replies, counted as %v", got, st.Dropped)
	}
}

// TestNewPlan swaps plans under queries: a name is served by the old or the new one.
func TestNewPlan(t *testing.T) {
	d := newTestDNS(t)
	fixed := d.decider.(*fixedDecider)
	swap := &swapDecider{fixedDecider: fixed}
	swap.now.Store(fixed.view)
	d.decider = swap
	addr := serveDNS(t, d, "127.0.0.1:0").String()
	q := question("new.example.com", dns.TypeA)
	if m := askOver(t, "udp", addr, q); m.Rcode != dns.RcodeNameError {
		t.Fatalf("got %v", m)
	}
	plan := *fixed.view.Plan
	plan.Domains = append(plan.Domains[:len(plan.Domains):len(plan.Domains)], plan.Domains[0])
	plan.Domains[len(plan.Domains)-1].Name = "new.example.com"
	view := *fixed.view
	view.Plan = &plan
	swap.now.Store(&view)
	for deadline := time.Now().Add(time.Minute); ; {
		m := askOver(t, "udp", addr, q)
		if len(m.Answer) == 3 {
			break
		}
		if m.Rcode != dns.RcodeNameError || time.Now().After(deadline) {
			t.Fatalf("got %v", m)
		}
	}
}
