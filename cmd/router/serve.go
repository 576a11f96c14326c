package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/control"
)

// Bounds of requests.
const (
	maxHead = 16 << 10
	maxBody = control.MaxHeartbeat
	// requestTimeout is how long a whole request may take.
	requestTimeout = 10 * time.Second
	// idleTimeout is how long a connection may be silent between two requests: nodes
	// speak each second, and pages when somebody clicks.
	idleTimeout = 2 * time.Minute
)

// buildServers opens the listeners of nodes and operators and puts a server on each.
func (r *router) buildServers() error {
	for _, l := range []struct{ scheme, addr string }{{"http", r.cfg.Address.HTTP}, {"https", r.cfg.Address.HTTPS}} {
		if l.addr == "" {
			continue
		}
		ln, err := r.doors.Open(l.scheme, l.addr)
		if err != nil {
			return err
		}
		r.parts.Add(l.scheme, stageServers, func(ctx context.Context) error { return r.serve(ctx, ln) })
	}
	return nil
}

// serve answers nodes, schedulers and operators until ctx ends; what is under way then
// has until the deadline of the drain.
func (r *router) serve(ctx context.Context, ln net.Listener) error {
	srv := &fasthttp.Server{
		Handler:               r.handle,
		ErrorHandler:          refuseUnread,
		HeaderReceived:        r.bodyLimit,
		ReadTimeout:           requestTimeout,
		IdleTimeout:           idleTimeout,
		ReadBufferSize:        maxHead,
		MaxRequestBodySize:    maxUnknown,
		ReduceMemoryUsage:     true,    // who waits has no buffers: that costs 8 kB
		Concurrency:           1 << 20, // the listener bounds connections
		CloseOnShutdown:       true,
		NoDefaultServerHeader: true,
		Logger:                quiet{},
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	select {
	case err := <-served:
		return errors.Join(fmt.Errorf("serve on %v: %w", ln.Addr(), err), r.closeDoors())
	case <-ctx.Done():
	}
	_ = r.closeDoors() // it cannot fail
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.patience())
	defer cancel()
	_ = srv.ShutdownWithContext(end) // what is left is in ReadTimeout's hands
	_ = ln.Close()
	<-served
	return nil
}

// closeDoors answers whoever waits: nodes and pages go to another router.
func (r *router) closeDoors() error { return errors.Join(r.server.Close(), r.console.Close()) }

// handle answers one request.
func (r *router) handle(ctx *fasthttp.RequestCtx) {
	if !r.server.Handle(ctx) && !r.console.Handle(ctx) {
		ctx.Error("nothing here: nodes and schedulers ask below /v1/, people open /\n", fasthttp.StatusNotFound)
	}
}

// refuseUnread answers what was not read as a request to its end, in the words of
// package control.
func refuseUnread(ctx *fasthttp.RequestCtx, err error) {
	status, reason, text := fasthttp.StatusBadRequest, control.BadRequest, "this is no HTTP request that makes sense"
	var small *fasthttp.ErrSmallBuffer
	var late net.Error
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		status, reason = fasthttp.StatusRequestEntityTooLarge, control.TooBig
		text = fmt.Sprintf("the body is too big: at most %d bytes are read of who is logged in, %d of a node whose signature is good, and %d of others: "+
			"compress it, or send less at once", maxBody, control.MaxSent, maxUnknown)
	case errors.As(err, &small):
		status, reason = fasthttp.StatusRequestHeaderFieldsTooLarge, control.TooBig
		text = fmt.Sprintf("the head of the request has more than %d bytes", maxHead)
	case errors.As(err, &late) && late.Timeout():
		status, text = fasthttp.StatusRequestTimeout, fmt.Sprintf("the request took more than %v to come", requestTimeout)
	}
	ctx.SetContentType("application/json")
	ctx.SetStatusCode(status)
	fmt.Fprintf(ctx, `{"error":%q,"reason":%q}`, text, reason.String())
}

// quiet drops what fasthttp logs of single connections: resets and timeouts.
type quiet struct{}

func (quiet) Printf(string, ...any) {}
