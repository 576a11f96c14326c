package console

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLimiter(t *testing.T) {
	l := newLimiter(3, 10*time.Second, 100)
	now := start
	f := func(after time.Duration, key string, want time.Duration) {
		t.Helper()
		now = now.Add(after)
		if got := l.take(now, key); got != want {
			t.Errorf("wait %v, want %v", got, want)
		}
	}
	f(0, "a", 0)
	f(0, "a", 0)
	f(0, "a", 0)
	f(0, "a", 10*time.Second)
	f(0, "b", 0) // another key is another matter
	f(4*time.Second, "a", 6*time.Second)
	f(6*time.Second, "a", 0)
	f(0, "a", 10*time.Second) // refused attempts are not counted
	l.giveBack("a")
	f(0, "a", 0)
	f(time.Hour, "a", 0)
	f(0, "a", 0)
	f(0, "a", 0)
	f(0, "a", 10*time.Second) // rest does not add up
}

func TestLimiterHoldsItsRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		burst := rapid.IntRange(1, 5).Draw(t, "burst")
		l := newLimiter(burst, time.Second, 10)
		now, passed := start, 0
		for range rapid.IntRange(1, 200).Draw(t, "tries") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			if l.take(now, "k") == 0 {
				passed++
			}
		}
		if most := burst + int(now.Sub(start)/time.Second); passed > most {
			t.Fatalf("%d passed in %v, at most %d should", passed, now.Sub(start), most)
		}
	})
}

func TestRecentForgetsTheOldest(t *testing.T) {
	r := newRecent[int](3)
	for i, key := range []string{"a", "b", "c", "a", "d"} {
		*r.get(key) = i
	}
	if !r.has("a") || r.has("b") || !r.has("c") || !r.has("d") || r.order.Len() != 3 || len(r.entries) != 3 {
		t.Errorf("has %v", r.entries)
	}
	if *r.get("a") != 3 || *r.get("b") != 0 {
		t.Error("values are of other keys")
	}
}

func TestBlock(t *testing.T) {
	for _, c := range []struct{ addr, want string }{
		{"192.0.2.1", "192.0.2.1"},
		{"::ffff:192.0.2.1", "192.0.2.1"},
		{"2001:db8:1:2:3::4", "2001:db8:1:2::/64"},
		{"fe80::1%eth0", "fe80::/64"},
	} {
		if got := block(netip.MustParseAddr(c.addr)); got != c.want {
			t.Errorf("%s is counted as %s, want %s", c.addr, got, c.want)
		}
	}
	if got := block(netip.Addr{}); got != fmt.Sprint(netip.Addr{}) {
		t.Errorf("no address is %s", got)
	}
}

// TestLines: refusals make few lines of the log, and the next one tells of those that
// made none.
func TestLines(t *testing.T) {
	var l lines
	now, told, unlogged := time.Unix(1_000, 0), 0, uint64(0)
	for i := range 10_000 {
		if more, ok := l.take(now.Add(time.Duration(i) * time.Millisecond)); ok {
			told, unlogged = told+1, unlogged+more
		}
	}
	if told != maxLines || unlogged != 0 {
		t.Errorf("%d lines in %v, of %d others, want %d and 0", told, linesWindow, unlogged, maxLines)
	}
	if more, ok := l.take(now.Add(linesWindow)); !ok || more != 10_000-maxLines {
		t.Errorf("then %t, of %d others, want %d", ok, more, 10_000-maxLines)
	}
}
