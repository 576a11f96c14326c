package httpflv

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// loadEvery is how often the bytes sent are looked at.
	loadEvery = time.Second
	// loadSteps is over how many of these the load is averaged: keyframes and merging
	// make each second unlike the next, and who places viewers by the load wants to know
	// of a change within some seconds.
	loadSteps = 5
)

// meter makes a load of a count of bytes. It belongs to one goroutine, but for load.
type meter struct {
	samples []sample // the newest last, at most loadSteps+1

	load atomic.Uint64 // math.Float64bits of bytes/s
}

// sample is how many bytes there were at a moment.
type sample struct {
	at    time.Duration
	bytes uint64
}

func (m *meter) sample(at time.Duration, bytes uint64) {
	if len(m.samples) > loadSteps {
		m.samples = slices.Delete(m.samples, 0, 1)
	}
	m.samples = append(m.samples, sample{at, bytes})
	first := m.samples[0]
	if d := (at - first.at).Seconds(); d > 0 {
		m.load.Store(math.Float64bits(float64(bytes-first.bytes) / d))
	}
}

// measure keeps the load of f up to date until done is closed.
func (f *Fanout) measure(done <-chan struct{}) {
	tick := time.NewTicker(loadEvery)
	defer tick.Stop()
	for {
		f.meter.sample(time.Since(f.began), f.sent())
		select {
		case <-tick.C:
		case <-done:
			return
		}
	}
}

// Load returns how much goes to viewers and nodes, in bytes/s, averaged over some seconds.
func (f *Fanout) Load() float64 { return math.Float64frombits(f.meter.load.Load()) }

// sent returns how many bytes have gone to viewers and nodes, by whatever way.
func (f *Fanout) sent() uint64 {
	n := f.first[2].Load() + f.relayed.Load()
	for _, s := range f.shards {
		n += s.stats.bytes.Load()
	}
	return n
}

// crowded reports whether new viewers had better go elsewhere. That begins shortly
// before the limit: names that were resolved a minute ago still lead here, and who is
// offered at every free place flips between full and not.
func (f *Fanout) crowded() bool {
	limit := int64(f.config().MaxViewers)
	return f.admitted.Load() >= limit-limit/crowdedShare
}

// crowdedShare is which part of the places counts as none, 2 %.
const crowdedShare = 50
