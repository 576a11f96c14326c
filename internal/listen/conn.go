package listen

import (
	"net"
	"net/netip"
	"sync/atomic"
)

// Conn is a connection within the limits of a [Listener]. Its RemoteAddr is the
// real client's, IPv4 in four bytes, and never blocks.
type Conn struct {
	net.Conn // the socket

	// Fixed before the connection is handed out.
	owner  *Listener
	remote net.Addr
	peer   netip.AddrPort // the same; not valid if it is no IP address

	// Owned by whoever reads.
	rest []byte // came with the PROXY header and is not read yet

	// Safe from any goroutine.
	closed  atomic.Bool
	lingers atomic.Bool // see Linger
}

// Read reads from the connection.
func (c *Conn) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		c.rest = nil // frees the buffer
	}
	return n, nil
}

// RemoteAddr returns the address of the client.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// NetConn returns the socket below. Bytes that came with a PROXY header are not
// in it: read from the Conn until the client's first message is complete.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Close closes the socket and frees the connection's place in the limits. Calls
// after the first do nothing. It must be called even if the socket below was
// closed or taken over. After [Linger] it waits for the peer.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	if c.lingers.Load() && c.owner.linger(c.Conn) {
		defer c.owner.workers.Done()
	}
	err := c.Conn.Close()
	c.owner.limits.leaveBoth(c.peer.Addr()) // after it: the place is a descriptor
	return err
}

// TCPConn returns the TCP connection at the bottom of c, following methods NetConn
// as of [Conn] and [crypto/tls.Conn]; nil if there is none. What is written to it
// goes past everything above, so under TLS it is for socket options only.
func TCPConn(c net.Conn) *net.TCPConn {
	tcp, _ := find[*net.TCPConn](c)
	return tcp
}

// find returns the first T of c and what is below it.
func find[T any](c net.Conn) (found T, ok bool) {
	const deepest = 8 // guards against a wrapper that returns itself
	for range deepest {
		if found, ok = c.(T); ok {
			return found, true
		}
		w, wraps := c.(interface{ NetConn() net.Conn })
		if !wraps {
			break
		}
		c = w.NetConn()
	}
	return found, false
}

// addrPort returns a in its shortest form, not valid if it is no TCP address.
func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
