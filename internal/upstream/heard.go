package upstream

import (
	"errors"
	"sync/atomic"
	"time"

	"millrace/internal/failover"
	"millrace/internal/httpflv"
)

// heardLately is how long after a sign of life an upstream is taken to be well. It is
// below the time that a candidate has to show its stream, so that one which is frozen
// is found out by the first that waits for it.
const heardLately = time.Second

// heard is when an upstream gave a sign of life last, on whichever connection: a tag, an
// answer other than that it has a stream, or word that it looks for one. It is safe from
// any goroutine.
type heard struct{ at atomic.Int64 }

func (h *heard) now(now time.Time) { h.at.Store(now.UnixNano()) }

// lately reports whether that was not long ago.
func (h *heard) lately(now time.Time) bool { return now.UnixNano()-h.at.Load() < int64(heardLately) }

// heardFrom returns what is known of the upstream at url.
func (o *Origin) heardFrom(url string) *heard {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.heard[url]
	if h == nil {
		h = new(heard)
		o.heard[url] = h
	}
	return h
}

// blame notes that f failed, and returns how. An upstream that is late with this stream
// while it gives signs of life is well: who asks it for thousands of names that are
// nowhere must not take it from all others. mu is held.
func (x *Session) blame(now time.Time, f *feed, why failover.Failure) failover.Failure {
	if why == failover.Timeout && f != x.current && f.heard.lately(now) {
		why = failover.Unreached
	}
	if why == failover.OverBound {
		x.away.note(now, f.to.url, why)
		return why // it is well, and so is the stream
	}
	if gone(why) {
		x.o.links.note(f.to, func(y *tally) { y.failed++ })
	}
	x.failures = append(x.failures, why)
	if !x.away.note(now, f.to.url, why) {
		x.o.bad(now, f.to, why)
	}
	return why
}

// answers reports whether an upstream has said itself why it does not send a stream.
func answers(err error) bool {
	_, ok := errors.AsType[*httpflv.PullError](err)
	return ok
}
