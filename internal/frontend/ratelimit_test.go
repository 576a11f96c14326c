package frontend

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRate(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	client := netip.MustParseAddr("192.0.2.1")
	for _, n := range []int{1, 3, 10, 999, 1000, 100_000} {
		l, r, key := newRateLimiter(64), perSecond(n), newRateKey(client, classAnswer)
		count := func(at time.Time) (got int) {
			for l.allow(at, key, r) {
				got++
			}
			return got
		}
		burst := n * int(burstTime/time.Second)
		if got := count(start); got < burst || got > burst+1 {
			t.Errorf("%d a second: %d at once, want %d", n, got, burst)
		}
		// Whatever comes in between, at most the rate gets through.
		got := 0
		for ms := range 10_000 {
			got += count(start.Add(time.Duration(ms) * time.Millisecond))
		}
		if got < 10*n-n/100-1 || got > 10*n+n/100+1 {
			t.Errorf("%d a second: %d in ten seconds", n, got)
		}
		if got := count(start.Add(time.Hour)); got < burst || got > burst+1 {
			t.Errorf("%d a second: %d after a rest, want %d", n, got, burst)
		}
	}
}

func TestRateOfNobody(t *testing.T) {
	l := newRateLimiter(64)
	for range 1000 {
		if !l.allow(time.Unix(0, 0), rateKey{}, perSecond(0)) {
			t.Fatal("a rate of 0 limits")
		}
	}
}

func TestRateKeys(t *testing.T) {
	f := func(a, b string, want bool) {
		t.Helper()
		x, y := newRateKey(netip.MustParseAddr(a), classAnswer), newRateKey(netip.MustParseAddr(b), classAnswer)
		if (x == y) != want {
			t.Errorf("%s and %s share a bucket: %v, want %v", a, b, x == y, want)
		}
		if x == newRateKey(netip.MustParseAddr(a), classError) {
			t.Errorf("%s: answers and errors share a bucket", a)
		}
	}
	f("192.0.2.1", "192.0.2.255", true)
	f("192.0.2.1", "192.0.3.1", false)
	f("2001:db8:0:aa::1", "2001:db8:0:ff:1::", true)
	f("2001:db8:0:aa::1", "2001:db8:0:100::", false)
	f("0.0.0.1", "::1", false)
	f("192.0.2.1", "c0:2::", false)
}

// TestRateTableIsFull has more networks than places. Who is over the rate stays so:
// nobody can flush the table to get more.
func TestRateTableIsFull(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	l, r := newRateLimiter(64), perSecond(100)
	victim := newRateKey(netip.MustParseAddr("192.0.2.1"), classAnswer)
	for l.allow(start, victim, r) {
	}
	through := 0
	for i := range 100_000 {
		at := start.Add(time.Duration(i) * 10 * time.Microsecond) // one second in all
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], uint32(i)<<8)
		l.allow(at, newRateKey(netip.AddrFrom4(a), classAnswer), r)
		if l.allow(at, victim, r) {
			through++
		}
	}
	if through > 110 {
		t.Errorf("%d got through in a second, want 100", through)
	}
}

func TestRateStrangersAreNotLimited(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	rapid.Check(t, func(t *rapid.T) {
		l, r := newRateLimiter(1<<12), perSecond(10)
		networks := rapid.SliceOfNDistinct(rapid.Uint32Range(0, 1<<24-1), 1, 200, rapid.ID).Draw(t, "networks")
		for _, n := range networks {
			var a [4]byte
			binary.BigEndian.PutUint32(a[:], n<<8)
			if !l.allow(start, newRateKey(netip.AddrFrom4(a), classAnswer), r) {
				t.Fatalf("the first query of %v is limited", netip.AddrFrom4(a))
			}
		}
	})
}

// TestRateFromAllSides has workers ask for one network at the same time.
func TestRateFromAllSides(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	l, r, key := newRateLimiter(64), perSecond(1000), newRateKey(netip.MustParseAddr("2001:db8::"), classError)
	var got atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5000 {
				if l.allow(start, key, r) {
					got.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if got.Load() != 2000 {
		t.Errorf("%d got through, want 2000", got.Load())
	}
}

func TestHints(t *testing.T) {
	for _, every := range []int{0, 1, 2, 5} {
		t.Run(fmt.Sprint(every), func(t *testing.T) {
			l, got, want := newRateLimiter(8), 0, 0
			for range 100 {
				if l.hint(rateKey{}, every) {
					got++
				}
			}
			if every > 0 {
				want = 100 / every
			}
			if got != want {
				t.Errorf("%d of 100, want %d", got, want)
			}
		})
	}
}

func BenchmarkRate(b *testing.B) {
	start := time.Now()
	l, r := newRateLimiter(1<<16), perSecond(1000)
	var a [4]byte
	i := uint32(0)
	b.ReportAllocs()
	for b.Loop() {
		i++
		binary.BigEndian.PutUint32(a[:], i*2654435761)
		l.allow(start, newRateKey(netip.AddrFrom4(a), classAnswer), r)
	}
}
