package upstream

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// leastTrip returns the least round trip that the kernel has seen on c lately, 0 if it
// does not say. Who only receives has little to measure by, so this is about as old as
// the connection.
func leastTrip(c net.Conn) time.Duration {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	var trip time.Duration
	_ = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil && info.Min_rtt != 1<<32-1 { // all ones: it has none
			trip = time.Duration(info.Min_rtt) * time.Microsecond
		}
	})
	return trip
}
