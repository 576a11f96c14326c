package httpflv

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
	"millrace/internal/serve"
	"millrace/internal/session"
	"millrace/internal/stream"
	"millrace/internal/trunk"
)

// Bounds of a request. A URL with a signature is a few hundred bytes, and cookies
// of the site around it are all that makes it longer.
const (
	maxHeader = 8 << 10
	maxBody   = 64 << 10
	// writeTimeout is for ordinary answers. Streams have the stall timeout.
	writeTimeout = 10 * time.Second
	// closeTime is how long ordinary requests may take to end at the end.
	closeTime = time.Second
)

// Server is the HTTP face of one listener.
type Server struct {
	// Fixed at construction.
	ln    net.Listener
	fan   *Fanout
	hub   *stream.Hub
	gate  *auth.Gate
	table *session.Table
	pages fasthttp.RequestHandler
	self  Identity
	log   *slog.Logger
	http  *serve.Server

	// Safe from any goroutine.
	settings atomic.Pointer[settings]
	draining atomic.Bool
	refusals refusalLog
	told     figuresCache

	// Guarded by mu.
	mu      sync.Mutex
	stopped bool                      // no goroutines are started any more
	writers map[*writer]struct{}      // the viewers that are on no shard
	coaches map[*trunk.Session]*coach // of the trunks that nodes have to this one
	running sync.WaitGroup            // their goroutines; Run waits
}

// New returns a Server for ln that has fan send the streams of hub. pages gets the
// requests for all other paths and may be nil. New starts nothing.
func New(cfg Config, ln net.Listener, fan *Fanout, hub *stream.Hub, gate *auth.Gate, table *session.Table,
	self Identity, pages fasthttp.RequestHandler, log *slog.Logger,
) (*Server, error) {
	st, err := newSettings(cfg)
	if err != nil {
		return nil, err
	}
	s := &Server{
		ln: ln, fan: fan, hub: hub, gate: gate, table: table, self: self, pages: pages, log: log,
		writers: make(map[*writer]struct{}), coaches: make(map[*trunk.Session]*coach),
	}
	s.settings.Store(st)
	s.http = serve.New(&fasthttp.Server{
		Handler:              s.handle,
		ReadTimeout:          cfg.ReadTimeout,
		IdleTimeout:          cfg.IdleTimeout,
		WriteTimeout:         writeTimeout,
		ReadBufferSize:       maxHeader,
		MaxRequestBodySize:   maxBody,
		KeepHijackedConns:    true,
		NoDefaultContentType: true,
	}, s.unreadable, log)
	return s, nil
}

// Run serves until ctx ends or the listener fails. It then refuses what is new,
// closes the viewers that are on no shard as the [Fanout] closes its own, and
// returns: nil when ctx ended it.
func (s *Server) Run(ctx context.Context) error {
	telling, told := context.WithCancel(context.WithoutCancel(ctx))
	var report, writers sync.WaitGroup
	report.Go(func() { s.refusals.run(telling, s.log) })
	defer report.Wait()
	defer told()
	err := s.http.Run(ctx, s.ln, func() time.Duration {
		s.Drain()
		writers.Go(s.closeWriters)
		return closeTime
	})
	writers.Wait()
	return err
}

// Drain refuses viewers from now on. Those who are there stay.
func (s *Server) Drain() { s.draining.Store(true) }

// SetConfig changes what can be changed while running: all but the read and idle
// timeouts and the number of shards. If cfg is not valid, the old one stays.
func (s *Server) SetConfig(cfg Config) error {
	st, err := newSettings(cfg)
	if err != nil {
		return err
	}
	s.settings.Store(st)
	s.fan.SetConfig(cfg)
	return nil
}

// Stats returns the figures of the fan-out that the server uses.
func (s *Server) Stats() Stats { return s.fan.Stats() }

// handle answers one request, or has its connection taken over.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	st := s.settings.Load()
	path := decodedPath(ctx)
	switch path {
	case healthPath:
		s.answerHealth(ctx)
		return
	case probePath:
		s.answerProbe(ctx)
		return
	case trunkPath:
		s.takeTrunk(ctx, time.Now())
		return
	}
	if (s.self.NodesOnly || onTrunk(ctx.Conn()) != nil) && len(ctx.Request.Header.Peek(purposeField)) == 0 {
		s.refused(st.infoOf(ctx, time.Now()), notNode.reason, notNode.text)
		s.refuse(ctx, notNode, "")
		return
	}
	if path == reportPath && s.self.Quality != nil {
		s.takeReport(ctx)
		return
	}
	if !strings.HasSuffix(path, suffix) || strings.HasPrefix(path, "/"+stream.PageApp+"/") {
		if s.pages == nil {
			s.refuse(ctx, noPage, st.cors(string(ctx.Request.Header.Peek("Origin"))))
			return
		}
		s.pages(ctx)
		return
	}
	now := time.Now()
	p, r := st.parsePlay(ctx, path, now)
	switch {
	case ctx.IsOptions():
		preflight(ctx, p.cors, readOnly)
		return
	case !ctx.IsGet() && !ctx.IsHead():
		r = &notAllowed
	case r == nil && p.node != nil:
		if r = s.judge(&p, now); r != nil {
			break
		}
		fallthrough
	case r == nil:
		r = s.decide(ctx, &p, now)
	}
	switch {
	case r == nil && ctx.IsHead():
		answerHead(ctx, p)
	case r == nil:
		ctx.HijackSetNoResponse(true)
		ctx.Hijack(func(c net.Conn) { s.takeOver(p, c) })
	case r.delay > 0:
		s.refused(p.info, r.reason, r.text)
		ctx.HijackSetNoResponse(true)
		ctx.Hijack(func(c net.Conn) {
			s.fan.answerLater(underlying(c), r.append(nil, p.cors, time.Now()), r.delay)
		})
	default:
		s.refused(p.info, r.reason, r.text)
		s.refuse(ctx, *r, p.cors)
	}
}

// decide returns why a request that is well-formed is turned away, nil when it is
// not. It changes nothing: between it and the taking over the client may be gone.
func (s *Server) decide(ctx *fasthttp.RequestCtx, p *play, now time.Time) *refusal {
	if p.node == nil || !p.node.signed {
		grant, err := s.gate.Play(now, auth.Request{
			Stream: p.name, Peer: p.info.Peer.Addr(), Query: p.query, Referer: p.referer,
		})
		if err != nil {
			return denied(err)
		}
		p.expires = grant.Expires
	}
	if r := s.elsewhere(ctx, p, now); r != nil {
		return r
	}
	if s.draining.Load() {
		return &draining
	}
	if r := s.passedOn(p); r != nil {
		return r
	}
	if _, ok := s.hub.Lookup(p.name); !ok && (ctx.IsHead() || s.hope(p) == 0) {
		r := missing(p.name, s.hub.Outlook(p.name).Why)
		return &r
	}
	if s.fan.full() {
		return &overLimit
	}
	return nil
}

// denied makes an answer of what the gate says.
func denied(err error) *refusal {
	var d *auth.Denied
	if !errors.As(err, &d) {
		return &refusal{status: fasthttp.StatusInternalServerError, reason: session.Internal, text: "the request could not be judged: see the log of the node"}
	}
	r := &refusal{status: fasthttp.StatusForbidden, reason: d.Reason, text: d.Text, delay: d.Delay}
	switch d.Reason {
	case session.Unauthorized:
		// No WWW-Authenticate that asks for a password would be true: the signature
		// is in the URL.
		r.status, r.header = fasthttp.StatusUnauthorized, "WWW-Authenticate: Signed-URL\r\n"
	case session.Storm:
		r.status, r.header = fasthttp.StatusTooManyRequests, "Retry-After: 10\r\n"
	case session.Loop, session.TooManyHops:
		r.status = fasthttp.StatusLoopDetected
	}
	return r
}

// refuse answers through the HTTP library, which may go on with the connection.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, r refusal, cors string) {
	ctx.Response.Reset()
	ctx.SetStatusCode(r.status)
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.Response.Header.Set("Cache-Control", "no-store")
	setLines(ctx, r.header)
	if r.reason != session.None {
		ctx.Response.Header.Set(reasonField, r.reason.String())
	}
	setLines(ctx, cors)
	ctx.SetBodyString(r.text + "\n")
	if r.reason == session.Storm || r.reason == session.BadRequest {
		ctx.SetConnectionClose()
	}
}

// unreadable answers what was not read as a request to its end.
func (s *Server) unreadable(ctx *fasthttp.RequestCtx, status int, err error) {
	r := badRequest(unreadable(err))
	r.status = status
	switch status {
	case fasthttp.StatusRequestHeaderFieldsTooLarge:
		r.text = fmt.Sprintf("the request header is over %d bytes: send fewer cookies", maxHeader)
	case fasthttp.StatusRequestEntityTooLarge:
		r.text = fmt.Sprintf("the request body is over %d bytes: a stream is asked for without one", maxBody)
	case fasthttp.StatusRequestTimeout:
		r.text = "the request took too long: send it at once"
	}
	st := s.settings.Load()
	s.refused(st.infoOf(ctx, time.Now()), r.reason, r.text)
	s.refuse(ctx, r, st.cors(string(ctx.Request.Header.Peek("Origin"))))
}
