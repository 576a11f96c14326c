// Package console is the operator's way to see and steer the network: an API, and the
// page that is built on it, on the HTTP port of a router.
//
// It must never be in the way of nodes: it reads models that others keep ready, and
// changes nothing but documents, through whoever checks and stores them. API.md says
// what each path takes and gives; testdata has an example of each answer.
//
// # Who may
//
// People log in with a name and a password and get a cookie; programs send a token. A
// role says what they may do. The cookie is signed and says all there is to know of a
// session, so that any router takes it and none keeps it; see ticket. Under the keys of
// the cluster it is good at all routers and outlives them; without such keys each run of
// each router makes up its own. What a cookie cannot do is to be taken back: log-outs
// are told to the other routers through the store, where they stay for as long as the
// session could have lasted. A router that cannot reach the store knows its own log-outs
// only; there the session ends by its times.
//
// # Forged requests
//
// The cookie is of SameSite=Strict and HttpOnly. Whatever may change something must
// besides come from this origin, as far as the browser tells, be of type
// application/json, and carry X-CSRF-Token, which only a page of this origin can read.
// Tokens are never sent by a browser of itself, so their requests are spared that.
//
// # Guessing
//
// Wrong passwords are counted by address and by name, and log-ins take turns at the
// slow hash. A name that does not exist takes as long as one that does. An address from
// which a user has logged in before is not kept out by what others try on the same name.
package console

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"millrace/internal/sched"
)

// Console answers pages and programs of operators. It does not listen: [Console.Handle]
// is called by whoever does. All methods may be called from any goroutine.
type Console struct {
	// Fixed at construction.
	program Program
	fleet   Fleet
	log     *slog.Logger
	own     [][]byte         // secrets, where the cluster has none
	files   map[string]*file // by path
	routes  []route
	trying  chan struct{} // capacity maxDryRunning, never closed: one place for each dry run
	reading chan struct{} // capacity maxChecking, never closed: likewise for each document that is checked or edited

	// Safe from any goroutine.
	settings atomic.Pointer[settings]
	logins   *logins
	gone     *gone
	live     *live
	counts   counts
	lines    lines

	ended chan struct{} // closed by Close
	close sync.Once
}

// Program is the router that the console is part of.
type Program struct {
	Router  string // its id
	Version string
	// Secrets returns what cookies are signed with, the first one, and may be signed with,
	// the others: auth.Cluster.Derive. None, or nil: those of this run of the program.
	Secrets func() [][]byte
	// Logouts is the store, which tells other routers who logged out; nil if there are none.
	Logouts Logouts
	// Explain answers how a client would be sent where: frontend.ExplainHandler. With nil
	// it is unavailable.
	Explain fasthttp.RequestHandler
	// Scheduler decides where clients are sent; nil if nothing does.
	Scheduler *sched.Scheduler
}

// New returns a Console for users of cfg.
func New(cfg Config, p Program, f Fleet, log *slog.Logger) (*Console, error) {
	if f == nil {
		return nil, errors.New("the console has nothing to show: give it a fleet")
	}
	c := &Console{
		program: p, fleet: f, log: log, own: [][]byte{newSecret()},
		logins: newLogins(), gone: newGone(), trying: make(chan struct{}, maxDryRunning), reading: make(chan struct{}, maxChecking), ended: make(chan struct{}),
	}
	if err := c.Reload(cfg); err != nil {
		return nil, err
	}
	var err error
	if c.files, err = embedded(); err != nil {
		return nil, err
	}
	c.live = newLive(c)
	c.routes = c.table()
	return c, nil
}

// Reload exchanges users, tokens and times. Sessions of users that are not there any
// more, or have another password, end; roles hold from the next request on. If cfg is
// not valid, the old one stays.
func (c *Console) Reload(cfg Config) error {
	s, err := newSettings(cfg)
	if err != nil {
		return err
	}
	c.settings.Store(s)
	return nil
}

// Run tells pages what is new, and reads who logged out elsewhere, until ctx ends; it
// then returns nil.
func (c *Console) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { c.live.run(ctx) })
	if c.program.Logouts != nil {
		wg.Go(func() { c.gone.follow(ctx, c.program.Logouts, c.log) })
	}
	wg.Wait()
	return nil
}

// Close ends what pages listen to. Requests are then refused.
func (c *Console) Close() error {
	c.close.Do(func() { close(c.ended) })
	return nil
}

func (c *Console) closed() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// Handle answers a request, and reports whether it is one of the console: all below
// /api/, and GET of any other path but those of nodes, below /v1/.
func (c *Console) Handle(ctx *fasthttp.RequestCtx) bool {
	path := string(ctx.Path())
	switch {
	case strings.HasPrefix(path, "/api/"):
		guardHeaders(ctx, apiPolicy)
		c.api(ctx, path)
	case strings.HasPrefix(path, "/v1/") || !ctx.IsGet() && !ctx.IsHead():
		return false
	default:
		guardHeaders(ctx, pagePolicy)
		c.file(ctx, path)
	}
	return true
}

// Policies of content. The page is all of one origin but for the frames of streams,
// which its player fetches from edges.
const (
	apiPolicy  = "default-src 'none'; frame-ancestors 'none'"
	pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; manifest-src 'self'; " +
		"connect-src 'self' http: https:; media-src 'self' blob:; worker-src 'self' blob:; " +
		"frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)

func guardHeaders(ctx *fasthttp.RequestCtx, policy string) {
	h := &ctx.Response.Header
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
