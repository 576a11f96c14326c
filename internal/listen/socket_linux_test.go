package listen

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestSocketOptions(t *testing.T) {
	l := start(t, func(c *Config) { c.KeepAlive = 7 * time.Second; c.UserTimeout = 21 * time.Second })
	dial(t, l)
	raw, err := TCPConn(accept(t, l)).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	f := func(name string, level, option, want int) {
		t.Helper()
		if err := raw.Control(func(fd uintptr) {
			if got, err := unix.GetsockoptInt(int(fd), level, option); err != nil || got != want {
				t.Errorf("%s is %d, %v, want %d", name, got, err, want)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	f("SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	f("TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 7)
	f("TCP_KEEPINTVL", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 7)
	f("TCP_KEEPCNT", unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3)
	f("TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 21000)
	f("TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
}
