//go:build !linux

package listen

import "net"

// tune makes the kernel notice dead peers; only Linux has a user timeout.
func tune(c net.Conn, cfg Config) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: cfg.KeepAlive, Interval: cfg.KeepAlive, Count: 3})
	}
}
