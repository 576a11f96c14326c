package stream

import (
	"reflect"
	"runtime"
	"testing"

	"millrace/internal/flv"
)

// memory returns the heap in use, and what was ever allocated.
func memory() (heap, ever int64) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.TotalAlloc)
}

// TestTinyTagsCostWhatTheyCost: a publisher whose tags have two bytes and one time
// takes no more memory than the log may have, and a long log costs no more for a tag
// than a short one.
func TestTinyTagsCostWhatTheyCost(t *testing.T) {
	for _, tt := range []struct {
		name     string
		limit    int64
		wantTags uint64 // at most
	}{
		{"by what they cost", 4 << 20, (4 << 20) / 80},
		{"by how many", 64 << 20, maxTags},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFeed(t, func(c *Config) { c.LogBytes, c.ViewerBytes = tt.limit, 1<<20 })
			f.key(0)
			before, everBefore := memory()
			const tags = 300_000
			for range tags {
				if err := f.pub.Write(epoch, flv.New(flv.Audio, 0, []byte{0xaf, 1})); err != nil {
					t.Fatal(err)
				}
			}
			after, everAfter := memory()
			if took := after - before; took > tt.limit*9/8 {
				t.Errorf("the log takes %d bytes of memory, %d are allowed", took, tt.limit)
			}
			if each := (everAfter - everBefore) / tags; each > 128 {
				t.Errorf("a tag of two bytes costs %d bytes of allocations", each)
			}
			st := f.hub.Stats(f.stream(), epoch)
			if st.LogBytes > tt.limit || st.LogTags > tt.wantTags || st.LogTags < tt.wantTags/2 {
				t.Errorf("the log says it holds %d tags and %d bytes; up to %d and %d are allowed",
					st.LogTags, st.LogBytes, tt.wantTags, tt.limit)
			}
			runtime.KeepAlive(f)
		})
	}
}

func TestTagCostHasTheEntry(t *testing.T) {
	if want := int64(reflect.TypeFor[entry]().Size()) + 16; tagCost != want {
		t.Errorf("tagCost is %d, want %d", tagCost, want)
	}
}

// TestBlocksLetGoOfAreFreed: the array that windows share keeps little of what has
// left the log.
func TestBlocksLetGoOfAreFreed(t *testing.T) {
	f := newFeed(t, func(c *Config) { c.LogBytes, c.ViewerBytes = 8<<20, 1<<20 })
	f.key(0)
	for i := range int64(40_000) { // sizes that come in waves: few big blocks, then many small ones
		size := 20
		if i/3000%2 == 0 {
			size = 8000
		}
		f.write(flv.Audio, 0, size, 0xaf, 1)
		l := f.stream().log
		w := l.window.Load()
		if kept := l.costSince(l.array[0], l.next.Load()); kept > 8<<20 {
			t.Fatalf("after %d tags: %d bytes are kept, %d are allowed; %d blocks live, %d in the array",
				i, kept, 8<<20, len(w.blocks), len(l.array))
		}
	}
}
