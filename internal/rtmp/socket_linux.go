package rtmp

import (
	"net"
	"time"

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
	limit := int64(anyUnsent)
	if bytesPerSecond > 0 {
		limit = min(max(bytesPerSecond/2, minUnsent), maxUnsent)
	}
	_ = setOption(tcp, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, int(limit))
}

// ackWithin is how late the kernel may confirm what lies unread, the least that it takes
// with 250 ticks a second. What is read it confirms at once, the rest after 40 ms or more,
// and until then an encoder without TCP_NODELAY keeps its next picture back.
const ackWithin = 8 * time.Millisecond

// ackUnread has the peer of tcp told within ackWithin of what has come and is not read. It
// reports whether the kernel does that, as Linux does from 6.15 on. tcp may be nil.
func ackUnread(tcp *net.TCPConn) bool {
	return setOption(tcp, unix.IPPROTO_TCP, unix.TCP_DELACK_MAX_US, int(ackWithin.Microseconds()))
}

// wakeAt has whoever reads from tcp woken by n bytes, not by fewer, but for the end of
// the connection. It reports whether the kernel does that.
func wakeAt(tcp *net.TCPConn, n int) bool {
	return setOption(tcp, unix.SOL_SOCKET, unix.SO_RCVLOWAT, n)
}

// setOption sets an option of a socket, and reports whether the kernel took it. tcp may be
// nil.
func setOption(tcp *net.TCPConn, level, option, value int) (ok bool) {
	if tcp == nil {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) { ok = unix.SetsockoptInt(int(fd), level, option, value) == nil })
	return ok && err == nil
}
