package frontend

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/auth"
	"millrace/internal/serve"
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
	http       *serve.Server

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
	h.http = serve.New(&fasthttp.Server{
		Handler:              h.handle,
		ReadTimeout:          cfg.ReadTimeout,
		IdleTimeout:          cfg.IdleTimeout,
		WriteTimeout:         writeTimeout,
		ReadBufferSize:       maxHead,
		MaxRequestBodySize:   maxQuestions,
		NoDefaultContentType: true,
	}, h.unreadable, log)
	return h, nil
}

// Run answers until ctx ends or the listener fails. It returns nil when ctx ended it.
func (h *HTTP) Run(ctx context.Context) error {
	telling, told := context.WithCancel(context.WithoutCancel(ctx))
	var report sync.WaitGroup
	report.Go(func() { h.stats.run(telling, h.log) })
	defer report.Wait()
	defer told()
	return h.http.Run(ctx, h.ln, nil)
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

// unreadable answers what was not read as a request to its end.
func (h *HTTP) unreadable(ctx *fasthttp.RequestCtx, status int, err error) {
	r := badRequest(fmt.Sprintf("the request could not be read (%s): ask for GET /APP/NAME.flv", withoutRequest(err)))
	r.status = status
	switch status {
	case fasthttp.StatusRequestHeaderFieldsTooLarge:
		r.text = fmt.Sprintf("the request line and the header are over %d bytes together", maxHead)
	case fasthttp.StatusRequestEntityTooLarge:
		r.text = fmt.Sprintf("the body is over %d bytes: ask in parts", maxQuestions)
	case fasthttp.StatusRequestTimeout:
		r.text = "the request took too long: send it at once"
	}
	h.refuse(ctx, h.settings.Load(), faceNone, r)
}

// withoutRequest is what the HTTP library says of a request that it could not read, less
// the request that it quotes: there are tokens in it, and the text goes into the log.
func withoutRequest(err error) string {
	text, _, _ := strings.Cut(err.Error(), ": buffer size=")
	text, _, _ = strings.Cut(text, `"`)
	return strings.TrimSpace(text)
}
