// Package trunk carries many connections over one: streams that a node pulls from another
// one share a TCP connection, so that one system call sends what came of many of them.
//
//	Conn ── Write ──▶ ┐                                      ┌ ──▶ Read ── Conn
//	Conn ── Write ──▶ ├ out ── one write ──▶ carrier ── one read ─┤ ──▶ Read ── Conn
//	Conn ── Write ──▶ ┘   at most each flushEvery            └ ──▶ Read ── Conn
//
// A [Session] is one end of a carrier. One side opens connections, the other one gets
// each of them handed; both are a [net.Conn] then, with deadlines.
//
// # On the wire
//
// Frames, each with eight bytes before its payload: kind, number of the connection (32
// bits) and length of the payload (24 bits), in network byte order. Kinds are open,
// data, close (who sends it neither sends nor reads any more), window (32 bits: so many
// bytes more may be sent), ping and pong. Numbers rise and are never used again.
//
// # Isolation
//
// Who does not read holds up itself only: no more than a window of each connection is
// under way, and what came is kept for it apart. The carrier is always read. Who writes
// waits when its window is used up, or when more than maxPending bytes wait for the
// carrier; then all who wait go on in turn, so one with much to say does not keep the
// others waiting for longer than that takes.
//
// # Ends
//
// A side that has heard nothing for a while asks for a sign of life, and gives the carrier
// up when none comes. One without connections may stay for ever otherwise.
package trunk

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxConns is how many connections one carrier takes at a time.
	MaxConns = 1024
	// maxHeld is how many connections may be open here that the peer opened, those
	// included that it has closed already: who closes them sooner than they can be let go
	// of gets no more meanwhile.
	maxHeld = 2 * MaxConns
	// openerWindow and accepterWindow are how much may be under way to the side that
	// opens connections and to the other one: media, and questions for them. A stream
	// can have no more than half a window in a round trip: 25 Mbit/s over 300 ms.
	openerWindow   = 2 << 20
	accepterWindow = 64 << 10
	// maxPending is how much may wait for the carrier before writers wait, and maxOut
	// how much there may be with what cannot wait: who lets answers pile up to this is
	// given up.
	maxPending = 256 << 10
	maxOut     = 4 << 20
	// flushEvery is the least time between two writes to a carrier that is in use: what
	// comes meanwhile goes out together. After a pause nothing waits.
	flushEvery = time.Millisecond
	// writeTimeout ends a carrier that takes nothing.
	writeTimeout = 30 * time.Second
	// lookEvery is how often it is looked whether the peer is there: it is asked after
	// that much silence, and given up after silence.
	lookEvery = 5 * time.Second
	silence   = 30 * time.Second
	// keepBuffer is how big a buffer with nothing in it may be kept; those for writes may
	// be bigger until keepTime after a write of half as much.
	keepBuffer = 16 << 10
	keepTime   = 10 * time.Second
)

var (
	// ErrBroken is wrapped by the errors of a connection whose carrier is gone.
	ErrBroken = errors.New("the connection that carries this one is gone")
	// ErrProtocol is wrapped by the error of a session whose peer does not keep to the
	// rules.
	ErrProtocol = errors.New("the peer broke the rules of a trunk")
	// ErrFull is returned when a carrier has all the connections it may.
	ErrFull = errors.New("the trunk is full")

	errPeerClosed = errors.New("the peer has closed the connection")
	errSilent     = fmt.Errorf("the peer has said nothing for %v: %w", silence, os.ErrDeadlineExceeded)
)

// Session is one end of a carrier. All methods may be called from any goroutine.
type Session struct {
	// Fixed at construction.
	carrier net.Conn
	accept  func(*Conn) // nil on the side that opens
	window  int         // that this side grants
	began   time.Time
	work    chan struct{} // capacity 1: there is something to send
	done    chan struct{} // closed at the end

	// Safe from any goroutine.
	heard  atomic.Int64 // when something came last, since began
	filler atomic.Pointer[func()]

	// Guarded by mu.
	mu      sync.Mutex
	conns   map[uint32]*Conn // nil after the end
	held    int              // connections that the peer has opened, not closed here yet
	last    uint32           // number of the newest connection
	out     []byte
	filling bool    // what comes to out now is sent without a call
	waiting []*Conn // for room in out
	idle    time.Time
	looking *time.Timer
	err     error // why it is over

	running sync.WaitGroup
}

// Open returns the side of a carrier that opens connections. What was read of the
// carrier already is in first. The session owns carrier, which may speak TLS.
func Open(carrier net.Conn, first []byte) *Session {
	s := newSession(carrier, openerWindow, nil)
	s.running.Go(func() { s.fail(s.receive(first)) })
	return s
}

// Accept returns the other side: it calls accept in a goroutine of its own for each
// connection that the peer opens, which owns it.
func Accept(carrier net.Conn, first []byte, accept func(*Conn)) *Session {
	s := newSession(carrier, accepterWindow, accept)
	s.running.Go(func() { s.fail(s.receive(first)) })
	return s
}

// Wait waits until the session is over and all calls of accept have returned, and returns
// why it is over.
func (s *Session) Wait() error {
	s.running.Wait()
	return s.err
}

// OnSend has fill called before each write to the carrier, in the goroutine that writes:
// what it gives to [Conn.TryWrite] goes out with that. It must not wait for anything. So
// one goroutine serves all connections.
func (s *Session) OnSend(fill func()) { s.filler.Store(&fill) }

// Poke has the carrier written to soon, also where nothing waits for it yet.
func (s *Session) Poke() { ring(s.work) }

func newSession(carrier net.Conn, window int, accept func(*Conn)) *Session {
	s := &Session{
		carrier: carrier, accept: accept, window: window, began: time.Now(), idle: time.Now(),
		work: make(chan struct{}, 1), done: make(chan struct{}), conns: make(map[uint32]*Conn),
	}
	s.mu.Lock() // look may be called at once
	s.looking = time.AfterFunc(lookEvery, s.look)
	s.mu.Unlock()
	s.running.Go(s.send)
	return s
}

// look ends the session if the peer is not there.
func (s *Session) look() {
	switch silent := s.Silent(); {
	case silent >= silence:
		s.fail(errSilent)
		return
	case silent >= lookEvery:
		s.Ping()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.looking.Reset(lookEvery)
	}
}

// Dial opens a connection. It does not wait for the peer.
func (s *Session) Dial() (*Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return nil, s.broken("dial")
	case len(s.conns) >= MaxConns || s.last == 1<<32-1:
		return nil, ErrFull
	}
	s.last++
	c := newConn(s, s.last, accepterWindow)
	s.conns[c.id] = c
	s.frame(open, c.id, nil)
	return c, nil
}

// Len returns how many connections are open.
func (s *Session) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Idle returns for how long no connection has been open.
func (s *Session) Idle() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) > 0 {
		return 0
	}
	return time.Since(s.idle)
}

// Silent returns for how long nothing has come.
func (s *Session) Silent() time.Duration {
	return time.Since(s.began) - time.Duration(s.heard.Load())
}

// Ping has the peer say something.
func (s *Session) Ping() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frame(ping, 0, nil)
}

// Err returns why the session is over, nil while it is not. It is [os.ErrDeadlineExceeded],
// wrapped, when the peer took nothing or said nothing for too long.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close ends the session and all its connections, and waits for its goroutines.
func (s *Session) Close() error {
	s.fail(net.ErrClosed)
	s.running.Wait()
	return nil
}

// fail ends the session because of err.
func (s *Session) fail(err error) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	s.err = err
	all := s.conns
	s.conns, s.out, s.waiting = nil, nil, nil
	s.looking.Stop()
	close(s.done)
	s.mu.Unlock()
	_ = bottom(s.carrier).Close()
	for _, c := range all {
		c.over(s.broken("read"))
	}
}

// bottom returns the connection below all layers: TLS waits for a frozen peer to take its
// farewell when it is closed.
func bottom(c net.Conn) net.Conn {
	for {
		w, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = w.NetConn()
	}
}

// broken returns the error of a connection whose session is over.
func (s *Session) broken(op string) error {
	return &net.OpError{
		Op: op, Net: "trunk", Source: s.carrier.LocalAddr(), Addr: s.carrier.RemoteAddr(),
		Err: fmt.Errorf("%w: %w", ErrBroken, s.err),
	}
}

// remove forgets a connection that is closed on one side. mu is held.
func (s *Session) remove(c *Conn) {
	if s.conns[c.id] == c {
		delete(s.conns, c.id)
		s.idle = time.Now()
	}
}

// send writes what there is to the carrier until the session ends.
func (s *Session) send() {
	var spare []byte
	var sent, big time.Time
	for {
		select {
		case <-s.work:
		case <-s.done:
			return
		}
		if wait := flushEvery - time.Since(sent); wait > 0 {
			time.Sleep(wait)
		}
		if fill := s.filler.Load(); fill != nil {
			s.mu.Lock()
			s.filling = true
			s.mu.Unlock()
			(*fill)()
		}
		s.mu.Lock()
		s.filling = false
		out := s.out
		s.out = spare[:0]
		for _, c := range s.waiting {
			c.roomier()
		}
		clear(s.waiting)
		s.waiting = s.waiting[:0]
		s.mu.Unlock()
		if len(out) == 0 {
			spare = out
			continue
		}
		sent = time.Now()
		_ = s.carrier.SetWriteDeadline(sent.Add(writeTimeout))
		if _, err := s.carrier.Write(out); err != nil {
			s.fail(err)
			return
		}
		if len(out) > keepBuffer/2 {
			big = sent
		}
		// There are two buffers in turn, so both are let go of with two writes: who has no
		// streams still gives signs of life.
		if spare = out; cap(out) > 2*maxPending || cap(out) > keepBuffer && sent.Sub(big) >= keepTime {
			spare = nil
		}
	}
}

// ring wakes whoever waits for c, now or next.
func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// frame appends a frame to what goes out. mu is held.
func (s *Session) frame(k kind, id uint32, payload []byte) {
	if s.err != nil {
		return
	}
	s.out = appendHead(s.out, head{k, id, len(payload)})
	s.out = append(s.out, payload...)
	s.call()
}

// call has out sent. mu is held.
func (s *Session) call() {
	if !s.filling {
		ring(s.work)
	}
}

// receive takes frames from the carrier until that ends, and returns why.
func (s *Session) receive(first []byte) error {
	r := newReader(first, s.carrier)
	for {
		h, payload, err := r.next()
		if err != nil {
			return unexpected(err)
		}
		s.heard.Store(int64(time.Since(s.began)))
		if err := s.took(h, payload); err != nil {
			return err
		}
	}
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// took takes in one frame.
func (s *Session) took(h head, payload []byte) error {
	if h.kind == open {
		return s.opened(h.id)
	}
	s.mu.Lock()
	c := s.conns[h.id]
	switch h.kind {
	case window:
		if c != nil {
			if c.credit += int(windowOf(payload)); c.credit > maxCredit {
				s.mu.Unlock()
				return fmt.Errorf("%w: a window of %d bytes", ErrProtocol, c.credit)
			}
			c.roomier()
		}
	case closed:
		if c != nil {
			s.remove(c)
		}
	case ping:
		// One answer is as good as many, to a peer that does not read them.
		if len(s.out) < maxPending {
			s.frame(pong, 0, nil)
		}
	}
	err := s.full()
	s.mu.Unlock()
	switch {
	case err != nil:
		return err
	case c == nil: // closed here, and the peer did not know
	case h.kind == data:
		return c.came(payload)
	case h.kind == closed:
		c.over(io.EOF)
	}
	return nil
}

// full returns an error when answers pile up. mu is held.
func (s *Session) full() error {
	if len(s.out) > maxOut {
		return fmt.Errorf("%w: it asks and does not read the answers", ErrProtocol)
	}
	return nil
}

// opened takes in a connection.
func (s *Session) opened(id uint32) error {
	if s.accept == nil {
		return fmt.Errorf("%w: a connection was opened from the wrong side", ErrProtocol)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case id <= s.last:
		return fmt.Errorf("%w: connection %d after %d", ErrProtocol, id, s.last)
	}
	s.last = id
	if len(s.conns) >= MaxConns || s.held >= maxHeld {
		s.frame(closed, id, nil)
		return s.full()
	}
	c := newConn(s, id, openerWindow)
	s.conns[id] = c
	s.held++
	s.running.Go(func() { s.accept(c) })
	return nil
}
