package measure

import (
	"net/netip"
	"time"
)

const (
	// maxSources is how many source addresses are told apart. More share one allowance.
	maxSources = 4096
	// sweepEvery is how often sources are forgotten that have been quiet.
	sweepEvery = time.Second
)

// limiter says who may be answered. One goroutine uses it.
type limiter struct {
	perSource, total float64 // packets a second
	all, others      allowance
	sources          map[netip.Addr]*allowance
	swept            time.Time
}

// allowance is what may still be answered now; a second's worth may be saved up.
type allowance struct {
	left float64
	at   time.Time
}

func newLimiter(perSource, total int) *limiter {
	return &limiter{perSource: float64(perSource), total: float64(total), sources: make(map[netip.Addr]*allowance)}
}

// take reports whether a packet from an address may be answered, and counts it.
func (l *limiter) take(now time.Time, from netip.Addr) bool {
	l.sweep(now)
	source := sourceOf(from)
	a := l.sources[source]
	switch {
	case a == nil && len(l.sources) >= maxSources:
		a = &l.others
	case a == nil:
		a = new(allowance)
		l.sources[source] = a
	}
	// The source first: what it has too much must not be taken from the others.
	return a.take(now, l.perSource) && l.all.take(now, l.total)
}

func (a *allowance) take(now time.Time, rate float64) bool {
	if a.at.IsZero() {
		a.left = rate
	} else {
		a.left = min(a.left+max(now.Sub(a.at), 0).Seconds()*rate, rate)
	}
	a.at = now
	if a.left < 1 {
		return false
	}
	a.left--
	return true
}

// sweep forgets sources whose allowance is whole again.
func (l *limiter) sweep(now time.Time) {
	if now.Sub(l.swept) < sweepEvery {
		return
	}
	l.swept = now
	for source, a := range l.sources {
		if now.Sub(a.at) >= time.Second {
			delete(l.sources, source)
		}
	}
}

// sourceOf returns what counts as one source: an IPv4 address, or the network of an IPv6
// address, of which one machine may have as many as it likes.
func sourceOf(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a
	}
	p, err := a.Prefix(64)
	if err != nil {
		return a
	}
	return p.Addr()
}
