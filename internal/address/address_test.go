package address

import (
	"net/netip"
	"strings"
	"testing"
)

func TestSource(t *testing.T) {
	f := func(a, b string, same bool) {
		t.Helper()
		if got := Source(netip.MustParseAddr(a)) == Source(netip.MustParseAddr(b)); got != same {
			t.Errorf("%s and %s are one source: %v, want %v", a, b, got, same)
		}
	}
	f("192.0.2.7", "192.0.2.7", true)
	f("192.0.2.7", "::ffff:192.0.2.7", true)
	f("192.0.2.7", "192.0.2.8", false)
	f("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true)
	f("2001:db8::1", "2001:db8:0:1::1", false)
	f("fe80::1%a", "fe80::2%b", true)
	if got := Source(netip.Addr{}); got.IsValid() {
		t.Errorf("what is no address counts as %v", got)
	}
}

func TestParsePrefixes(t *testing.T) {
	f := func(s, want string) {
		t.Helper()
		got, err := ParsePrefixes([]string{s})
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), "is not an address or a CIDR prefix") {
				t.Errorf("%q: %v, %v, want an error", s, got, err)
			}
			return
		}
		if err != nil || len(got) != 1 || got[0].String() != want {
			t.Errorf("%q: %v, %v, want %s", s, got, err, want)
		}
	}
	f("10.1.2.3/8", "10.0.0.0/8")
	f(" 192.0.2.7 ", "192.0.2.7/32")
	f("::ffff:192.0.2.7", "192.0.2.7/32")
	f("::ffff:192.0.2.0/120", "192.0.2.0/24")
	f("::/0", "::/0")
	f("2001:db8::1/32", "2001:db8::/32")
	f("fe80::1%eth0", "fe80::1/128")
	f("10.0.0", "")
	f("10.0.0.0/33", "")
	f("", "")
	if _, err := ParsePrefixes(make([]string, MaxPrefixes+1)); err == nil || !strings.Contains(err.Error(), "has 4097 entries") {
		t.Errorf("too many entries: %v", err)
	}
}

func TestWithin(t *testing.T) {
	list, err := ParsePrefixes([]string{"10.0.0.0/8", "::ffff:192.0.2.7"})
	if err != nil {
		t.Fatal(err)
	}
	f := func(a string, want bool) {
		t.Helper()
		if got := Within(list, netip.MustParseAddr(a)); got != want {
			t.Errorf("%s: %v, want %v", a, got, want)
		}
	}
	f("10.255.0.1", true)
	f("192.0.2.7", true)
	f("192.0.2.8", false)
	f("2001:db8::1", false)
}
