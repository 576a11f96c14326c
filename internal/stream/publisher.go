package stream

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"millrace/internal/flv"
	"millrace/internal/session"
)

// Errors of publishing and attaching.
var (
	// ErrBusy: another owner publishes the stream.
	ErrBusy = errors.New("the stream is being published by somebody else")
	// ErrOlder: the stream has, or had until just now, a newer publish. It is an ErrBusy.
	ErrOlder = fmt.Errorf("a newer publish has been here: %w", ErrBusy)
	// ErrDisplaced: the same owner publishes the stream on another connection.
	ErrDisplaced = errors.New("displaced by a newer publish of the same owner")
	// ErrClosed: the publisher was closed.
	ErrClosed = errors.New("the publish is over")
	// ErrTooManyStreams: the hub has as many streams as it may.
	ErrTooManyStreams = errors.New("this node has as many streams as it may")
	// ErrTooManyWaited: the readers of the hub wait for as many streams as they may.
	ErrTooManyWaited = errors.New("the viewers of this node wait for as many streams as they may")
	// ErrDraining: the hub takes no new publishers.
	ErrDraining = errors.New("this node is shutting down")
)

// Publisher is the right to feed a stream. One goroutine writes; Close, Done and
// Reason may be called from any.
type Publisher struct {
	// Fixed at construction.
	s       *Stream
	by      *session.Session
	resumed bool
	done    chan struct{}

	// Safe from any goroutine. Changed once, before done is closed.
	reason atomic.Uint32
	last   atomic.Uint64 // 1 more than the sequence number behind its last tag; 0 while it has the slot
}

// Stream returns the stream that p feeds, or fed.
func (p *Publisher) Stream() *Stream { return p.s }

// Write puts t into the stream and wakes its readers; it never waits for them.
// t.DTS is the time as the publisher sent it, in 32 bits. Write keeps t.Wire and
// changes the time in its header; after that the bytes are immutable. The error is
// ErrDisplaced or ErrClosed when p has lost the stream. Tags that nobody could use
// (no payload, a picture before the first keyframe) are counted and left out.
func (p *Publisher) Write(now time.Time, t flv.Tag) error {
	if err := p.s.publish(now, p, t); err != nil {
		return err
	}
	p.s.wake()
	return nil
}

// AwaitsPicture is as of the stream.
func (p *Publisher) AwaitsPicture() bool { return p.s.AwaitsPicture() }

// Close gives the stream up and starts its grace time; a log that nobody reads is
// cleared at once. It may be called again and does nothing for one that has lost the
// stream already.
func (p *Publisher) Close(now time.Time) {
	if p.s.unpublish(now, p) {
		p.lose(session.Unpublished)
		p.s.wake()
	}
}

// End gives the stream up without a grace time, because whoever fed p has waited
// for it already. Its readers find their cursors ended when they have read the rest.
func (p *Publisher) End(now time.Time) {
	if p.s.unpublish(now, p) {
		p.lose(session.StreamEnded)
		p.s.end(now)
		p.s.wake()
	}
}

// Resumed reports whether p goes on with the publish that the stream had before, see
// [Hub.Continue].
func (p *Publisher) Resumed() bool { return p.resumed }

// Pause tells that the publish that p brings has stopped at its origin, and may go on:
// readers that join get nothing from before.
func (p *Publisher) Pause() { p.s.pause(p) }

// Renew tells that what p writes from now on is of another publish at the origin:
// readers that join get nothing from before, and the headers are new. The clock
// goes on. epoch is when that publish began, in Unix milliseconds.
func (p *Publisher) Renew(epoch int64) { p.s.renew(p, epoch) }

// SetEpoch says when the publish that p brings began at the origin, in Unix
// milliseconds.
func (p *Publisher) SetEpoch(epoch int64) { p.s.setEpoch(p, epoch) }

// SetClock names the clock of what p writes. It is called before the first Write, and
// before the first one on another clock. A stream that has a clock of its own, because
// it was published before, maps p's to that: then it gets the name mapped instead.
func (p *Publisher) SetClock(name, mapped string) { p.s.setClock(p, name, mapped) }

// Done is closed when p has lost the stream; Reason says why.
func (p *Publisher) Done() <-chan struct{} { return p.done }

// Reason returns why p lost the stream: None as long as it has it, Displaced,
// Unpublished after Close, StreamEnded after End.
func (p *Publisher) Reason() session.Reason { return session.Reason(p.reason.Load()) }

// limit returns the sequence number of the first tag that is not p's.
func (p *Publisher) limit() uint64 {
	if p == nil {
		return math.MaxUint64
	}
	return p.last.Load() - 1 // the highest number of all for 0
}

// lose is called once, by whoever took the slot from p.
func (p *Publisher) lose(r session.Reason) {
	p.reason.Store(uint32(r))
	close(p.done)
}

func (p *Publisher) lost() error {
	if p.Reason() == session.Displaced {
		return ErrDisplaced
	}
	return ErrClosed
}
