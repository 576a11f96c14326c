//go:build linux && !race

package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// conn is a TCP connection whose Read and Write go past the runtime. Like those of
// [net.TCPConn] they may be called from several goroutines.
type conn struct {
	*net.TCPConn
	in, out side
}

// NetConn returns the connection below.
func (c *conn) NetConn() net.Conn { return c.TCPConn }

// side is one direction.
type side struct {
	// Fixed at construction: a func made for each call would be garbage.
	when func(func(fd uintptr) bool) error // calls try when the socket is ready, until it returns true
	try  func(fd uintptr) bool

	mu sync.Mutex

	// Guarded by mu.
	p     []byte
	n     int
	errno unix.Errno
}

func of(tcp *net.TCPConn) net.Conn {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return tcp
	}
	c := &conn{TCPConn: tcp}
	c.in.open(unix.SYS_READ, raw.Read)
	c.out.open(unix.SYS_WRITE, raw.Write)
	return c
}

// Read implements [net.Conn].
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := c.in.move(p)
	switch {
	case err != nil:
		return 0, c.failed("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements [net.Conn].
func (c *conn) Write(p []byte) (written int, err error) {
	c.out.mu.Lock() // over all of p: nothing comes in between
	defer c.out.mu.Unlock()
	for written < len(p) {
		n, err := c.out.moveLocked(p[written:])
		if err != nil {
			return written, c.failed("write", err)
		}
		written += n
	}
	return written, nil
}

// failed returns err as [net.TCPConn] would.
func (c *conn) failed(op string, err error) error {
	if of, ok := errors.AsType[*net.OpError](err); ok { // of the wait: raw-read
		of.Op = op
		return of
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(op, err)}
}

func (s *side) open(call uintptr, when func(func(uintptr) bool) error) {
	s.when = when
	s.try = func(fd uintptr) bool {
		for {
			n, _, errno := unix.RawSyscall(call, fd, uintptr(unsafe.Pointer(&s.p[0])), uintptr(len(s.p)))
			if errno != unix.EINTR {
				s.n, s.errno = int(n), errno
				return errno != unix.EAGAIN
			}
		}
	}
}

func (s *side) move(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moveLocked(p)
}

// moveLocked moves some of p, which is not empty, as soon as the socket is ready.
func (s *side) moveLocked(p []byte) (int, error) {
	s.p = p
	err := s.when(s.try)
	s.p = nil
	switch {
	case err != nil:
		return 0, err
	case s.errno != 0:
		return 0, s.errno
	}
	return s.n, nil
}
