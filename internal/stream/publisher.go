package stream

import (
	"errors"
	"sync/atomic"
	"time"

	"millrace/internal/flv"
	"millrace/internal/session"
)

// Errors of publishing.
var (
	// ErrBusy: another owner publishes the stream.
	ErrBusy = errors.New("the stream is being published by somebody else")
	// ErrDisplaced: the same owner publishes the stream on another connection.
	ErrDisplaced = errors.New("displaced by a newer publish of the same owner")
	// ErrClosed: the publisher was closed.
	ErrClosed = errors.New("the publish is over")
	// ErrTooManyStreams: the hub has as many streams as it may.
	ErrTooManyStreams = errors.New("this node has as many streams as it may")
	// ErrDraining: the hub takes no new publishers.
	ErrDraining = errors.New("this node is shutting down")
)

// Publisher is the right to feed a stream. One goroutine writes; Close, Done and
// Reason may be called from any.
type Publisher struct {
	// Fixed at construction.
	s     *Stream
	by    *session.Session
	epoch uint64
	done  chan struct{}

	// Safe from any goroutine. Changed once, before done is closed.
	reason atomic.Uint32
}

// Stream returns the stream that p feeds, or fed.
func (p *Publisher) Stream() *Stream { return p.s }

// Epoch returns the number of this publish among those of the stream.
func (p *Publisher) Epoch() uint64 { return p.epoch }

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

// Close gives the stream up and starts its grace time. It may be called again and
// does nothing for one that has lost the stream already.
func (p *Publisher) Close(now time.Time) {
	if p.s.unpublish(now, p) {
		p.lose(session.Unpublished)
		p.s.wake()
	}
}

// Done is closed when p has lost the stream; Reason says why.
func (p *Publisher) Done() <-chan struct{} { return p.done }

// Reason returns why p lost the stream: None as long as it has it, Displaced, or
// Unpublished after Close.
func (p *Publisher) Reason() session.Reason { return session.Reason(p.reason.Load()) }

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
