package run

import (
	"errors"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Reserve is a listener that keeps a descriptor in hand. When the process has run
// out of them it accepts with that one, so that an operator can always look.
type Reserve struct {
	net.Listener

	// Guarded by mu.
	mu   sync.Mutex
	held *os.File // nil while it is in use, or when there is none to be had
	over bool     // closed
}

// NewReserve returns ln with a descriptor in hand.
func NewReserve(ln net.Listener) *Reserve {
	r := &Reserve{Listener: ln}
	r.refill()
	return r
}

// Accept waits for the next connection.
func (r *Reserve) Accept() (net.Conn, error) {
	c, err := r.Listener.Accept()
	if (errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)) && r.release() {
		c, err = r.Listener.Accept() // there is one in the queue, or it would not have failed
		if err != nil {
			r.refill()
			return nil, err
		}
		return &lent{Conn: c, from: r}, nil
	}
	r.refill()
	return c, err
}

// Close closes the listener.
func (r *Reserve) Close() error {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.release()
	return r.Listener.Close()
}

// release gives the descriptor back to the system and reports whether there was one.
func (r *Reserve) release() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil {
		return false
	}
	r.held.Close()
	r.held = nil
	return true
}

// refill takes a descriptor if none is held.
func (r *Reserve) refill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil && !r.over {
		r.held, _ = os.Open(os.DevNull) // not now: at the next connection
	}
}

// lent is a connection on the reserve, which is taken again as soon as it closes.
type lent struct {
	net.Conn
	from *Reserve
	once sync.Once
}

// Close closes the connection.
func (c *lent) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.from.refill)
	return err
}

// NetConn returns the socket below.
func (c *lent) NetConn() net.Conn { return c.Conn }
