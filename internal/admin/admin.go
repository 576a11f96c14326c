// Package admin is the operator's view of a program, over HTTP: health, metrics,
// version, pprof, and what the program shows of itself through its [API].
//
//	GET    /healthz                   200 "ok", 503 "draining"; needs no token
//	GET    /metrics                   Prometheus text
//	GET    /v1/version                what runs here, since when
//	GET    /debug/pprof/              profiles
//
// A node has besides what is live, who is connected, and ending one of them:
//
//	GET    /v1/streams                ?limit= &after=NAME
//	GET    /v1/streams/APP/NAME       one stream
//	GET    /v1/streams/APP/NAME/path  how it comes here, hop by hop
//	POST   /v1/streams/APP/NAME/kick  ?who=publisher|viewers|all
//	GET    /v1/sessions               ?stream= &protocol= &action= &peer= &limit= &after=ID
//	GET    /v1/sessions/ID            one session
//	DELETE /v1/sessions/ID            ends it
//	GET    /v1/events                 why streams came from where: ?stream= &kind= &limit=
//	GET    /v1/members                the other nodes of the datacenter
//	GET    /v1/router                 how it works with its routers
//
// A scheduler has how it decides and by what:
//
//	GET    /v1/explain                ?domain= &ip= &stream= &isp= &region= &net= &n= &format=text
//	GET    /v1/nodes                  ?region= &datacenter= &why= &limit= &after=ID
//	GET    /v1/nodes/ID               one node
//	GET    /v1/status                 what it works from, and how old that is
//
// A router has what it knows of the network; its console steers it:
//
//	GET    /v1/status                 the router, the others of its store, plan and snapshot
//	GET    /v1/network                nodes, links in use, datacenters
//	GET    /v1/nodes/ID               one node, and why its pool is as it is
//	GET    /v1/link                   ?from= &to=
//	GET    /v1/plan                   the pools of all nodes
//	GET    /v1/path                   ?node= &stream=
//	GET    /v1/streams                ?q= &limit=
//	GET    /v1/streams/APP/NAME       who pulls it from whom
//	GET    /v1/events                 ?kind= &node= &stream= &reason= &after= &limit=
//	GET    /v1/explain                as a scheduler has it
//
// Answers of /v1 are JSON, errors too: {"error": "sentence", "reason": "word"}.
// A kick is not a ban: who was ended may come back at once, and encoders do.
// Lists are cut at limit (100, at most 1,000); next is what to pass as after.
//
// # Access
//
// Off this machine a bearer token is a must: [New] refuses such a listener without
// one. With a token every path but /healthz wants it. Without, only requests whose
// Host is this machine are answered, so that a web page cannot reach the API under
// a name of its own that resolves to 127.0.0.1. What changes something, and pprof,
// is never taken from a page of another site.
//
// All figures are read from the live objects when they are asked for; nothing is
// counted twice, so that metrics and lists cannot disagree. The package changes
// nothing on its own and keeps no state but its registry.
package admin

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/serve"
)

// Config says who may ask.
type Config struct {
	// Token is what requests must carry as "Authorization: Bearer TOKEN". Without
	// one the admin address must be a loopback address.
	Token string
}

// DefaultConfig is for a loopback address.
func DefaultConfig() Config { return Config{} }

// The bounds of a token. Sixteen characters cannot be guessed over a network.
const minToken, maxToken = 16, 256

// Validate checks the token. Its error never shows it.
func (c Config) Validate() error {
	if n := len(c.Token); n != 0 && (n < minToken || n > maxToken || !printable(c.Token)) {
		return fmt.Errorf("token must be %d to %d printable ASCII characters without spaces, or empty", minToken, maxToken)
	}
	return nil
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Program is what the operator looks at.
type Program struct {
	Kind     string // node, scheduler or router: what its metrics begin with
	ID       string
	Role     string
	Version  string
	Revision string // of the source, "" when unknown
	Started  time.Time
	// Draining reports whether the program is on its way out.
	Draining func() bool
	// API is what the program shows besides.
	API API
	// Figures are further metrics, read at each scrape; called from many goroutines.
	Figures func() []Figure
}

// API is what one kind of program shows. It is used from many goroutines.
type API interface {
	// Overview lists its paths with a line for each, as / shows them.
	Overview() string
	// Route answers a request for a path of its own, and reports whether it was one.
	Route(ctx *fasthttp.RequestCtx, path string) bool
	// Figures are read at each scrape.
	Figures(*Figures)
}

// Server answers operators on one listener.
type Server struct {
	// Fixed at construction.
	ln      net.Listener
	program Program
	log     *slog.Logger
	local   bool // the listener is on a loopback address
	metrics fasthttp.RequestHandler

	// Safe from any goroutine.
	cfg atomic.Pointer[Config]
}

// New returns a Server that will answer on ln. It starts nothing.
func New(cfg Config, ln net.Listener, program Program, log *slog.Logger) (*Server, error) {
	s := &Server{ln: ln, program: program, log: log, local: isLoopback(ln.Addr())}
	if err := s.SetConfig(cfg); err != nil {
		return nil, err
	}
	s.metrics = s.metricsHandler()
	return s, nil
}

// SetConfig puts cfg in force, from the next request on. After an error the old
// one stays. A nil Server takes everything.
func (s *Server) SetConfig(cfg Config) error {
	if s == nil {
		return nil
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	if !s.local && cfg.Token == "" {
		return fmt.Errorf("token is empty: %v can be reached from other machines; set a token or listen on 127.0.0.1", s.ln.Addr())
	}
	s.cfg.Store(&cfg)
	return nil
}

func isLoopback(a net.Addr) bool {
	ap, err := netip.ParseAddrPort(a.String())
	return err == nil && ap.Addr().Unmap().IsLoopback()
}

// Limits of the HTTP side: an operator, a scraper and a few scripts.
const (
	maxRequest     = 16 << 10
	requestTimeout = 10 * time.Second
	idleTimeout    = time.Minute
)

// Run answers until ctx ends, closes the listener and returns nil. When the listener
// fails it says so and waits: nobody is sent away because operators cannot look any more.
func (s *Server) Run(ctx context.Context) error {
	if err := s.serve(ctx); err != nil {
		s.log.Error("the "+s.program.Kind+" goes on without its admin port", "err", err)
		<-ctx.Done()
	}
	return nil
}

// serve answers until ctx ends or the listener fails.
func (s *Server) serve(ctx context.Context) error {
	return serve.New(&fasthttp.Server{
		Handler:            s.handle,
		Name:               "millrace",
		ReadTimeout:        requestTimeout,
		WriteTimeout:       requestTimeout,
		IdleTimeout:        idleTimeout,
		ReadBufferSize:     maxRequest,
		MaxRequestBodySize: maxRequest,
	}, refuseUnread, s.log).Run(ctx, s.ln, nil)
}

// refuseUnread answers what was not read as a request to its end.
func refuseUnread(ctx *fasthttp.RequestCtx, status int, _ error) {
	text := "this is no HTTP request that makes sense"
	switch status {
	case fasthttp.StatusRequestEntityTooLarge, fasthttp.StatusRequestHeaderFieldsTooLarge:
		text = fmt.Sprintf("neither the head of a request nor its body may have more than %d bytes", maxRequest)
	case fasthttp.StatusRequestTimeout:
		text = fmt.Sprintf("the request took more than %v to come", requestTimeout)
	}
	fail(ctx, status, "bad_request", text)
}
