//go:build !linux || race

package socket

import "net"

// of leaves it to the runtime: elsewhere than on Linux, and for the race detector, which
// takes what goes over a socket for an order of events if it sees the calls.
func of(tcp *net.TCPConn) net.Conn { return tcp }
