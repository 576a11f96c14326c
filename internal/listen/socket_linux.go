package listen

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// tune makes the kernel notice dead peers. Errors are not of interest: the socket
// may be gone already, which the first read will tell.
func tune(c net.Conn, cfg Config) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: cfg.KeepAlive, Interval: cfg.KeepAlive, Count: 3})
	if cfg.UserTimeout == 0 {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(cfg.UserTimeout/time.Millisecond))
	})
}
