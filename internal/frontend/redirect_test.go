package frontend

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/internal/auth"
	"millrace/internal/sched"
)

// locationOf returns the Location of a redirect of live/room without its ticket, which
// is checked with the key of c.
func locationOf(t testing.TB, c *auth.Cluster, location []byte) string {
	t.Helper()
	i := strings.LastIndex(string(location), "mr=")
	if i < 0 {
		t.Fatalf("%q has no ticket", location)
	}
	if err := c.CheckTicket(time.Now(), "live/room", string(location[i+3:])); err != nil {
		t.Errorf("%q: %v", location, err)
	}
	return string(location[:i-1])
}

func TestRedirect(t *testing.T) {
	keys := newKeys(t, clusterKey)
	h := newHTTP(t, keys, func(c *HTTPConfig) { c.TrustedProxies = []string{"10.0.0.0/8"} })
	f := func(from, host, uri, want string, fields ...string) {
		t.Helper()
		r := get(t, h, from, host, uri, fields...)
		if r.StatusCode() != 302 {
			t.Errorf("%s %s: %d %s", host, uri, r.StatusCode(), r.Body())
			return
		}
		if got := locationOf(t, keys, r.Header.Peek("Location")); got != want {
			t.Errorf("%s %s from %s: %q, want %q", host, uri, from, got, want)
		}
		if len(r.Header.PeekAll("Location")) != 1 || string(r.Header.Peek("Cache-Control")) != "no-store" {
			t.Errorf("header %s", r.Header.Header())
		}
	}
	const north = "http://192.0.2.11:8080"
	f(north4, play, "/live/room.flv", north+"/live/room.flv")
	f(south4, play, "/live/room.flv", "http://198.51.100.21/live/room.flv")
	f(north6, play, "/live/room.flv", "http://[2001:db8:1::11]:8080/live/room.flv")
	f(west6, play, "/live/room.flv", "http://[2001:db8:3::31]:8080/live/room.flv")
	f(north4, "PLAY.cdn.example.com.:8053", "/live/room.flv", north+"/live/room.flv")
	f(north4, "x.app.cdn.example.com", "/live/room.flv", north+"/live/room.flv")

	f(north4, play, "/live/room.flv?", north+"/live/room.flv")
	f(north4, play, "/live/room.flv?a=1&b=%2f+%zz&&c", north+"/live/room.flv?a=1&b=%2f+%zz&&c")
	f(north4, play, "/live/room.flv?mr=1-2", north+"/live/room.flv")
	f(north4, play, "/live/room.flv?mr=1-2&a=1", north+"/live/room.flv?a=1")
	f(north4, play, "/live/room.flv?a=1&mr=1-2&b=2&mr", north+"/live/room.flv?a=1&b=2")
	f(north4, play, "/live/room.flv?xmr=1&mrx=2", north+"/live/room.flv?xmr=1&mrx=2")
	f(north4, play, "/live/room.flv?url=http://x/?y=z|{}", north+"/live/room.flv?url=http://x/?y=z|{}")
	f(north4, play, "/live/room.flv?t=\xe4\xb8\xad#x", north+"/live/room.flv?t=%E4%B8%AD%23x")
	f(north4, play, "//live//room.flv", north+"//live//room.flv")
	f(north4, play, "/%6cive/room%2Eflv?a", north+"/%6cive/room%2Eflv?a")
	f(north4, "other", "http://"+play+"/live/room.flv?a=1", north+"/live/room.flv?a=1")

	f("10.0.0.1", play, "/live/room.flv", "http://198.51.100.21/live/room.flv", "X-Forwarded-For: "+south4)
	f("10.0.0.1", play, "/live/room.flv", "https://north-1.cdn.example.com:8443/live/room.flv", "X-Forwarded-For: "+north4, "X-Forwarded-Proto: https")
	// South has no HTTPS, west none over IPv4.
	f("10.0.0.1", play, "/live/room.flv", "https://north-1.cdn.example.com:8443/live/room.flv", "X-Forwarded-For: "+south4, "X-Forwarded-Proto: https")
	f("10.0.0.1", play, "/live/room.flv", "https://[2001:db8:3::31]/live/room.flv", "X-Forwarded-For: "+west6, "X-Forwarded-Proto: https")
	f(north4, "secure.cdn.example.com", "/live/room.flv", "https://north-1.cdn.example.com:8443/live/room.flv")
	f("10.0.0.1", "bare.cdn.example.com", "/live/room.flv", north+"/live/room.flv", "X-Forwarded-For: "+north4, "X-Forwarded-Proto: https")
}

func TestRedirectRefuses(t *testing.T) {
	h := newHTTP(t, newKeys(t, clusterKey), nil)
	f := func(host string, status int, reason, want string) {
		t.Helper()
		wantRefused(t, get(t, h, north4, host, "/live/room.flv"), status, reason, want)
	}
	f("x.example", 404, "unknown_domain", `"x.example"`)
	f("1.2.3.4:80", 404, "unknown_domain", `"1.2.3.4"`)
	f("app.cdn.example.com", 404, "unknown_domain", "app.cdn.example.com")
	f("quiet.cdn.example.com", 404, "not_found", "redirect: true")
	f("empty.cdn.example.com", 503, "no_edges", "has no edge")
	if r := get(t, h, north4, "empty.cdn.example.com", "/live/room.flv"); string(r.Header.Peek("Retry-After")) != "5" {
		t.Errorf("Retry-After %q", r.Header.Peek("Retry-After"))
	}
}

// A client whose family no edge has gets one of the other family.
func TestRedirectToTheOtherFamily(t *testing.T) {
	keys := newKeys(t, clusterKey)
	h := newHTTP(t, keys, nil)
	s := plan()
	s.Nodes = s.Nodes[1:2] // south, IPv4 alone
	h.decider = newDecider(t, s, time.Now(), nil)
	r := get(t, h, west6, play, "/live/room.flv")
	if got := locationOf(t, keys, r.Header.Peek("Location")); got != "http://198.51.100.21/live/room.flv" {
		t.Errorf("%q", got)
	}
}

// Without a key there is no ticket, and one that is there is taken out.
func TestLocationWithoutKey(t *testing.T) {
	h := newHTTP(t, newKeys(t), nil)
	f := func(uri, want string) {
		t.Helper()
		if got := string(get(t, h, north4, play, uri).Header.Peek("Location")); got != "http://192.0.2.11:8080"+want {
			t.Errorf("%s: %q, want %q", uri, got, want)
		}
	}
	f("/live/room.flv", "/live/room.flv")
	f("/live/room.flv?", "/live/room.flv")
	f("/live/room.flv?a=1", "/live/room.flv?a=1")
	f("/live/room.flv?mr=1", "/live/room.flv")
	f("/live/room.flv?mr=1&a=1", "/live/room.flv?a=1")
}

// Whatever is asked for, the Location is one line, absolute, at the edge, and its query
// is the one that was sent with one good ticket.
func TestLocationProperties(t *testing.T) {
	keys := newKeys(t, clusterKey)
	r := NewRedirector(keys)
	node := &plan().Nodes[0]
	now := time.Now()
	rapid.Check(t, func(t *rapid.T) {
		to := Destination{Node: node, HTTPS: rapid.Bool().Draw(t, "https"), Addr: node.Addresses[rapid.IntRange(0, 1).Draw(t, "family")]}
		query := rapid.StringMatching(`([a-m?=&%/+]|mr=|&mr=|[\x00-\x20#\x80-\xff]){0,20}`).Draw(t, "query")
		got := string(r.Location(nil, now, to, "live/room", []byte("/live/room.flv?"+query), time.Minute))
		if strings.ContainsFunc(got, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '#' }) {
			t.Fatalf("%q is no header value", got)
		}
		u, err := url.Parse(got)
		if err != nil && !strings.Contains(err.Error(), "escape") || err == nil && (u.Host == "" || u.Fragment != "" || u.Path != "/live/room.flv") {
			t.Fatalf("%q: %v", got, err)
		}
		_, raw, _ := strings.Cut(got, "?")
		var kept, tickets []string
		for pair := range strings.SplitSeq(raw, "&") {
			if name, value, _ := strings.Cut(pair, "="); name == "mr" {
				tickets = append(tickets, value)
			} else {
				kept = append(kept, pair)
			}
		}
		if len(tickets) != 1 || keys.CheckTicket(now, "live/room", tickets[0]) != nil {
			t.Fatalf("%q: tickets %q", got, tickets)
		}
		var want []string
		for pair := range strings.SplitSeq(query, "&") {
			if name, _, _ := strings.Cut(pair, "="); name != "mr" {
				want = append(want, string(appendSafe(nil, []byte(pair))))
			}
		}
		if a, b := strings.Join(kept, "&"), strings.Join(want, "&"); a != b {
			t.Fatalf("query %q became %q", b, a)
		}
	})
}

// A redirect is a hot path: it costs what its name and its host cost.
func BenchmarkLocation(b *testing.B) {
	r := NewRedirector(newKeys(b, clusterKey))
	to := Destination{Node: &sched.Node{HTTPPort: 8080}, Addr: netip.MustParseAddr("192.0.2.11")}
	uri, now := []byte("/live/room.flv?token=0123456789abcdef&uid=1234567"), time.Now()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = r.Location(buf[:0], now, to, "live/room", uri, time.Minute)
	}
}
