package faultnet

import (
	"context"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// never is how long to wait for what only a change can bring.
const never = time.Duration(math.MaxInt64)

// conn is one connection through a link: two sockets and a pipe each way.
type conn struct {
	// Fixed at construction.
	link   *TCP
	near   net.Conn
	cancel context.CancelFunc // ends everything, without a word to the peers
	up     pipe               // from near to far
	down   pipe

	// Guarded by mu.
	mu  sync.Mutex
	far net.Conn // nil until the target has been reached

	// Safe from any goroutine.
	orphaned atomic.Bool // far is gone, and near is not to know
}

func newConn(l *TCP, near net.Conn, number uint64, cancel context.CancelFunc) *conn {
	c := &conn{link: l, near: near, cancel: cancel}
	for i, p := range []*pipe{&c.up, &c.down} {
		p.conn, p.lane = c, []*lane{&l.up, &l.down}[i]
		p.course = newCourse(l.cfg.Seed, 2*number+uint64(i))
		p.more, p.room = make(chan struct{}, 1), make(chan struct{}, 1)
	}
	return c
}

// run passes on until both directions have ended or ctx has. It reports whether the
// target could be reached.
func (c *conn) run(ctx context.Context) bool {
	defer c.near.Close()
	if !c.handshake(ctx) {
		return true
	}
	far, err := c.link.dial(ctx)
	if err != nil {
		ended := ctx.Err() != nil
		c.abort()
		return ended
	}
	defer far.Close()
	c.mu.Lock()
	c.far = far
	c.mu.Unlock()
	for _, s := range []net.Conn{c.near, far} {
		if b, ok := s.(interface{ SetReadBuffer(int) error }); ok {
			b.SetReadBuffer(receiveBuffer) // as good as it gets: the kernel's own size works too
		}
	}
	c.up.src, c.up.dst = c.near, far
	c.down.src, c.down.dst = far, c.near
	unblock := context.AfterFunc(ctx, func() {
		c.near.Close()
		far.Close()
	})
	defer unblock()
	var pipes sync.WaitGroup
	for _, p := range []*pipe{&c.up, &c.down} {
		pipes.Go(func() { p.read(ctx) })
		pipes.Go(func() { p.write(ctx) })
	}
	pipes.Wait()
	return true
}

// handshake waits for the round trip of a connection's first two packets; false if
// ctx ended.
func (c *conn) handshake(ctx context.Context) bool {
	var due time.Time
	return c.link.await(ctx, nil, func(now time.Time) time.Duration {
		if due.IsZero() {
			out, _ := c.up.course.due(now, 0, c.link.up.fault)
			due, _ = c.down.course.due(out, 0, c.link.down.fault)
		}
		return due.Sub(now)
	})
}

// abort resets both sides.
func (c *conn) abort() {
	abort(c.near)
	c.mu.Lock()
	if c.far != nil {
		abort(c.far)
	}
	c.mu.Unlock()
	c.cancel()
}

// orphan resets the far side alone.
func (c *conn) orphan() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.far != nil {
		c.orphaned.Store(true)
		abort(c.far)
	}
}

// abort closes a socket with a reset instead of an orderly end.
func abort(s net.Conn) {
	if l, ok := s.(interface{ SetLinger(int) error }); ok {
		l.SetLinger(0) // fails on a socket that is closed already
	}
	s.Close()
}

// await blocks until the link is not frozen and wait, called with the link's mutex
// held, says that nothing is to be waited for; false if ctx ended before. It asks
// again when the time that wait said has passed, when poke receives, and when the
// link changes.
func (l *TCP) await(ctx context.Context, poke <-chan struct{}, wait func(now time.Time) time.Duration) bool {
	for {
		l.mu.Lock()
		news, d := l.news, never
		if !l.frozen {
			d = wait(time.Now())
		}
		l.mu.Unlock()
		if d <= 0 {
			return ctx.Err() == nil
		}
		var after <-chan time.Time
		if d != never {
			after = time.After(d)
		}
		select {
		case <-ctx.Done():
			return false
		case <-news:
		case <-poke:
		case <-after:
		}
	}
}

// pipe is one direction of a connection. read and write are a goroutine each.
//
//	src ─▶ read ─▶ │ piece … piece │ ─▶ write ─▶ dst
//	               bytes <= buffer
type pipe struct {
	// Fixed before read and write begin.
	conn       *conn
	lane       *lane
	src, dst   net.Conn
	more, room chan struct{} // capacity 1, never closed: the queue has grown, has shrunk

	// Owned by the handshake, then by read.
	course course

	// Guarded by mu, which may be taken while the link's is held.
	mu    sync.Mutex
	queue []piece
	bytes int
}

// piece is what one read gave.
type piece struct {
	due  time.Time
	data []byte
	end  bool // the orderly end of the direction; no data
}

// read fills the queue until src ends.
func (p *pipe) read(ctx context.Context) {
	buf := make([]byte, 16<<10)
	for {
		if !p.conn.link.await(ctx, p.room, func(time.Time) time.Duration {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.bytes >= bufferOf(p.lane.fault) {
				return never
			}
			return 0
		}) {
			return
		}
		n, err := p.src.Read(buf)
		if n > 0 {
			p.push(n, piece{data: append([]byte(nil), buf[:n]...)})
		}
		if err == io.EOF {
			p.push(0, piece{end: true})
			return
		}
		if err != nil {
			p.broken(ctx)
			return
		}
	}
}

func (p *pipe) push(n int, next piece) {
	l := p.conn.link
	l.mu.Lock()
	fault := p.lane.fault
	l.mu.Unlock()
	var lost int
	next.due, lost = p.course.due(time.Now(), n, fault)
	p.lane.lost.Add(uint64(lost))
	p.mu.Lock()
	p.queue = append(p.queue, next)
	p.bytes += n
	p.mu.Unlock()
	poke(p.more)
}

// poke wakes who receives from c, now or the next time.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// write empties the queue until the end of the direction.
func (p *pipe) write(ctx context.Context) {
	for {
		var next piece
		if !p.conn.link.await(ctx, p.more, func(now time.Time) (wait time.Duration) {
			next, wait = p.head(now)
			return wait
		}) {
			return
		}
		if next.end {
			p.end()
			return
		}
		n, err := p.dst.Write(next.data)
		p.lane.bytes.Add(uint64(n))
		p.taken(len(next.data))
		if err != nil && !p.conn.orphaned.Load() {
			p.broken(ctx)
			return
		}
	}
}

// head returns what is to be written next, or how long to wait for it. The link's
// mutex is held.
func (p *pipe) head(now time.Time) (piece, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return piece{}, never
	}
	next := p.queue[0]
	if wait := next.due.Sub(now); wait > 0 {
		return next, wait
	}
	if next.end {
		return next, 0
	}
	next.data = next.data[:p.lane.part(len(next.data))]
	return next, p.lane.turn(now, len(next.data))
}

// taken removes n bytes of the first piece.
func (p *pipe) taken(n int) {
	p.mu.Lock()
	first := &p.queue[0]
	if first.data = first.data[n:]; len(first.data) == 0 {
		p.queue[0] = piece{}
		p.queue = p.queue[1:]
	}
	p.bytes -= n
	p.mu.Unlock()
	poke(p.room)
}

// end passes the orderly end on.
func (p *pipe) end() {
	if p.conn.orphaned.Load() {
		p.conn.cancel() // near has left too
		return
	}
	if half, ok := p.dst.(interface{ CloseWrite() error }); ok {
		half.CloseWrite() // fails on a socket that is closed already
		return
	}
	p.dst.Close()
}

// broken passes a reset on: at once, since it overtakes what is under way, unless the
// link is frozen or near is not to know.
func (p *pipe) broken(ctx context.Context) {
	if p.conn.orphaned.Load() && p == &p.conn.down {
		return
	}
	if p.conn.link.await(ctx, nil, func(time.Time) time.Duration { return 0 }) {
		p.conn.abort()
	}
}
