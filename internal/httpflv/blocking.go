package httpflv

import (
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/flv"
	"millrace/internal/quality"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// recordSize is how much a writer collects before it writes: what fits into one
// TLS record (RFC 8446, 5.1).
const recordSize = 16 << 10

// writerTags is how many tags a writer looks at in one go.
const writerTags = 32

// writer serves one viewer whose socket no shard can write to, because there is
// something between: TLS, or WebSocket with its questions to be answered; or a node
// below, which gets every tag at once. It has a goroutine that writes and one that
// reads.
type writer struct {
	// Fixed at construction.
	server *Server
	conn   net.Conn
	in     io.Reader // conn, behind what was read of it already
	play   play
	stream *stream.Stream

	// Owned by run.
	cur    stream.Cursor
	sess   *session.Session // nil until begun
	skips  stream.Skips
	buf    []byte // what is collected; from the pool while there is something
	head   [maxPrefix]byte
	broken bool // a write failed

	wake    chan struct{}       // capacity 1, never closed
	kicked  chan session.Reason // capacity 1, never closed
	control chan []byte         // capacity 4, never closed: frames that answer the peer's
	left    chan struct{}       // closed by the reader when the peer is gone of itself

	// Safe from any goroutine.
	writing atomic.Bool
	rider   atomic.Pointer[rider] // while a trunk's coach has it
}

var records = sync.Pool{New: func() any { return new([recordSize]byte) }}

// startWriter serves the viewer in goroutines of its own, unless the server ends.
func (s *Server) startWriter(p play, str *stream.Stream, c net.Conn, in io.Reader) {
	var opt stream.CursorOptions
	if p.node != nil {
		opt = stream.CursorOptions{KeepClock: true, OnePublish: true, Back: p.node.marks.Back}
	}
	w := &writer{
		server: s, conn: c, in: in, play: p, stream: str, cur: str.NewCursor(opt),
		wake: make(chan struct{}, 1), kicked: make(chan session.Reason, 1),
		control: make(chan []byte, 4), left: make(chan struct{}),
	}
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		s.release(str)
		_ = c.Close()
		return
	}
	s.writers[w] = struct{}{}
	s.running.Go(w.run)
	s.mu.Unlock()
}

// closeStep is how often it is looked who is to be closed next.
const closeStep = 10 * time.Millisecond

// closeWriters ends the viewers that are on no shard, evenly over the time there is,
// and waits for their goroutines.
func (s *Server) closeWriters() {
	s.mu.Lock()
	s.stopped = true
	all := slices.Collect(maps.Keys(s.writers))
	s.mu.Unlock()
	step := time.NewTicker(closeStep)
	defer step.Stop()
	begun := time.Since(s.fan.began)
	for total := len(all); ; <-step.C {
		for keep := s.fan.keep(total, begun, time.Since(s.fan.began)); len(all) > keep; all = all[1:] {
			all[0].kick(session.Draining)
		}
		if len(all) == 0 {
			break
		}
	}
	s.closeTrunks()
	s.running.Wait()
}

// Wake implements [stream.Waiter].
func (w *writer) Wake() {
	if r := w.rider.Load(); r != nil {
		r.mark()
		return
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// kick ends the viewer, also while it waits for its socket.
func (w *writer) kick(r session.Reason) {
	select {
	case w.kicked <- r:
	default:
	}
	w.interrupt()
	w.Wake()
}

// interrupt ends a write that is under way. What called for it must be visible
// before: flush looks after it has said that it writes.
func (w *writer) interrupt() {
	if w.writing.Load() {
		_ = w.conn.SetWriteDeadline(time.Unix(1, 0))
	}
}

// interrupted reports whether there is a reason not to write.
func (w *writer) interrupted() bool {
	select {
	case <-w.left:
		return true
	default:
		return len(w.kicked) > 0
	}
}

var errInterrupted = errors.New("interrupted")

// run serves until the viewer ends, and settles its accounts.
func (w *writer) run() {
	s := w.server
	if tcp := tcpOf(w.conn); tcp != nil {
		_ = boundUnsentOf(tcp, unsentFor(w.stream.Bitrate()))
	}
	w.stream.Watch(w)
	var reader sync.WaitGroup
	reader.Go(w.read)

	serve := w.serve
	if w.play.node != nil {
		serve = w.serveNode
	}
	r := serve()
	if w.sess == nil && r != session.PeerClosed && r != session.ProtocolError {
		w.tell(r)
	}
	w.stream.Unwatch(w)
	w.close()
	reader.Wait()
	s.release(w.stream)
	s.mu.Lock()
	delete(s.writers, w)
	s.mu.Unlock()
	if w.sess == nil {
		s.refused(w.play.info, r, "")
	} else if w.sess.Close(r) {
		w.quality().Ended(w.play.info.Peer.Addr(), r)
		s.fan.logLater(w.sess, r)
	}
}

// quality returns where it is kept how the viewer fares: nowhere for a node, which is
// no viewer.
func (w *writer) quality() *quality.Book {
	if w.play.node != nil {
		return nil
	}
	return w.server.self.Quality
}

// close closes the connection. After a failed write TLS has nothing to say any more,
// but would wait for seconds to say it, and the kernel would keep what the peer did
// not take.
func (w *writer) close() {
	if tcp := tcpOf(w.conn); w.broken && tcp != nil {
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
	}
	_ = w.conn.Close()
}

// tell answers a viewer for whom nothing came.
func (w *writer) tell(r session.Reason) {
	refusal := missing(w.play.name, r)
	answer{conn: w.conn, text: refusal.append(nil, w.play.cors, time.Now())}.deliver()
}

// read finds out that the peer is gone, and what it wants if it can say so.
func (w *writer) read() {
	r := session.None
	if w.play.framing == webSocket {
		r = readFrames(w.in, w.control)
	} else if n, _ := io.CopyN(io.Discard, w.in, maxIgnored); n == maxIgnored {
		r = session.ProtocolError
	}
	if r != session.None {
		w.kick(r)
		return
	}
	close(w.left)
	w.interrupt()
	w.Wake()
}

// serve writes until the viewer ends, and returns why.
func (w *writer) serve() session.Reason {
	timer := time.NewTimer(w.server.patience(&w.play, w.stream))
	defer timer.Stop()
	var expiry <-chan time.Time
	if at := w.play.expires; !at.IsZero() {
		t := time.NewTimer(time.Until(at))
		defer t.Stop()
		expiry = t.C
	}
	var tags [writerTags]flv.Tag
	for {
		n := w.cur.Peek(tags[:])
		if n == 0 && w.cur.Ended() {
			return w.over()
		}
		if n > 0 {
			if err := w.write(tags[:n]); err != nil {
				return w.failure(err)
			}
			w.cur.Advance(n)
			clear(tags[:n])
		}
		if n == len(tags) {
			continue
		}
		// After a write nothing is looked at for an interval: that is the merging.
		wake := w.wake
		if n > 0 {
			wake = nil
			timer.Reset(w.server.fan.interval())
		}
		r, again := w.pause(wake, timer.C, expiry)
		if r != session.None {
			return r
		}
		if again && w.sess == nil {
			return w.stream.Failure()
		}
	}
}

// pause waits for one of what may happen. timed reports that the timer went off.
func (w *writer) pause(wake <-chan struct{}, timer, expiry <-chan time.Time) (r session.Reason, timed bool) {
	for {
		select {
		case <-wake:
			return session.None, false
		case <-timer:
			if wake == nil || w.sess == nil || w.play.node != nil {
				return session.None, true
			}
		case frame := <-w.control:
			if w.sess == nil {
				continue
			}
			// Nothing is collected here, so the frame stands between others.
			if err := w.say(frame); err != nil {
				return w.failure(err), false
			}
		case <-w.left:
			w.farewell()
			return session.PeerClosed, false
		case r := <-w.kicked:
			if r != session.Draining {
				w.finish(r)
			}
			return r, false
		case <-expiry:
			w.finish(session.TokenExpired)
			return session.TokenExpired, false
		}
	}
}

// say writes an answer to the peer. The last one, to a closing handshake that the
// peer began (RFC 6455, 5.5.1), must not hold up the end.
func (w *writer) say(frame []byte) error {
	_, err := w.send(frame)
	if errors.Is(err, errInterrupted) {
		_ = w.conn.SetWriteDeadline(time.Now().Add(answerTime))
		_, err = w.conn.Write(frame)
	}
	return err
}

// send writes p. A peer that takes nothing of it in the stall time is given up.
func (w *writer) send(p []byte) (int, error) {
	w.writing.Store(true)
	defer w.writing.Store(false)
	_ = w.conn.SetWriteDeadline(time.Now().Add(w.server.fan.config().StallTimeout))
	if w.interrupted() {
		return 0, errInterrupted
	}
	n, err := w.conn.Write(p)
	w.server.fan.relayed.Add(uint64(n))
	return n, err
}

// farewell says what is left to say to a peer that leaves.
func (w *writer) farewell() {
	for w.sess != nil {
		select {
		case frame := <-w.control:
			_ = w.say(frame)
		default:
			return
		}
	}
}

// over ends the body of a stream that ended.
func (w *writer) over() session.Reason {
	if w.sess == nil {
		return w.stream.Failure()
	}
	w.finish(session.StreamEnded)
	return session.StreamEnded
}

// failure returns why a write failed. A peer that is gone is gone, whatever else.
func (w *writer) failure(err error) session.Reason {
	w.broken = true
	select {
	case <-w.left:
		return session.PeerClosed
	case r := <-w.kicked:
		return r
	default:
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return session.Stalled
	}
	return session.PeerClosed
}

// finish writes a proper end of the body.
func (w *writer) finish(r session.Reason) {
	if w.sess == nil {
		return
	}
	var end []byte
	switch w.play.framing {
	case chunked:
		end = []byte(lastChunk)
	case webSocket:
		end = closeFrame(r)
	}
	if w.put(end) == nil {
		_ = w.flush()
	}
}

// begin writes the response header and the FLV header.
func (w *writer) begin() error {
	p := w.play
	w.sess = w.server.table.Open(p.info, w.kick)
	w.server.fan.came(w.sess)
	w.quality().Began(p.info.Peer.Addr(), time.Since(p.info.Started))
	var head []byte
	if p.framing == webSocket {
		head = appendUpgrade(nil, p.wsKey)
	} else {
		more := p.cors
		if p.node != nil {
			more += trunkOffer
		}
		head = appendHead(nil, p.framing, more, time.Now())
	}
	audio, video := tracks(w.stream)
	head = p.framing.appendFrame(head, flv.FileHeaderSize, false)
	head = flv.AppendFileHeader(head, audio, video)
	if p.framing == chunked {
		head = append(head, crlf...)
	}
	return w.put(head)
}

// write writes tags.
func (w *writer) write(tags []flv.Tag) error {
	if w.sess == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	w.countSkips()
	for i := range tags {
		if err := w.putTag(&tags[i]); err != nil {
			return err
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.sess.Tags.Add(uint64(len(tags)))
	return nil
}

// countSkips notes what the viewer was too slow for.
func (w *writer) countSkips() {
	if s := w.cur.Skips(); s != w.skips {
		s.Count(w.skips, w.sess)
		w.skips = s
		w.quality().Skipped(w.play.info.Peer.Addr())
	}
}

// putTag collects a tag in its framing.
func (w *writer) putTag(t *flv.Tag) error {
	if err := w.put(w.play.framing.appendTagHead(w.head[:0], t, false)); err != nil {
		return err
	}
	if err := w.put(t.Wire[flv.HeaderSize:]); err != nil {
		return err
	}
	if w.play.framing != chunked {
		return nil
	}
	return w.put(crlfBytes)
}

// put collects p, and writes whenever a record is full.
func (w *writer) put(p []byte) error {
	for len(p) > 0 {
		if w.buf == nil {
			w.buf = records.Get().(*[recordSize]byte)[:0]
		}
		n := copy(w.buf[len(w.buf):recordSize], p)
		w.buf, p = w.buf[:len(w.buf)+n], p[n:]
		if len(w.buf) == recordSize {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes what is collected and gives the buffer back.
func (w *writer) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	n, err := w.send(w.buf)
	w.sess.Bytes.Add(uint64(n))
	records.Put((*[recordSize]byte)(w.buf[:recordSize]))
	w.buf = nil
	return err
}
