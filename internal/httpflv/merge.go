package httpflv

import (
	"math"
	"time"
)

// The cost of serving a viewer is nearly all in the number of writes, so tags are
// held back and merged. A viewer is flushed
//
//   - when a beat arrives and it is the viewer's turn. A beat is a video frame, or
//     an audio frame when there is no video. A frame thus leaves in the instant in
//     which it arrives, not at the next tick of some clock beside it, and the audio
//     before it rides along;
//   - when it lacks something, and had all there was long enough ago.
//
// With an interval of k beats each viewer has every k-th beat as its turn, and the
// phases of viewers are spread so that each beat flushes about one in k of them:
//
//	beats    │     │     │     │     │     │      k = 3
//	viewer a ▼─────┴─────┴─────▼─────┴─────┴──    phase in [0, 1/3)
//	viewer b ──────▼─────┴─────┴─────▼─────┴──    phase in [1/3, 2/3)

// pace is when the viewers of one feed are flushed. It is a value without a clock:
// times are since some fixed instant.
type pace struct {
	period time.Duration // smoothed time between beats, 0 until two were seen
	last   time.Duration // when the last beat arrived
	beats  uint64        // how many there were
	fresh  uint64        // how many of them arrived since the last pass
	every  uint64        // k: a viewer's turn is one beat in so many
	hold   time.Duration // how long after its last flush a viewer waits for its turn
}

// longestBeat is the longest time between beats that says something about their
// rhythm; after a longer one the stream has paused.
const longestBeat = time.Second

// arrive notes that n beats arrived by now.
func (p *pace) arrive(now time.Duration, n uint64) {
	p.fresh = n
	if n == 0 {
		return
	}
	if gap := now - p.last; p.beats > 0 && gap < longestBeat*time.Duration(n) {
		gap /= time.Duration(n)
		if p.period == 0 {
			p.period = gap
		} else {
			p.period += (gap - p.period) / 16
		}
	}
	p.last = now
	p.beats += n
}

// plan fits the rhythm to the interval.
func (p *pace) plan(interval time.Duration) {
	p.every, p.hold = 1, interval
	if p.period <= 0 {
		return
	}
	// A quarter of a beat is allowed on top, because arrival is never regular.
	p.every = max(1, uint64((interval+p.period/4)/p.period))
	// Waiting a little longer for the beat that is due saves a write of its own.
	p.hold += min(p.period, interval) / 2
}

// spans reports whether the interval is as long as a beat: then a viewer that is served with
// one beat is not served again before the next.
func (p *pace) spans(interval time.Duration) bool { return p.period > 0 && interval >= p.period }

// turn reports whether one of the fresh beats is the turn of a viewer with the
// given phase, a fraction of 2^32.
func (p *pace) turn(phase uint32) bool {
	if p.fresh == 0 {
		return false
	}
	slot := uint64(phase) * p.every >> 32
	since := (p.beats%p.every + p.every - slot) % p.every // beats after its last turn
	return since < p.fresh
}

// phaseOf spreads viewers: the fractions of multiples of the golden ratio are even
// for any number of them, in the order in which they come.
func phaseOf(n uint32) uint32 { return n * 0x9e3779b9 }

// load sets the interval of a shard by what it costs to serve all of its viewers
// once: the round. With an interval of i a tag waits i/2 on average, and the shard
// works round/i of its time. Of all intervals
//
//	i = sqrt(price × round)
//
// makes the sum of both least when price/2 of delay is worth as much as the whole of
// a core. A lone viewer is served at once; a thousand wait, and cost half.
type load struct {
	interval time.Duration
	round    time.Duration // smoothed; 0 until something was served
	busy     float64       // smoothed share of the time that the shard works
}

const (
	// price comes from the curve in bench/results/fanout-curve.txt: with it 1,000 viewers
	// of 2 Mbit/s have a median delay of 75 ms, where the curve becomes flat, and 100
	// streams with 5 viewers each 41 ms (fanout-streams.txt). At 4 s those had 66 ms, and
	// cost the same: by then most of it is what the publishers send.
	price = 3 * time.Second
	// busyMost is the share of its time that a shard should work at most; the rest is
	// for publishers, new viewers, and moments with more to do.
	busyMost = 0.6
	// loadWindow is how often the interval is reconsidered.
	loadWindow = 200 * time.Millisecond
)

// step takes in a window: that the shard worked for worked out of elapsed to serve
// viewers served times, and how many it has.
func (l *load) step(worked, elapsed time.Duration, served uint64, viewers int, lo, hi time.Duration) {
	if elapsed > 0 {
		l.busy += (float64(worked)/float64(elapsed) - l.busy) / 2
	}
	if served > 0 {
		round := time.Duration(float64(worked) / float64(served) * float64(viewers))
		if l.round == 0 {
			l.round = round
		}
		l.round += (round - l.round) / 2
	}
	least := time.Duration(float64(l.round) / busyMost)
	best := time.Duration(math.Sqrt(float64(price) * float64(l.round)))
	l.interval = min(max(least, best, lo), hi)
}

// quantum is how long a shard leaves its feeds alone after a pass when passes follow
// one another closely: many streams must not cost a wake-up for each of their
// tags. It is small beside the interval, so it hardly shows in the delay.
func quantum(interval time.Duration) time.Duration {
	return min(max(interval/16, time.Millisecond), 8*time.Millisecond)
}
