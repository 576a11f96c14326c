//go:build !linux

package rtmp

import "net"

// limitUnsent does nothing where the kernel cannot be told.
func limitUnsent(*net.TCPConn, int64) {}

// socket is for what only the kernel of Linux does.
type socket struct{ net.Conn }

func newSocket(*net.TCPConn) *socket { return nil }

func (*socket) confirms() bool { return false }

func (*socket) wakeAt(int) bool { return false }
