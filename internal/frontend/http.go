package frontend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/auth"
)

// The paths besides those of streams.
const (
	pathResolve = "/v1/resolve"
	pathPlain   = "/d"
	pathExplain = "/v1/explain"
)

// Bounds of the server.
const (
	// maxHead is for the request line and the header fields. A URL with a signature is
	// a few hundred bytes, and cookies of the site around it are all that makes it longer.
	maxHead      = 8 << 10
	writeTimeout = 10 * time.Second
	// idleWorker is how long a goroutine of the HTTP library waits for a next connection.
	idleWorker = 2 * time.Second
	// closeTime is how long requests may take to end at the end.
	closeTime = time.Second
)

// HTTP answers players and apps on one listener: with redirects, with addresses, and
// operators with explanations.
type HTTP struct {
	// Fixed at construction.
	ln         net.Listener
	decider    Decider
	cluster    *auth.Cluster
	redirector *Redirector
	log        *slog.Logger
	http       *fasthttp.Server

	// Safe from any goroutine.
	settings atomic.Pointer[httpSettings]
	limit    *rateLimiter
	stats    *httpStats
}

// NewHTTP returns an HTTP that will answer on ln, which may speak TLS. Redirects are
// signed with the key of cluster. It starts nothing.
func NewHTTP(cfg HTTPConfig, d Decider, cluster *auth.Cluster, ln net.Listener, log *slog.Logger) (*HTTP, error) {
	set, err := newHTTPSettings(cfg)
	if err != nil {
		return nil, err
	}
	h := &HTTP{
		ln: ln, decider: d, cluster: cluster, redirector: NewRedirector(cluster), log: log,
		limit: newRateLimiter(askers), stats: newHTTPStats(),
	}
	h.settings.Store(set)
	h.http = &fasthttp.Server{
		Handler:               h.handle,
		ErrorHandler:          h.unreadable,
		ReadTimeout:           cfg.ReadTimeout,
		IdleTimeout:           cfg.IdleTimeout,
		WriteTimeout:          writeTimeout,
		ReadBufferSize:        maxHead,
		MaxRequestBodySize:    maxQuestions,
		MaxIdleWorkerDuration: idleWorker,
		Concurrency:           1 << 20, // the listener bounds connections
		CloseOnShutdown:       true,
		NoDefaultServerHeader: true,
		NoDefaultContentType:  true,
		Logger:                quiet{log},
	}
	return h, nil
}

// quiet is the log of the HTTP library, which knows errors only that a peer can cause
// at will.
type quiet struct{ log *slog.Logger }

// Printf implements [fasthttp.Logger].
func (q quiet) Printf(format string, args ...any) {
	q.log.Debug("http", "err", fmt.Sprintf(format, args...))
}

// Run answers until ctx ends or the listener fails. It returns nil when ctx ended it.
func (h *HTTP) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- h.http.Serve(h.ln) }()
	telling, told := context.WithCancel(context.WithoutCancel(ctx))
	var report sync.WaitGroup
	report.Go(func() { h.stats.run(telling, h.log) })
	defer report.Wait()
	defer told()

	var err error
	select {
	case err = <-served:
		served <- nil
		if err == nil {
			err = errors.New("closed")
		}
		err = fmt.Errorf("serve HTTP on %v: %w", h.ln.Addr(), err)
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = h.http.ShutdownWithContext(closing) // what is left is in ReadTimeout's hands
	_ = h.ln.Close()
	<-served
	return err
}

// SetConfig changes all but the read and idle timeouts, from the next request on. If
// cfg is not valid, the old one stays.
func (h *HTTP) SetConfig(cfg HTTPConfig) error {
	set, err := newHTTPSettings(cfg)
	if err == nil {
		h.settings.Store(set)
	}
	return err
}

// handle answers one request.
func (h *HTTP) handle(ctx *fasthttp.RequestCtx) {
	set, now := h.settings.Load(), time.Now()
	path, query := target(ctx)
	reads := ctx.IsGet() || ctx.IsHead()
	switch {
	case isStream(path):
		switch {
		case reads:
			h.redirect(ctx, set, now, path, query)
		case ctx.IsOptions():
			set.preflight(ctx, notAllowed.value)
		default:
			h.refuse(ctx, set, faceRedirect, notAllowed)
		}
	case string(path) == pathResolve:
		switch {
		case reads || ctx.IsPost():
			h.resolve(ctx, set, now, path, query)
		case ctx.IsOptions():
			set.preflight(ctx, notAllowedBatch.value)
		default:
			h.refuse(ctx, set, faceResolve, notAllowedBatch)
		}
	case string(path) == pathPlain:
		switch {
		case reads:
			h.plain(ctx, set, now, path, query)
		case ctx.IsOptions():
			set.preflight(ctx, notAllowed.value)
		default:
			h.refuse(ctx, set, facePlain, notAllowed)
		}
	case string(path) == pathExplain:
		if r := set.mayExplain(ctx); r != nil {
			h.refuse(ctx, set, faceExplain, r)
			return
		}
		explain(ctx, h.decider, set, now)
	case isOtherStream(path):
		h.refuse(ctx, set, faceRedirect, otherFormat)
	default:
		h.refuse(ctx, set, faceNone, noPage)
	}
}

// unreadable answers what the HTTP library could not read.
func (h *HTTP) unreadable(ctx *fasthttp.RequestCtx, err error) {
	r := badRequest(fmt.Sprintf("the request could not be read (%s): ask for GET /APP/NAME.flv", withoutRequest(err)))
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.As(err, &small):
		r.status = fasthttp.StatusRequestHeaderFieldsTooLarge
		r.text = fmt.Sprintf("the request line and the header are over %d bytes together", maxHead)
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		r.status = fasthttp.StatusRequestEntityTooLarge
		r.text = fmt.Sprintf("the body is over %d bytes: ask in parts", maxQuestions)
	}
	h.refuse(ctx, h.settings.Load(), faceNone, r)
	ctx.SetConnectionClose()
}

// withoutRequest is what the HTTP library says of a request that it could not read, less
// the request that it quotes: there are tokens in it, and the text goes into the log.
func withoutRequest(err error) string {
	text, _, _ := strings.Cut(err.Error(), ": buffer size=")
	text, _, _ = strings.Cut(text, `"`)
	return strings.TrimSpace(text)
}
