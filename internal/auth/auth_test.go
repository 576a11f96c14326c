package auth

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"millrace/internal/session"
	"millrace/internal/stream"
)

const (
	secretA = "0123456789abcdef-A"
	secretB = "0123456789abcdef-B"
)

var (
	t0   = time.Unix(1_800_000_000, 0)
	peer = netip.MustParseAddr("192.0.2.7")
)

func newGate(t testing.TB, change func(*Config)) *Gate {
	t.Helper()
	cfg := DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	g, err := NewGate(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// reason returns why err denies, and None for nil.
func reason(t testing.TB, err error) session.Reason {
	t.Helper()
	if err == nil {
		return session.None
	}
	d, ok := errors.AsType[*Denied](err)
	if !ok {
		t.Fatalf("error %v (%T), want a *Denied", err, err)
	}
	if d.Text == "" {
		t.Error("a refusal without a text")
	}
	for _, secret := range []string{secretA, secretB, "livekey1", "livekey2", "anykey99", "wrongkey"} {
		if strings.Contains(d.Text, secret) {
			t.Errorf("text %q repeats %q", d.Text, secret)
		}
	}
	return d.Reason
}

func TestPublish(t *testing.T) {
	g := newGate(t, func(c *Config) {
		c.PublishKeys = map[string][]string{"live": {"livekey1", "livekey2", "a+b/c=="}, "*": {"anykey99"}}
		c.PublishSecrets = []string{secretA, secretB}
		c.DenyPublish = []string{"10.0.0.0/8", "2001:db8:bad::/48"}
		c.ClockSkew = 5 * time.Second
		c.Storm.FirstDelay = 0
	})
	if g.Open() {
		t.Error("Open() with keys configured")
	}
	signed := func(secret, name string, in time.Duration) string {
		return SignPublish(secret, stream.Name(name), t0.Add(in))
	}
	f := func(name, query, addr string, want session.Reason) {
		t.Helper()
		_, err := g.Publish(t0, Request{Stream: stream.Name(name), Query: query, Peer: netip.MustParseAddr(addr)})
		if got := reason(t, err); got != want {
			t.Errorf("publish %s?%s from %s: %v (%v), want %v", name, query, addr, got, err, want)
		}
	}
	const ok, a = session.None, "192.0.2.7"
	f("live/room", "key=livekey1", a, ok)
	f("live/room", "key=livekey2", a, ok)
	f("live/room", "key=anykey99", a, ok)
	f("other/room", "key=anykey99", a, ok)
	f("other/room", "key=livekey1", a, session.Unauthorized)
	f("*/room", "key=livekey1", a, session.Unauthorized)
	f("live/room", "", a, session.Unauthorized)
	f("live/room", "key=", a, session.Unauthorized)
	f("live/room", "key", a, session.Unauthorized)
	f("live/room", "key=wrongkey", a, session.Unauthorized)
	f("live/room", "key=livekey1x", a, session.Unauthorized)
	f("live/room", "key=livekey", a, session.Unauthorized)
	f("live/room", "KEY=livekey1", a, session.Unauthorized)
	f("live/room", "x=1&key=livekey1&y=2", a, ok)
	f("live/room", "key=wrongkey&key=livekey1", a, ok) // the app's query and the stream key's
	f("live/room", "key=a&key=b&key=livekey1", a, session.Unauthorized)
	f("live/room", "key=livekey%31", a, ok)
	f("live/room", "key=a+b/c==", a, ok)
	f("live/room", "key=a%2Bb%2fc%3D%3d", a, ok)
	f("live/room", "key=%zz", a, session.Unauthorized)
	f("live/room", "key=%3", a, session.Unauthorized)
	f("live/room", strings.Repeat("a=b&", 64)+"key=livekey1", a, session.Unauthorized)
	f("live/room", "key=livekey1&x="+strings.Repeat("x", maxQuery), a, session.Unauthorized)

	f("live/room", signed(secretA, "live/room", time.Hour), a, ok)
	f("live/room", signed(secretB, "live/room", time.Hour), a, ok)
	f("live/room", signed(secretA+"x", "live/room", time.Hour), a, session.Unauthorized)
	f("live/other", signed(secretA, "live/room", time.Hour), a, session.Unauthorized)
	f("live/room", SignPlay(secretA, "live/room", t0.Add(time.Hour)), a, session.Unauthorized)
	f("live/room", signed(secretA, "live/room", 0), a, ok)
	f("live/room", signed(secretA, "live/room", -5*time.Second), a, ok)
	f("live/room", signed(secretA, "live/room", -6*time.Second), a, session.Expired)
	f("live/room", signed(secretA, "live/room", -6*time.Second)+"0", a, session.Unauthorized)
	f("live/room", "key=wrongkey&"+signed(secretA, "live/room", time.Hour), a, ok)
	f("live/room", "expires=18000000000", a, session.Unauthorized)
	for _, e := range []string{"-1", "+1", "0", "01", "1e9", "18446744073709551617", " 1", "0x1"} {
		f("live/room", "expires="+e+"&sign="+string(signature(nil, secretA, "publish", "live/room", e)), a, session.Unauthorized)
	}

	f("live/room", "key=livekey1", "10.1.2.3", session.Forbidden)
	f("live/room", "key=livekey1", "::ffff:10.1.2.3", session.Forbidden)
	f("live/room", "key=livekey1", "2001:db8:bad::1", session.Forbidden)
	f("live/room", "key=livekey1", "2001:db8:bad::1%eth0", session.Forbidden)
	f("live/room", "key=livekey1", "2001:db8:600d::1", ok)
}

func TestOwner(t *testing.T) {
	owner := func(g *Gate, query, addr string) string {
		t.Helper()
		grant, err := g.Publish(t0, Request{Stream: "live/room", Query: query, Peer: netip.MustParseAddr(addr)})
		if err != nil {
			t.Fatal(err)
		}
		if !grant.Expires.IsZero() {
			t.Errorf("a publisher is to be cut off at %v", grant.Expires)
		}
		return grant.Owner
	}
	open := newGate(t, nil)
	if !open.Open() {
		t.Error("the default configuration is not open")
	}
	if a, b := owner(open, "key=whatever", "192.0.2.7"), owner(open, "", "::ffff:192.0.2.7"); a != b {
		t.Errorf("one address has two owners: %q and %q", a, b)
	}
	if a, b := owner(open, "", "192.0.2.7"), owner(open, "", "192.0.2.8"); a == b {
		t.Errorf("two addresses have one owner %q", a)
	}

	keyed := func(keys, secrets []string) *Gate {
		return newGate(t, func(c *Config) {
			c.PublishKeys = map[string][]string{"live": keys}
			c.PublishSecrets = secrets
		})
	}
	g := keyed([]string{"livekey1", "livekey2"}, []string{secretA})
	one, two := owner(g, "key=livekey1", "192.0.2.7"), owner(g, "key=livekey2", "192.0.2.7")
	if one == two {
		t.Error("two keys have one owner")
	}
	if got := owner(g, "key=livekey1", "198.51.100.1"); got != one {
		t.Errorf("the owner depends on the address: %q, %q", got, one)
	}
	if strings.Contains(one, "livekey1") {
		t.Errorf("owner %q contains the key", one)
	}
	reordered := keyed([]string{"livekey2", "livekey1"}, []string{secretB, secretA})
	if got := owner(reordered, "key=livekey1", "192.0.2.7"); got != one {
		t.Errorf("the owner depends on the order of keys: %q, %q", got, one)
	}
	old := SignPublish(secretA, "live/room", t0)
	rotated := SignPublish(secretB, "live/room", t0.Add(time.Hour))
	if a, b := owner(g, old, "192.0.2.7"), owner(reordered, rotated, "192.0.2.9"); a != b || a == one {
		t.Errorf("owners %q and %q of signed keys, want one for the stream", a, b)
	}
}

func TestPlay(t *testing.T) {
	expires := t0.Add(time.Minute)
	signed := SignPlay(secretA, "live/room", expires)
	f := func(name string, change func(*Config), r Request, want session.Reason, wantEnd time.Time) {
		t.Helper()
		r.Stream = "live/room"
		if !r.Peer.IsValid() {
			r.Peer = peer
		}
		grant, err := newGate(t, change).Play(t0, r)
		if got := reason(t, err); got != want {
			t.Errorf("%s: %v (%v), want %v", name, got, err, want)
		}
		if !grant.Expires.Equal(wantEnd) || grant.Owner != "" {
			t.Errorf("%s: grant %+v, want end %v", name, grant, wantEnd)
		}
	}
	never := time.Time{}
	secret := func(c *Config) { c.PlaySecrets = []string{secretB, secretA} }
	ending := func(c *Config) {
		secret(c)
		c.EndAtExpiry, c.EndGrace, c.ClockSkew = true, 10*time.Second, 2*time.Second
	}
	f("open", nil, Request{}, session.None, never)
	f("open, keys for publish only", func(c *Config) { c.PublishSecrets = []string{secretA} }, Request{}, session.None, never)
	f("signed", secret, Request{Query: signed}, session.None, never)
	f("signed, extra parameters", secret, Request{Query: "a=b&" + signed + "&_=1"}, session.None, never)
	f("unsigned", secret, Request{}, session.Unauthorized, never)
	f("no expiry", secret, Request{Query: signed[strings.Index(signed, "sign="):]}, session.Unauthorized, never)
	f("signed for publish", secret, Request{Query: SignPublish(secretA, "live/room", expires)}, session.Unauthorized, never)
	f("expired", secret, Request{Query: SignPlay(secretA, "live/room", t0.Add(-time.Minute))}, session.Expired, never)
	f("malformed", secret, Request{Query: signed + "&key=%"}, session.Unauthorized, never)
	f("ends at expiry", ending, Request{Query: signed}, session.None, expires.Add(12*time.Second))

	// An expiry within the skew must leave some time to play.
	f("ends after skew", ending, Request{Query: SignPlay(secretA, "live/room", t0.Add(-2*time.Second))}, session.None, t0.Add(10*time.Second))

	lists := func(c *Config) {
		c.AllowPlay = []string{"192.0.2.0/24", "2001:db8::7"}
		c.DenyPlay = []string{"192.0.2.66"}
	}
	f("allowed", lists, Request{}, session.None, never)
	f("allowed single", lists, Request{Peer: netip.MustParseAddr("2001:db8::7")}, session.None, never)
	f("not in allow", lists, Request{Peer: netip.MustParseAddr("198.51.100.1")}, session.Forbidden, never)
	f("deny wins", lists, Request{Peer: netip.MustParseAddr("192.0.2.66")}, session.Forbidden, never)
	if _, err := newGate(t, lists).Play(t0, Request{Stream: "live/room"}); reason(t, err) != session.Forbidden {
		t.Errorf("an unknown address passes the lists: %v", err)
	}
}

func TestReferer(t *testing.T) {
	strict := newGate(t, func(c *Config) {
		c.PlayReferers = []string{"Example.com", "*.example.org", "192.0.2.1", "2001:db8::1"}
		c.AllowEmptyReferer = false
		c.Storm.FirstDelay = 0
	})
	f := func(referer string, want session.Reason) {
		t.Helper()
		_, err := strict.Play(t0, Request{Stream: "live/room", Peer: peer, Referer: referer})
		if got := reason(t, err); got != want {
			t.Errorf("referer %q: %v, want %v", referer, got, want)
		}
	}
	f("https://example.com/page?x=1", session.None)
	f("http://EXAMPLE.COM:8080/", session.None)
	f("https://example.com./", session.None)
	f("https://www.example.com/", session.Forbidden)
	f("https://example.com.evil.net/", session.Forbidden)
	f("https://notexample.com/", session.Forbidden)
	f("https://example.com@evil.net/", session.Forbidden)
	f("https://evil.net/?example.com", session.Forbidden)
	f("https://a.example.org", session.None)
	f("https://a.b.example.org/", session.None)
	f("https://example.org/", session.Forbidden)
	f("https://xexample.org/", session.Forbidden)
	f("https://.example.org/", session.Forbidden)
	f("http://192.0.2.1/", session.None)
	f("http://[2001:db8::1]:80/", session.None)
	f("", session.Forbidden)
	f("null", session.Forbidden)
	f("about:blank", session.Forbidden)
	f("://", session.Forbidden)
	f("https://example.com/"+strings.Repeat("x", maxReferer), session.Forbidden)

	lenient := newGate(t, func(c *Config) { c.PlayReferers = []string{"example.com"} })
	if _, err := lenient.Play(t0, Request{Stream: "live/room", Peer: peer}); err != nil {
		t.Errorf("no referer, with allow_empty_referer: %v", err)
	}
}

func TestReloadKeepsTheOldOnError(t *testing.T) {
	g := newGate(t, func(c *Config) { c.PublishKeys = map[string][]string{"live": {"livekey1"}} })
	bad := DefaultConfig()
	bad.ClockSkew = -1
	if err := g.Reload(bad); err == nil {
		t.Fatal("a bad configuration was taken")
	}
	if g.Open() {
		t.Fatal("the bad configuration is in use")
	}
	good := DefaultConfig()
	good.PublishKeys = map[string][]string{"live": {"livekey2"}}
	if err := g.Reload(good); err != nil {
		t.Fatal(err)
	}
	good.PublishKeys["live"][0] = "wrongkey" // the caller's again
	for key, want := range map[string]session.Reason{"livekey1": session.Unauthorized, "livekey2": session.None} {
		_, err := g.Publish(t0, Request{Stream: "live/room", Query: "key=" + key, Peer: peer})
		if got := reason(t, err); got != want {
			t.Errorf("%s after reload: %v, want %v", key, got, want)
		}
	}
}

// The vector was made with the line of shell in the package comment, and the line
// is run where there is a shell with openssl.
func TestShellRecipe(t *testing.T) {
	const want = "expires=1800003600&sign=e910d91d389dfed700bf9c8852a64fc7b3485f128a2fb5ffa38b19c0e445b5fb"
	if got := SignPlay(secretA, "live/room", t0.Add(time.Hour)); got != want {
		t.Errorf("signed %s, want %s", got, want)
	}
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("no openssl on this machine to run the recipe with: ", err)
	}
	script := fmt.Sprintf(`SECRET=%s; E=1800003600; echo "expires=$E&sign=$(printf %%s "play:live/room:$E" | openssl dgst -sha256 -hmac "$SECRET" -r | cut -c1-64)"`, secretA)
	out, err := exec.Command("sh", "-c", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(out)); got != want {
		t.Errorf("the shell made %s, want %s", got, want)
	}
}

func TestAllocations(t *testing.T) {
	g := newGate(t, func(c *Config) {
		c.PublishKeys = map[string][]string{"live": {"livekey1", "livekey2"}, "*": {"anykey99"}}
		c.PlaySecrets = []string{secretB, secretA}
		c.AllowPlay = []string{"192.0.2.0/24"}
	})
	publish := Request{Stream: "live/room", Peer: peer, Query: "key=livekey2"}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := g.Publish(t0, publish); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("publish with a static key: %v allocations, want none", n)
	}
	play := Request{Stream: "live/room", Peer: peer, Query: SignPlay(secretA, "live/room", t0)}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := g.Play(t0, play); err != nil {
			t.Fatal(err)
		}
	}); n > 16 { // two HMACs, which keep their state on the heap
		t.Errorf("signed play: %v allocations, want at most 16", n)
	}
}

func BenchmarkSignedPlay(b *testing.B) {
	g := newGate(b, func(c *Config) { c.PlaySecrets = []string{secretA} })
	r := Request{Stream: "live/room", Peer: peer, Query: SignPlay(secretA, "live/room", t0)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Play(t0, r); err != nil {
			b.Fatal(err)
		}
	}
}
