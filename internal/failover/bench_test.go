package failover

import (
	"testing"
	"time"
	"unsafe"

	"millrace/internal/flv"
)

// settled returns a splicer in mid-stream, and tags that come next for ever.
func settled(size int) (*Splicer, []flv.Tag) {
	s := NewSplicer()
	tags := make([]flv.Tag, 0, 150)
	for i := range 150 { // an arithmetic mean of a GOP with its audio
		kind, p := flv.Audio, make([]byte, 32)
		p[0], p[1] = 0xaf, 1
		if i%3 == 0 {
			kind, p = flv.Video, make([]byte, size)
			p[0], p[1] = 0x27, 1
		}
		p[6] = byte(i)
		tags = append(tags, flv.New(kind, int64(i)*13, p))
	}
	s.Take(epoch, tags[0], nil)
	return s, tags
}

func TestTakeAllocatesNothing(t *testing.T) {
	s, tags := settled(10_000)
	w, h := NewWindow(), NewHealth(&Config{}, epoch)
	out := make([]flv.Tag, 0, 8)
	i := 0
	for name, f := range map[string]func(flv.Tag){
		"Splicer.Take": func(tag flv.Tag) { out = s.Take(epoch, tag, out[:0]) },
		"Window.Add":   w.Add,
		"Health.Came":  func(tag flv.Tag) { h.Came(epoch.Add(time.Duration(i)*time.Millisecond), tag) },
	} {
		n := testing.AllocsPerRun(2000, func() {
			i++
			tag := tags[i%len(tags)]
			tag.DTS = int64(i) * 13
			f(tag)
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestWindowSize(t *testing.T) {
	size := int(unsafe.Sizeof(Window{}))
	for _, r := range NewWindow().tracks {
		size += cap(r.sums)*8 + cap(r.times)*4
	}
	if size > 64<<10 {
		t.Errorf("a window takes %d bytes", size)
	}
	t.Logf("%d bytes", size)
}

func benchmarkTake(b *testing.B, size int) {
	s, tags := settled(size)
	out := make([]flv.Tag, 0, 8)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		tag := tags[i%len(tags)]
		tag.DTS = int64(i) * 13
		out = s.Take(epoch, tag, out[:0])
		i++
	}
	b.SetBytes(int64(size)/3 + 21)
}

// BenchmarkTake is the cost of the settled state; with payloads of 32 bytes it is
// that without the hash.
func BenchmarkTake(b *testing.B) {
	b.Run("small", func(b *testing.B) { benchmarkTake(b, 32) })
	b.Run("10KB", func(b *testing.B) { benchmarkTake(b, 10_000) })
}

func BenchmarkCame(b *testing.B) {
	cfg := DefaultConfig()
	h := NewHealth(&cfg, epoch)
	_, tags := settled(32)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		tag := tags[i%len(tags)]
		tag.DTS = int64(i) * 13
		h.Came(epoch.Add(time.Duration(i)*13*time.Millisecond), tag)
		i++
	}
}

// BenchmarkJoin is a joint with a backlog of a four-second burst against a full
// window, over an unknown clock.
func BenchmarkJoin(b *testing.B) {
	src := content{ms: 60_000, fps: 30, audio: 43.07, gop: 60, silent: func(int) bool { return true }}.make()
	first := src.from(upstream{}, 0)
	first = first[:until(first, upstream{}, 50_000)]
	second := src.from(upstream{shift: 999}, 47_000)
	second = second[:until(second, upstream{shift: 999}, 50_500)]
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		s := NewSplicer()
		var out []flv.Tag
		for _, t := range first {
			out = s.Take(epoch, t, out[:0])
		}
		b.StartTimer()
		s.Join(epoch, second, false, nil)
	}
}

// BenchmarkLead is what a trial costs ten times a second while nothing agrees.
func BenchmarkLead(b *testing.B) {
	c := content{ms: 60_000, fps: 30, audio: 43.07, gop: 60, silent: func(int) bool { return true }}
	s, cfg := NewSplicer(), DefaultConfig()
	for _, t := range c.make().from(upstream{}, 0) {
		s.Take(epoch, t, nil)
	}
	trial := NewTrial(&cfg, epoch)
	c.static, c.ms = func(int) bool { return true }, 4000
	for i, t := range c.make().from(upstream{}, 0) {
		trial.Take(at(i*10), t)
	}
	b.ReportAllocs()
	for b.Loop() {
		trial.Lead(s.Window(), false)
	}
}
