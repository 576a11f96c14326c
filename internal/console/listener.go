package console

import (
	"bytes"
	"net"
	"strconv"
	"time"
)

// listener is a page. It is sent frames by run and writes them in a goroutine of its own.
type listener struct {
	frames  chan *frame   // capacity maxBehind, never closed
	slow    chan struct{} // closed by run when frames is full
	packed  bool
	who     *caller
	head    []byte
	after   uint64 // the last event that the page has, if resumed
	resumed bool
	fresh   bool // run has not told it anything yet
}

// leaving says why a listener went.
type leaving uint8

const (
	leftLost    leaving = iota // the connection broke
	leftSlow                   // it did not take what it was sent
	leftRenew                  // it is to come again
	leftEnded                  // its session is over
	leftClosing                // the router shuts down
	leavings
)

// String returns the word of l.
func (l leaving) String() string {
	return [leavings]string{"lost", "slow", "renew", "ended", "closing"}[l]
}

// get answers GET /api/live: it takes the connection over.
func (l *live) get(a *call) (any, error) {
	li, err := l.listen(a)
	if err != nil {
		return nil, err
	}
	a.HijackSetNoResponse(true)
	a.Hijack(func(conn net.Conn) { l.attend(conn, li) })
	return nil, nil
}

// listen makes a listener of who asks, and the head of the answer.
func (l *live) listen(a *call) (*listener, error) {
	li := &listener{
		frames: make(chan *frame, maxBehind), slow: make(chan struct{}), who: a.caller, fresh: true,
		packed: a.Request.Header.HasAcceptEncoding("gzip"),
	}
	if id := string(a.Request.Header.Peek("Last-Event-ID")); id != "" {
		n, err := strconv.ParseUint(id, 10, 64)
		if err != nil {
			return nil, refuse(BadRequest, "Last-Event-ID is %.40q: it is the id that came with events", id)
		}
		li.after, li.resumed = n, true
	}
	if !l.join(li) {
		return nil, tooMany("too many pages follow live", liveBeat)
	}
	h := &a.Response.Header
	a.SetContentType("text/event-stream")
	h.Set("X-Accel-Buffering", "no") // for proxies
	h.Set("Vary", "Accept-Encoding")
	if li.packed {
		h.Set("Content-Encoding", "gzip")
	}
	h.SetContentLength(-2) // it ends with the connection
	h.SetConnectionClose()
	li.head = append(bytes.Clone(h.Header()), l.opening(li.packed)...)
	return li, nil
}

// attend serves a listener on its connection, and closes that.
func (l *live) attend(conn net.Conn, li *listener) {
	why := l.serve(conn, li)
	_ = conn.Close() // nothing is lost: who listens comes again
	l.leave(li, why)
}

// serve writes what a listener is sent, until it goes, and returns why.
func (l *live) serve(conn net.Conn, li *listener) leaving {
	write := func(b []byte) bool {
		_ = conn.SetWriteDeadline(time.Now().Add(liveWrite)) // a broken connection shows at the write
		_, err := conn.Write(b)
		return err == nil
	}
	if !write(li.head) {
		return leftLost
	}
	over := time.NewTimer(min(liveFor, l.console.settings.Load().cfg.Idle/2))
	defer over.Stop()
	beat := time.NewTimer(liveBeat)
	defer beat.Stop()
	for {
		f := &comment
		select {
		case <-l.console.ended:
			return leftClosing
		case <-over.C:
			return leftRenew
		case <-li.slow:
			return leftSlow
		case <-beat.C:
		case f = <-li.frames:
		}
		if l.console.settings.Load() != li.who.under {
			return leftRenew // who may has changed: it is asked again
		}
		if li.who.ticket != nil && l.console.still(li.who.ticket, time.Now()) != nil {
			return leftEnded
		}
		begun := time.Now()
		if !write(f.in(li.packed)) {
			if time.Since(begun) >= liveWrite {
				return leftSlow
			}
			return leftLost
		}
		beat.Reset(liveBeat)
	}
}
