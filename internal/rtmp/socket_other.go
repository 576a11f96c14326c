//go:build !linux

package rtmp

import "net"

// limitUnsent does nothing where the kernel cannot be told.
func limitUnsent(*net.TCPConn, int64) {}

// ackUnread does nothing either, nor does wakeAt.
func ackUnread(*net.TCPConn) bool { return false }

func wakeAt(*net.TCPConn, int) bool { return false }
