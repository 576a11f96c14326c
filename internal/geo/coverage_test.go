package geo

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestParseCoverage(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		c, err := ParseCoverage([]byte(in))
		if err != nil {
			t.Errorf("%q: %v", in, err)
			return
		}
		if got, _ := c.MarshalText(); string(got) != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
	f("", "")
	f("# nothing\n\n  \r\n", "")
	f("1.2.3.0/24 a b", "1.2.3.0/24 a b\n")
	f("\ufeff1.2.3.0/24\ta  b\r\n", "1.2.3.0/24 a b\n")
	f("1.2.3.0/24,a,b", "1.2.3.0/24 a b\n")
	f(" 1.2.3.0/24 , a ,b # said so", "1.2.3.0/24 a b\n")
	f("1.2.3.4 a *\n2001:DB8::1 * b", "1.2.3.4/32 a *\n2001:db8::1/128 * b\n")
	f("0.0.0.0/0 * *\n::/0 * *", "0.0.0.0/0 * *\n::/0 * *\n")
	f("1.2.3.0/24 华北 电信", "1.2.3.0/24 华北 电信\n")
	f("1.2.3.0/24 a b\n1.2.3.0/24 a b", "1.2.3.0/24 a b\n")
	f("::/0 a b\n1.2.4.0/24 a b\n1.2.0.0/16 a b\n1.2.3.0/24 a b",
		"1.2.0.0/16 a b\n1.2.3.0/24 a b\n1.2.4.0/24 a b\n::/0 a b\n")
}

func TestParseCoverageFaults(t *testing.T) {
	f := func(in string, want ...string) {
		t.Helper()
		c, err := ParseCoverage([]byte(in))
		if err == nil || c.Len() != 0 {
			t.Errorf("%q: %d entries and %v, want %q", in, c.Len(), err, want)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %v, want %q", in, err, w)
			}
		}
	}
	f("\n1.2.3.0/24", "line 2: has 1 fields", "CIDR REGION ISP")
	f("1.2.3.0/24 a", "has 2 fields")
	f("1.2.3.0/24 a b c d", "has 5 fields")
	f("1.2.3.0/33 a b", `line 1: "1.2.3.0/33" is not a CIDR such as`)
	f("beijing 1.2.3.0/24 b", `"beijing" is not a CIDR`)
	f("fe80::1%eth0 a b", "is not a CIDR")
	f("1.2.3.4/24 a b", "write 1.2.3.0/24, or 1.2.3.4/32 for the one address")
	f("::ffff:1.2.3.4/128 a b", "write the IPv4 CIDR")
	f("::ffff:1.2.3.4 a b", "write the IPv4 CIDR")
	f("1.2.3.0/24,,b", "the region is missing: write *")
	f("1.2.3.0/24,a,", "the ISP is missing")
	f("1.2.3.0/24,new york,b", `region "new york"`, `for example "new-york"`)
	f("1.2.3.0/24,a,b*", `ISP "b*"`)
	f("1.2.3.0/24 a "+strings.Repeat("b", MaxName+1), "longer than 64 bytes")
	f("1.2.3.0/24 a b\xff", "write it in UTF-8")
	f("1.2.3.0/24 a b\x00", "cannot be shown")
	f("1.2.3.0/24 a b\n\n1.2.3.0/24 a c", "lines 1 and 3 give 1.2.3.0/24 to a b and to a c")
	f("1.2.3.0/24 a *\n1.2.3.0/24 * c", "to a * and to * c")
	f("x y z\n1.2.3.0/24 a b\nz y x", "line 1", "line 3")
	f(strings.Repeat("#", MaxCoverageBytes+1), "at most")

	_, err := ParseCoverage([]byte(strings.Repeat("x y z\n", 100)))
	if n := strings.Count(err.Error(), "\n") + 1; n != maxFaults {
		t.Errorf("%d faults are told, want %d", n, maxFaults)
	}
}

func TestParseCoverageEntries(t *testing.T) {
	if testing.Short() {
		t.Skip("a million lines")
	}
	var b bytes.Buffer
	for i := range MaxCoverageEntries + 1 {
		fmt.Fprintf(&b, "%d.%d.%d.0/28 a b\n", 1+i>>16, i>>8&255, i&255)
	}
	if _, err := ParseCoverage(b.Bytes()); err == nil || !strings.Contains(err.Error(), "line 1048577: is one more than") {
		t.Errorf("one line too many: %v", err)
	}
}

func TestCoverageUnmarshalKeepsTheOld(t *testing.T) {
	var c Coverage
	if err := c.UnmarshalText([]byte("1.2.3.0/24 a b")); err != nil || c.Len() != 1 {
		t.Fatalf("%d entries, %v", c.Len(), err)
	}
	if err := c.UnmarshalText([]byte("1.2.3.0/24 a")); err == nil || c.Len() != 1 {
		t.Errorf("after a fault %d entries, %v", c.Len(), err)
	}
}

// FuzzParseCoverage: what parses is written and parsed to the same, and makes a table.
func FuzzParseCoverage(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("::ffff:1.2.3.4 a b\n0.0.0.0/0,*,x\n\ufeff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCoverage(b)
		if err != nil {
			return
		}
		text, err := c.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseCoverage(text)
		if err != nil {
			t.Fatalf("%q of %q: %v", text, b, err)
		}
		if second, _ := again.MarshalText(); !bytes.Equal(second, text) {
			t.Fatalf("%q became %q", text, second)
		}
		tab, err := NewTable(c, nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		// An entry without another inside has its own names, or none of either source.
		entries := c.Entries()
		for i, e := range entries {
			if i+1 < len(entries) && e.Prefix.Overlaps(entries[i+1].Prefix) {
				continue
			}
			p := tab.Locate(e.Prefix)
			if p.Bits > e.Prefix.Bits() || e.Region != "" && p.Region != e.Region || e.ISP != "" && p.ISP != e.ISP {
				t.Fatalf("%+v is at %+v", e, p)
			}
		}
	})
}
