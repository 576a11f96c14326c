package rtmp

import (
	"context"
	"net/netip"
	"time"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// PublishRequest is what is known of a publisher that wants to feed a stream.
type PublishRequest struct {
	Stream  stream.Name
	Query   string // raw, of the app and the stream key
	Peer    netip.Addr
	Session *session.Session // its record, open already
}

// Inlet decides who may feed a stream, and takes what comes. An error is told to the
// publisher: of package stream, an [*auth.Denied], or the [*StatusError] of another
// server that has the last word. Open may block until ctx ends.
type Inlet interface {
	Open(ctx context.Context, r PublishRequest) (Feed, error)
}

// Feed is the right to feed a stream. One goroutine writes and closes.
type Feed interface {
	// Write is as of a [stream.Publisher].
	Write(now time.Time, t flv.Tag) error
	// Close gives the stream up for the reason r.
	Close(now time.Time, r session.Reason)
	// Done is closed when the feed has lost the stream; Reason says why.
	Done() <-chan struct{}
	Reason() session.Reason
	// AwaitsPicture is as of a [stream.Stream].
	AwaitsPicture() bool
}

// local is the inlet of a server alone: whom the gate lets in may feed the hub.
type local struct {
	hub  *stream.Hub
	gate *auth.Gate
}

func (l local) Open(_ context.Context, r PublishRequest) (Feed, error) {
	now := time.Now()
	grant, err := l.gate.Publish(now, auth.Request{Stream: r.Stream, Peer: r.Peer, Query: r.Query})
	if err != nil {
		return nil, err
	}
	pub, err := l.hub.Publish(now, r.Stream, grant.Owner, r.Session)
	if err != nil {
		return nil, err
	}
	return localFeed{pub}, nil
}

type localFeed struct{ *stream.Publisher }

func (f localFeed) Close(now time.Time, _ session.Reason) { f.Publisher.Close(now) }
