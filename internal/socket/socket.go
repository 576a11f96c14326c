// Package socket reads from and writes to TCP connections past the Go runtime.
//
// The runtime counts on every system call to block: from the first one after a rest on it
// has a thread look every 20 µs or so whether one does. With a call for every frame that
// costs more than many a frame: a tenth of the CPU time of a node that serves 1,000
// viewers of one stream, and more of one with many streams. Calls on a socket of Go's do
// not block. The runtime still waits for the socket, so deadlines and Close work as ever.
package socket

import "net"

// Of returns c, with a Read and a Write that go past the runtime if c is a TCP connection
// and the system can do that. It owns c from then on.
func Of(c net.Conn) net.Conn {
	if tcp, ok := c.(*net.TCPConn); ok {
		return of(tcp)
	}
	return c
}
