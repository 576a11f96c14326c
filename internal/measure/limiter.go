package measure

import (
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"millrace/internal/address"
)

const (
	// maxSources is how many source addresses are told apart. More share one allowance.
	maxSources = 4096
	// sweepEvery is how often sources are forgotten that have been quiet.
	sweepEvery = time.Second
)

// limiter says who may be answered. One goroutine uses it.
type limiter struct {
	perSource   int // packets a second
	all, others *rate.Limiter
	sources     map[netip.Addr]*rate.Limiter
	swept       time.Time
}

func newLimiter(perSource, total int) *limiter {
	return &limiter{
		perSource: perSource, all: allowance(total), others: allowance(perSource),
		sources: make(map[netip.Addr]*rate.Limiter),
	}
}

// allowance lets n packets a second be answered; a second's worth may be saved up.
func allowance(n int) *rate.Limiter { return rate.NewLimiter(rate.Limit(n), n) }

// take reports whether a packet from an address may be answered, and counts it.
func (l *limiter) take(now time.Time, from netip.Addr) bool {
	l.sweep(now)
	source := address.Source(from)
	a := l.sources[source]
	switch {
	case a == nil && len(l.sources) >= maxSources:
		a = l.others
	case a == nil:
		a = allowance(l.perSource)
		l.sources[source] = a
	}
	// The source first: what it has too much must not be taken from the others.
	return a.AllowN(now, 1) && l.all.AllowN(now, 1)
}

// sweep forgets sources whose allowance is whole again.
func (l *limiter) sweep(now time.Time) {
	if now.Sub(l.swept) < sweepEvery {
		return
	}
	l.swept = now
	for source, a := range l.sources {
		if a.TokensAt(now) >= float64(l.perSource) {
			delete(l.sources, source)
		}
	}
}
