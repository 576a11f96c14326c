package faultnet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// TCP is a link for connections. Its methods may be called from any goroutine.
type TCP struct {
	// Fixed at construction.
	cfg    Config
	addr   string
	listen func(addr string) (net.Listener, error)
	dial   func(context.Context) (net.Conn, error)
	wg     sync.WaitGroup // accepting and connections

	// Guarded by mu.
	mu       sync.Mutex
	ln       net.Listener // nil while refusing
	conns    map[*conn]struct{}
	up, down lane
	frozen   bool
	closed   bool
	accepted uint64
	failed   uint64
	news     chan struct{} // closed and replaced when a fault or frozen changes
}

// ErrClosed is returned by what is asked of a closed link.
var ErrClosed = errors.New("faultnet: the link is closed")

// dialTimeout is for the target, which is on this machine or another of a test.
const dialTimeout = 10 * time.Second

// receiveBuffer is what the kernel may hold of a connection before the link has read
// it. Left to itself it takes megabytes, in which a slow link would not be felt.
const receiveBuffer = 64 << 10

// ListenTCP opens a link that listens on addr, such as 127.0.0.1:0, and connects to
// target. It passes on until Close.
func ListenTCP(addr, target string, cfg Config) (*TCP, error) {
	listen := func(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }
	d := net.Dialer{Timeout: dialTimeout}
	dial := func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", target) }
	return NewTCP(addr, listen, dial, cfg)
}

// NewTCP is [ListenTCP] on any network: listen is called with addr at once, and with
// the address that it gave whenever the link takes connections again after Refuse.
// Of connections it uses CloseWrite and SetLinger where they have them.
func NewTCP(addr string, listen func(addr string) (net.Listener, error), dial func(context.Context) (net.Conn, error), cfg Config) (*TCP, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	ln, err := listen(addr)
	if err != nil {
		return nil, err
	}
	l := &TCP{
		cfg: cfg, addr: ln.Addr().String(), listen: listen, dial: dial,
		ln: ln, conns: make(map[*conn]struct{}), news: make(chan struct{}),
	}
	l.up.fault, l.down.fault = cfg.Up, cfg.Down
	l.wg.Go(func() { l.accept(ln) })
	return l, nil
}

// Addr returns where the link listens, also while it refuses.
func (l *TCP) Addr() string { return l.addr }

func (l *TCP) accept(ln net.Listener) {
	for {
		near, err := ln.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // no descriptors, or the peer has left: both pass
			time.Sleep(10 * time.Millisecond)
		case !l.begin(near):
			near.Close()
		}
	}
}

// begin starts a connection; false if the link is closed.
func (l *TCP) begin(near net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := newConn(l, near, l.accepted, cancel)
	l.accepted++
	l.conns[c] = struct{}{}
	l.wg.Go(func() {
		defer cancel()
		reached := c.run(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.conns, c)
		if !reached {
			l.failed++
		}
	})
	return true
}

// Set puts other faults in force. What is under way keeps the delay it set out with.
func (l *TCP) Set(up, down Fault) error {
	if err := (Config{Up: up, Down: down}).Validate(); err != nil {
		return err
	}
	l.change(func() {
		l.up.set(up)
		l.down.set(down)
	})
	return nil
}

// Freeze lets nothing pass until Thaw or Heal: no bytes, no end, no reset.
// Connections are still accepted, and get nothing.
func (l *TCP) Freeze() { l.change(func() { l.frozen = true }) }

// Thaw ends Freeze. What was held passes on.
func (l *TCP) Thaw() { l.change(func() { l.frozen = false }) }

func (l *TCP) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
	close(l.news)
	l.news = make(chan struct{})
}

// Reset ends every connection with a reset to both sides, frozen or not.
func (l *TCP) Reset() {
	for _, c := range l.all() {
		c.abort()
	}
}

// HalfOpen resets the far side of every connection and does not tell the near one,
// as when the far machine has lost its power: near can send, and hears nothing.
func (l *TCP) HalfOpen() {
	for _, c := range l.all() {
		c.orphan()
	}
}

func (l *TCP) all() []*conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.conns))
}

// Refuse closes the listener: who connects is refused. Connections go on.
func (l *TCP) Refuse() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ln == nil {
		return nil
	}
	err := l.ln.Close()
	l.ln = nil
	return err
}

// Accept ends Refuse: it listens again on the same address.
func (l *TCP) Accept() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return ErrClosed
	case l.ln != nil:
		return nil
	}
	ln, err := l.listen(l.addr)
	if err != nil {
		return fmt.Errorf("listen again: %w", err)
	}
	l.ln = ln
	l.wg.Go(func() { l.accept(ln) })
	return nil
}

// Heal makes the link as it was at first: the faults of its configuration, thawed,
// and listening. Connections that were cut stay cut.
func (l *TCP) Heal() error {
	l.change(func() {
		l.frozen = false
		l.up.set(l.cfg.Up)
		l.down.set(l.cfg.Down)
	})
	return l.Accept()
}

// Stats returns what the link did so far and how it stands.
func (l *TCP) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{
		Up: l.up.traffic(), Down: l.down.traffic(), Frozen: l.frozen, Refusing: l.ln == nil,
		Open: len(l.conns), Accepted: l.accepted, Failed: l.failed,
	}
}

// Close ends the link and every connection, and returns when nothing of it runs any
// more. Further calls do nothing.
func (l *TCP) Close() error {
	err := l.Refuse()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	for _, c := range l.all() {
		c.cancel()
	}
	l.wg.Wait()
	return err
}
