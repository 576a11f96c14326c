// Package serve is what the HTTP servers of all programs have in common: how they end,
// what of the HTTP library is logged, and that the answer to a request that was not
// read to its end arrives.
//
// Who has a server says what is its own: handler, bounds, the words of its refusals. The
// package knows no path and no reason.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/listen"
)

const (
	// idleWorker is how long a goroutine of the HTTP library waits for a next connection.
	idleWorker = 2 * time.Second
	// unbounded leaves the number of connections to the listener.
	unbounded = 1 << 20
	// closeTime is how long requests may take to end at the end, unless the server says.
	closeTime = time.Second
)

// Server is an HTTP server that ends with a context.
type Server struct {
	http *fasthttp.Server
}

// Refuse answers a request that was not read to its end because of err. The status says
// the same for programs: the head is too large (431), the body is (413), it took too long
// (408), or it makes no sense (400).
type Refuse func(ctx *fasthttp.RequestCtx, status int, err error)

// New returns a Server of what is particular to it: its handler, its timeouts, how big
// heads (ReadBufferSize) and bodies may be, and how it refuses what is beyond. New takes
// srv over and sets the rest. It starts nothing.
func New(srv *fasthttp.Server, refuse Refuse, log *slog.Logger) *Server {
	srv.ErrorHandler = func(ctx *fasthttp.RequestCtx, err error) {
		refuse(ctx, status(err), err)
		listen.Linger(ctx.Conn()) // the peer may still be sending its request
	}
	srv.Concurrency = unbounded
	srv.MaxIdleWorkerDuration = idleWorker
	srv.CloseOnShutdown = true
	srv.NoDefaultServerHeader = true
	srv.SecureErrorLogMessage = true // there are tokens in requests
	srv.Logger = quiet{log}
	return &Server{http: srv}
}

// Run answers on ln, which it closes, until ctx ends or ln fails, and then until what is
// under way has ended. It returns nil when ctx ended it.
//
// end may be nil. It is called at the end, while requests are still answered: it lets
// those go that wait, and returns how long the others have. What is left after that is in
// the hands of the timeouts.
func (s *Server) Run(ctx context.Context, ln net.Listener, end func() time.Duration) error {
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(ln) }()
	var err error
	select {
	case failed := <-served:
		served <- nil
		if ctx.Err() == nil { // else it was closed because all ends
			err = fmt.Errorf("serve HTTP on %v: %w", ln.Addr(), cmp.Or(failed, net.ErrClosed))
		}
	case <-ctx.Done():
	}
	patience := closeTime
	if end != nil {
		patience = end()
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = s.http.ShutdownWithContext(closing)
	_ = ln.Close()
	<-served
	return err
}

// ServeConn answers on c, which came in another way than by a listener, and closes it.
func (s *Server) ServeConn(c net.Conn) error { return s.http.ServeConn(c) }

// status returns which HTTP status answers a request that was not read because of err.
func status(err error) int {
	var head *fasthttp.ErrSmallBuffer
	var late net.Error
	switch {
	case errors.As(err, &head):
		return fasthttp.StatusRequestHeaderFieldsTooLarge
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return fasthttp.StatusRequestEntityTooLarge
	case errors.As(err, &late) && late.Timeout():
		return fasthttp.StatusRequestTimeout
	}
	return fasthttp.StatusBadRequest
}

// quiet is the log of the HTTP library, which knows errors only that a peer can cause at
// will.
type quiet struct{ log *slog.Logger }

// Printf implements [fasthttp.Logger].
func (q quiet) Printf(format string, args ...any) {
	if q.log.Enabled(context.Background(), slog.LevelDebug) {
		q.log.Debug("http", "err", fmt.Sprintf(format, args...))
	}
}
