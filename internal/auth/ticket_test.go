package auth

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/internal/session"
	"millrace/internal/stream"
)

func TestTicket(t *testing.T) {
	a, b := newCluster(t, secretA), newCluster(t, secretB)
	good := a.SignTicket(t0, "live/room", 30*time.Second)
	if want := "1800000030-"; !strings.HasPrefix(good, want) || len(good) != len(want)+32 || len(good) > MaxTicket {
		t.Errorf("ticket %q, want %s and 32 digits", good, want)
	}
	f := func(name string, c *Cluster, n stream.Name, ticket string, after time.Duration, want session.Reason) {
		t.Helper()
		if got := reason(t, c.CheckTicket(t0.Add(after), n, ticket)); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	f("good", a, "live/room", good, 0, session.None)
	f("last second", a, "live/room", good, 30*time.Second, session.None)
	f("within the skew", a, "live/room", good, 60*time.Second, session.None)
	f("over", a, "live/room", good, 61*time.Second, session.Expired)
	f("of a clock that is ahead", a, "live/room", good, -time.Hour, session.None)
	f("none", a, "live/room", "", 0, session.Unsigned)
	f("another stream", a, "live/other", good, 0, session.BadSignature)
	f("another key", b, "live/room", good, 0, session.BadSignature)
	f("another key, long ago", b, "live/room", good, time.Hour, session.BadSignature)
	f("longer life", a, "live/room", "1800000031"+good[10:], 0, session.BadSignature)
	f("upper case", a, "live/room", strings.ToUpper(good), 0, session.BadSignature)
	f("cut", a, "live/room", good[:len(good)-1], 0, session.BadSignature)
	f("longer", a, "live/room", good+"0", 0, session.BadSignature)
	f("a signature between nodes", a, "live/room", a.Sign(t0, mark), 0, session.BadSignature)
	zeros := strings.Repeat("0", 32)
	for _, s := range []string{"-", "-" + zeros, "0-" + zeros, "01800000030" + good[10:], "+" + good, "1800000030", good[11:], "9999999999999-" + zeros, strings.Repeat("9", 5000)} {
		f(s, a, "live/room", s, 0, session.BadSignature)
	}
}

func TestTicketWithoutKey(t *testing.T) {
	c := newCluster(t)
	if s := c.SignTicket(t0, "live/room", time.Minute); s != "" {
		t.Errorf("it signs: %q", s)
	}
	for _, s := range []string{"", "x", newCluster(t, secretA).SignTicket(t0, "live/room", 0)} {
		if err := c.CheckTicket(t0, "live/room", s); err != nil {
			t.Errorf("ticket %q: %v", s, err)
		}
	}
}

// A ticket is good on both sides of each step of a rotation, and the pool of keyed
// hashes follows a reload.
func TestTicketRotation(t *testing.T) {
	steps := [][]string{{secretA}, {secretA, secretB}, {secretB, secretA}, {secretB}}
	for i := range len(steps) - 1 {
		old, next := newCluster(t, steps[i]...), newCluster(t, steps[i+1]...)
		for _, pair := range [][2]*Cluster{{old, next}, {next, old}} {
			if err := pair[0].CheckTicket(t0, "live/room", pair[1].SignTicket(t0, "live/room", 0)); err != nil {
				t.Errorf("step %d: %v", i+1, err)
			}
		}
	}
	c := newCluster(t, secretA)
	old := c.SignTicket(t0, "live/room", 0)
	if err := c.Reload(ClusterConfig{Keys: []string{secretB}}); err != nil {
		t.Fatal(err)
	}
	if got := c.SignTicket(t0, "live/room", 0); got == old {
		t.Error("the old key signs after a reload")
	}
	if got := reason(t, c.CheckTicket(t0, "live/room", old)); got != session.BadSignature {
		t.Errorf("the old key after a reload: %v", got)
	}
}

// A ticket is good for its own stream and time alone.
func TestTicketIsOfOneStream(t *testing.T) {
	c := newCluster(t, secretA)
	name := rapid.StringMatching(`[ab:1\n]{0,5}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := stream.Name(name.Draw(t, "a")), stream.Name(name.Draw(t, "b"))
		life := time.Duration(rapid.IntRange(0, 100).Draw(t, "life")) * time.Second
		s := c.SignTicket(t0, a, life)
		if err := c.CheckTicket(t0, a, s); err != nil {
			t.Fatalf("own ticket: %v", err)
		}
		if err := c.CheckTicket(t0, b, s); (err == nil) != (a == b) {
			t.Fatalf("ticket of %q for %q: %v", a, b, err)
		}
	})
}

// FuzzTicket gives CheckTicket whatever a peer can send.
func FuzzTicket(f *testing.F) {
	c := newCluster(f, secretA, secretB)
	good, other := c.SignTicket(t0, "live/room", 0), newCluster(f, secretB).SignTicket(t0, "live/room", 0)
	for _, s := range []string{"", "-", good, "1-" + strings.Repeat("0", 32), strings.Repeat("9", 20) + "-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		err := c.CheckTicket(t0, "live/room", s)
		if reason(t, err) == session.None && s != good && s != other {
			t.Errorf("accepted %q", s)
		}
	})
}

func BenchmarkAppendTicket(b *testing.B) {
	c := newCluster(b, secretA, secretB)
	buf := make([]byte, 0, MaxTicket)
	b.ReportAllocs()
	for b.Loop() {
		buf = c.AppendTicket(buf[:0], t0, "live/room", 30*time.Second)
	}
}

func BenchmarkCheckTicket(b *testing.B) {
	c := newCluster(b, secretA)
	s := c.SignTicket(t0, "live/room", 30*time.Second)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.CheckTicket(t0, "live/room", s); err != nil {
			b.Fatal(err)
		}
	}
}
