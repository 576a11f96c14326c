package frontend

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustSecrets(t testing.TB, list ...string) secrets {
	t.Helper()
	s, err := parseSecrets(list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCookieVectors has the examples of RFC 9018, appendix A.
func TestCookieVectors(t *testing.T) {
	const one, two = "e5e973e5a6b2a43f48e7dc849e37bfcf", "445536bcd2513298075a5d379663c962"
	const old = "dd3bdf9344b678b185a6f5cb60fca715"
	f := func(name string, list []string, client, asked string, at int64, wantState cookieState, want string) {
		t.Helper()
		cookie := unhex(t, asked)
		state, got := mustSecrets(t, list...).check(time.Unix(at, 0), cookie, netip.MustParseAddr(client), nil)
		if got := hex.EncodeToString(append(cookie[:clientCookieLen:clientCookieLen], got...)); state != wantState || got != want {
			t.Errorf("%s: got %v %s, want %v %s", name, state, got, wantState, want)
		}
	}
	f("A.1, a new cookie", []string{one}, "198.51.100.100", "2464c4abcf10c957",
		1559731985, cookieNew, "2464c4abcf10c957010000005cf79f111f8130c3eee29480")
	f("A.2, a renewed one", []string{one}, "198.51.100.100", "2464c4abcf10c957010000005cf79f111f8130c3eee29480",
		1559734385, cookieValid, "2464c4abcf10c957010000005cf7a871d4a564a1442aca77")
	f("A.3, another client, reserved bytes set", []string{one}, "203.0.113.203", "fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5",
		1559734700, cookieBad, "fc93fc62807ddb86010000005cf7a9acf73a7810aca2381e")
	f("A.3, within its life", []string{one}, "203.0.113.203", "fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5",
		1559728000, cookieValid, "fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5")
	f("A.4, a secret that goes", []string{two, old}, "2001:db8:220:1:59de:d0f4:8769:82b8", "22681ab97d52c298010000005cf7c57926556bd0934c72f8",
		1559741961, cookieValid, "22681ab97d52c298010000005cf7c57926556bd0934c72f8")
	f("A.4, a new cookie", []string{two, old}, "2001:db8:220:1:59de:d0f4:8769:82b8", "22681ab97d52c298",
		1559741961, cookieNew, "22681ab97d52c298010000005cf7c609a6bb79d16625507a")
}

func TestCookieTimes(t *testing.T) {
	s := mustSecrets(t, strings.Repeat("5a", 16))
	client := netip.MustParseAddr("192.0.2.1")
	// Also over the end of 32 bits (RFC 9018, 4.3).
	for _, start := range []time.Time{time.Unix(1_700_000_000, 0), time.Unix(1<<32-1800, 0), time.Unix(1<<31-1800, 0)} {
		cookie := append([]byte("clientco"), make([]byte, 0, 16)...)
		_, server := s.check(start, cookie, client, nil)
		full := append(cookie, server...)
		f := func(after time.Duration, want cookieState, same bool) {
			t.Helper()
			state, next := s.check(start.Add(after), full, client, nil)
			if state != want || bytes.Equal(next, server) != same {
				t.Errorf("%v after %v: %v, kept is %v, want %v and %v", after, start, state, bytes.Equal(next, server), want, same)
			}
		}
		f(0, cookieValid, true)
		f(cookieFresh-time.Second, cookieValid, true)
		f(cookieFresh, cookieValid, false)
		f(cookieLife, cookieValid, false)
		f(cookieLife+time.Second, cookieBad, false)
		f(-time.Second, cookieValid, false) // a server whose clock is ahead made it
		f(-cookieAhead, cookieValid, false)
		f(-cookieAhead-time.Second, cookieBad, false)
		f(1000*time.Hour, cookieBad, false)
	}
}

// TestCookieForged changes one bit of a good cookie, its client or its address: the
// cookie is never good any more.
func TestCookieForged(t *testing.T) {
	s := mustSecrets(t, strings.Repeat("01", 16), strings.Repeat("02", 16))
	now := time.Unix(1_700_000_000, 0)
	rapid.Check(t, func(t *rapid.T) {
		var a16 [16]byte
		copy(a16[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "client"))
		client := netip.AddrFrom16(a16).Unmap()
		if rapid.Bool().Draw(t, "v4") {
			client = netip.AddrFrom4([4]byte(a16[:4]))
		}
		cookie := rapid.SliceOfN(rapid.Byte(), clientCookieLen, clientCookieLen).Draw(t, "cookie")
		_, server := s.check(now, cookie, client, nil)
		full := append(cookie, server...)
		if state, _ := s.check(now, full, client, nil); state != cookieValid {
			t.Fatalf("fresh cookie is %v", state)
		}
		if state, _ := s[1:].check(now, full, client, nil); state != cookieBad {
			t.Fatalf("cookie of another secret is %v", state)
		}
		bit := rapid.IntRange(0, cookieLen*8-1).Draw(t, "bit")
		full[bit/8] ^= 1 << (bit % 8)
		if state, _ := s.check(now, full, client, nil); state != cookieBad {
			t.Fatalf("cookie with bit %d changed is %v", bit, state)
		}
		full[bit/8] ^= 1 << (bit % 8)
		other := client.AsSlice()
		other[rapid.IntRange(0, len(other)-1).Draw(t, "octet")] ^= 1
		stranger, _ := netip.AddrFromSlice(other)
		if state, _ := s.check(now, full, stranger, nil); state != cookieBad {
			t.Fatalf("cookie from %v is %v at %v", client, state, stranger)
		}
	})
}

func TestCookieLengths(t *testing.T) {
	for n := range 50 {
		want := n == 8 || n >= 16 && n <= 40
		if got := wellFormedCookie(n); got != want {
			t.Errorf("%d bytes: well formed is %v", n, got)
		}
	}
	s := mustSecrets(t, strings.Repeat("00", 16))
	for _, n := range []int{8, 16, 17, 24, 40} {
		state, server := s.check(time.Unix(0, 0), make([]byte, n), netip.MustParseAddr("::1"), nil)
		if want := cookieBad; n > 8 && state != want || n == 8 && state != cookieNew || len(server) != serverCookieLen {
			t.Errorf("%d bytes: %v, server cookie of %d bytes", n, state, len(server))
		}
	}
}

func TestSecretsAreChecked(t *testing.T) {
	f := func(list []string, want string) {
		t.Helper()
		_, err := parseSecrets(list)
		if want == "" && err == nil || err != nil && want != "" && strings.Contains(err.Error(), want) {
			return
		}
		t.Errorf("%q: got %v, want %q", list, err, want)
	}
	good := strings.Repeat("aB", 16)
	f(nil, "")
	f([]string{good, good}, "")
	f([]string{good, "short"}, "secret number 2 must be 32 hexadecimal digits")
	f([]string{good + "a"}, "secret number 1")
	f([]string{strings.Repeat("xy", 16)}, "secret number 1")
	f(make([]string, 9), "has 9 secrets, must have 0 to 8")
	if _, err := parseSecrets([]string{"topsecret"}); strings.Contains(err.Error(), "topsecret") {
		t.Error("the error shows the secret")
	}
}

func BenchmarkCookie(b *testing.B) {
	s := mustSecrets(b, strings.Repeat("5a", 16))
	client, now := netip.MustParseAddr("192.0.2.1"), time.Unix(1_700_000_000, 0)
	cookie := []byte("clientco")
	_, server := s.check(now, cookie, client, nil)
	cookie = append(cookie, server...)
	buf := make([]byte, 0, serverCookieLen)
	b.ReportAllocs()
	for b.Loop() {
		s.check(now, cookie, client, buf)
	}
}
