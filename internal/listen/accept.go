package listen

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"millrace/internal/session"
	"millrace/internal/socket"
)

// Bounds of the wait after the system refused to accept. The first is what a
// descriptor that is just being closed needs; the second keeps a starved node
// answering soon after it recovers.
const (
	backoffMin = 5 * time.Millisecond
	backoffMax = time.Second
)

// maxPending is how many connections may wait for their PROXY header. Proxies send
// it with the first segment, so that more than a few mean that a proxy is broken.
const maxPending = 1024

// refusalReasons are the reasons for which a connection is not handed out.
var refusalReasons = [...]session.Reason{
	session.OverLimit, session.AddressLimit, session.BadProxyHeader, session.PeerClosed,
}

const refusals = len(refusalReasons)

// pump accepts until the socket is closed or broken.
func (l *Listener) pump() {
	wait := time.Duration(0)
	for {
		c, err := l.inner.Accept()
		if err == nil {
			wait = 0
			l.admit(c)
			continue
		}
		if !passing(err) {
			l.finish(fmt.Errorf("accept on %v: %w", l.inner.Addr(), err))
			return
		}
		l.acceptErrors.Add(1)
		if n, ok := l.warnings.event(time.Now(), "accept"); ok {
			l.log.Warn("cannot accept connections", "address", l.inner.Addr().String(), "err", err, "count", n)
		}
		wait = min(max(2*wait, backoffMin), backoffMax)
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-l.done:
			t.Stop()
		}
	}
}

// passing reports whether an error of accept may go away by itself: the system is
// short of something, or the connection that was to be accepted has failed. Any
// error number is taken as such unless it says that the socket itself is unusable.
func passing(err error) bool {
	errno, ok := errors.AsType[syscall.Errno](err)
	return ok && !errors.Is(err, net.ErrClosed) && errno != syscall.EBADF && errno != syscall.EINVAL &&
		errno != syscall.ENOTSOCK && errno != syscall.EOPNOTSUPP
}

// admit hands c out, or refuses it. It never waits for c's peer.
func (l *Listener) admit(nc net.Conn) {
	set := l.settings.Load()
	c := &Conn{Conn: socket.Of(nc), owner: l, remote: nc.RemoteAddr(), peer: addrPort(nc.RemoteAddr())}
	if c.peer.IsValid() {
		c.remote = net.TCPAddrFromAddrPort(c.peer)
	}
	if !l.limits.enter(set.MaxConnections) {
		l.refuse(nc, c.peer.Addr(), session.OverLimit)
		return
	}
	tune(nc, set.Config)
	if !set.trusts(c.peer.Addr()) {
		l.handOut(c, set)
		return
	}
	if !l.wait(nc) {
		l.limits.leave()
		l.refuse(nc, c.peer.Addr(), session.OverLimit)
		return
	}
	l.workers.Go(func() { l.identify(c, set) })
}

// identify reads the PROXY header of c and then hands c out, or refuses it.
func (l *Listener) identify(c *Conn, set *settings) {
	proxy := c.peer.Addr()
	err := c.readProxyHeader(time.Now().Add(set.ProxyTimeout))
	l.mu.Lock()
	delete(l.pending, c.Conn)
	closed := l.closed
	l.mu.Unlock()
	switch {
	case closed:
		l.limits.leave()
		_ = c.Conn.Close()
	case err != nil:
		l.limits.leave()
		why := session.BadProxyHeader
		if errors.Is(err, errSilentClose) {
			why = session.PeerClosed
		}
		l.refuse(c.Conn, proxy, why)
	default:
		l.handOut(c, set)
	}
}

// wait notes that nc has to say who it is first, and reports whether it may.
func (l *Listener) wait(nc net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.pending) >= maxPending {
		return false
	}
	l.pending[nc] = struct{}{}
	return true
}

// handOut gives c, whose address is now known and which is counted already, to
// Accept unless its address has too many.
func (l *Listener) handOut(c *Conn, set *settings) {
	if !l.limits.enterAddress(c.peer.Addr(), set.MaxPerAddress) {
		l.limits.leave()
		l.refuse(c.Conn, c.peer.Addr(), session.AddressLimit)
		return
	}
	select {
	case l.ready <- c:
	case <-l.done:
		_ = c.Close()
	}
}

// refuse closes a connection that is not counted.
func (l *Listener) refuse(nc net.Conn, peer netip.Addr, why session.Reason) {
	l.refused[slices.Index(refusalReasons[:], why)].Add(1) // before the peer can see it
	_ = nc.Close()
	if why == session.PeerClosed { // a health check
		return
	}
	if n, ok := l.warnings.event(time.Now(), why.String()); ok {
		l.log.Warn("connection refused", "address", l.inner.Addr().String(), "peer", peer.String(), "reason", why.String(), "count", n)
	}
}

// throttle lets each kind of event through once a second, with the count of those
// that were held back.
type throttle struct {
	// Guarded by mu.
	mu    sync.Mutex
	kinds map[string]*kind // as many as there are messages in this package
}

type kind struct {
	last  time.Time
	count uint64
}

func (t *throttle) event(now time.Time, name string) (count uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kinds == nil {
		t.kinds = make(map[string]*kind)
	}
	k := t.kinds[name]
	if k == nil {
		k = &kind{}
		t.kinds[name] = k
	}
	k.count++
	if now.Sub(k.last) < time.Second {
		return 0, false
	}
	count, k.count, k.last = k.count, 0, now
	return count, true
}
