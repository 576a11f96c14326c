package geo

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
	"pgregory.net/rapid"
)

// A universe of 1,024 addresses inside a base, in which the slow and plain way to
// answer is gone through for each address.
const freeBits = 10

var bases = []netip.Prefix{
	netip.MustParsePrefix("1.2.4.0/22"),
	netip.MustParsePrefix("2400:1::/118"),
	netip.MustParsePrefix("2400:1:2:3:8000::/66"), // on both sides of the middle of a key
}

// world is what coverage and mmdb say of a universe.
type world struct {
	base     netip.Prefix
	coverage []Entry
	records  []Entry // of the mmdb; later ones hide earlier ones
}

// at returns address i of the universe, whose numbers are the bits behind the base.
func (w world) at(i int) netip.Addr {
	b := w.base.Addr().AsSlice()
	for bit := range freeBits {
		if i>>(freeBits-1-bit)&1 == 1 {
			n := w.base.Bits() + bit
			b[n/8] |= 1 << (7 - n%8)
		}
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// place is the answer for one address, with the places of the rules in their order.
func (w world) place(a netip.Addr) (Pair, Source) {
	best := Entry{Prefix: netip.PrefixFrom(a, 0)}
	for _, e := range w.coverage {
		if e.Prefix.Contains(a) && e.Prefix.Bits() >= best.Prefix.Bits() {
			best = e
		}
	}
	pair, source := best.Pair, SourceCoverage
	if pair == (Pair{}) {
		source = SourceUnknown
	}
	for _, r := range slices.Backward(w.records) {
		if r.Prefix.Contains(a) {
			if pair.Region == "" {
				pair.Region = r.Region
			}
			if pair.ISP == "" {
				pair.ISP = r.ISP
			}
			if source == SourceUnknown {
				source = SourceMMDB
			}
			break
		}
	}
	return pair, source
}

func drawWorld(t *rapid.T) world {
	w := world{base: rapid.SampledFrom(bases).Draw(t, "base")}
	entry := func(names []string) *rapid.Generator[Entry] {
		return rapid.Custom(func(t *rapid.T) Entry {
			n := rapid.IntRange(0, freeBits).Draw(t, "bits")
			a := w.at(rapid.IntRange(0, 1<<freeBits-1).Draw(t, "address"))
			return Entry{
				netip.PrefixFrom(a, w.base.Bits()+n).Masked(),
				Pair{rapid.SampledFrom(names).Draw(t, "region"), rapid.SampledFrom(names).Draw(t, "isp")},
			}
		})
	}
	w.coverage = rapid.SliceOfNDistinct(entry([]string{"", "a", "b"}), 0, 12,
		func(e Entry) netip.Prefix { return e.Prefix }).Draw(t, "coverage")
	w.records = rapid.SliceOfN(entry([]string{"a", "b", "c"}), 0, 12).Draw(t, "records")
	return w
}

func (w world) table(t *rapid.T) *Table {
	var text string
	for _, e := range w.coverage {
		text += fmt.Sprintf("%s %s\n", e.Prefix, e.text())
	}
	c, err := ParseCoverage([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var file []byte
	if len(w.records) > 0 {
		file = writeEntries(t, w.records)
	}
	tab, err := NewTable(c, file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func writeEntries(t fataler, entries []Entry) []byte {
	var records []record
	for _, e := range entries {
		records = append(records, record{e.Prefix.String(), mmdbtype.Map{
			"country": mmdbtype.Map{"iso_code": mmdbtype.String(e.Region)},
			"isp":     mmdbtype.String(e.ISP),
		}})
	}
	return mmdb(t, mmdbwriter.Options{}, records)
}

// TestLocateAgainstOracle compares places and bits with those that come from looking
// at every address.
func TestLocateAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		tab := w.table(t)
		type answer struct {
			Pair
			Source
		}
		all := make([]answer, 1<<freeBits)
		for i := range all {
			pair, source := w.place(w.at(i))
			all[i] = answer{pair, source}
		}
		uniform := func(i, n int) bool { // is it, in the prefix of n bits of the universe around i?
			size := 1 << (freeBits - n)
			part := all[i&^(size-1):][:size]
			return !slices.ContainsFunc(part, func(a answer) bool { return a != all[i] })
		}
		for range 32 {
			i := rapid.IntRange(0, 1<<freeBits-1).Draw(t, "i")
			n := rapid.IntRange(0, freeBits).Draw(t, "n")
			p := netip.PrefixFrom(w.at(i), w.base.Bits()+n)
			got := tab.Locate(p)
			if !uniform(i, n) {
				if got.Bits != p.Bits() {
					t.Fatalf("%s is not uniform, but has %d bits", p, got.Bits)
				}
				size := 1 << (freeBits - n)
				part := all[i&^(size-1):][:size]
				if !slices.Contains(part, answer{got.Pair, got.Source}) {
					t.Fatalf("%s: %+v is nowhere inside", p, got)
				}
				continue
			}
			if got.Pair != all[i].Pair || got.Source != all[i].Source {
				t.Fatalf("%s: %+v, want %+v", p, got, all[i])
			}
			want := n
			for want > 0 && uniform(i, want-1) {
				want--
			}
			if want > 0 && got.Bits != w.base.Bits()+want || want == 0 && got.Bits > w.base.Bits() {
				t.Fatalf("%s: %d bits, want %d", p, got.Bits, w.base.Bits()+want)
			}
			if tab.Pairs()[got.Index] != got.Pair || tab.Find(got.Region, got.ISP).Index != got.Index {
				t.Fatalf("%s: index %d is not that of %+v", p, got.Index, got.Pair)
			}
		}
	})
}

// Neighbouring ranges of a table differ, whatever it was made of: else bits would be
// too many.
func TestRangesAreMaximal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := drawWorld(t).table(t)
		for _, f := range []*family{&tab.v4, &tab.v6} {
			for i := range f.starts {
				if i == 0 && f.starts[0] != (key{}) {
					t.Fatal("the first range does not start at zero")
				}
				if i > 0 && (f.values[i] == f.values[i-1] || !f.starts[i-1].less(f.starts[i])) {
					t.Fatalf("ranges %d and %d: %v %v, values %d %d", i-1, i, f.starts[i-1], f.starts[i], f.values[i-1], f.values[i])
				}
			}
		}
	})
}
