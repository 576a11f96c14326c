//go:build !linux

package rtmp

import "net"

// limitUnsent does nothing where the kernel cannot be told.
func limitUnsent(*net.TCPConn, int64) {}

// wakeAt does nothing either.
func wakeAt(*net.TCPConn, int) bool { return false }
