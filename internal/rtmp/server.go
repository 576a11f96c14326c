package rtmp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	gortmp "github.com/yutopp/go-rtmp"

	"millrace/internal/auth"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// The events that the log has lines for.
const (
	eventPublisher = "publisher came"
	eventViewer    = "viewer came"
	eventEnded     = "rtmp connection ended"
	eventDropped   = "rtmp messages dropped"
	eventRefused   = "rtmp command refused"
)

// maxAcceptPause is the longest wait after an error of Accept, such as running out
// of descriptors.
const maxAcceptPause = time.Second

// Server serves RTMP to encoders and players.
type Server struct {
	// Fixed at construction.
	ln    net.Listener
	hub   *stream.Hub
	gate  *auth.Gate
	inlet Inlet
	table *session.Table
	log   *slog.Logger
	box   *logrus.Logger
	flood *flood

	// Fixed before Run.
	partials *partials

	// Safe from any goroutine.
	cfg        atomic.Pointer[Config]
	draining   atomic.Bool
	accepted   atomic.Uint64
	handshakes atomic.Uint64
	dropped    counts // messages
	endings    counts // connections
	refusals   counts // commands on connections that live on

	// Guarded by mu.
	mu    sync.Mutex
	conns map[*conn]struct{}

	running sync.WaitGroup // one for each connection
}

// counts has a counter for each reason.
type counts [256]atomic.Uint64

func (c *counts) snapshot() map[session.Reason]uint64 {
	out := make(map[session.Reason]uint64)
	for i := range c {
		if n := c[i].Load(); n > 0 {
			out[session.Reason(i)] = n
		}
	}
	return out
}

// Stats is a copy of a server's figures.
type Stats struct {
	Connections int                       // open now
	Accepted    uint64                    // ever
	Handshakes  uint64                    // completed
	Ended       map[session.Reason]uint64 // connections
	Dropped     map[session.Reason]uint64 // media messages that were not passed on
	Refused     map[session.Reason]uint64 // commands refused on a connection that lived on
}

// New returns a Server that will accept from ln. It starts nothing. If ln's
// connections are TLS, they are RTMPS. in lets publishers in; nil is the gate and
// the hub alone. log may be nil.
func New(cfg Config, ln net.Listener, hub *stream.Hub, gate *auth.Gate, in Inlet, table *session.Table, log *slog.Logger) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if in == nil {
		in = local{hub, gate}
	}
	s := &Server{
		ln: ln, hub: hub, gate: gate, inlet: in, table: table, log: log, box: boxLogger(log),
		flood: &flood{log: log}, conns: make(map[*conn]struct{}), partials: &partials{},
	}
	s.cfg.Store(&cfg)
	s.partials.most.Store(cfg.TotalPartialBytes)
	return s, nil
}

// Share has s and other hold unfinished messages within one bound. It is called
// before Run.
func (s *Server) Share(other *Server) { s.partials = other.partials }

func (s *Server) config() *Config { return s.cfg.Load() }

// SetConfig changes the limits. Timeouts hold for open connections as well. If cfg
// is not valid, the old one stays.
func (s *Server) SetConfig(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	s.cfg.Store(&cfg)
	s.partials.most.Store(cfg.TotalPartialBytes)
	return nil
}

// Drain refuses publish and play from now on. Who has begun may go on.
func (s *Server) Drain() { s.draining.Store(true) }

// Stats returns the figures of now.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	open := len(s.conns)
	s.mu.Unlock()
	return Stats{
		Connections: open, Accepted: s.accepted.Load(), Handshakes: s.handshakes.Load(),
		Ended: s.endings.snapshot(), Dropped: s.dropped.snapshot(), Refused: s.refusals.snapshot(),
	}
}

// Run serves until ctx ends or the listener fails, then ends every connection and
// waits for it. It returns nil if ctx ended it. It closes the listener.
func (s *Server) Run(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var report sync.WaitGroup
	report.Go(func() { s.flood.run(inner) })
	stop := context.AfterFunc(inner, func() { s.ln.Close() })
	defer stop()

	box := gortmp.NewServer(&gortmp.ServerConfig{OnConnect: s.onConnect})
	var failed error // of the listener
	_ = box.Serve(&acceptor{s.ln, func() (nc net.Conn, err error) {
		if nc, err = s.accept(inner); err != nil {
			failed = err
			box.Close() // makes Serve return instead of asking again
		}
		return nc, err
	}})
	s.stop()
	s.running.Wait()
	cancel()
	report.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return failed
}

// acceptor is the listener that go-rtmp accepts from. go-rtmp asks again at once
// after an error, so accept returns one only when it is the last.
type acceptor struct {
	net.Listener
	accept func() (net.Conn, error)
}

// Accept returns the next connection as go-rtmp is to see it.
func (a *acceptor) Accept() (net.Conn, error) { return a.accept() }

// boxed is what go-rtmp gets for a net.Conn and hands back in OnConnect.
type boxed struct {
	net.Conn
	c *conn
}

// accept waits for a connection. An error that may pass, such as running out of
// descriptors, is waited out.
func (s *Server) accept(ctx context.Context) (net.Conn, error) {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, maxAcceptPause) {
		nc, err := s.ln.Accept()
		switch {
		case err == nil:
			return s.take(nc), nil
		case ctx.Err() != nil:
			return nil, context.Canceled
		case errors.Is(err, net.ErrClosed), errors.Is(err, io.EOF):
			return nil, fmt.Errorf("accept on %v: %w", s.ln.Addr(), err)
		}
		s.log.Warn("accept failed; trying again", "err", err, "pause", pause)
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, context.Canceled
		}
	}
}

// take makes a connection known, before anything of it runs.
func (s *Server) take(nc net.Conn) net.Conn {
	c := newConn(s, nc, time.Now())
	s.accepted.Add(1)
	s.running.Add(1)
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	return &boxed{nc, c}
}

// onConnect hands go-rtmp the connection that it is to use.
func (s *Server) onConnect(nc net.Conn) (io.ReadWriteCloser, *gortmp.ConnConfig) {
	c := nc.(*boxed).c
	return c, boxConfig(c, s.box)
}

// stop ends all connections.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.end(session.Draining)
	}
}

// release forgets a connection; it is the last that is heard of it.
func (s *Server) release(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.running.Done()
}

// ended counts and logs the end of a connection.
func (s *Server) ended(c *conn, r session.Reason) {
	if c.ended == session.None && r != session.PeerClosed {
		s.table.Refuse(session.RTMP, r)
	}
	s.endings[r].Add(1)
	if c.role == "" && r == session.PeerClosed {
		return // a health check, or somebody who changed his mind
	}
	if !s.flood.allow(eventEnded, r, freeLines) {
		return
	}
	args := []any{"peer", c.peer, "protocol", session.RTMP, "reason", r}
	if c.name != "" {
		args = append(args, "stream", c.name)
	}
	if c.role != "" {
		args = append(args, "action", c.role)
	}
	if c.said != "" {
		args = append(args, "detail", c.said)
	}
	if c.account != nil {
		args = append(args, "bytes", c.account.Bytes.Load(), "skipped", c.account.Skipped.Load())
	}
	s.log.Info(eventEnded, append(args, "lasted", time.Since(c.began).Round(time.Millisecond))...)
}

// came logs the beginning of a session: a publisher's for everybody, a player's for
// who looks closely.
func (s *Server) came(ses *session.Session) {
	level, event := slog.LevelInfo, eventPublisher
	if ses.Info.Action == session.Play {
		level, event = slog.LevelDebug, eventViewer
	}
	if !s.log.Enabled(context.Background(), level) || !s.flood.allow(event, session.None, freeLines) {
		return
	}
	i := &ses.Info
	s.log.Log(context.Background(), level, event, "stream", i.Stream, "peer", i.Peer, "protocol", i.Protocol, "tls", i.TLS, "agent", i.Agent, "session", ses.ID)
}

// drop counts a media message that goes nowhere.
func (s *Server) drop(r session.Reason) {
	s.dropped[r].Add(1)
	s.flood.allow(eventDropped, r, 0)
}

// refused counts a command that was refused on a connection that lives on.
func (s *Server) refused(r session.Reason) {
	s.refusals[r].Add(1)
	s.flood.allow(eventRefused, r, 0)
}
