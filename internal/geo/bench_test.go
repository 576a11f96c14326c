package geo

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// bigCoverage is a coverage file of n lines as it comes from a routing table: two
// thirds IPv4, some nested, 30 regions and 5 ISPs.
func bigCoverage(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	seen := map[netip.Prefix]bool{}
	for len(seen) < n {
		var p netip.Prefix
		if r.IntN(3) < 2 {
			v := r.Uint32N(223<<24-1<<24) + 1<<24
			p = netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}), 16+r.IntN(9)).Masked()
		} else {
			v := r.Uint64N(1 << 29)
			a := [16]byte{0: 0x24, 1: byte(v >> 24), 2: byte(v >> 16), 3: byte(v >> 8), 4: byte(v)}
			p = netip.PrefixFrom(netip.AddrFrom16(a), 32+r.IntN(17)).Masked()
		}
		if !seen[p] {
			seen[p] = true
			fmt.Fprintf(&b, "%s region%d isp%d\n", p, r.IntN(30), r.IntN(5))
		}
	}
	return b.Bytes()
}

const benchLines = 500_000

func BenchmarkParseCoverage(b *testing.B) {
	text := bigCoverage(benchLines)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseCoverage(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewTable(b *testing.B) {
	c, err := ParseCoverage(bigCoverage(benchLines))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewTable(c, nil, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewTableOfMMDB(b *testing.B) {
	c, err := ParseCoverage(bigCoverage(50_000))
	if err != nil {
		b.Fatal(err)
	}
	file := writeEntries(b, c.Entries())
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewTable(Coverage{}, file, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLocate(b *testing.B) {
	c, err := ParseCoverage(bigCoverage(benchLines))
	if err != nil {
		b.Fatal(err)
	}
	tab, err := NewTable(c, nil, Options{})
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	var v4, v4net, v6 [1 << 14]netip.Prefix
	for i := range v4 {
		v := r.Uint32()
		a := netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
		v4[i], v4net[i] = netip.PrefixFrom(a, 32), netip.PrefixFrom(a, 24)
		entry := c.Entries()[len(c.Entries())-1-r.IntN(100_000)]
		v6[i] = netip.PrefixFrom(entry.Prefix.Addr(), 56)
	}
	for name, prefixes := range map[string]*[1 << 14]netip.Prefix{"v4": &v4, "v4net": &v4net, "v6": &v6} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				tab.Locate(prefixes[i&(len(prefixes)-1)])
				i++
			}
		})
	}
}
