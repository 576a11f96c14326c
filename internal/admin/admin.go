// Package admin is the operator's view of a node, over HTTP: health, metrics, what
// is live, who is connected, ending one of them, and pprof.
//
//	GET    /healthz                   200 "ok", 503 "draining"; needs no token
//	GET    /metrics                   Prometheus text
//	GET    /v1/version                what runs here, since when
//	GET    /v1/streams                ?limit= &after=NAME
//	GET    /v1/streams/APP/NAME       one stream
//	POST   /v1/streams/APP/NAME/kick  ?who=publisher|viewers|all
//	GET    /v1/sessions               ?stream= &protocol= &action= &peer= &limit= &after=ID
//	GET    /v1/sessions/ID            one session
//	DELETE /v1/sessions/ID            ends it
//	GET    /debug/pprof/              profiles
//
// Answers of /v1 are JSON, errors too: {"error": "sentence", "reason": "word"}.
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
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"millrace/internal/session"
	"millrace/internal/stream"
)

// Config says who may ask and how much is told.
type Config struct {
	// Token is what requests must carry as "Authorization: Bearer TOKEN". Without
	// one the admin address must be a loopback address.
	Token string
	// MetricStreams is how many streams, those with the most viewers, have metrics
	// of their own. Each costs a handful of series in Prometheus.
	MetricStreams int
}

// DefaultConfig is for a loopback address.
func DefaultConfig() Config { return Config{MetricStreams: 100} }

// The bounds of a token. Sixteen characters cannot be guessed over a network.
const minToken, maxToken = 16, 256

// Validate checks every value. Its errors name the key and the accepted range,
// and never the token.
func (c Config) Validate() error {
	var errs []error
	if n := len(c.Token); n != 0 && (n < minToken || n > maxToken || !printable(c.Token)) {
		errs = append(errs, fmt.Errorf("token must be %d to %d printable ASCII characters without spaces, or empty", minToken, maxToken))
	}
	if c.MetricStreams < 0 || c.MetricStreams > 10_000 {
		errs = append(errs, fmt.Errorf("metric_streams is %d: use 0 to 10000", c.MetricStreams))
	}
	return errors.Join(errs...)
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Node is what the operator looks at.
type Node struct {
	Hub      *stream.Hub
	Table    *session.Table
	Role     string
	Version  string
	Revision string // of the source, "" when unknown
	Started  time.Time
	// Draining reports whether the node is on its way out.
	Draining func() bool
	// Figures are further metrics, read at each scrape; called from many goroutines.
	Figures func() []Figure
}

// Server answers operators on one listener.
type Server struct {
	// Fixed at construction.
	ln      net.Listener
	node    Node
	log     *slog.Logger
	local   bool // the listener is on a loopback address
	metrics fasthttp.RequestHandler

	// Safe from any goroutine.
	cfg atomic.Pointer[Config]
}

// New returns a Server that will answer on ln. It starts nothing.
func New(cfg Config, ln net.Listener, node Node, log *slog.Logger) (*Server, error) {
	s := &Server{ln: ln, node: node, log: log, local: isLoopback(ln.Addr())}
	if err := s.SetConfig(cfg); err != nil {
		return nil, err
	}
	s.metrics = s.metricsHandler()
	return s, nil
}

// SetConfig puts cfg in force, from the next request on. After an error the old
// one stays.
func (s *Server) SetConfig(cfg Config) error {
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
	maxConnections = 256
	maxRequest     = 16 << 10
	requestTimeout = 10 * time.Second
	idleTimeout    = time.Minute
	endTimeout     = time.Second // for answers in progress at the end
)

// Run answers until ctx ends or the listener fails, and closes the listener. It
// returns nil if ctx ended it.
func (s *Server) Run(ctx context.Context) error {
	srv := &fasthttp.Server{
		Handler:               s.handle,
		Name:                  "millrace",
		Concurrency:           maxConnections,
		ReadTimeout:           requestTimeout,
		WriteTimeout:          requestTimeout,
		IdleTimeout:           idleTimeout,
		ReadBufferSize:        maxRequest,
		MaxRequestBodySize:    maxRequest,
		CloseOnShutdown:       true,
		NoDefaultServerHeader: true,
		Logger:                quiet{},
	}
	var group errgroup.Group
	ctx, cancel := context.WithCancel(ctx)
	group.Go(func() error {
		defer cancel()
		if err := srv.Serve(s.ln); err != nil && ctx.Err() == nil {
			return fmt.Errorf("serve admin on %v: %w", s.ln.Addr(), err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		end, stop := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer stop()
		if err := srv.ShutdownWithContext(end); err != nil {
			s.log.Debug("admin ended with answers in progress", "err", err)
		}
		return nil
	})
	return group.Wait()
}

// quiet drops what fasthttp logs of single connections: resets and timeouts.
type quiet struct{}

func (quiet) Printf(string, ...any) {}
