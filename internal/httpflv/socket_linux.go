package httpflv

import (
	"errors"
	"fmt"
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tcpOf returns the TCP connection at the bottom of c, nil when there is none.
// Wrappers tell what they wrap by NetConn, as [crypto/tls.Conn] does, or by
// UnsafeConn, as the HTTP library's hijacked connections do.
func tcpOf(c net.Conn) *net.TCPConn {
	for c != nil {
		switch w := c.(type) {
		case *net.TCPConn:
			return w
		case interface{ UnsafeConn() net.Conn }:
			c = w.UnsafeConn()
		case interface{ NetConn() net.Conn }:
			c = w.NetConn()
		default:
			return nil
		}
	}
	return nil
}

// takeSocket returns a descriptor of c's socket that the runtime's poller does not
// know, and closes the one that it knows. The socket stays non-blocking, because
// that is a property of the socket and not of the descriptor.
func takeSocket(c *net.TCPConn) (fd int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	var dupErr error
	err = raw.Control(func(old uintptr) {
		fd, dupErr = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err = errors.Join(err, dupErr); err != nil {
		return -1, fmt.Errorf("take the socket of %v: %w", c.RemoteAddr(), err)
	}
	if err := c.Close(); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("release the socket of %v: %w", c.RemoteAddr(), err)
	}
	return fd, nil
}

// What a shard asks of the kernel again and again is asked past the Go runtime, which
// counts on every system call to block: it has a thread look every 20 µs or so whether one
// does, from the first call after a rest on, and that costs a tenth of the serving. None
// of these blocks.

// writev writes iov to fd, which does not block, and returns how much the socket took.
func writev(fd int, iov []unix.Iovec) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(&iov[0])), uintptr(len(iov)))
	return int(n), errno
}

// pollEvents fills events with what has happened in the epoll instance, and returns how
// many of them it filled.
func pollEvents(epfd int, events []unix.EpollEvent) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// ring adds 1 to an eventfd, which makes it readable.
func ring(fd int) {
	one := uint64(1)
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&one)), unsafe.Sizeof(one))
}

// hush takes what is in an eventfd out.
func hush(fd int) {
	var n uint64
	_, _, _ = unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&n)), unsafe.Sizeof(n))
}

// Bounds of what may lie unsent in a socket's send buffer. Less would need a
// wake-up for every few segments on a long path; more would hide a second of a
// common stream from the cursor, which is who decides about slow viewers.
const (
	minUnsent  = 32 << 10
	maxUnsent  = 1 << 20
	unsentTime = 500 * time.Millisecond
)

// unsentFor returns the bound for a stream of bitrate bytes per second.
func unsentFor(bitrate int64) int {
	return int(min(max(bitrate*int64(unsentTime)/int64(time.Second), minUnsent), maxUnsent))
}

// boundUnsent makes the kernel refuse bytes when n are waiting to be sent. Those in
// flight do not count: they follow the peer's window and the path, and are not ours
// to bound.
func boundUnsent(fd, n int) error {
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, n)
}

// boundUnsentOf is boundUnsent for a connection that the runtime owns.
func boundUnsentOf(c *net.TCPConn, n int) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var optErr error
	err = raw.Control(func(fd uintptr) { optErr = boundUnsent(int(fd), n) })
	return errors.Join(err, optErr)
}

// unacknowledged returns how many bytes the peer has not confirmed yet.
func unacknowledged(fd int) (int, error) {
	return unix.IoctlGetInt(fd, unix.SIOCOUTQ)
}

// abandon closes fd and has the kernel drop what the peer did not take, instead of
// keeping it for minutes for a peer that reads nothing.
func abandon(fd int) {
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 0})
	unix.Close(fd)
}

// sendingOf returns what the kernel knows of what goes out on c: the least round trip of
// the last minutes in microseconds, the bytes sent, and those of them sent again. All are
// 0 where it does not say.
func sendingOf(c *net.TCPConn) (trip uint32, out, again uint64) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0, 0
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			trip, out, again = known(info.Min_rtt), info.Bytes_sent, info.Bytes_retrans
		}
	})
	return trip, out, again
}

// known returns a time of the kernel, or 0 for all ones, by which it says that it has
// none.
func known(t uint32) uint32 {
	if t == 1<<32-1 {
		return 0
	}
	return t
}
