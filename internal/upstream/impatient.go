package upstream

import (
	"context"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// ackTime is how long what was written to a center may stay unacknowledged by its
// kernel: a machine or a way that is gone is noticed by then, and not when the buffer of
// the connection is full, which takes a thin stream many minutes. A process that is
// frozen is not noticed by it, as its kernel goes on to acknowledge.
const ackTime = 1200 * time.Millisecond

// impatient has the connections of dial end after ackTime.
func impatient(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			return c, nil
		}
		raw, err := tcp.SyscallConn()
		if err == nil {
			// Without it the connection is as good as it was before.
			_ = raw.Control(func(fd uintptr) {
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(ackTime/time.Millisecond))
			})
		}
		return c, nil
	}
}
