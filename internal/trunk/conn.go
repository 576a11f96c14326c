package trunk

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is a connection within a [Session]: a [net.Conn], whose Read and Write are for
// one goroutine each and all else is for any. Close sends what was written before; the
// peer reads that and then [io.EOF]. What the peer has not read of it yet is not waited
// for.
type Conn struct {
	// Fixed at construction.
	s    *Session
	id   uint32
	room chan struct{} // capacity 1: a Write that waits shall look again
	free atomic.Pointer[func()]
	more chan struct{} // capacity 1: a Read that waits shall look again

	// Guarded by s.mu.
	credit int // how much the peer still takes

	// Owned by Read and by Write.
	readAlarm, writeAlarm alarm

	// Guarded by mu.
	mu              sync.Mutex
	in              []byte // came and was not read
	off             int    // of it, how much was read
	read            int    // since the window was renewed last
	end             error  // behind in; nil while the connection lasts
	shut            bool   // closed here
	readBy, writeBy time.Time
}

func newConn(s *Session, id uint32, credit int) *Conn {
	return &Conn{s: s, id: id, credit: credit, room: make(chan struct{}, 1), more: make(chan struct{}, 1)}
}

// Session returns what c belongs to.
func (c *Conn) Session() *Session { return c.s }

// Carrier returns the connection that carries c, for looking at it only.
func (c *Conn) Carrier() net.Conn { return c.s.carrier }

// LocalAddr returns that of the carrier.
func (c *Conn) LocalAddr() net.Addr { return c.s.carrier.LocalAddr() }

// RemoteAddr returns that of the carrier.
func (c *Conn) RemoteAddr() net.Addr { return c.s.carrier.RemoteAddr() }

// came keeps what the peer has sent.
func (c *Conn) came(p []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shut {
		return nil
	}
	if len(c.in)-c.off+len(p) > c.s.window {
		return fmt.Errorf("%w: connection %d has more under way than its window", ErrProtocol, c.id)
	}
	if c.off > 0 && len(c.in)+len(p) > cap(c.in) {
		c.in = c.in[:copy(c.in, c.in[c.off:])]
		c.off = 0
	}
	c.in = append(c.in, p...)
	ring(c.more)
	return nil
}

// over notes that nothing comes any more, and why.
func (c *Conn) over(err error) {
	c.mu.Lock()
	if c.end == nil {
		c.end = err
	}
	c.mu.Unlock()
	ring(c.more)
	ring(c.room)
}

// Read reads what the peer has sent. The error is [io.EOF] when the peer has closed the
// connection, [os.ErrDeadlineExceeded], [net.ErrClosed], or wraps [ErrBroken].
func (c *Conn) Read(p []byte) (int, error) {
	for {
		c.mu.Lock()
		n, renew, err := c.take(p)
		by := c.readBy
		c.mu.Unlock()
		if renew > 0 {
			c.renew(renew)
		}
		if err != nil {
			c.readAlarm.stop()
		}
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
		c.readAlarm.set(by, c.more)
		<-c.more
	}
}

// take moves what came to p. renew is how much the peer may send for it, told when it is
// much. mu is held.
func (c *Conn) take(p []byte) (n, renew int, err error) {
	switch {
	case c.shut:
		return 0, 0, net.ErrClosed
	case past(c.readBy):
		return 0, 0, os.ErrDeadlineExceeded
	case c.off == len(c.in):
		return 0, 0, c.end
	}
	n = copy(p, c.in[c.off:])
	if c.off += n; c.off == len(c.in) {
		if c.in, c.off = c.in[:0], 0; cap(c.in) > keepBuffer {
			c.in = nil
		}
	}
	if c.read += n; c.read >= c.s.window/2 {
		renew, c.read = c.read, 0
	}
	return n, renew, nil
}

// renew lets the peer send n bytes more.
func (c *Conn) renew(n int) {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns[c.id] == c {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(n))
		s.frame(window, c.id, b[:])
	}
}

// Write sends p, at once or with what others send within a millisecond. It waits while the
// peer or the carrier takes no more. The error is [os.ErrDeadlineExceeded],
// [net.ErrClosed], or a [*net.OpError] when the peer has closed the connection or the
// carrier is gone.
func (c *Conn) Write(p []byte) (n int, err error) {
	for {
		by, err := c.writable()
		if err != nil {
			c.writeAlarm.stop()
			return n, err
		}
		k := c.TryWrite(p[n:])
		if n += k; n == len(p) {
			return n, nil
		}
		if k == 0 {
			c.writeAlarm.set(by, c.room)
			<-c.room
		}
	}
}

// writable returns why nothing can be written now, and until when it may be tried.
func (c *Conn) writable() (by time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.shut:
		return by, net.ErrClosed
	case c.end == io.EOF:
		return by, &net.OpError{Op: "write", Net: "trunk", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: errPeerClosed}
	case c.end != nil:
		return by, c.end
	case past(c.writeBy):
		return by, os.ErrDeadlineExceeded
	}
	return c.writeBy, nil
}

// OnRoom has free called when more can be written after [Conn.TryWrite] took less than
// all. It must not wait, nor use the session.
func (c *Conn) OnRoom(free func()) { c.free.Store(&free) }

// roomier tells whoever waits to write.
func (c *Conn) roomier() {
	if free := c.free.Load(); free != nil {
		(*free)()
	}
	ring(c.room)
}

// TryWrite sends as much of pieces, one behind the other, as can be sent without waiting,
// and returns how many bytes that is. On a connection that is over it takes all, and drops
// it.
func (c *Conn) TryWrite(pieces ...[]byte) (n int) {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	var p []byte
	size := 0
	for _, x := range pieces {
		size += len(x)
	}
	for n < size {
		room := min(size-n, c.credit, maxFrame)
		switch {
		case s.err != nil || s.conns[c.id] != c:
			return size
		case room == 0:
			return n // a window will come
		case len(s.out) >= maxPending:
			s.waiting = append(s.waiting, c)
			return n
		}
		s.out = appendHead(s.out, head{data, c.id, room})
		s.call()
		c.credit -= room
		n += room
		for room > 0 {
			if len(p) == 0 {
				p, pieces = pieces[0], pieces[1:]
				continue
			}
			k := min(room, len(p))
			s.out = append(s.out, p[:k]...)
			p, room = p[k:], room-k
		}
	}
	return n
}

// Close ends the connection. It does not wait. It may be called again.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.shut {
		c.mu.Unlock()
		return nil
	}
	c.shut, c.in, c.off = true, nil, 0
	c.mu.Unlock()
	ring(c.more)
	ring(c.room)
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held-- // means nothing on the side that opens
	if s.conns[c.id] == c {
		s.remove(c)
		s.frame(closed, c.id, nil)
	}
	return nil
}

// SetDeadline sets that of reads and writes.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline sets until when a Read may wait, now and later; zero is for ever.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	sooner := sooner(t, c.readBy)
	c.readBy = t
	c.mu.Unlock()
	if sooner {
		ring(c.more)
	}
	return nil
}

// SetWriteDeadline sets until when a Write may wait, now and later; zero is for ever.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	sooner := sooner(t, c.writeBy)
	c.writeBy = t
	c.mu.Unlock()
	if sooner {
		ring(c.room)
	}
	return nil
}

// sooner reports whether who waits until the deadline old must be told of t. Who waits
// too short looks again.
func sooner(t, old time.Time) bool { return !t.IsZero() && (old.IsZero() || t.Before(old)) }

func past(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

// alarm rings at a deadline. Deadlines move with each read and write, far more often than
// one is reached, so the timer is left alone while it will go off early enough: whoever is
// woken too soon looks at the clock and sets it again.
type alarm struct {
	timer *time.Timer
	at    time.Time // when it goes off; zero when it has, or never will
	rang  atomic.Bool
}

// set has c rung at the time by, or before. Zero is never. Calls have one c and do not
// overlap.
func (a *alarm) set(by time.Time, c chan struct{}) {
	if a.rang.Swap(false) {
		a.at = time.Time{}
	}
	if by.IsZero() || !a.at.IsZero() && !by.Before(a.at) {
		return
	}
	a.at = by
	if a.timer != nil {
		a.timer.Reset(time.Until(by))
		return
	}
	a.timer = time.AfterFunc(time.Until(by), func() {
		a.rang.Store(true)
		ring(c)
	})
}

// stop ends what set began.
func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
		a.at = time.Time{}
	}
}
