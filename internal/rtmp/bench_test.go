package rtmp

import (
	"bytes"
	"io"
	"runtime"
	"syscall"
	"testing"
	"time"

	"millrace/internal/flv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// mix is one video message of 8,000 bytes and two of audio, as a 2 Mbit/s stream
// sends them, cut into chunks of the given size by a peer that announced it.
func mix(size, times int) (wire []byte, messages int) {
	video := append([]byte{0x17, 1, 0, 0, 0}, make([]byte, 7995)...)
	audio := append([]byte{0xaf, 1}, make([]byte, 370)...)
	wire = appendMessage(nil, defaultChunkSize, 2, typeSetChunkSize, 0, 0, []byte{0, byte(size >> 16), byte(size >> 8), byte(size)})
	for i := range times {
		now := uint32(i * 40)
		wire = appendMessage(wire, size, 6, typeVideo, 1, now, video)
		wire = appendMessage(wire, size, 4, typeAudio, 1, now, audio)
		wire = appendMessage(wire, size, 4, typeAudio, 1, now+20, audio)
	}
	return wire, 3 * times
}

// loop repeats the messages of mix for ever; rewind restarts the chunk reader's
// idea of nothing, since each message has a full header.
type loop struct {
	data []byte
	at   int
	skip int // the set chunk size message, read once
}

func (l *loop) Read(p []byte) (int, error) {
	if l.at == len(l.data) {
		l.at = l.skip
	}
	n := copy(p, l.data[l.at:])
	l.at += n
	return n, nil
}

func newLoop(size int) *loop {
	one, _ := mix(size, 0)
	data, _ := mix(size, 64)
	return &loop{data: data, skip: len(one)}
}

func BenchmarkChunkReader(b *testing.B) {
	for _, size := range []int{128, 4096, 60000} {
		b.Run("chunk="+itoa(size), func(b *testing.B) {
			r := newChunkReader(newLoop(size), readBuffer, testLimits)
			b.SetBytes((8000 + 2*372) / 3)
			b.ReportAllocs()
			var m message
			for b.Loop() {
				if err := r.readMessage(&m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkIngest takes bytes through the chunk reader to a published tag. One
// iteration is one message of the mix. The node has 32 other live streams, so that
// the garbage collector has a heap to look at, and reason to let it grow. The
// machine may be busy with other things: MB/cpu-s counts the processor time that
// was used, the collector's on other cores included.
func BenchmarkIngest(b *testing.B) {
	for _, size := range []int{128, 4096, 60000} {
		b.Run("chunk="+itoa(size), func(b *testing.B) {
			for range 32 {
				read := ingest(b, size)
				for range 400 {
					read()
				}
				defer runtime.KeepAlive(read)
			}
			read := ingest(b, size)
			const bytes = (8000 + 2*372) / 3
			b.SetBytes(bytes)
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				read()
			}
			b.ReportMetric(bytes*float64(b.N)/(cpuTime(b)-before).Seconds()/1e6, "MB/cpu-s")
		})
	}
}

// cpuTime returns the processor time that this process has used.
func cpuTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ingest returns a function that takes one message from the wire to a stream.
func ingest(tb testing.TB, size int) func() {
	hub, err := stream.NewHub(stream.DefaultConfig())
	if err != nil {
		tb.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	pub, err := hub.Publish(now, "live/bench", "owner", nil)
	if err != nil {
		tb.Fatal(err)
	}
	r := newChunkReader(newLoop(size), readBuffer, testLimits)
	var m message
	return func() {
		if err := r.readMessage(&m); err != nil {
			tb.Fatal(err)
		}
		tag, reason := mediaTag(&m)
		if reason != session.None {
			tb.Fatal(reason)
		}
		if err := pub.Write(now, tag); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestIngestAllocates wants one allocation a message: the tag's bytes.
func TestIngestAllocates(t *testing.T) {
	read := ingest(t, 4096)
	for range 3000 { // the log has reached its length
		read()
	}
	if n := testing.AllocsPerRun(3000, read); n > 1 {
		t.Errorf("%v allocations for each message, want 1", n)
	}
}

func BenchmarkChunkWriter(b *testing.B) {
	for _, size := range []int{128, 4096, 60000} {
		b.Run("chunk="+itoa(size), func(b *testing.B) {
			tag := flv.New(flv.Video, 1<<25, make([]byte, 8000))
			w := newChunkWriter(sinkFunc(discard))
			var out batch
			b.SetBytes(8000)
			b.ReportAllocs()
			for b.Loop() {
				out.reset()
				out.add(size, 1, tag)
				if err := w.media(&out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestWriterAllocates wants none for media that is sent again and again.
func TestWriterAllocates(t *testing.T) {
	tag := flv.New(flv.Video, 1<<25, make([]byte, 8000))
	w := newChunkWriter(sinkFunc(discard))
	var out batch
	if n := testing.AllocsPerRun(1000, func() {
		out.reset()
		out.add(4096, 1, tag)
		if err := w.media(&out); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations for each batch", n)
	}
}

// TestMixIsRead guards the benchmarks against measuring nothing.
func TestMixIsRead(t *testing.T) {
	wire, want := mix(4096, 10)
	out, err := readAll(newChunkReader(bytes.NewReader(wire), readBuffer, testLimits))
	if err != nil || len(out) != want {
		t.Errorf("got %d messages and %v, want %d", len(out), err, want)
	}
	var m message
	r := newChunkReader(io.LimitReader(newLoop(4096), 1<<20), readBuffer, testLimits)
	for err = nil; err == nil; err = r.readMessage(&m) {
	}
	if reasonOf(err) != session.PeerClosed {
		t.Error(err)
	}
}
