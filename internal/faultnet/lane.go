package faultnet

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const (
	// packet is the payload of a TCP segment on Ethernet: 1,500 bytes without the
	// headers of IPv4 and TCP, and with time stamps.
	packet = 1448
	// quantum is how much of a rate passes at once, in time.
	quantum = 10 * time.Millisecond
	// credit is how much a lane that was idle, or woken late, may catch up.
	credit = 20 * time.Millisecond
)

// lane is one direction of a link. Its link's mutex guards fault and free.
type lane struct {
	fault Fault
	free  time.Time // when the bytes sent so far have passed, at the rate of fault

	// Safe from any goroutine.
	bytes, lost, late, dropped atomic.Uint64
}

// set puts f in force. What is under way keeps its delay, but is not held by the
// old rate.
func (l *lane) set(f Fault) { l.fault, l.free = f, time.Time{} }

// part returns how many of n bytes are to be sent at once.
func (l *lane) part(n int) int {
	if l.fault.Rate == 0 {
		return n
	}
	return min(n, max(packet, int(float64(l.fault.Rate)*quantum.Seconds())))
}

// turn returns how long n bytes have to wait for those sent before them. When that
// is zero they are counted as sent.
func (l *lane) turn(now time.Time, n int) time.Duration {
	if l.fault.Rate == 0 {
		return 0
	}
	if wait := l.free.Sub(now); wait > 0 {
		return wait
	}
	if oldest := now.Add(-credit); l.free.Before(oldest) {
		l.free = oldest
	}
	l.free = l.free.Add(transmission(n, l.fault.Rate))
	return 0
}

// transmission is how long n bytes take at a rate.
func transmission(n int, rate int64) time.Duration {
	return time.Duration(float64(n) / float64(rate) * float64(time.Second))
}

func (l *lane) traffic() Traffic {
	return Traffic{Bytes: l.bytes.Load(), Lost: l.lost.Load(), Late: l.late.Load(), Dropped: l.dropped.Load()}
}

// course decides when the bytes of one direction of one connection arrive. It reads
// no clock and has two sources of randomness, so that how the bytes were cut up,
// which decides how often jitter is drawn, has no part in what is lost.
type course struct {
	losses, jitter *rand.Rand
	rest           int       // bytes of the packet that was drawn last and are still to come
	recovered      time.Time // when the newest lost packet arrives after all
	last           time.Time // when the newest bytes arrive
}

func newCourse(seed, stream uint64) course {
	return course{
		losses: rand.New(rand.NewPCG(seed, 2*stream)),
		jitter: rand.New(rand.NewPCG(seed, 2*stream+1)),
	}
}

// due returns when n bytes that set out now arrive, and how many packets were lost
// among them. Losses that are repaired at the same time cost one stall together.
func (c *course) due(now time.Time, n int, f Fault) (at time.Time, lost int) {
	at = now.Add(f.Delay + spread(c.jitter, f.Jitter))
	for ; n > c.rest; c.rest += packet {
		if f.Loss > 0 && c.losses.Float64() < f.Loss {
			lost++
		}
	}
	c.rest -= n
	if lost > 0 {
		stall := f.Stall
		if stall == 0 {
			stall = defaultStall
		}
		c.recovered = at.Add(stall)
	}
	for _, t := range []time.Time{c.recovered, c.last} {
		if at.Before(t) {
			at = t
		}
	}
	c.last = at
	return at, lost
}

// spread draws a time from 0 up to, and without, limit.
func spread(r *rand.Rand, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return time.Duration(r.Int64N(int64(limit)))
}

// bufferOf returns the buffer of f in bytes.
func bufferOf(f Fault) int {
	if f.Buffer == 0 {
		return defaultBuffer
	}
	return f.Buffer
}
