package rtmp

import (
	"net"
	"strconv"
)

func itoa(n int) string { return strconv.Itoa(n) }

func discard(bufs *net.Buffers) error { *bufs = nil; return nil }
