package upstream

import (
	"time"

	"millrace/internal/failover"
)

// How long a session leaves an upstream alone that does not have its stream, or not
// better. All are short: it may get the stream at any time, and a circle may open.
const (
	absentPause = time.Second
	circlePause = 2 * time.Second
	worsePause  = 2 * time.Second
)

// away are the upstreams that a session leaves alone for a reason that concerns its
// stream only: they do not have it or do not get at it, would have it from this node, or
// had it no better. For any other stream they may be as good as ever, so the pool, which
// all sessions share, must not know: otherwise whoever asks for a name that is nowhere
// keeps the others from theirs.
type away map[string]time.Time

// note takes in how an upstream failed and reports whether that concerns the stream
// alone.
func (a away) note(now time.Time, url string, f failover.Failure) bool {
	switch f {
	case failover.NotFound, failover.Ended, failover.Unreached, failover.OverBound:
		a[url] = now.Add(absentPause)
	case failover.Loop:
		a[url] = now.Add(circlePause)
	case failover.Worse:
		a[url] = now.Add(worsePause)
	default:
		return false
	}
	return true
}

// changed forgets it all: the current upstream is lost, and with it the stream may be
// elsewhere now.
func (a away) changed() { clear(a) }

// is reports whether url is to be left alone now.
func (a away) is(now time.Time, url string) bool { return now.Before(a[url]) }
