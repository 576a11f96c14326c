package console

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	secretA = []byte("the secret of this cluster, 1")
	secretB = []byte("the secret of this cluster, 2")
)

func hashOf(name string) []byte {
	if name == "ana" {
		return []byte("hash of ana")
	}
	return nil
}

func TestTicket(t *testing.T) {
	ana := newTicket(start, "ana")
	ana.seen = start.Add(time.Minute)
	cookie := ana.seal(secretA, hashOf("ana"))
	f := func(cookie string, secrets [][]byte, hash func(string) []byte, want bool) {
		t.Helper()
		got, ok := openTicket(cookie, secrets, hash)
		if ok != want || ok && (got.id != ana.id || got.name != ana.name || !got.begun.Equal(ana.begun) || !got.seen.Equal(ana.seen)) {
			t.Errorf("got %+v %v, want %v", got, ok, want)
		}
	}
	f(cookie, [][]byte{secretA}, hashOf, true)
	f(cookie, [][]byte{secretB, secretA}, hashOf, true) // the key was rotated
	f(cookie, [][]byte{secretB}, hashOf, false)
	f(cookie, nil, hashOf, false)
	f(cookie, [][]byte{secretA}, func(string) []byte { return []byte("another password") }, false)
	f(cookie, [][]byte{secretA}, func(string) []byte { return nil }, false) // no such user any more
	f("", [][]byte{secretA}, hashOf, false)
	f(cookie+"A", [][]byte{secretA}, hashOf, false)
	f(strings.Repeat("A", 1<<16), [][]byte{secretA}, hashOf, false)
	f("not base64!", [][]byte{secretA}, hashOf, false)

	// A ticket that was made for nobody does not become somebody's.
	nobody := newTicket(start, "eve")
	f(nobody.seal(secretA, nil), [][]byte{secretA}, hashOf, false)
}

func TestTicketEveryBitCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := newTicket(start, "ana")
		b, err := base64.RawURLEncoding.DecodeString(k.seal(secretA, hashOf("ana")))
		if err != nil {
			t.Fatal(err)
		}
		bit := rapid.IntRange(0, 8*len(b)-1).Draw(t, "bit")
		b[bit/8] ^= 1 << (bit % 8)
		if _, ok := openTicket(base64.RawURLEncoding.EncodeToString(b), [][]byte{secretA}, hashOf); ok {
			t.Fatal("a changed cookie is good")
		}
	})
}

func TestTicketTimes(t *testing.T) {
	c := DefaultConfig()
	f := func(begun, seen time.Duration, over, stale bool) {
		t.Helper()
		k := ticket{begun: start.Add(-begun), seen: start.Add(-seen)}
		if k.over(start, &c) != over || k.stale(start, &c) != stale {
			t.Errorf("begun %v and seen %v ago: over %v, stale %v", begun, seen, k.over(start, &c), k.stale(start, &c))
		}
	}
	f(0, 0, false, false)
	f(time.Hour, time.Minute, false, false)
	f(time.Hour, time.Minute+1, false, true)
	f(time.Hour, 30*time.Minute, false, true)
	f(time.Hour, 30*time.Minute+1, true, true)
	f(12*time.Hour, 0, false, false)
	f(12*time.Hour+1, 0, true, false)
}

func TestCSRFIsOfOneSession(t *testing.T) {
	a, b := newTicket(start, "ana"), newTicket(start, "ana")
	if !a.sameCSRF(a.csrf()) || a.sameCSRF(b.csrf()) || a.sameCSRF("") {
		t.Error("the token of another session is good, or its own is not")
	}
}

func FuzzOpenTicket(f *testing.F) {
	k := newTicket(start, "ana")
	f.Add(k.seal(secretA, hashOf("ana")))
	f.Add("")
	f.Add("AQ")
	f.Fuzz(func(t *testing.T, cookie string) {
		got, ok := openTicket(cookie, [][]byte{secretB}, hashOf)
		if ok { // nothing was ever sealed with it
			t.Fatalf("%q is good: %+v", cookie, got)
		}
	})
}
