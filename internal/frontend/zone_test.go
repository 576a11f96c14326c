package frontend

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"pgregory.net/rapid"

	"millrace/internal/sched"
)

// TestFaultsOfZones has a plan whose faults cost only what they are in.
func TestFaultsOfZones(t *testing.T) {
	label := strings.Repeat("x", 64)
	plan := &sched.Plan{
		Zones: []sched.Zone{
			{Name: "good.test", NS: []sched.NameServer{{Host: "ns.good.test"}, {Host: label + ".test"}}, CAA: []string{
				"0 issue ca.test", "0 issue", "x issue ca.test", "0 " + strings.Repeat("x", 300) + " ca.test",
			}},
			{Name: label + ".test", NS: []sched.NameServer{{Host: "ns.good.test"}}},
			{Name: "GOOD.test.", NS: []sched.NameServer{{Host: "ns.good.test"}}},
			{Name: "mbox.test", NS: []sched.NameServer{{Host: "ns.good.test"}}, Mbox: label + "@mbox.test"},
		},
		Domains: []sched.Domain{{Name: "live.good.test"}, {Name: label + ".good.test"}, {Name: "live.mbox.test"}},
	}
	var log bytes.Buffer
	d, err := NewDNS(DefaultDNSConfig(), &fixedDecider{view: &sched.View{Plan: plan}, decide: edgesFor}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"zone good.test", "x issue", label + ".test", "is there twice", "zone mbox.test", label + ".good.test"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q", want)
		}
	}
	c := newDNSClient(d)
	f := func(name string, kind uint16, rcode, answers int) {
		t.Helper()
		if m := c.ask(t, question(name, kind)); m.Rcode != rcode || len(m.Answer) != answers {
			t.Errorf("got %v", m)
		}
	}
	f("live.good.test", dns.TypeA, 0, 3)
	f("good.test", dns.TypeNS, 0, 1)
	f("good.test", dns.TypeCAA, 0, 1)
	f("live.mbox.test", dns.TypeA, dns.RcodeRefused, 0)
}

func TestNoPlanYet(t *testing.T) {
	d, err := NewDNS(DefaultDNSConfig(), sched.New(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if m := newDNSClient(d).ask(t, question("live.example.com", dns.TypeA)); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("got %v", m)
	}
}

func TestCAA(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		got := "refused"
		if rr, err := parseCAA(text); err == nil {
			got = fmt.Sprintf("%d|%s|%s", rr.Flag, rr.Tag, rr.Value)
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	f("0 issue letsencrypt.org", "0|issue|letsencrypt.org")
	f(`  128   iodef   "mailto:a b@example.com" `, "128|iodef|mailto:a b@example.com")
	f(`0 issue ";"`, "0|issue|;")
	f(`0 issue "`, `0|issue|"`)
	f("0 issue", "refused")
	f("256 issue ca.test", "refused")
	f("", "refused")
}

func TestSeconds(t *testing.T) {
	f := func(d time.Duration, want uint32) {
		t.Helper()
		if got := seconds(sched.Duration(d)); got != want {
			t.Errorf("%v: got %d, want %d", d, got, want)
		}
	}
	f(time.Hour, 3600)
	f(1500*time.Millisecond, 1)
	f(0, 1)
	f(-time.Second, 1)
	f(1<<62, 1<<31-1)
}

// TestServedNamesExist draws plans and asks for their names and what is around them: a
// served name, and every name above it in its zone, is never said not to exist.
func TestServedNamesExist(t *testing.T) {
	name := rapid.StringMatching(`(\*\.)?([ab]\.){0,4}z[12]\.test`)
	rapid.Check(t, func(t *rapid.T) {
		plan := &sched.Plan{Zones: []sched.Zone{
			{Name: "z1.test", NS: []sched.NameServer{{Host: "ns.z1.test"}}},
			{Name: "z2.test", NS: []sched.NameServer{{Host: "ns.z1.test"}}},
			{Name: "a.z2.test", NS: []sched.NameServer{{Host: "a.a.a.z1.test"}}},
		}}
		names := rapid.SliceOfNDistinct(name, 1, 8, rapid.ID).Draw(t, "domains")
		for _, n := range names {
			plan.Domains = append(plan.Domains, sched.Domain{Name: n})
		}
		d, err := NewDNS(DefaultDNSConfig(), &fixedDecider{view: &sched.View{Plan: plan}, decide: edgesFor}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		c := newDNSClient(d)
		c.tcp = true // no rates
		for _, n := range names {
			if m := c.ask(t, question(n, dns.TypeA)); m.Rcode != 0 || len(m.Answer) != 3 {
				t.Fatalf("served %s: %v", n, m)
			}
			if below := strings.TrimPrefix(n, "*."); below != n {
				x := fmt.Sprintf("x%d.%s", rapid.IntRange(0, 99).Draw(t, "label"), below)
				if m := c.ask(t, question(x, dns.TypeAAAA)); m.Rcode != 0 || len(m.Answer) != 3 {
					t.Fatalf("%s under %s: %v", x, n, m)
				}
			}
			for up := n; strings.Count(up, ".") > 1; {
				_, up, _ = strings.Cut(up, ".")
				if m := c.ask(t, question(up, dns.TypeTXT)); m.Rcode != 0 || len(m.Ns) != 1 {
					t.Fatalf("%s above %s: %v", up, n, m)
				}
			}
		}
	})
}

func BenchmarkNewZones(b *testing.B) {
	plan := &sched.Plan{Zones: []sched.Zone{{Name: "example.com", NS: []sched.NameServer{{Host: "ns1.example.com"}}}}}
	for i := range 10_000 {
		plan.Domains = append(plan.Domains, sched.Domain{Name: fmt.Sprintf("d%d.g%d.example.com", i, i%100)})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := newZones(plan); err != nil {
			b.Fatal(err)
		}
	}
}
