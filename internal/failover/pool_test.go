package failover

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPoolOrder(t *testing.T) {
	p := NewPool([]string{"a", "b", "c", "a"}, nil)
	next := func(ms int, want string, busy ...string) {
		t.Helper()
		got, ok := p.Next(at(ms), func(u string) bool {
			for _, b := range busy {
				if u == b {
					return true
				}
			}
			return false
		})
		if got != want || ok != (want != "") {
			t.Errorf("at %d ms: %q %v, want %q", ms, got, ok, want)
		}
	}
	next(0, "a")
	next(0, "b", "a")
	next(0, "", "a", "b", "c")
	p.Good(at(0), "b")
	next(0, "b")
	next(0, "a", "b")
	p.Failed(at(0), "b", Lost)
	next(499, "a")
	next(500, "b") // the last good one comes first again
	p.Failed(at(500), "b", Refused)
	next(1499, "a")
	next(1500, "b")
	p.Failed(at(1500), "a", Worse)
	next(1500, "b")
	next(3500, "c", "b") // one that was not found worse goes first
	next(3500, "a", "b", "c")
	p.Set([]string{"c", "a", "d"}) // what is known of a stays
	next(3500, "a", "c", "d")
	next(3499, "", "c", "d")
	p.Failed(at(3499), "c", Lost) // nothing is worse than nothing
	next(3499, "a", "d")
	p.Failed(at(3499), "nobody", Lost)

	p = NewPool([]string{"a", "b", "c"}, nil)
	p.Good(at(0), "b")
	p.Set([]string{"a", "b"})
	next(0, "b")
	p.Set([]string{"c", "b", "a"}) // another one is the best: it is asked first
	next(0, "c")
}

func TestPoolPauses(t *testing.T) {
	f := func(kind Failure, want ...time.Duration) {
		t.Helper()
		p, now := NewPool([]string{"a"}, nil), at(0)
		for i, w := range want {
			p.Failed(now, "a", kind)
			if got := p.Soonest(now).Sub(now); got != w {
				t.Errorf("%v, time %d: %v, want %v", kind, i+1, got, w)
			}
			if p.Left(now, nil) != 0 || p.Left(now.Add(w), nil) != 1 {
				t.Errorf("%v, time %d: left alone for another time than %v", kind, i+1, w)
			}
			now = now.Add(w)
		}
		p.Good(now, "a")
		p.Failed(now, "a", kind)
		if got := p.Soonest(now).Sub(now); got != want[0] {
			t.Errorf("%v: %v after it was good, want %v", kind, got, want[0])
		}
	}
	const s, half = time.Second, time.Second / 2
	f(NotFound, s, s, s, s)
	f(Ended, s, s)
	f(Loop, 5*s, 5*s)
	f(Worse, 2*s, 2*s)
	for _, kind := range []Failure{Refused, Lost, Timeout} {
		f(kind, half, s, 2*s, 4*s, 5*s, 5*s)
	}
	if p := NewPool(nil, nil); !p.Soonest(at(0)).IsZero() {
		t.Error("an empty pool never has one")
	}
	if p := NewPool([]string{"a"}, nil); !p.Soonest(at(0)).Equal(at(0)) {
		t.Error("a fresh one may be dialled now")
	}
}

// TestPoolJitter: pauses are spread, but are never more than a quarter shorter.
func TestPoolJitter(t *testing.T) {
	seen := map[time.Time]bool{}
	for seed := range 50 {
		p := NewPool([]string{"a"}, seeded(seed))
		now := at(0)
		for range 20 {
			now = p.Soonest(now)
			p.Failed(now, "a", Lost)
			p.Failed(now, "a", Lost) // another session, at the same time
		}
		until := p.Soonest(now)
		if d := until.Sub(now); d > maxPause || d < maxPause*3/4 {
			t.Errorf("seed %d: %v", seed, d)
		}
		seen[until] = true
	}
	if len(seen) < 40 {
		t.Errorf("%d different pauses of 50", len(seen))
	}
}

// TestPoolNeverForgets: whatever happens, every upstream is offered again in time.
func TestPoolNeverForgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		urls := []string{"a", "b", "c"}
		p, now := NewPool(urls, nil), 0
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			now += rapid.IntRange(0, 5000).Draw(t, "pause")
			url := rapid.SampledFrom(urls).Draw(t, "url")
			switch kind := Failure(rapid.IntRange(0, int(failures)).Draw(t, "kind")); kind {
			case failures:
				p.Good(at(now), url)
			default:
				p.Failed(at(now), url, kind)
			}
			if s := p.Soonest(at(now)); s.Before(at(now)) || s.After(at(now).Add(maxPause)) {
				t.Fatalf("soonest is %v, now %v", s, at(now))
			}
			if url, ok := p.Next(at(now), nil); ok != (p.Left(at(now), nil) > 0) || ok && url == "" {
				t.Fatalf("next is %q %v, %d are left", url, ok, p.Left(at(now), nil))
			}
		}
		if n := p.Left(at(now).Add(maxPause), nil); n != len(urls) {
			t.Fatalf("%d are offered in the end", n)
		}
	})
}
