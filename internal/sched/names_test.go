package sched

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDomainAndZone(t *testing.T) {
	ns := []NameServer{{Host: "ns.example.net"}}
	p, err := Compile(&Snapshot{
		Version: 9,
		Zones:   []Zone{{Name: "Example.com.", NS: ns}, {Name: "live.example.com", NS: ns}, {Name: "com", NS: ns, Serial: 4}},
		Domains: []Domain{{Name: "play.example.com"}, {Name: "*.Live.Example.com"}, {Name: "*.x.live.example.com"}, {Name: "other.org"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := func(name, domain, zone string) {
		t.Helper()
		gotDomain, gotZone := "", ""
		if d := p.Domain(name); d != nil {
			gotDomain = d.Name
		}
		if z := p.Zone(name); z != nil {
			gotZone = z.Name
		}
		if gotDomain != domain || gotZone != zone {
			t.Errorf("%s: domain %q in zone %q, want %q in %q", name, gotDomain, gotZone, domain, zone)
		}
	}
	f("play.example.com", "play.example.com", "example.com")
	f("PLAY.eXample.com.", "play.example.com", "example.com")
	f("a.live.example.com", "*.live.example.com", "live.example.com")
	f("a.b.live.example.com", "*.live.example.com", "live.example.com")
	f("b.x.live.example.com", "*.x.live.example.com", "live.example.com")
	f("x.live.example.com", "*.live.example.com", "live.example.com")
	f("live.example.com", "", "live.example.com")
	f("xlive.example.com", "", "example.com")
	f("badexample.com", "", "com")
	f("other.org", "other.org", "")
	f("*.live.example.com", "*.live.example.com", "live.example.com")
	f("", "", "")
	f(".", "", "")
	f("..", "", "")
	f(".com", "", "com")
	f(strings.Repeat("a.", 200)+"com", "", "")
	f("ex\x00mple.com", "", "com")
	if p.Node("none") != nil {
		t.Error("there is no node")
	}
	if z := p.Zone("example.com"); z.Serial != 9 || z.Mbox != "hostmaster.example.com" || z.TTL == 0 {
		t.Errorf("defaults are missing: %+v", z)
	}
	if p.Domain("play.example.com").Zone != "example.com" || p.Domain("other.org").Zone != "" {
		t.Error("domains do not know their zones")
	}
	if n := testing.AllocsPerRun(100, func() { p.Domain("A.B.LIVE.example.com."); p.Zone("A.B.LIVE.example.com.") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestRanges wants the pieces of addresses to know the prefixes around each address,
// and all addresses with the same first bits to be in the same piece.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := fromRapid(rt)
		var all []override
		var list []int32
		for i := range d.n("prefixes", 0, 12) {
			all = append(all, override{Override: &Override{When: When{Prefix: anyPrefix(d).Masked()}}})
			list = append(list, int32(i))
		}
		a := anyPrefix(d).Addr()
		r := newRanges(all, list, a.Is4())
		got, bits := r.find(a)
		for i := range all {
			in := false
			for _, n := range got {
				in = in || int(n) == i
			}
			if p := all[i].When.Prefix; in != p.Contains(a) {
				rt.Fatalf("%v in %v: %v", a, p, in)
			}
		}
		for i := 1; i < len(got); i++ {
			if got[i-1] >= got[i] {
				rt.Fatalf("%v is not in order", got)
			}
		}
		other := mixed(d, a, bits)
		again, n := r.find(other)
		if n != bits || len(again) != len(got) {
			rt.Fatalf("%v: %v by %d bits, but %v: %v by %d", a, got, bits, other, again, n)
		}
	})
}

func TestCommon(t *testing.T) {
	f := func(a, b string, want int) {
		t.Helper()
		if got := common(netip.MustParseAddr(a), netip.MustParseAddr(b)); got != want {
			t.Errorf("%s and %s have %d bits in common, want %d", a, b, got, want)
		}
	}
	f("10.0.0.0", "10.0.0.0", 32)
	f("10.0.0.0", "10.0.0.1", 31)
	f("10.0.0.0", "138.0.0.0", 0)
	f("2001:db8::", "2001:db8::1", 127)
	f("2001:db8::", "2001:db8:8000::", 32)
	f("::", "::", 128)
	for p, want := range map[string]string{
		"10.0.0.0/8": "10.255.255.255", "0.0.0.0/0": "255.255.255.255", "10.1.1.1/32": "10.1.1.1",
		"2001:db8::/33": "2001:db8:7fff:ffff:ffff:ffff:ffff:ffff", "::/0": "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	} {
		if got := lastOf(netip.MustParsePrefix(p)); got != netip.MustParseAddr(want) {
			t.Errorf("the last of %s is %v, want %s", p, got, want)
		}
	}
}
