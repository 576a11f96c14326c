package rtmp

import (
	"net"

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

// wakeAt has whoever reads from tcp woken by n bytes, not by fewer, but for the end of
// the connection. It reports whether the kernel does that.
func wakeAt(tcp *net.TCPConn, n int) bool {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	ok := false
	err = raw.Control(func(fd uintptr) {
		ok = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT, n) == nil
	})
	return ok && err == nil
}
