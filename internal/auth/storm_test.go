package auth

import (
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/internal/session"
)

func keyed(c *Config) { c.PublishKeys = map[string][]string{"live": {"livekey1"}} }

// refuse lets the gate refuse a publisher and returns how.
func refuse(t testing.TB, g *Gate, now time.Time, addr string) *Denied {
	t.Helper()
	_, err := g.Publish(now, Request{Stream: "live/room", Query: "key=wrongkey", Peer: netip.MustParseAddr(addr)})
	d, ok := errors.AsType[*Denied](err)
	if !ok {
		t.Fatalf("error %v, want a *Denied", err)
	}
	return d
}

func TestStormDelays(t *testing.T) {
	g := newGate(t, keyed)
	now := t0
	var got []time.Duration
	for range 10 { // one after the other: each waits its delay and comes again at once
		d := refuse(t, g, now, "192.0.2.7")
		if d.Reason != session.Unauthorized {
			t.Fatalf("reason %v, want unauthorized", d.Reason)
		}
		got = append(got, d.Delay/time.Millisecond)
		now = now.Add(d.Delay)
	}
	want := []time.Duration{0, 0, 0, 250, 500, 1000, 2000, 4000, 4000, 4000}
	if !slices.Equal(got, want) {
		t.Errorf("delays %v ms, want %v", got, want)
	}
	if d := refuse(t, g, now, "192.0.2.8"); d.Delay != 0 {
		t.Errorf("a neighbour is delayed by %v", d.Delay)
	}
	if _, err := g.Publish(now, Request{Stream: "live/room", Query: "key=livekey1", Peer: netip.MustParseAddr("192.0.2.7")}); err != nil {
		t.Errorf("a right key from the slowed address: %v", err)
	}
	if d := refuse(t, g, now.Add(59*time.Second), "192.0.2.7"); d.Delay != 4*time.Second {
		t.Errorf("after 59 s of calm: delay %v, want 4s", d.Delay)
	}
	if d := refuse(t, g, now.Add(123*time.Second), "192.0.2.7"); d.Delay != 0 {
		t.Errorf("after a minute of calm: delay %v, want none", d.Delay)
	}
}

func TestStormHeldAreBounded(t *testing.T) {
	g := newGate(t, keyed)
	var waiting, stormy int
	for range 1000 { // at one moment, in parallel
		switch d := refuse(t, g, t0, "192.0.2.7"); {
		case d.Delay > 0:
			waiting++
		case d.Reason == session.Storm:
			stormy++
		}
	}
	if waiting != 8 || stormy != 1000-3-8 {
		t.Errorf("%d held and %d turned away, want 8 and 989", waiting, stormy)
	}
	if d := refuse(t, g, t0.Add(5*time.Second), "192.0.2.7"); d.Reason != session.Unauthorized || d.Delay != 4*time.Second {
		t.Errorf("when all were told: %v after %v, want unauthorized after 4s", d.Reason, d.Delay)
	}
}

func TestStormTableIsBounded(t *testing.T) {
	g := newGate(t, func(c *Config) { keyed(c); c.Storm.Addresses = 100; c.Storm.Free = 0 })
	addr := func(i int) string { return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).String() }
	for i := range 5000 {
		refuse(t, g, t0, addr(i))
		refuse(t, g, t0, "192.0.2.7") // seen all the time, so never the one that is forgotten
	}
	if n := g.storm.order.Len(); n != 100 || len(g.storm.entries) != 100 {
		t.Errorf("%d entries, %d in the map, want 100", n, len(g.storm.entries))
	}
	if d := refuse(t, g, t0, "192.0.2.7"); d.Reason != session.Storm {
		t.Errorf("the busiest address was forgotten: %v", d.Reason)
	}
	refuse(t, g, t0.Add(2*time.Minute), "192.0.2.9")
	if n := g.storm.order.Len(); n != 1 {
		t.Errorf("%d entries after two calm minutes, want 1", n)
	}
	// A smaller table after a reload takes effect with the next new address.
	small := DefaultConfig()
	keyed(&small)
	small.Storm.Addresses = 1
	if err := g.Reload(small); err != nil {
		t.Fatal(err)
	}
	refuse(t, g, t0.Add(2*time.Minute), "192.0.2.10")
	if n := g.storm.order.Len(); n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
}

// Whatever comes, and even if the clock goes back: the table and the held refusals
// stay bounded, delays stay within limits, and a right key is not delayed.
func TestStormProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
		keyed(&cfg)
		cfg.Storm = StormConfig{
			Free:       rapid.IntRange(0, 5).Draw(t, "free"),
			FirstDelay: time.Duration(rapid.Int64Range(0, int64(10*time.Second)).Draw(t, "first")),
			MaxDelay:   30 * time.Second,
			Calm:       time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Hour)).Draw(t, "calm")),
			Held:       rapid.IntRange(1, 10).Draw(t, "held"),
			Addresses:  rapid.IntRange(1, 10).Draw(t, "addresses"),
		}
		g, err := NewGate(cfg)
		if err != nil {
			t.Fatal(err)
		}
		now := t0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(-int64(time.Minute), int64(2*time.Minute)).Draw(t, "step")))
			r := Request{Stream: "live/room", Peer: netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(0, 20).Draw(t, "peer"))})}
			if rapid.Bool().Draw(t, "right") {
				r.Query = "key=livekey1"
			}
			_, err := g.Publish(now, r)
			if r.Query != "" {
				if err != nil {
					t.Fatalf("right key: %v", err)
				}
				continue
			}
			d, ok := errors.AsType[*Denied](err)
			if !ok || d.Delay < 0 || d.Delay > cfg.Storm.MaxDelay || d.Reason == session.Storm && d.Delay != 0 {
				t.Fatalf("refusal %+v", err)
			}
			if n := g.storm.order.Len(); n > cfg.Storm.Addresses || n != len(g.storm.entries) {
				t.Fatalf("%d entries in order, %d in the map, limit %d", n, len(g.storm.entries), cfg.Storm.Addresses)
			}
			for e := g.storm.order.Front(); e != nil; e = e.Next() {
				if n := len(e.Value.(*offender).held); n > cfg.Storm.Held {
					t.Fatalf("%d held, limit %d", n, cfg.Storm.Held)
				}
			}
		}
	})
}

func TestReloadRace(t *testing.T) {
	g := newGate(t, keyed)
	closed, open := DefaultConfig(), DefaultConfig()
	keyed(&closed)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 500 {
				r := Request{Stream: "live/room", Query: "key=livekey1", Peer: netip.AddrFrom4([4]byte{10, 0, byte(i), byte(n)})}
				if _, err := g.Publish(t0, r); err != nil {
					t.Errorf("valid under both configurations: %v", err)
				}
				r.Query = ""
				if _, err := g.Publish(t0, r); err != nil {
					reason(t, err)
				}
				g.Open()
			}
		})
	}
	for n := range 500 {
		cfg := closed
		if n%2 == 0 {
			cfg = open
		}
		if err := g.Reload(cfg); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}
