package rtmp

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/session"
)

const (
	// replyTimeout is how long go-rtmp may take for a reply. It takes microseconds,
	// and the socket at most the stall time.
	replyTimeout = time.Minute
	// farewellTimeout bounds every write once a connection is ending.
	farewellTimeout = 250 * time.Millisecond
	// lingerTimeout and lingerBytes bound how long a refused peer is still read from:
	// closing a socket with unread bytes would reset it, and the refusal be lost.
	lingerTimeout = time.Second
	lingerBytes   = 4 << 20
)

// conn is the connection that go-rtmp is given (an io.ReadWriteCloser), and the
// only thing that touches the socket. See the package comment.
type conn struct {
	// Fixed at construction.
	srv   *Server
	net   net.Conn
	plain *net.TCPConn // for writev and doze; nil behind TLS and in tests
	peer  netip.AddrPort
	tls   bool
	log   *slog.Logger
	out   *chunkWriter
	done  chan struct{} // closed by end
	began time.Time

	// Safe from any goroutine.
	ending   atomic.Uint32 // session.Reason of the first end
	received atomic.Uint64 // bytes from the socket

	// Owned by the reading goroutine: the one in which go-rtmp calls Read, its
	// callbacks, and Close.
	in        *chunkReader
	hand      *serverHandshake // nil once it is over
	pending   []byte           // what Read gives out next
	calls     []*call          // commands that go-rtmp is to get
	app       connectInfo
	waiting   time.Time // since when a publish or play is waited for
	acked     uint64
	window    uint64 // the peer's acknowledgement window
	armed     time.Time
	lastFrame time.Time
	pub       *publishing
	play      *playing
	said      string // text of the fault or refusal, for the log
	told      bool   // the peer was told why it is let go
	role      string // newest role, stream and session, for the log
	name      string
	account   *session.Session // nil before the first
	ended     session.Reason   // how the last role ended
	left      bool
	pace      paces
	doze      doze

	// Handed from the reading goroutine to go-rtmp's writing one with a command, and
	// back with its reply.
	current *call
	streams map[uint32]*netStream // by the peer's message stream id
	inbox   inbox
	replies *chunkReader
	replied chan struct{} // capacity 1, never closed

	// Owned by whoever holds out.mu.
	scratch []byte

	closing sync.Once
}

// connectInfo is what a connect command said.
type connectInfo struct {
	app      string // with the query
	agent    string
	pageURL  string
	fourCC   bool // the peer listed codecs by FourCC
	received bool
}

// netStream is a message stream of the peer.
type netStream struct {
	inner uint32 // go-rtmp's id for it
	used  bool   // a publish or play was made on it
}

func newConn(s *Server, nc net.Conn, now time.Time) *conn {
	c := &conn{
		srv: s, net: nc, log: s.log, done: make(chan struct{}), began: now,
		hand: &serverHandshake{}, window: ackWindow,
		streams: make(map[uint32]*netStream), replied: make(chan struct{}, 1), pace: newPaces(),
	}
	if a, err := netip.ParseAddrPort(nc.RemoteAddr().String()); err == nil {
		c.peer = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
	}
	_, c.tls = nc.(*tls.Conn)
	if !c.tls {
		c.plain = tcpConn(nc)
	}
	c.out = newChunkWriter(c)
	c.in = newChunkReader(readerFunc(c.readSocket), idleBuffer, s.config().guest())
	c.in.inside, c.in.all = c.control, s.partials
	c.replies = newChunkReader(&c.inbox, 512, limits{message: 1 << 16, partial: 1 << 16, streams: maxStreams})
	c.replies.size = boxChunk
	return c
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// tcpConn finds the TCP connection below wrappers that have a NetConn method, as
// far as writing past them changes nothing.
func tcpConn(nc net.Conn) *net.TCPConn {
	for {
		switch c := nc.(type) {
		case *net.TCPConn:
			return c
		case *tls.Conn:
			return nil
		case interface{ NetConn() net.Conn }:
			nc = c.NetConn()
		default:
			return nil
		}
	}
}

// end gives the connection its reason, once, and makes blocked reads and writes
// return. It may be called from any goroutine and does not block.
func (c *conn) end(r session.Reason) {
	if !c.ending.CompareAndSwap(uint32(session.None), uint32(r)) {
		return
	}
	close(c.done)
	now := time.Now()
	c.net.SetReadDeadline(now)
	c.net.SetWriteDeadline(now.Add(farewellTimeout))
}

func (c *conn) reason() session.Reason { return session.Reason(c.ending.Load()) }

// fail ends the connection because of err and returns what go-rtmp is to see.
func (c *conn) fail(err error) error {
	if f := (*fault)(nil); errors.As(err, &f) {
		c.said = f.text
	}
	c.end(reasonOf(err))
	return io.EOF
}

// recovered is deferred by everything that go-rtmp calls: a panic there ends one
// connection, not the process.
func (c *conn) recovered(err *error) {
	p := recover()
	if p == nil {
		return
	}
	c.log.Error("panic in an RTMP connection", "peer", c.peer, "reason", session.Internal, "panic", p, "stack", string(debug.Stack()))
	c.end(session.Internal)
	if err != nil {
		*err = io.ErrClosedPipe
	}
}

// Read gives go-rtmp the handshake and then one command at a time. Everything else
// that comes from the peer is dealt with inside.
func (c *conn) Read(p []byte) (n int, err error) {
	defer c.recovered(&err)
	for len(c.pending) == 0 {
		if err := c.advance(); err != nil {
			return 0, c.fail(err)
		}
	}
	n = copy(p, c.pending)
	c.pending = c.pending[n:]
	return n, nil
}

// advance works until there is something for go-rtmp.
func (c *conn) advance() error {
	if h := c.hand; h != nil && !h.gotC2 {
		err := h.next(c.in)
		c.pending = h.fromPeer
		return err
	}
	if c.hand != nil {
		c.hand, c.waiting = nil, time.Now()
		c.srv.handshakes.Add(1)
	}
	if err := c.settle(); err != nil {
		return err
	}
	for len(c.calls) == 0 {
		var m message
		if err := c.in.readMessage(&m); err != nil {
			return err
		}
		if err := c.handle(&m); err != nil {
			return err
		}
	}
	return c.feed()
}

// feed hands the next call to go-rtmp.
func (c *conn) feed() error {
	next := c.calls[0]
	c.calls = c.calls[1:]
	var inner uint32
	if next.kind == callPublish || next.kind == callPlay {
		st := c.streams[next.stream]
		if st == nil {
			return faultf(session.BadCommand, "more than %d message streams", maxStreams)
		}
		st.used = true
		inner = st.inner
	}
	c.current = next
	c.pending = next.encode(inner)
	return nil
}

// settle waits until the reply to the last call is on its way to the peer, and
// then lets what was agreed begin. It waits also when the connection is ending:
// until the reply has come, go-rtmp's other goroutine may use what is shared. A
// write that blocks it then fails within the farewell time.
func (c *conn) settle() error {
	last := c.current
	if last == nil || !last.replies() {
		c.current = nil
		return nil
	}
	timer := time.NewTimer(replyTimeout)
	defer timer.Stop()
	select {
	case <-c.replied:
	case <-timer.C:
		return faultf(session.Internal, "go-rtmp did not answer")
	}
	c.current = nil
	if last.kind == callPlay {
		c.beginPlay()
	}
	return nil
}

// Write takes what go-rtmp has for the peer: the handshake, then its replies, one
// chunk in each call.
func (c *conn) Write(p []byte) (n int, err error) {
	defer c.recovered(&err)
	if c.hand != nil {
		if answer := c.hand.written(p); answer != nil {
			err = c.out.raw(answer)
		}
		return len(p), err
	}
	c.inbox.b = append(c.inbox.b, p...)
	for {
		var m message
		if err := c.replies.readMessage(&m); err == io.EOF {
			return len(p), nil
		} else if err != nil {
			c.log.Error("go-rtmp wrote what we cannot read", "peer", c.peer, "reason", session.Internal, "err", err)
			c.end(session.Internal)
			return 0, err
		}
		if err := c.reply(&m); err != nil {
			c.end(session.WriteFailed)
			return 0, err
		}
	}
}

// readSocket reads from the peer, keeps the deadlines of each phase and acknowledges.
func (c *conn) readSocket(p []byte) (int, error) {
	for {
		c.lieDown()
		c.arm()
		n, err := c.net.Read(p)
		if n > 0 {
			if err := c.count(n); err != nil {
				return 0, err
			}
			return n, nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
		if c.reason() != session.None {
			return 0, io.EOF
		}
		limit, r := c.deadline()
		if !limit.IsZero() && !time.Now().Before(limit) {
			return 0, faultf(r, "%v", r)
		}
		c.armed = time.Time{} // it was armed for less: a frame has come since, or it dozes
		if c.doze.dozing() {
			c.doze.struck()
		}
	}
}

// lieDown says how many bytes are to wake this goroutine.
func (c *conn) lieDown() {
	n := 1
	switch {
	case c.plain == nil || c.pub == nil && !c.doze.dozing():
		return
	case c.pub != nil:
		n = c.doze.want(c.pub.pub.AwaitsPicture(), c.in.rest())
	}
	if n != max(1, c.doze.mark) && wakeAt(c.plain, n) {
		c.doze.mark = n
	}
}

// deadline returns until when the peer must have sent something, and what it is
// guilty of otherwise.
func (c *conn) deadline() (time.Time, session.Reason) {
	cfg := c.srv.config()
	switch {
	case c.hand != nil:
		return c.began.Add(cfg.HandshakeTimeout), session.HandshakeTimeout
	case c.pub != nil:
		return c.lastFrame.Add(cfg.IdleTimeout), session.Idle
	case c.play != nil:
		return time.Time{}, session.None // what it takes is watched instead
	}
	return c.waiting.Add(cfg.CommandTimeout), session.CommandTimeout
}

// arm sets the read deadline. Since media moves it with every frame, it is left to
// fall behind by a second, and looked at again when it strikes. While this goroutine
// dozes it is at most dozeMost away, and falls behind by half of that.
func (c *conn) arm() {
	limit, _ := c.deadline()
	behind := time.Second
	if c.doze.dozing() {
		limit, behind = earlier(limit, time.Now().Add(dozeMost)), dozeMost/2
	}
	if late := limit.Sub(c.armed); c.pub != nil && late >= 0 && late < behind || limit.Equal(c.armed) && !c.armed.IsZero() {
		return
	}
	c.armed = limit
	c.net.SetReadDeadline(limit)
	if c.reason() != session.None { // end came in between
		c.net.SetReadDeadline(time.Unix(1, 0))
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// count adds to the bytes received and acknowledges them when the peer's window is
// full, which a new window can be at once (RTMP 1.0, section 5.4.3). The sequence number is the low 32 bits of all
// bytes since the connection began.
func (c *conn) count(n int) error {
	c.received.Add(uint64(n))
	if err := c.guest(n); err != nil {
		return err
	}
	return c.acknowledge()
}

func (c *conn) acknowledge() error {
	total := c.received.Load()
	if c.hand != nil || total-c.acked < c.window {
		return nil
	}
	c.acked = total
	var p [4]byte
	binary.BigEndian.PutUint32(p[:], uint32(total))
	return c.out.control(chunksControl, typeAck, 0, p[:])
}

// Close is called by go-rtmp last, once. It is where a connection ends.
func (c *conn) Close() error {
	c.closing.Do(func() {
		defer c.srv.release(c)
		defer c.net.Close()
		defer c.recovered(nil)
		c.leave()
		if c.told {
			c.linger()
		}
	})
	return nil
}

// leave gives up the role that the connection has. It is called in the reading
// goroutine.
func (c *conn) leave() {
	if c.left {
		return
	}
	c.left = true
	c.end(session.PeerClosed)
	c.stopRole(c.reason())
	c.logEnd()
}

// linger lets a peer that was told something read it.
func (c *conn) linger() {
	half, ok := c.net.(interface{ CloseWrite() error })
	if c.plain != nil {
		half, ok = c.plain, true
	}
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.net.SetReadDeadline(time.Now().Add(lingerTimeout))
	io.CopyN(io.Discard, c.net, lingerBytes)
}

// logEnd writes the one line about a connection.
func (c *conn) logEnd() {
	r := c.reason()
	if r == session.PeerClosed && c.ended != session.None {
		r = c.ended // it had said goodbye before it went
	}
	c.srv.ended(c, r)
}
