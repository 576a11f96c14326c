package faultnet

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var zero = time.Unix(1_700_000_000, 0)

func TestValidate(t *testing.T) {
	f := func(bad Fault, want string) {
		t.Helper()
		err := (Config{Down: bad}).Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), "down: "+want)) {
			t.Errorf("%+v: got %v, want %q", bad, err, want)
		}
	}
	f(Fault{}, "")
	f(Fault{Delay: time.Minute, Jitter: time.Second, Loss: 1, Reorder: 0.5, Rate: 1, Buffer: 1}, "")
	f(Fault{Delay: -1}, "delay is -1ns")
	f(Fault{Jitter: time.Hour}, "jitter is 1h0m0s")
	f(Fault{Stall: -time.Second}, "stall is -1s")
	f(Fault{Hold: 2 * time.Minute}, "hold is 2m0s")
	f(Fault{Loss: 1.5}, "loss is 1.5")
	f(Fault{Loss: math.NaN()}, "loss is NaN")
	f(Fault{Reorder: -0.1}, "reorder is -0.1")
	f(Fault{Rate: -1}, "rate is -1")
	f(Fault{Buffer: -1}, "buffer is -1")
}

func TestCourse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		f := Fault{
			Delay:  time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "delay")),
			Jitter: time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "jitter")),
			Loss:   rapid.Float64Range(0, 1).Draw(t, "loss"),
		}
		cuts := rapid.SliceOfN(rapid.IntRange(0, 4*packet), 1, 50).Draw(t, "cuts")
		c, now, total, lost := newCourse(seed, 7), zero, 0, 0
		var last time.Time
		for _, n := range cuts {
			at, k := c.due(now, n, f)
			total, lost = total+n, lost+k
			if at.Before(last) {
				t.Fatalf("%d bytes arrive %v before those sent earlier", n, last.Sub(at))
			}
			if early := now.Add(f.Delay); at.Before(early) {
				t.Fatalf("%d bytes arrive %v before the delay is over", n, early.Sub(at))
			}
			if k > 0 && at.Before(now.Add(f.Delay+defaultStall)) {
				t.Fatal("a lost packet cost less than a stall")
			}
			last, now = at, now.Add(time.Millisecond)
		}
		whole := newCourse(seed, 7)
		if _, k := whole.due(zero, total, f); k != lost {
			t.Fatalf("%d packets lost in one piece of %d bytes, %d when cut up", k, total, lost)
		}
	})
}

// TestStall: what comes behind a lost packet waits for it, and no longer.
func TestStall(t *testing.T) {
	c := newCourse(1, 1)
	f := func(ms, n int, fault Fault, want time.Duration) {
		t.Helper()
		now := zero.Add(time.Duration(ms) * time.Millisecond)
		at, _ := c.due(now, n, fault)
		if got := at.Sub(now); got != want {
			t.Errorf("%d bytes at %d ms take %v, want %v", n, ms, got, want)
		}
	}
	delay := Fault{Delay: 10 * time.Millisecond}
	loss := Fault{Delay: 10 * time.Millisecond, Loss: 1}
	f(0, packet, delay, 10*time.Millisecond)
	f(0, packet, loss, 210*time.Millisecond)
	f(100, packet, delay, 110*time.Millisecond)
	f(150, packet, loss, 210*time.Millisecond)
	f(400, packet, delay, 10*time.Millisecond)
	f(500, packet, Fault{Loss: 1, Stall: time.Second}, time.Second)
}

// TestLaneRate: however late the writer is woken, the rate is kept over time, and
// never exceeded by more than the credit and a piece.
func TestLaneRate(t *testing.T) {
	const pieces = 100
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(1000, 1<<30).Draw(t, "rate")
		l := lane{fault: Fault{Rate: rate}}
		now, sent, largest := zero, 0, 0
		for range pieces {
			n := l.part(rapid.IntRange(1, 1<<16).Draw(t, "n"))
			largest = max(largest, n)
			for wait := l.turn(now, n); wait > 0; wait = l.turn(now, n) {
				now = now.Add(wait + time.Duration(rapid.Int64Range(0, int64(10*time.Millisecond)).Draw(t, "late")))
			}
			sent += n
		}
		took := now.Sub(zero).Seconds()
		rounding := float64(rate) * pieces / 1e9 // each piece may be a nanosecond off
		most := float64(rate)*(took+credit.Seconds()) + float64(largest) + rounding
		least := float64(rate) * (took - credit.Seconds())
		if float64(sent) > most || float64(sent) < least {
			t.Fatalf("%d bytes in %.4f s at %d a second: want %.0f to %.0f", sent, took, rate, least, most)
		}
	})
}

func TestLaneWithoutRate(t *testing.T) {
	var l lane
	if n, wait := l.part(1<<20), l.turn(zero, 1<<20); n != 1<<20 || wait != 0 {
		t.Errorf("a megabyte goes as %d bytes after %v, want at once", n, wait)
	}
}
