package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"millrace/internal/auth"
	"millrace/internal/failover"
	"millrace/internal/flv"
	"millrace/internal/httpflv"
	"millrace/internal/rtmp"
	"millrace/internal/session"
)

// target is where a stream may come from.
type target struct {
	url    string // without APP/NAME
	node   string // its id, as far as it is known before it has answered
	member bool   // of the datacenter, and the owner of the stream or its runner-up
}

// String names it in events: by its id, or else by its URL.
func (t target) String() string {
	if t.node != "" {
		return t.node
	}
	return t.url
}

func (t target) peer() bool { return t.member }

// http reports whether it is asked over HTTP, and so may be a node.
func (t target) http() bool { return strings.HasPrefix(t.url, "http") }

// feedState is where a feed is in its life.
type feedState uint8

const (
	dialing feedState = iota
	open              // the upstream has answered that it has the stream
	over
)

// feed is one connection to an upstream, current or beside it.
type feed struct {
	// Fixed at construction.
	s       *Session
	id      int
	to      target
	purpose auth.Purpose
	behalf  []string // the nodes that asked this one for the stream, if it is on their behalf
	back    time.Duration
	began   time.Time
	move    bool // to where the stream belongs: it need not be better, only as good
	cancel  context.CancelFunc
	heard   *heard // of to.url

	// Guarded by s.mu.
	state   feedState
	since   time.Time // when it became the current one
	health  *failover.Health
	trial   *failover.Trial // nil for the current feed; health is its
	link    httpflv.Link    // newest; the zero value from a foreign server
	linked  bool
	waited  bool     // the upstream has told that it looks for the stream, or waits for it
	via     []string // through whom the upstream looks for the stream, while dialing
	hop     hopDelay
	tags    uint64
	bytes   uint64
	gone    bool // the publisher of the stream has gone, and was told so
	tcp     net.Conn
	onTrunk bool    // tcp carries other streams too
	begun   bool    // a frame came
	still   bool    // nothing comes
	counted counted // what is in the figures of the link already
}

// conn is a connection on which an upstream sends a stream. Read's tags are the
// caller's.
type conn interface {
	Read() (flv.Tag, error)
	Close() error
}

// run dials and reads until ctx ends or the connection does.
func (f *feed) run(ctx context.Context) {
	c, err := f.s.o.dial(ctx, f)
	if err != nil {
		f.over(ctx, err)
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	f.s.opened(f)
	for err == nil {
		var t flv.Tag
		if t, err = c.Read(); err == nil {
			err = f.s.took(f, t)
		}
	}
	stop()
	_ = c.Close()
	f.over(ctx, err)
}

// over tells the session, unless it is the session that ended the feed.
func (f *feed) over(ctx context.Context, err error) {
	if ctx.Err() == nil {
		f.s.ended(f, err)
	}
}

// errOver is what a feed ends with that the session has given up.
var errOver = errors.New("given up")

// on reports whether a feed is known to be on the clock with the given name.
func (f *feed) on(clock string) bool { return clock != "" && f.linked && f.link.Clock == clock }

// hopDelay estimates what a step adds to the delay, without trusting that two clocks
// agree: half a round trip, and what a tag takes longer than the quickest one.
type hopDelay struct {
	trip  time.Duration // of the handshake
	least time.Duration // smallest difference of the clocks
	mean  time.Duration // smoothed
	begun bool
}

// came takes in that what was sent at the time sent of the other clock is here now.
func (h *hopDelay) came(now, sent time.Time) {
	d := now.Sub(sent)
	if !h.begun || d < h.least {
		h.least = d
	}
	at := h.trip/2 + d - h.least
	if !h.begun {
		h.mean, h.begun = at, true
	}
	h.mean += (at - h.mean) / 4
}

// failureOf says what the end of a feed means for its upstream.
func failureOf(err error) failover.Failure {
	var refused *httpflv.PullError
	var status *rtmp.StatusError
	var netErr net.Error
	switch {
	case errors.Is(err, errLoop):
		return failover.Loop
	case errors.Is(err, errOlder):
		return failover.Worse
	case errors.Is(err, io.EOF):
		return failover.Ended
	case errors.As(err, &refused):
		switch {
		case refused.Reason == session.Loop.String(), refused.Reason == session.TooManyHops.String():
			return failover.Loop
		case refused.Status == http.StatusNotFound:
			return failover.NotFound
		case refused.Reason == session.UpstreamLost.String(), refused.Reason == session.NoKeyframe.String():
			return failover.Unreached
		case refused.Reason == session.OverBound.String():
			return failover.OverBound
		}
		return failover.Refused
	case errors.As(err, &status):
		if status.Code == "NetStream.Play.StreamNotFound" {
			return failover.NotFound
		}
		return failover.Refused
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return failover.Timeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return failover.Refused
	}
	return failover.Lost
}
