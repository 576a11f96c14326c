package auth

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/internal/session"
	"millrace/internal/stream"
)

// Any other byte, anywhere in the stream, the expiry or the signature, and a byte
// more or less: refused.
func TestAnyChangeOfASignedRequestFails(t *testing.T) {
	cfg := DefaultConfig()
	cfg.PublishSecrets = []string{secretA}
	cfg.PlaySecrets = []string{secretA}
	g, err := NewGate(cfg)
	if err != nil {
		t.Fatal(err)
	}
	change := func(t *rapid.T, s, alphabet string) string {
		at := rapid.IntRange(0, len(s)-1).Draw(t, "at")
		b := alphabet[rapid.IntRange(0, len(alphabet)-1).Draw(t, "byte")]
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			return s[:at] + s[at+1:]
		case 1:
			return s[:at] + string(b) + s[at:]
		}
		return s[:at] + string(b) + s[at+1:]
	}
	const hex, digits, letters = "0123456789abcdefABCDEF", "0123456789", "abcdefghij:/0123456789"
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z]{1,8}/[a-z0-9:]{1,20}`).Draw(t, "name")
		until := t0.Add(time.Duration(rapid.IntRange(0, 1e6).Draw(t, "seconds")) * time.Second)
		play := rapid.Bool().Draw(t, "play")
		ask := func(name, query string) error {
			r := Request{Stream: stream.Name(name), Query: query, Peer: peer}
			var err error
			if play {
				_, err = g.Play(t0, r)
			} else {
				_, err = g.Publish(t0, r)
			}
			return err
		}
		sign := SignPublish
		if play {
			sign = SignPlay
		}
		query := sign(secretA, stream.Name(name), until)
		if err := ask(name, query); err != nil {
			t.Fatalf("unchanged: %v", err)
		}
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		n, e, s := name, q.Get("expires"), q.Get("sign")
		switch rapid.IntRange(0, 2).Draw(t, "part") {
		case 0:
			n = change(t, n, letters)
		case 1:
			e = change(t, e, digits)
		case 2:
			s = change(t, s, hex)
		}
		if n+e+s == name+q.Get("expires")+q.Get("sign") {
			t.Skip("the same byte was drawn")
		}
		if err := ask(n, "expires="+e+"&sign="+s); err == nil {
			t.Fatalf("accepted %s expires=%s sign=%s for %s %s", n, e, s, name, query)
		}
	})
}

// Moving a digit between the name and the expiry makes another message.
func TestNoTwoRequestsShareASignature(t *testing.T) {
	a := signature(nil, secretA, "play", "live/room:1", "1800000000")
	b := signature(nil, secretA, "play", "live/room", "1:1800000000")
	if string(a) != string(b) {
		t.Fatal("the two messages differ; this test needs another pair")
	}
	g := newGate(t, func(c *Config) { c.PlaySecrets = []string{secretA} })
	_, err := g.Play(t0, Request{Stream: "live/room", Query: "expires=1:1800000000&sign=" + string(b), Peer: peer})
	if reason(t, err) != session.Unauthorized {
		t.Errorf("an expiry with a colon: %v", err)
	}
}

// What is put into a query comes out of it, however it is escaped.
func TestCredentialsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[!-"$'-;=@-~]{1,40}`).Draw(t, "key")
		if !usableSecret(key, 1) {
			t.Fatalf("key %q is not usable", key)
		}
		escaped := strings.ReplaceAll(url.QueryEscape(key), "+", "%20")
		noise := rapid.StringMatching(`([a-d]=[a-z%]{0,3}&){0,5}`).Draw(t, "noise")
		for _, form := range []string{key, escaped} {
			c, ok := parseCredentials(noise + "key=" + form)
			if !ok || c.nkeys != 1 || c.key[0] != key {
				t.Fatalf("query %q: %q %v, want %q", noise+"key="+form, c.keys(), ok, key)
			}
		}
	})
}

func FuzzQuery(f *testing.F) {
	for _, s := range []string{
		"", "key=livekey1", "key=%6Civekey1&x", "key=a&key=b&key=c", "key=%", "key=%4", "key=%zz", "&&&=&=", "key==",
		SignPlay(secretA, "live/room", t0), SignPublish(secretA, "live/room", t0), "expires=1&expires=2&sign=", strings.Repeat("&", 5000),
	} {
		f.Add(s)
	}
	cfg := DefaultConfig()
	keyed(&cfg)
	cfg.PublishSecrets = []string{secretA}
	cfg.PlaySecrets = []string{secretA}
	f.Fuzz(func(t *testing.T, query string) {
		g, err := NewGate(cfg)
		if err != nil {
			t.Fatal(err)
		}
		c, ok := parseCredentials(query)
		for _, s := range []string{c.key[0], c.key[1], c.expires, c.sign} {
			if len(s) > len(query) {
				t.Errorf("%q out of %q", s, query)
			}
		}
		_, err = g.Publish(t0, Request{Stream: "live/room", Query: query, Peer: peer})
		if why := reason(t, err); err == nil {
			good := c.nkeys > 0 && (c.key[0] == "livekey1" || c.key[1] == "livekey1")
			if !ok || !good && !strings.Contains(SignPublish(secretA, "live/room", mustTime(t, c.expires)), c.sign) {
				t.Errorf("accepted %q", query)
			}
		} else if why != session.Unauthorized && why != session.Expired {
			t.Errorf("%q: %v", query, why)
		}
		if _, err = g.Play(t0, Request{Stream: "live/room", Query: query, Peer: peer}); err != nil {
			reason(t, err)
		}
	})
}

func mustTime(t *testing.T, s string) time.Time {
	at, ok := parseExpires(s)
	if !ok {
		t.Fatalf("accepted the expiry %q", s)
	}
	return at
}
