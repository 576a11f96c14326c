package geo

import (
	"bytes"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// fataler is a test of either kind.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// record is what an mmdb file says of a CIDR; later ones hide earlier ones.
type record struct {
	cidr string
	data mmdbtype.DataType
}

// mmdb makes an mmdb file.
func mmdb(t fataler, opt mmdbwriter.Options, records []record) []byte {
	t.Helper()
	if opt.DatabaseType == "" {
		opt.DatabaseType = "GeoIP2-City"
	}
	opt.IncludeReservedNetworks = true
	opt.BuildEpoch = 1_700_000_000
	w, err := mmdbwriter.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		_, network, err := net.ParseCIDR(r.cidr)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Insert(network, r.data); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if _, err := w.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// city is a record as GeoIP2 City files have it.
func city(country, subdivision string) mmdbtype.Map {
	m := mmdbtype.Map{
		"continent": mmdbtype.Map{"code": mmdbtype.String("AS")},
		"country":   mmdbtype.Map{"iso_code": mmdbtype.String(country)},
	}
	if subdivision != "" {
		m["subdivisions"] = mmdbtype.Slice{mmdbtype.Map{"iso_code": mmdbtype.String(subdivision)}}
	}
	return m
}

// asn is a record as GeoLite2 ASN files have it.
func asn(number uint32, organisation string) mmdbtype.Map {
	return mmdbtype.Map{
		"autonomous_system_number":       mmdbtype.Uint32(number),
		"autonomous_system_organization": mmdbtype.String(organisation),
	}
}

func TestMMDB(t *testing.T) {
	cities := []record{
		{"1.2.0.0/15", city("CN", "BJ")},
		{"1.4.0.0/16", city("CN", "XX")},
		{"1.5.0.0/16", city("JP", "")},
		{"1.6.0.0/16", city("KR", "11")},
		{"10.0.0.0/8", city("CN", "BJ")},
		{"2400:1000::/32", city("CN", "SH")},
		{"2400:1001::/32", city("CN", "SH")},
		{"100.100.0.0/16", city("CN", "BJ")},
		{"2001:db8::/32", city("CN", "BJ")},
		{"240e:1:2:3::/64", city("CN", "BJ")},
	}
	asns := []record{
		{"1.2.0.0/16", asn(4134, "CHINANET-BACKBONE")},
		{"1.3.0.0/16", asn(4837, "CHINA UNICOM")},
		{"1.4.0.0/16", asn(64500, "Somebody")},
		{"1.7.0.0/16", asn(4134, "CHINANET-BACKBONE")},
		{"2400:1000::/31", asn(9808, "China Mobile")},
	}
	opt := Options{
		Regions: map[string]string{"CN-BJ": "beijing", "CN-SH": "shanghai", "CN": "china", "AS": "asia"},
		ISPs:    map[string]string{"AS4134": "telecom", "CHINA UNICOM": "unicom", "China Mobile": "mobile"},
	}
	for _, size := range []int{24, 28, 32} {
		first := mmdb(t, mmdbwriter.Options{RecordSize: size}, cities)
		opt.More = [][]byte{mmdb(t, mmdbwriter.Options{RecordSize: size, DatabaseType: "GeoLite2-ASN"}, asns)}
		c, err := ParseCoverage([]byte("1.2.7.0/24 tianjin *\n1.2.8.0/24 * cable\n1.2.9.0/24 * *\n10.1.0.0/16 * office\n"))
		if err != nil {
			t.Fatal(err)
		}
		tab, err := NewTable(c, first, opt)
		if err != nil {
			t.Fatal(err)
		}
		f := func(p, region, isp string, source Source, bits int) {
			t.Helper()
			got := tab.Locate(netip.MustParsePrefix(p))
			if got.Region != region || got.ISP != isp || got.Source != source || got.Bits != bits {
				t.Errorf("%d bits: %s: %+v, want %s %s %v %d", size, p, got, region, isp, source, bits)
			}
		}
		f("1.2.128.1/32", "beijing", "telecom", SourceMMDB, 17)
		f("1.2.9.1/32", "beijing", "telecom", SourceMMDB, 24)
		f("1.2.7.1/32", "tianjin", "telecom", SourceCoverage, 24)
		f("1.2.8.1/32", "beijing", "cable", SourceCoverage, 24)
		f("1.3.9.1/32", "beijing", "unicom", SourceMMDB, 16)
		f("1.4.0.1/32", "china", "", SourceMMDB, 16)
		f("1.5.0.1/32", "asia", "", SourceMMDB, 16)
		f("1.7.0.1/32", "", "telecom", SourceMMDB, 16)
		f("1.8.0.1/32", "", "", SourceUnknown, 13)
		f("10.9.0.1/32", "", "", SourcePrivate, 13)
		f("10.1.0.1/32", "", "office", SourceCoverage, 16)
		f("100.100.0.1/32", "", "", SourcePrivate, 10)
		f("2400:1000:1::/56", "shanghai", "mobile", SourceMMDB, 31)
		f("240e:1:2:3:4::/128", "beijing", "", SourceMMDB, 64)
		f("2001:db8::1/128", "", "", SourcePrivate, 32)

		s := tab.Stats()
		if len(s.Databases) != 2 || s.Databases[1].Type != "GeoLite2-ASN" || s.Databases[0].Networks == 0 ||
			s.Databases[0].Built.Unix() != 1_700_000_000 || s.Coverage != 4 {
			t.Errorf("stats %+v", s)
		}
		for _, p := range tab.Pairs() {
			if strings.Contains(p.ISP, "CHINA") || p == (Pair{"tianjin", ""}) {
				t.Errorf("pair %+v is not an answer", p)
			}
		}
	}
}

func TestMMDBOfIPv4(t *testing.T) {
	file := mmdb(t, mmdbwriter.Options{IPVersion: 4}, []record{{"1.2.0.0/16", city("CN", "BJ")}, {"1.2.3.0/24", asn(7, "")}})
	tab, err := NewTable(Coverage{}, file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := func(p string, pair Pair) {
		t.Helper()
		if got := tab.Locate(netip.MustParsePrefix(p)); got.Pair != pair {
			t.Errorf("%s: %+v, want %+v", p, got, pair)
		}
	}
	f("1.2.2.1/32", Pair{Region: "CN-BJ"})
	f("1.2.3.1/32", Pair{ISP: "AS7"})
	f("2400::/64", Pair{})
}

func TestMMDBFields(t *testing.T) {
	file := mmdb(t, mmdbwriter.Options{}, []record{{"1.2.0.0/16", mmdbtype.Map{
		"geo": mmdbtype.Map{"path": mmdbtype.Slice{mmdbtype.String("asia"), mmdbtype.String("beijing")}},
		"net": mmdbtype.Map{"as": mmdbtype.Uint64(4134), "name": mmdbtype.Float64(1), "low": mmdbtype.Int32(-1), "id": mmdbtype.Int32(5)},
		"big": mmdbtype.String(strings.Repeat("x", maxTerm+1)),
	}}})
	f := func(regions, isps []string, want Pair) {
		t.Helper()
		tab, err := NewTable(Coverage{}, file, Options{RegionFields: regions, ISPFields: isps})
		if err != nil {
			t.Errorf("%q %q: %v", regions, isps, err)
			return
		}
		if got := tab.Locate(netip.MustParsePrefix("1.2.3.4/32")); got.Pair != want {
			t.Errorf("%q %q: %+v, want %+v", regions, isps, got.Pair, want)
		}
	}
	f([]string{"geo.path.0 + geo.path.1"}, nil, Pair{Region: "asia-beijing"})
	f([]string{"geo.path.-1"}, nil, Pair{Region: "beijing"})
	f([]string{"geo.path.7", "geo", "big", "net.as"}, []string{"net.name", "net.low", "net.as"}, Pair{Region: "4134", ISP: "AS4134"})
	f([]string{"big.iso_code", "geo.0", "geo.path.x", "geo.path.0"}, []string{}, Pair{Region: "asia"})
	f([]string{"geo.path.0+none"}, []string{"net.id"}, Pair{ISP: "AS5"})
}

func TestMMDBFaults(t *testing.T) {
	good := mmdb(t, mmdbwriter.Options{}, []record{{"1.2.0.0/16", city("CN", "BJ")}})
	f := func(file []byte, opt Options, want string) {
		t.Helper()
		tab, err := NewTable(Coverage{}, file, opt)
		if err == nil || tab != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	f([]byte{}, Options{}, "mmdb file 1: not an mmdb file")
	f([]byte("PK\x03\x04"), Options{}, "not an mmdb file")
	f(good[:len(good)/2], Options{}, "not an mmdb file")
	f(good, Options{More: [][]byte{nil}}, "mmdb file 2: not an mmdb file")
	f(good, Options{Regions: map[string]string{"BJ": "beijing"}, ISPs: map[string]string{}}, "none of its 1 networks has a region or an ISP that is listed")
	f(good, Options{Regions: map[string]string{"CN-BJ": "bei jing"}}, `name "CN-BJ" of the mmdb: region "bei jing"`)
	f(good, Options{ISPs: map[string]string{"AS1": ""}}, `name "AS1" of the mmdb: the ISP is missing`)
	f(good, Options{RegionFields: []string{"a..b"}}, `region field "a..b" has an empty key`)
	f(mmdb(t, mmdbwriter.Options{DatabaseType: "GeoIP2-Domain"}, []record{{"1.2.0.0/16", mmdbtype.Map{"domain": mmdbtype.String("x")}}}),
		Options{}, "GeoIP2-Domain: none of its 1 networks")
	f(handmade(6, 24, 200, func(i uint32) (uint32, uint32) { return (i + 1) % 200, (i + 1) % 200 }), Options{}, "tree is damaged")
	f(handmade(4, 24, 40, func(i uint32) (uint32, uint32) { return 40, i + 1 }), Options{}, "tree is damaged")
	f(handmade(6, 24, 100, func(i uint32) (uint32, uint32) { return 100 + 3, 100 + 3 }), Options{}, "tree is damaged")
	f(handmade(6, 24, 1, func(uint32) (uint32, uint32) { return 1, 1 + separator + 1000 }), Options{}, "a record is damaged")
	f(handmade(5, 24, 1, func(uint32) (uint32, uint32) { return 1, 1 }), Options{}, "IP version 5")
	f(handmade(6, 16, 1, func(uint32) (uint32, uint32) { return 1, 1 }), Options{}, "mmdb file 1")
	f(handmade(6, 24, 0, nil), Options{}, "mmdb file 1")
}

func TestTreeChildren(t *testing.T) {
	b := []byte{0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0}
	f := func(record uint, left, right uint32) {
		t.Helper()
		tree := &tree{b: append(make([]byte, record/4), b...), record: record}
		if l, r := tree.children(1); l != left || r != right {
			t.Errorf("%d bits: %#x %#x, want %#x %#x", record, l, r, left, right)
		}
	}
	f(24, 0x123456, 0x789abc)
	f(28, 0x7123456, 0x89abcde)
	f(32, 0x12345678, 0x9abcdef0)
}

// A tree of a hundred nodes with 2^96 paths must be refused, not walked.
func TestMMDBWithJoinedBranches(t *testing.T) {
	const n = 128
	for _, version := range []uint16{4, 6} {
		file := handmade(version, 24, n, func(i uint32) (uint32, uint32) { return i + 1, i + 1 })
		if _, err := NewTable(Coverage{}, file, Options{}); err == nil || !strings.Contains(err.Error(), "mmdb file 1") {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// handmade is an mmdb file with any tree, and one record {}.
func handmade(version, record uint16, nodes uint32, children func(uint32) (left, right uint32)) []byte {
	var b []byte
	for i := range nodes {
		left, right := children(i)
		b = append(b, byte(left>>16), byte(left>>8), byte(left), byte(right>>16), byte(right>>8), byte(right))
	}
	b = append(b, make([]byte, separator)...)
	b = append(b, 0xe0)
	b = append(b, "\xab\xcd\xefMaxMind.com"...)
	text := func(s string) { b = append(append(b, 0x40|byte(len(s))), s...) }
	number := func(name string, n uint32) {
		text(name)
		b = append(b, 0xc4, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	b = append(b, 0xe5)
	number("node_count", nodes)
	text("ip_version")
	b = append(b, 0xa2, byte(version>>8), byte(version))
	text("record_size")
	b = append(b, 0xa2, byte(record>>8), byte(record))
	text("database_type")
	text("test")
	text("binary_format_major_version")
	b = append(b, 0xa1, 2)
	return b
}

// FuzzMMDB: no file makes the reader panic, hang or take much memory, and what is
// read has ranges that cover everything.
func FuzzMMDB(f *testing.F) {
	f.Add(mmdb(f, mmdbwriter.Options{}, []record{{"1.2.0.0/16", city("CN", "BJ")}, {"2400::/20", asn(4134, "CHINANET")}}))
	f.Add(mmdb(f, mmdbwriter.Options{IPVersion: 4, RecordSize: 24}, []record{{"1.2.3.4/32", city("JP", "")}}))
	f.Add(mmdb(f, mmdbwriter.Options{RecordSize: 32}, []record{{"::/0", asn(1, "x")}}))
	f.Add(handmade(6, 24, 3, func(i uint32) (uint32, uint32) { return i + 1, 3 + separator }))
	f.Fuzz(func(t *testing.T, file []byte) {
		tab, err := NewTable(Coverage{}, file, Options{})
		if err != nil {
			return
		}
		for _, p := range []string{"1.2.3.4/32", "0.0.0.0/0", "255.255.255.255/32", "2400::1/128", "::/0"} {
			prefix := netip.MustParsePrefix(p)
			if got := tab.Locate(prefix); got.Bits < 0 || got.Bits > prefix.Bits() {
				t.Fatalf("%s: %+v", p, got)
			}
		}
	})
}
