package listen

import (
	"io"
	"net"
	"time"
)

// Bounds of a close that lingers. Who is honest reads the answer and closes long before.
const (
	// lingerTime is how long the peer has to send what it has begun to send: 16 MiB at 26 Mbit/s.
	lingerTime = 5 * time.Second
	// lingerBytes is how much of it is thrown away as fast as it comes. It is more than any
	// body that is read.
	lingerBytes = 16 << 20
	// lingerPace and lingerStep are how fast the rest is, 320 kB/s: who sends without end
	// waits, and is not cut off before it has seen the answer.
	lingerPace = 50 * time.Millisecond
	lingerStep = 16 << 10
	// maxLingering is how many connections of a listener may linger at once. Each
	// keeps its goroutine and 8 kB.
	maxLingering = 256
)

// Linger has a connection that a [Listener] accepted, with TLS above it or not, close so
// that the peer gets what was written to it even while it still sends: first this side
// alone is closed, then what the peer sends is thrown away until it closes too. It is for
// the answer to a request that was not read to its end. A plain close would answer the
// unread bytes with a reset, and that takes from the peer what it has not read yet.
//
// The close, which blocks as long, is bounded in time, in what it takes of bytes, and in
// number; what is over the number closes at once, and so does everything when the listener
// closes.
func Linger(c net.Conn) {
	if own, ok := find[*Conn](c); ok {
		own.lingers.Store(true)
	}
}

// linger closes the sending side of nc and reads the other to its end. It reports whether
// it did: the caller then tells workers when nc is closed.
func (l *Listener) linger(nc net.Conn) bool {
	half, ok := find[interface{ CloseWrite() error }](nc)
	if !ok || nc.SetReadDeadline(time.Now().Add(lingerTime)) != nil || !l.mayLinger(nc) {
		return false
	}
	if half.CloseWrite() == nil {
		discard(nc)
	}
	l.mu.Lock()
	delete(l.lingering, nc)
	l.mu.Unlock()
	return true
}

// discard throws away what nc sends until it ends or its time is over.
func discard(nc net.Conn) {
	if _, err := io.CopyN(io.Discard, nc, lingerBytes); err != nil {
		return
	}
	pace := time.NewTicker(lingerPace)
	defer pace.Stop()
	for range pace.C {
		if _, err := io.CopyN(io.Discard, nc, lingerStep); err != nil {
			return
		}
	}
}

// mayLinger notes that nc lingers, and reports whether it may. Its deadline is set
// already: Close sets another.
func (l *Listener) mayLinger(nc net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	if len(l.lingering) >= maxLingering {
		if n, ok := l.warnings.event(time.Now(), "linger"); ok {
			l.log.Warn("too many refused peers still send: an answer may be lost", "address", l.inner.Addr().String(), "peer", nc.RemoteAddr().String(), "count", n)
		}
		return false
	}
	l.lingering[nc] = struct{}{}
	l.workers.Add(1)
	return true
}
