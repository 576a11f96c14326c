package rtmp

import (
	"runtime"
	"testing"
)

// TestConnectionMemory bounds what a publisher that sends little costs, its peer in
// this test included: 20 KB of heap. With go-rtmp's private buffer it was 100 KB.
func TestConnectionMemory(t *testing.T) {
	const conns, limit = 200, 32 << 10
	n := newNode(t, option{})
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range conns {
		p := n.dialRaw(t)
		p.in = newChunkReader(p.net, 64, testLimits)
		if err := clientHandshake(p.net, p.in); err != nil {
			t.Fatal(err)
		}
		p.command(0, "connect", 1, object{{"app", "live"}})
		p.expect("_result")
		p.publish(itoa(i))
		p.expectStatus(codePublishStart)
	}
	if each := (heap() - before) / conns; each > limit {
		t.Errorf("%d bytes of heap for each connection, want at most %d", each, limit)
	}
}

// TestBufferGrows gives a busy connection a larger buffer, and leaves an idle one
// its small one.
func TestBufferGrows(t *testing.T) {
	busy := newChunkReader(newLoop(4096), idleBuffer, testLimits)
	idle := newChunkReader(cutter{newLoop(4096), 1000}, idleBuffer, testLimits)
	for range 50 {
		var m message
		if busy.readMessage(&m) != nil || idle.readMessage(&m) != nil {
			t.Fatal("no message")
		}
	}
	if len(busy.buf) != readBuffer || len(idle.buf) != idleBuffer {
		t.Errorf("buffers of %d and %d bytes", len(busy.buf), len(idle.buf))
	}
}
