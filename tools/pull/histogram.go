package pull

import (
	"math/bits"
	"time"
)

// Histogram counts durations in buckets of at most 1.6 % width, from 1 µs up.
type Histogram struct {
	buckets [64 * 30]uint64
	n       uint64
	max     time.Duration
}

// Add counts d; a negative one counts as zero.
func (h *Histogram) Add(d time.Duration) {
	h.n++
	h.max = max(h.max, d)
	h.buckets[bucket(d)]++
}

// Merge adds what other counted.
func (h *Histogram) Merge(other *Histogram) {
	for i, c := range other.buckets {
		h.buckets[i] += c
	}
	h.n += other.n
	h.max = max(h.max, other.max)
}

// bucket counts µs linearly up to 64, then 64 steps for every power of two.
func bucket(d time.Duration) int {
	us := uint64(max(d, 0) / time.Microsecond)
	if us < 64 {
		return int(us)
	}
	e := bits.Len64(us) - 7
	return min(64*(e+1)+int(us>>e)-64, 64*30-1)
}

// middle is the duration that stands for a bucket.
func middle(i int) time.Duration {
	if i < 64 {
		return time.Duration(i)*time.Microsecond + 500*time.Nanosecond
	}
	e := i/64 - 1
	return time.Duration(uint64(i%64+64)<<e+uint64(1)<<e/2) * time.Microsecond
}

// Quantile returns the duration that the share q of all does not pass; 0 without any.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.n))
	for i, c := range h.buckets {
		if c > rank {
			return min(middle(i), h.max)
		}
		rank -= c
	}
	return h.max
}

// Quantiles is what reports say of durations, in milliseconds.
type Quantiles struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

// Quantiles returns the summary.
func (h *Histogram) Quantiles() Quantiles {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return Quantiles{h.n, ms(h.Quantile(.5)), ms(h.Quantile(.9)), ms(h.Quantile(.99)), ms(h.max)}
}
