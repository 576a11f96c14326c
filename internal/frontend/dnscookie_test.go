package frontend

import (
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func TestSecretsOfTheProcess(t *testing.T) {
	c := newDNSClient(newTestDNS(t, func(c *DNSConfig) { c.CookieSecrets = nil }))
	ask := func(cookie string) *dns.Msg {
		return c.ask(t, edns(question("live.example.com", dns.TypeA), 1232, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: cookie}))
	}
	cookie := ask("0123456789abcdef").IsEdns0().Option[0].(*dns.EDNS0_COOKIE).Cookie
	f := func(what, want string) {
		t.Helper()
		before := c.r.d.Stats().Cookies[want]
		ask(cookie)
		if c.r.d.Stats().Cookies[want] != before+1 {
			t.Errorf("%s: the cookie is not %s", what, want)
		}
	}
	f("at once", "valid")
	c.r.d.drawSecret()
	f("with the next secret", "valid")
	c.r.d.drawSecret()
	f("with the one after", "bad")
}

// TestCookieAlone asks for nothing but a cookie (RFC 7873, 5.4).
func TestCookieAlone(t *testing.T) {
	c := newDNSClient(newTestDNS(t))
	ask := func(cookie string, rcode int) string {
		t.Helper()
		q := edns(new(dns.Msg), 1232, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: cookie})
		m := c.ask(t, q)
		got := m.IsEdns0().Option[0].(*dns.EDNS0_COOKIE).Cookie
		if m.Rcode != rcode || len(m.Question) > 0 || len(got) != 2*cookieLen || got[:16] != cookie[:16] {
			t.Errorf("%s: got %v", cookie, m)
		}
		return got
	}
	full := ask("0123456789abcdef", 0)
	if again := ask(full, 0); again != full {
		t.Errorf("a fresh cookie is exchanged for %s", again)
	}
	ask(strings.Repeat("0", 48), dns.RcodeBadCookie)
	ask(strings.Repeat("0", 80), dns.RcodeBadCookie)
}
