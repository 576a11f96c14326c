package rtmp

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bounds of what may lie unsent in the kernel's buffer of a player.
const (
	minUnsent = 64 << 10
	maxUnsent = 1 << 20
	anyUnsent = 256 << 10 // when the bitrate is not known
)

// limitUnsent bounds how much the kernel takes that is not on its way yet to about
// half a second of the stream: what waits there is beyond the reach of the policy
// for slow players. tcp may be nil. A kernel that cannot do it does without.
func limitUnsent(tcp *net.TCPConn, bytesPerSecond int64) {
	if tcp == nil {
		return
	}
	limit := int64(anyUnsent)
	if bytesPerSecond > 0 {
		limit = min(max(bytesPerSecond/2, minUnsent), maxUnsent)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, int(limit))
	})
}

// socket reads from a TCP connection past the Go runtime, which counts on every system
// call to block: it has a thread look every 20 µs or so whether one does, from the first
// call after a rest on, and with a call for every frame that costs more than the frame.
// A read of a socket of Go's does not block; the runtime waits for it as always, and the
// deadlines of the connection hold. Owned by the reading goroutine.
type socket struct {
	raw   syscall.RawConn
	try   func(fd uintptr) bool // made once: a func made for each read would be garbage
	p     []byte
	n     int
	errno unix.Errno

	acks bool // see confirms
}

// ackWithin is how late the kernel may confirm what lies unread, the least that it takes
// with 250 ticks a second. What is read it confirms at once, the rest after 40 ms or more,
// and until then an encoder without TCP_NODELAY keeps its next picture back.
const ackWithin = 8 * time.Millisecond

// newSocket returns nil where reading in this way is not possible.
func newSocket(tcp *net.TCPConn) *socket {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	s := &socket{raw: raw}
	_ = raw.Control(func(fd uintptr) {
		s.acks = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_DELACK_MAX_US, int(ackWithin.Microseconds())) == nil
	})
	s.try = func(fd uintptr) bool {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&s.p[0])), uintptr(len(s.p)))
		s.n, s.errno = int(n), errno
		return errno != unix.EAGAIN
	}
	return s
}

// Read implements [io.Reader], with the errors of a [net.Conn]. p is not empty.
func (s *socket) Read(p []byte) (int, error) {
	s.p = p
	defer func() { s.p = nil }()
	for {
		if err := s.raw.Read(s.try); err != nil {
			return 0, err
		}
		switch {
		case s.errno == unix.EINTR:
		case s.errno != 0:
			return 0, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", s.errno)}
		case s.n == 0:
			return 0, io.EOF
		default:
			return s.n, nil
		}
	}
}

// confirms reports whether the peer is told within ackWithin of what has come and is not
// read. Linux does that from 6.15 on.
func (s *socket) confirms() bool { return s.acks }

// wakeAt has the reader woken by n bytes, not by fewer, but for the end of the
// connection. It reports whether the kernel does that.
func (s *socket) wakeAt(n int) (ok bool) {
	err := s.raw.Control(func(fd uintptr) {
		ok = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT, n) == nil
	})
	return ok && err == nil
}
