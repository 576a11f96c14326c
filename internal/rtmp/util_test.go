package rtmp

import (
	"net"
	"runtime"
	"strconv"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

func discard(bufs *net.Buffers) error { *bufs = nil; return nil }

// heapPeak returns by how much the heap in use grew while f ran, at its highest.
func heapPeak(f func()) uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, peak := m.HeapAlloc, m.HeapAlloc
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		var m runtime.MemStats
		t := time.NewTicker(2 * time.Millisecond)
		defer t.Stop()
		for {
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
			select {
			case <-stop:
				return
			case <-t.C:
			}
		}
	}()
	f()
	close(stop)
	<-stopped
	return peak - before
}
