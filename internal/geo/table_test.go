package geo

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

const sample = `# CIDR REGION ISP
1.2.0.0/16 beijing telecom
1.2.3.0/24,beijing,unicom
1.2.4.0/24 * *
2001:db8:5::/48, shanghai, mobile
10.1.0.0/16 office *
`

func table(t testing.TB, text string) *Table {
	t.Helper()
	c, err := ParseCoverage([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out, err := NewTable(c, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLocate(t *testing.T) {
	tab := table(t, sample)
	f := func(p, region, isp string, source Source, bits int) {
		t.Helper()
		got := tab.Locate(netip.MustParsePrefix(p))
		if got.Region != region || got.ISP != isp || got.Source != source || got.Bits != bits {
			t.Errorf("%s: %+v, want %s %s %v %d", p, got, region, isp, source, bits)
		}
		if pair := tab.Pairs()[got.Index]; pair != got.Pair {
			t.Errorf("%s: index %d is %+v, want %+v", p, got.Index, pair, got.Pair)
		}
	}
	f("1.2.3.4/32", "beijing", "unicom", SourceCoverage, 24)
	f("1.2.3.0/25", "beijing", "unicom", SourceCoverage, 24)
	f("1.2.2.1/32", "beijing", "telecom", SourceCoverage, 24)
	f("1.2.128.1/32", "beijing", "telecom", SourceCoverage, 17)
	f("1.2.4.9/32", "", "", SourceUnknown, 24)
	f("1.3.0.1/32", "", "", SourceUnknown, 16)
	f("10.1.2.3/32", "office", "", SourceCoverage, 16)
	f("10.2.2.3/32", "", "", SourcePrivate, 15)
	f("192.168.1.1/32", "", "", SourcePrivate, 16)
	f("2001:db8:5:1::/64", "shanghai", "mobile", SourceCoverage, 48)
	f("2001:db8:6:1::/64", "", "", SourcePrivate, 47)
	f("fd00::1/128", "", "", SourcePrivate, 1)
}

// Prefixes that begin or end where those around them do.
func TestLocateAtEnds(t *testing.T) {
	tab := table(t, "0.0.0.0/0 all x\n255.255.255.255/32 one x\n1.2.0.0/16 a x\n1.2.0.0/17 b x\n1.2.0.0/32 c x\n"+
		"1.2.255.0/24 d x\n1.2.255.255/32 e x\n::/0 all x\nffff::/16 f x\n::/128 g x")
	f := func(p, region string, bits int) {
		t.Helper()
		if got := tab.Locate(netip.MustParsePrefix(p)); got.Region != region || got.Bits != bits {
			t.Errorf("%s: %+v, want %s and %d bits", p, got, region, bits)
		}
	}
	f("0.0.0.0/32", "all", 8)
	f("1.1.255.255/32", "all", 15)
	f("1.2.0.0/32", "c", 32)
	f("1.2.0.1/32", "b", 32)
	f("1.2.127.255/32", "b", 18)
	f("1.2.128.0/32", "a", 18)
	f("1.2.255.0/32", "d", 25)
	f("1.2.255.254/32", "d", 32)
	f("1.2.255.255/32", "e", 32)
	f("1.3.0.0/32", "all", 16)
	f("255.255.255.254/32", "all", 32)
	f("255.255.255.255/32", "one", 32)
	f("::/128", "g", 128)
	f("::1/128", "all", 128)
	f("fffe::/128", "all", 16)
	f("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", "f", 16)
}

func TestLocateMapped(t *testing.T) {
	tab := table(t, sample)
	f := func(a string, length, bits int, isp string) {
		t.Helper()
		if got := tab.Locate(netip.PrefixFrom(netip.MustParseAddr(a), length)); got.Bits != bits || got.ISP != isp {
			t.Errorf("%s/%d: %+v, want %s and %d bits", a, length, got, isp, bits)
		}
	}
	f("::ffff:1.2.3.4", 128, 96+24, "unicom")
	f("::ffff:1.2.2.0", 96+23, 96+23, "telecom")
	f("::ffff:1.2.0.0", 64, 3, "") // an IPv6 prefix, and outside what is given out
	f("1.0.0.0", 8, 8, "telecom")
	f("::", 0, 0, "mobile")

	if got := tab.Locate(netip.Prefix{}); got != (Place{}) {
		t.Errorf("of nothing: %+v", got)
	}
	if got := tab.Locate(netip.PrefixFrom(netip.MustParseAddr("fe80::1%eth0"), 128)); got.Source != SourcePrivate {
		t.Errorf("link-local with a zone: %+v", got)
	}
	if got := tab.Locate(netip.PrefixFrom(netip.MustParseAddr("1.2.3.4"), 33)); got != (Place{}) {
		t.Errorf("33 bits of IPv4: %+v", got)
	}
}

// What no player on the Internet has is private, right up to its borders.
func TestPrivate(t *testing.T) {
	tab := table(t, "")
	f := func(a string, want Source) {
		t.Helper()
		addr := netip.MustParseAddr(a)
		if got := tab.Locate(netip.PrefixFrom(addr, addr.BitLen())); got.Source != want || got.Pair != (Pair{}) || got.Index != 0 {
			t.Errorf("%s: %+v, want %v", a, got, want)
		}
	}
	for _, p := range special {
		from, to := keyOf(p.Addr()).span(p.Bits())
		for _, k := range []key{from, to} {
			i := tab.v6.find(k)
			if p.Addr().Is4() {
				if tab.places[tab.v4.values[tab.v4.find(k)]].Source != SourcePrivate {
					t.Errorf("an end of %s is not private", p)
				}
			} else if tab.places[tab.v6.values[i]].Source != SourcePrivate {
				t.Errorf("an end of %s is not private", p)
			}
		}
	}
	f("0.0.0.0", SourcePrivate)
	f("1.0.0.0", SourceUnknown)
	f("9.255.255.255", SourceUnknown)
	f("11.0.0.0", SourceUnknown)
	f("100.63.255.255", SourceUnknown)
	f("100.127.255.255", SourcePrivate)
	f("100.128.0.0", SourceUnknown)
	f("172.15.255.255", SourceUnknown)
	f("172.32.0.0", SourceUnknown)
	f("192.167.255.255", SourceUnknown)
	f("223.255.255.255", SourceUnknown)
	f("224.0.0.1", SourcePrivate)
	f("255.255.255.255", SourcePrivate)
	f("::", SourcePrivate)
	f("::1", SourcePrivate)
	f("::1.2.3.4", SourcePrivate)
	f("64:ff9b::102:304", SourcePrivate)
	f("2000::", SourceUnknown)
	f("2001:200::", SourceUnknown)
	f("2001::1", SourcePrivate)
	f("2606:4700::1", SourceUnknown)
	f("3ffe::", SourceUnknown)
	f("3fff:1000::", SourceUnknown)
	f("fc00::1", SourcePrivate)
	f("fe80::1", SourcePrivate)
	f("ff02::1", SourcePrivate)
	f("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", SourcePrivate)
}

// A prefix with several answers gets the known one that has most of it.
func TestLocateWide(t *testing.T) {
	tab := table(t, `
1.2.3.0/26 a x
1.2.3.64/26 b x
1.2.3.128/25 c x
1.2.5.0/28 a x
1.2.5.16/28 b x
1.2.5.64/26 b x
1.2.9.255/32 a x
`)
	f := func(p, region string) {
		t.Helper()
		prefix := netip.MustParsePrefix(p)
		if got := tab.Locate(prefix); got.Region != region || got.Bits != prefix.Bits() {
			t.Errorf("%s: %+v, want %s", p, got, region)
		}
	}
	f("1.2.3.0/24", "c")
	f("1.2.3.0/25", "a") // as many of both: the lower
	f("1.2.3.0/26", "a")
	f("1.2.5.0/24", "b") // unknown ones are more, but say nothing
	f("1.2.5.0/27", "a")
	f("1.2.8.0/22", "a")
	f("1.2.9.128/25", "a")
	f("1.2.0.0/16", "c")
}

func TestFind(t *testing.T) {
	tab := table(t, sample)
	f := func(region, isp string, known bool) {
		t.Helper()
		p := tab.Find(region, isp)
		if p.Source != SourceGiven || p.Pair != (Pair{region, isp}) || p.Bits != 0 || (p.Index >= 0) != known {
			t.Errorf("%+v", p)
		}
		if known && tab.Pairs()[p.Index] != p.Pair {
			t.Errorf("%+v is pair %+v", p, tab.Pairs()[p.Index])
		}
	}
	f("", "", true)
	f("beijing", "telecom", true)
	f("beijing", "mobile", false)
	f("office", "", true)
}

func TestSourceWords(t *testing.T) {
	for s, want := range map[Source]string{
		SourceUnknown: "unknown", SourcePrivate: "private", SourceCoverage: "coverage", SourceMMDB: "mmdb",
		SourceGiven: "given", 9: "source(9)",
	} {
		if got, err := s.MarshalText(); string(got) != want || err != nil {
			t.Errorf("%d is %q (%v), want %q", s, got, err, want)
		}
	}
	got, err := json.Marshal(table(t, sample).Locate(netip.MustParsePrefix("1.2.3.4/32")))
	if want := `{"region":"beijing","isp":"unicom","source":"coverage","bits":24}`; string(got) != want || err != nil {
		t.Errorf("%s (%v), want %s", got, err, want)
	}
}

func TestStats(t *testing.T) {
	tab := table(t, sample)
	s := tab.Stats()
	if s.Coverage != 5 || s.Pairs != 4 || len(s.Databases) != 0 || s.Ranges4 <= 2*15 || s.Ranges6 < 10 {
		t.Errorf("%+v", s)
	}
	if !slices.IsSortedFunc(tab.Pairs(), func(a, b Pair) int { return strings.Compare(a.text(), b.text()) }) {
		t.Errorf("pairs are not by name: %v", tab.Pairs())
	}
}

func TestTooManyPairs(t *testing.T) {
	var b strings.Builder
	for i := range MaxPairs + 1 {
		fmt.Fprintf(&b, "%d.%d.1.0/24 r isp%d\n", 1+i>>8, i&255, i)
	}
	c, err := ParseCoverage([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewTable(c, nil, Options{}); err == nil || !strings.Contains(err.Error(), "name 16385 pairs") {
		t.Errorf("%v", err)
	}
}

func TestLocateDoesNotAllocate(t *testing.T) {
	tab := table(t, sample)
	for _, p := range []string{"1.2.3.4/32", "1.2.0.0/16", "::ffff:1.2.3.4/128", "2001:db8:5::/56", "::/0"} {
		prefix, err := netip.ParsePrefix(p)
		if err != nil {
			prefix = netip.PrefixFrom(netip.MustParseAddr("::ffff:1.2.3.4"), 128)
		}
		if n := testing.AllocsPerRun(100, func() { tab.Locate(prefix) }); n != 0 {
			t.Errorf("%s: %v allocations", p, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() { tab.Find("beijing", "telecom") }); n != 0 {
		t.Errorf("find: %v allocations", n)
	}
}
