package plan

import (
	"math"
	"testing"
	"time"
)

func almost(a, b float64) bool { return math.Abs(a-b) < 0.05 }

// TestCost adds up the formula of README.md, a part at a time.
func TestCost(t *testing.T) {
	f := func(b Breakdown, want float64) {
		t.Helper()
		if got := Cost(b); !almost(got, want) {
			t.Errorf("%+v: %v, want %v", b, got, want)
		}
	}
	f(Breakdown{Weight: 1}, 0)
	f(Breakdown{Delay: 7, Weight: 1}, 7)
	f(Breakdown{Delay: 7, Loss: 20, Stall: 10, FirstFrame: 5, Failure: 3, Weight: 1}, 45)
	f(Breakdown{Delay: 7, Money: 10, Load: 10, Tier: 30, Weight: 1}, 57)
	f(Breakdown{Delay: 7, Money: 10, Load: 10, Tier: 30, Behind: 11, Weight: 1}, 68)
	f(Breakdown{Delay: 20, Behind: 11, Weight: 2}, 21)   // what is behind has weights of its own
	f(Breakdown{Delay: 20, Behind: 11, Weight: 0.5}, 51) //
}

func TestLoadCost(t *testing.T) {
	c := DefaultCosts()
	f := func(use, want float64) {
		t.Helper()
		if got := c.loadCost(use); !almost(got, want) {
			t.Errorf("use of %v: %v, want %v", use, got, want)
		}
	}
	f(-1, 0)
	f(0, 0)
	f(0.2, 2.5)
	f(0.5, 10)
	f(0.9, 90)
	f(0.99, 990)
	f(1, 1990)
	f(2, 101_990) // of two that are over it the less loaded costs less
	for last, use := 0.0, 0.001; use < 3; use += 0.001 {
		v := c.loadCost(use)
		if v <= last {
			t.Fatalf("use of %v: %v, not more than %v", use, v, last)
		}
		last = v
	}
}

// feed gives l the same sample once a second and returns when it ended.
func feed(l *Link, at time.Time, seconds int, s Sample) time.Time {
	h := DefaultHalves()
	for range seconds {
		at = at.Add(time.Second)
		s.At = at
		l.Update(&s, &h)
	}
	return at
}

const ms = time.Millisecond

// TestLinkCost is what links cost that promise 10 ms and were measured for a minute.
func TestLinkCost(t *testing.T) {
	cfg := config()
	f := func(name string, s Sample, want Breakdown) {
		t.Helper()
		var l Link
		s.OK = s.OK || name != "failing"
		now := feed(&l, start, 60, s)
		want.Weight = 1
		_, got := l.Cost(now, 10, cfg)
		for _, p := range [...][2]float64{
			{got.Delay, want.Delay},
			{got.Loss, want.Loss},
			{got.Stall, want.Stall},
			{got.FirstFrame, want.FirstFrame},
			{got.Failure, want.Failure},
		} {
			if !almost(p[0], p[1]) {
				t.Errorf("%s: %+v, want %+v", name, got, want)
				break
			}
		}
	}
	// 60 samples count 0.94: of 60 with a half life of 2 minutes 51 are left.
	f("nothing measured", Sample{}, Breakdown{Delay: 10})
	f("as promised", Sample{RTT: 20 * ms}, Breakdown{Delay: 10})
	f("connect only", Sample{Connect: 40 * ms}, Breakdown{Delay: 19.4})
	f("round trip before connect", Sample{Connect: 400 * ms, RTT: 20 * ms}, Breakdown{Delay: 20})
	f("quicker", Sample{RTT: 4 * ms}, Breakdown{Delay: 2.4})
	f("media late, within reason", Sample{RTT: 20 * ms, Delay: 105 * ms}, Breakdown{Delay: 10})
	f("media late", Sample{RTT: 20 * ms, Delay: 210 * ms}, Breakdown{Delay: 104.4})
	f("media late on a long way", Sample{RTT: 400 * ms, Delay: 290 * ms}, Breakdown{Delay: 189.4})
	f("loss of probes", Sample{Loss: 0.01, Probes: 50}, Breakdown{Delay: 10, Loss: 13.3})
	f("retransmissions", Sample{Retransmits: 0.01, Pulled: true}, Breakdown{Delay: 10, Loss: 13.3})
	f("both: the worse", Sample{Loss: 0.001, Probes: 50, Retransmits: 0.01, Pulled: true}, Breakdown{Delay: 10, Loss: 13.3})
	f("no pull, no retransmissions", Sample{Retransmits: 0.01}, Breakdown{Delay: 10})
	f("stalls and switches", Sample{Stalls: 2, Switches: 1, Pulled: true}, Breakdown{Delay: 10, Stall: 23.6})
	f("first frame", Sample{FirstFrame: 500 * ms}, Breakdown{Delay: 10, FirstFrame: 18.9})
	f("first frame, good", Sample{FirstFrame: 200 * ms}, Breakdown{Delay: 10})
	f("failing", Sample{}, Breakdown{Delay: 10, Failure: 944.3})
}

// TestLinkInTime is how the cost of a link moves: what is worse is believed in seconds,
// what is better later, and what is old not at all.
func TestLinkInTime(t *testing.T) {
	cfg := config()
	var l Link
	cost := func(at time.Time) float64 { v, _ := l.Cost(at, 10, cfg); return v }
	want := func(what string, got, lo, hi float64) {
		t.Helper()
		if got < lo || got > hi {
			t.Errorf("%s: %.1f, want %v…%v", what, got, lo, hi)
		}
	}
	want("before all", cost(start), 10, 10)
	at := feed(&l, start, 1, Sample{OK: true, RTT: 220 * ms})
	want("one sample of 110 ms counts a quarter", cost(at), 34, 36)
	l = Link{}
	at = feed(&l, start, 120, Sample{OK: true, RTT: 20 * ms})
	at = feed(&l, at, 3, Sample{OK: true, RTT: 220 * ms})
	want("half of the way to worse in 3 s", cost(at), 55, 60)
	at = feed(&l, at, 7, Sample{OK: true, RTT: 220 * ms})
	want("most of it in 10 s", cost(at), 90, 100)
	healed := feed(&l, at, 15, Sample{OK: true, RTT: 20 * ms})
	want("half of the way back in 15 s", cost(healed), 50, 58)
	want("a minute without samples", cost(healed.Add(time.Minute)), 48, 55)
	want("half an hour", cost(healed.Add(30*time.Minute)), 10, 10.1)

	l = Link{}
	at = feed(&l, start, 60, Sample{OK: true, RTT: 20 * ms, Delay: 30 * ms, Pulled: true})
	at = feed(&l, at, 20, Sample{OK: true, RTT: 520 * ms, Delay: 280 * ms, Pulled: true})
	want("a way that became long", cost(at), 200, 270)
	at = feed(&l, at, 90, Sample{OK: true, RTT: 20 * ms})
	want("and is short again, unused", cost(at), 10, 20)

	l = Link{}
	at = feed(&l, start, 60, Sample{OK: true, RTT: 20 * ms, Probes: 5})
	at = feed(&l, at, 1, Sample{OK: true, RTT: 20 * ms, Probes: 5, Loss: 0.2})
	want("one lost probe of five", cost(at), 10, 10)
	at = feed(&l, at, 20, Sample{OK: true, RTT: 20 * ms, Probes: 20, Loss: 0.05})
	want("a twentieth of all lost, for 20 s", cost(at), 60, 110)
}

func TestConfigValidate(t *testing.T) {
	if err := config().Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Config){
		"gain_ms":     func(c *Config) { c.GainMS = -1 },
		"gain_share":  func(c *Config) { c.GainShare = math.NaN() },
		"max_use":     func(c *Config) { c.MaxUse = 0 },
		"pool":        func(c *Config) { c.Pool = 0 },
		"candidates":  func(c *Config) { c.Candidates = 0 },
		"hot":         func(c *Config) { c.Hot = 0 },
		"costs: load": func(c *Config) { c.Costs.Load = -1 },
		"half: worse": func(c *Config) { c.Half.Worse = 0 },
	} {
		c := config()
		spoil(c)
		if err := c.Validate(); err == nil || !contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
