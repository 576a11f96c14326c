package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/control"
	"millrace/internal/serve"
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
	return serve.New(&fasthttp.Server{
		Handler:            r.handle,
		HeaderReceived:     r.bodyLimit,
		ReadTimeout:        requestTimeout,
		IdleTimeout:        idleTimeout,
		ReadBufferSize:     maxHead,
		MaxRequestBodySize: maxUnknown,
		ReduceMemoryUsage:  true, // who waits has no buffers: that costs 8 kB
	}, refuseUnread, r.log).Run(ctx, ln, func() time.Duration {
		r.closeDoors()
		return r.patience()
	})
}

// closeDoors answers whoever waits: nodes and pages go to another router.
func (r *router) closeDoors() { // neither can fail
	_ = r.server.Close()
	_ = r.console.Close()
}

// handle answers one request.
func (r *router) handle(ctx *fasthttp.RequestCtx) {
	if !r.server.Handle(ctx) && !r.console.Handle(ctx) {
		ctx.Error("nothing here: nodes and schedulers ask below /v1/, people open /\n", fasthttp.StatusNotFound)
	}
}

// refuseUnread answers what was not read as a request to its end, in the words of
// package control.
func refuseUnread(ctx *fasthttp.RequestCtx, status int, _ error) {
	text := "this is no HTTP request that makes sense"
	switch status {
	case fasthttp.StatusRequestEntityTooLarge:
		text = fmt.Sprintf("the body is too big: at most %d bytes are read of who is logged in, %d of a node whose signature is good, and %d of others: "+
			"compress it, or send less at once", maxBody, control.MaxSent, maxUnknown)
	case fasthttp.StatusRequestHeaderFieldsTooLarge:
		text = fmt.Sprintf("the head of the request has more than %d bytes", maxHead)
	case fasthttp.StatusRequestTimeout:
		text = fmt.Sprintf("the request took more than %v to come", requestTimeout)
	}
	control.RefuseUnread(ctx, status, text)
}
