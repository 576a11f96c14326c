package httpflv

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http/httputil"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"millrace/internal/flv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// local is a stream without a node, and a server for the viewers' accounts.
func local(t testing.TB) (*stream.Publisher, *Server) {
	t.Helper()
	hub, err := stream.NewHub(stream.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	p, err := hub.Publish(time.Now(), "live/a", "owner", nil)
	if err != nil {
		t.Fatal(err)
	}
	return p, &Server{hub: hub, table: session.NewTable(), fan: newFanout(DefaultConfig(), slog.New(slog.DiscardHandler))}
}

func put(t testing.TB, p *stream.Publisher, kind flv.Kind, dts int64, payload []byte) {
	t.Helper()
	if err := p.Write(time.Now(), flv.New(kind, dts, payload)); err != nil {
		t.Fatal(err)
	}
}

func picture(key bool, size, n int) []byte {
	p := make([]byte, max(size, 10))
	p[0], p[1] = 0x27, 1
	if key {
		p[0] = 0x17
	}
	p[5], p[6], p[7] = byte(n>>16), byte(n>>8), byte(n)
	return p
}

// flat returns what an iovec points at.
func flat(iov []unix.Iovec) []byte {
	var out []byte
	for _, v := range iov {
		out = append(out, unsafe.Slice(v.Base, v.Len)...)
	}
	return out
}

// Whatever part of each write the socket takes, the viewer gets the same bytes.
func TestAnyPartialWriteLosesNothing(t *testing.T) {
	for _, f := range []framing{closeDelimited, chunked} {
		for seed := range uint64(60) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			limit := []int{1, 2, 3, 17, 60, 700, 5000}[seed%7]
			got := takePartially(t, f, rnd, limit)
			checkBody(t, f, got, seed)
		}
	}
}

const partialFrames = 40

// takePartially serves one viewer with a socket that takes up to limit bytes of
// each write, and returns what it took.
func takePartially(t *testing.T, f framing, rnd *rand.Rand, limit int) []byte {
	p, server := local(t)
	put(t, p, flv.Video, 0, avcHeader)
	put(t, p, flv.Audio, 0, aacHeader)
	v := &viewer{server: server, stream: p.Stream(), framing: f, cur: p.Stream().NewCursor(stream.CursorOptions{})}
	b := newBatch()
	var got []byte
	for n := range partialFrames {
		put(t, p, flv.Video, int64(40*n), picture(n%10 == 0, rnd.IntN(300), n))
		if n == 0 {
			v.begin()
		}
		for range rnd.IntN(12) {
			got = append(got, step(b, v, rnd, limit)...)
		}
	}
	v.end(session.StreamEnded)
	for v.rest.len() > 0 {
		got = append(got, step(b, v, rnd, limit)...)
	}
	return got
}

func step(b *batch, v *viewer, rnd *rand.Rand, limit int) []byte {
	n, _ := b.gather(v)
	if b.total == 0 {
		return nil
	}
	wrote := min(b.total, rnd.IntN(limit+1))
	out := flat(b.iov)[:wrote]
	b.settle(v, n, wrote)
	return out
}

// checkBody reads a response, which may end early, and wants frames in order.
func checkBody(t *testing.T, f framing, got []byte, seed uint64) {
	t.Helper()
	_, body, ok := bytes.Cut(got, []byte("\r\n\r\n"))
	if !ok {
		t.Fatalf("seed %d: no response header in %q", seed, got)
	}
	var in io.Reader = bytes.NewReader(body)
	if f == chunked {
		in = httputil.NewChunkedReader(in)
	}
	r := flv.NewReader(in, 1<<20)
	frames, heads := 0, 0
	for {
		tag, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("framing %d, seed %d, after %d frames: %v", f, seed, frames, err)
		}
		if tag.Is(flv.Header) {
			heads++
			continue
		}
		if number(tag) != frames || tag.DTS != int64(40*frames) {
			t.Fatalf("framing %d, seed %d: frame %d at %d ms, want %d", f, seed, number(tag), tag.DTS, frames)
		}
		frames++
	}
	if frames > 0 && heads != 2 {
		t.Errorf("framing %d, seed %d: %d headers", f, seed, heads)
	}
}

// What a slow viewer keeps in memory is one tag, whatever there is for it.
func TestASlowViewerKeepsOneTag(t *testing.T) {
	p, server := local(t)
	v := &viewer{server: server, stream: p.Stream(), framing: chunked, cur: p.Stream().NewCursor(stream.CursorOptions{})}
	for n := range 50 {
		put(t, p, flv.Video, int64(40*n), picture(n == 0, 1000, n))
	}
	v.begin()
	b := newBatch()
	n, _ := b.gather(v)
	b.settle(v, n, b.start[3]+5)
	if len(v.rest.body) > 1000+flv.TrailerSize || len(v.rest.head) > maxPrefix {
		t.Errorf("rest holds %d + %d bytes", len(v.rest.head), len(v.rest.body))
	}
	if v.sess.Tags.Load() != 3 {
		t.Errorf("%d tags counted, want 3", v.sess.Tags.Load())
	}
	b.gather(v)
	out := flat(b.iov)
	b.settle(v, 0, v.rest.len())
	if v.sess.Tags.Load() != 4 {
		t.Errorf("%d tags counted, want 4", v.sess.Tags.Load())
	}
	if !bytes.Contains(out, []byte{0, 0, 4}) {
		t.Error("the rest is not followed by the next tag")
	}
}

func TestReleaseLetsGoOfTags(t *testing.T) {
	p, server := local(t)
	v := &viewer{server: server, stream: p.Stream(), framing: chunked, cur: p.Stream().NewCursor(stream.CursorOptions{})}
	for n := range 20 {
		put(t, p, flv.Video, int64(40*n), picture(n == 0, 100, n))
	}
	v.begin()
	b := newBatch()
	b.gather(v)
	b.release()
	if slices.ContainsFunc(b.tags[:], func(t flv.Tag) bool { return t.Wire != nil }) {
		t.Error("a tag is still referred to")
	}
	if slices.ContainsFunc(b.iov[:cap(b.iov)], func(v unix.Iovec) bool { return v.Base != nil }) {
		t.Error("an iovec still refers to something")
	}
}

// socketViewer returns a viewer with a real socket, and the other end.
func socketViewer(t testing.TB, server *Server, s *stream.Stream) (*viewer, int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	v := &viewer{fd: fds[0], server: server, stream: s, framing: chunked, cur: s.NewCursor(stream.CursorOptions{})}
	v.begin()
	return v, fds[1]
}

func TestServingAllocatesNothing(t *testing.T) {
	p, server := local(t)
	tags := make([]flv.Tag, 2000)
	for n := range tags {
		tags[n] = flv.New(flv.Video, int64(40*n), picture(n%50 == 0, 500, n))
	}
	if err := p.Write(time.Now(), tags[0]); err != nil {
		t.Fatal(err)
	}
	v, peer := socketViewer(t, server, p.Stream())
	b := newBatch()
	buf := make([]byte, 64<<10)
	b.serve(v)
	// What publishing costs is not at issue, and a full socket is served too.
	next := 1
	avg := testing.AllocsPerRun(300, func() {
		for range 3 {
			_ = p.Write(time.Time{}, tags[next])
			next++
		}
		if b.serve(v) == failed {
			t.Fatal("the socket failed")
		}
		if next%2 == 0 {
			_, _ = unix.Read(peer, buf)
		}
	})
	// The log takes a block for every 64 tags.
	if avg > 0.5 {
		t.Errorf("%v allocations a serve", avg)
	}
	if b.counts.bytes == 0 || v.sess.Tags.Load() < 600 {
		t.Errorf("served %d bytes, %d tags", b.counts.bytes, v.sess.Tags.Load())
	}
}

// BenchmarkServe is one pass over 1,000 viewers of one stream that lack three
// tags of 8 KB, over local sockets that are read between the passes.
func BenchmarkServe(b *testing.B) {
	p, server := local(b)
	put(b, p, flv.Video, 0, picture(true, 8000, 0))
	const viewers = 1000
	all := make([]*viewer, viewers)
	peers := make([]int, viewers)
	bat := newBatch()
	buf := make([]byte, 256<<10)
	for i := range all {
		all[i], peers[i] = socketViewer(b, server, p.Stream())
		bat.serve(all[i])
		_, _ = unix.Read(peers[i], buf)
	}
	b.ReportAllocs()
	n := 1
	for b.Loop() {
		b.StopTimer()
		for range 3 {
			put(b, p, flv.Video, int64(40*n), picture(n%50 == 0, 8000, n))
			n++
		}
		b.StartTimer()
		for i, v := range all {
			if out := bat.serve(v); out != drained {
				b.Fatalf("viewer %d: outcome %d", i, out)
			}
		}
		b.StopTimer()
		for _, fd := range peers {
			_, _ = unix.Read(fd, buf)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/viewers, "ns/viewer")
}
