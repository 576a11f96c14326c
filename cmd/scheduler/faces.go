package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/control"
	"millrace/internal/frontend"
	"millrace/internal/run"
	"millrace/internal/sched"
	"millrace/internal/serve"
)

// buildFaces opens the listeners of those who ask and puts a server on each.
func (s *scheduler) buildFaces() error {
	if err := s.buildDNS(); err != nil {
		return err
	}
	for _, l := range []struct{ scheme, addr string }{{"http", s.cfg.Address.HTTP}, {"https", s.cfg.Address.HTTPS}} {
		if l.addr == "" {
			continue
		}
		ln, err := s.doors.Open(l.scheme, l.addr)
		if err != nil {
			return err
		}
		h, err := frontend.NewHTTP(s.cfg.HTTP, s.decider, s.cluster, ln, s.log)
		if err != nil {
			return fmt.Errorf("http: %w", err)
		}
		s.http = append(s.http, h)
		s.addFace(l.scheme, h.Run)
	}
	if s.server == nil {
		return nil
	}
	ln, err := s.doors.Open("internal", s.cfg.Address.Internal)
	if err != nil {
		return err
	}
	s.parts.Add("internal", stageFaces, func(ctx context.Context) error { return s.serveFollowers(ctx, ln) })
	return nil
}

func (s *scheduler) buildDNS() error {
	addr := s.cfg.Address.DNS
	if addr == "" {
		return nil
	}
	var err error
	if s.dns, err = frontend.NewDNS(s.cfg.DNS, s.decider, s.log); err != nil {
		return fmt.Errorf("dns: %w", err)
	}
	if err := s.dns.Listen(context.Background(), addr); err != nil {
		return run.Unopened(err, "dns", addr)
	}
	s.doors.Add(run.Opened{Scheme: "dns", Addr: net.TCPAddrFromAddrPort(s.dns.Addrs()[0]), Close: s.dns.Close})
	s.addFace("dns", s.dns.Run)
	return nil
}

// addFace adds a component that answers who asks. It begins when something is known of
// the edges, because until then it could offer one that is dead; whoever asks meanwhile
// waits in the socket.
func (s *scheduler) addFace(name string, face func(context.Context) error) {
	s.parts.Add(name, stageFaces, func(ctx context.Context) error {
		s.awaitHealth(ctx)
		return face(ctx)
	})
}

// patience is how long it is waited for what is known of the edges: for a probe of a
// silent one and the next, and less than a resolver waits for an answer.
const patience = 1500 * time.Millisecond

// awaitHealth waits until there is a plan and every edge of it has been looked at.
func (s *scheduler) awaitHealth(ctx context.Context) {
	look, end := time.NewTicker(20*time.Millisecond), time.NewTimer(patience)
	defer look.Stop()
	defer end.Stop()
	for !lookedAt(s.decider.View()) {
		select {
		case <-look.C:
		case <-end.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// lookedAt reports whether v has a plan, and something is known of the health of every
// edge of it.
func lookedAt(v *sched.View) bool {
	if len(v.Plan.Domains)+len(v.Plan.Nodes) == 0 {
		return false
	}
	known := make(map[string]bool, len(v.State.Nodes))
	for i := range v.State.Nodes {
		n := &v.State.Nodes[i]
		known[n.ID] = n.V4.Status != sched.Unknown || n.V6.Status != sched.Unknown
	}
	for i := range v.Plan.Nodes {
		if n := &v.Plan.Nodes[i]; n.Role == "edge" && !known[n.ID] {
			return false
		}
	}
	return true
}

// Bounds of what followers send.
const (
	maxFollowerHead = 8 << 10
	maxFollowerBody = 8 << 10
	followerTimeout = 10 * time.Second
	// followerIdle is how long a connection may be silent between two questions.
	followerIdle = 2 * time.Minute
)

// serveFollowers answers edges that follow this scheduler, until ctx ends.
func (s *scheduler) serveFollowers(ctx context.Context, ln net.Listener) error {
	return serve.New(&fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			if !s.server.Handle(ctx) {
				ctx.Error("nothing here: followers ask for /v1/snapshot and /v1/state\n", fasthttp.StatusNotFound)
			}
		},
		ReadTimeout:        followerTimeout,
		IdleTimeout:        followerIdle,
		ReadBufferSize:     maxFollowerHead,
		MaxRequestBodySize: maxFollowerBody,
		ReduceMemoryUsage:  true, // a follower that waits has no buffers: it costs 8 kB
	}, refuseUnread, s.log).Run(ctx, ln, func() time.Duration {
		_ = s.server.Close() // it cannot fail; who waits is answered, and goes to another
		return time.Second
	})
}

// refuseUnread answers what was not read as a request to its end.
func refuseUnread(ctx *fasthttp.RequestCtx, status int, _ error) {
	text := "this is no HTTP request that makes sense"
	switch status {
	case fasthttp.StatusRequestEntityTooLarge:
		text = fmt.Sprintf("the body has more than %d bytes: followers ask without one", maxFollowerBody)
	case fasthttp.StatusRequestHeaderFieldsTooLarge:
		text = fmt.Sprintf("the head of the request has more than %d bytes", maxFollowerHead)
	case fasthttp.StatusRequestTimeout:
		text = fmt.Sprintf("the request took more than %v to come", followerTimeout)
	}
	control.RefuseUnread(ctx, status, text)
}
