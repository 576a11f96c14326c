package rtmp

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"millrace/internal/flv"
	"millrace/internal/session"
)

var testLimits = limits{message: 8 << 20, partial: 16 << 20, streams: 64}

// chunks builds a byte stream by hand, chunk by chunk.
type chunks []byte

func (c chunks) basic(form byte, id uint32) chunks { return appendBasic(c, form, id) }

func (c chunks) raw(b ...byte) chunks { return append(c, b...) }

// type0 appends a type 0 header with a 24-bit time as it is given.
func (c chunks) type0(id, time uint32, n int, kind byte, stream uint32) chunks {
	return c.basic(0, id).u24(time).u24(uint32(n)).raw(kind, byte(stream), byte(stream>>8), byte(stream>>16), byte(stream>>24))
}

func (c chunks) type1(id, delta uint32, n int, kind byte) chunks {
	return c.basic(1, id).u24(delta).u24(uint32(n)).raw(kind)
}

func (c chunks) type2(id, delta uint32) chunks { return c.basic(2, id).u24(delta) }

func (c chunks) u24(v uint32) chunks { return c.raw(byte(v>>16), byte(v>>8), byte(v)) }

func (c chunks) u32(v uint32) chunks { return c.raw(byte(v>>24), byte(v>>16), byte(v>>8), byte(v)) }

// got is what a message looked like, for comparison.
type got struct {
	kind    uint8
	stream  uint32
	time    uint32
	payload string
}

func readAll(r *chunkReader) (out []got, err error) {
	for {
		var m message
		if err := r.readMessage(&m); err != nil {
			if err == io.EOF {
				err = nil
			}
			return out, err
		}
		out = append(out, got{m.kind, m.stream, m.time, string(m.payload())})
	}
}

func TestChunkReader(t *testing.T) {
	text := func(n int) string { return string(bytes.Repeat([]byte{'x'}, n)) }
	long := text(200) // more than one chunk of 128
	tests := []struct {
		name  string
		bytes chunks
		want  []got
	}{
		{"nothing", nil, nil},
		{"one chunk", chunks{}.type0(4, 7, 2, 8, 1).raw('a', 'b'), []got{{8, 1, 7, "ab"}}},
		{"two chunks", append(chunks{}.type0(4, 7, 200, 8, 1).raw([]byte(text(128))...).basic(3, 4), text(72)...), []got{{8, 1, 7, long}}},
		{"zero length", chunks{}.type0(4, 7, 0, 9, 1).type0(4, 9, 1, 9, 1).raw('a'), []got{{9, 1, 7, ""}, {9, 1, 9, "a"}}},
		{
			"zero length, all types", chunks{}.type0(4, 6000, 0, 9, 1).type1(4, 1, 0, 9).type2(4, 2).basic(3, 4),
			[]got{{9, 1, 6000, ""}, {9, 1, 6001, ""}, {9, 1, 6003, ""}, {9, 1, 6005, ""}},
		},
		{
			"deltas", chunks{}.type0(4, 6000, 1, 8, 1).raw('a').type1(4, 10, 2, 8).raw('b', 'b').type2(4, 5).raw('c', 'c').basic(3, 4).raw('d', 'd'),
			[]got{{8, 1, 6000, "a"}, {8, 1, 6010, "bb"}, {8, 1, 6015, "cc"}, {8, 1, 6020, "dd"}},
		},
		{"type 3 inherits a small time", chunks{}.type0(4, 40, 1, 8, 1).raw('a').basic(3, 4).raw('b'), []got{{8, 1, 40, "a"}, {8, 1, 80, "b"}}},
		{"type 3 repeats a large time", chunks{}.type0(4, 9000, 1, 8, 1).raw('a').basic(3, 4).raw('b'), []got{{8, 1, 9000, "a"}, {8, 1, 9000, "b"}}},
		{"first chunk of type 1 counts from zero", chunks{}.type1(5, 40, 1, 9).raw('a'), []got{{9, 0, 40, "a"}}},
		{
			"ids of all sizes",
			chunks{}.type0(2, 0, 1, 8, 0).raw('a').type0(63, 0, 1, 8, 0).raw('b').type0(64, 0, 1, 8, 0).raw('c').
				type0(319, 0, 1, 8, 0).raw('d').type0(320, 0, 1, 8, 0).raw('e').type0(65599, 0, 1, 8, 0).raw('f'),
			[]got{{8, 0, 0, "a"}, {8, 0, 0, "b"}, {8, 0, 0, "c"}, {8, 0, 0, "d"}, {8, 0, 0, "e"}, {8, 0, 0, "f"}},
		},
		{
			"a small id in the three-byte form is the same chunk stream",
			chunks{}.type0(64, 6000, 1, 8, 0).raw('a').raw(1<<6, 0).u24(5).u24(1).raw(8, 'b').raw(2<<6|1, 0, 0).u24(5).raw('c'),
			[]got{{8, 0, 6000, "a"}, {8, 0, 6005, "b"}, {8, 0, 6010, "c"}},
		},
		{
			"interleaved", append(append(chunks{}.type0(4, 1, 200, 9, 1).raw([]byte(text(128))...).
				type0(70, 2, 1, 8, 1).raw('a').basic(3, 4), text(72)...), chunks{}.type2(70, 20).raw('b')...),
			[]got{{8, 1, 2, "a"}, {9, 1, 1, long}, {8, 1, 22, "b"}},
		},
		{
			"chunk size changes within a message", append(chunks{}.type0(4, 1, 200, 9, 1).raw([]byte(text(128))...).
				type0(2, 0, 4, 1, 0).u32(72).basic(3, 4), text(72)...),
			[]got{{9, 1, 1, long}},
		},
		{
			"abort", append(append(chunks{}.type0(4, 1, 200, 9, 1).raw([]byte(text(128))...).type0(2, 0, 4, 2, 0).u32(4).
				type0(4, 5, 200, 9, 1), text(128)...), append(chunks{}.basic(3, 4), text(72)...)...),
			[]got{{9, 1, 5, long}},
		},
		{"abort of nothing", chunks{}.type0(2, 0, 4, 2, 0).u32(77).type0(2, 0, 2, 2, 0).raw(0, 0).type0(2, 0, 1, 3, 0).raw('a'), []got{{3, 0, 0, "a"}}},
		{"short set chunk size", chunks{}.type0(2, 0, 2, 1, 0).raw(0, 0).type0(2, 0, 1, 3, 0).raw('a'), []got{{3, 0, 0, "a"}}},
		{"a header repeated within its message", append(chunks{}.type0(4, 1, 200, 9, 1).raw([]byte(text(128))...).type1(4, 9, 200, 9), text(72)...), []got{{9, 1, 1, long}}},
		{"extended time", chunks{}.type0(4, 0xffffff, 1, 9, 1).u32(0x1000000).raw('a'), []got{{9, 1, 0x1000000, "a"}}},
		{"extended time, exactly the limit", chunks{}.type0(4, 0xffffff, 1, 9, 1).u32(0xffffff).raw('a'), []got{{9, 1, 0xffffff, "a"}}},
		{
			"extended time repeated", append(chunks{}.type0(4, 0xffffff, 200, 9, 1).u32(0x1000000).raw([]byte(text(128))...).
				basic(3, 4).u32(0x1000000), text(72)...), []got{{9, 1, 0x1000000, long}},
		},
		{
			"extended time left out", append(chunks{}.type0(4, 0xffffff, 200, 9, 1).u32(0x1000000).raw([]byte(text(128))...).
				basic(3, 4), text(72)...), []got{{9, 1, 0x1000000, long}},
		},
		{
			"extended time left out, a last chunk of two bytes", append(chunks{}.type0(4, 0xffffff, 130, 9, 1).u32(0x1000000).
				raw([]byte(text(128))...).basic(3, 4), text(2)...), []got{{9, 1, 0x1000000, text(130)}},
		},
		{
			"extended delta repeated", append(chunks{}.type0(4, 100000, 1, 9, 1).raw('a').type1(4, 0xffffff, 200, 9).u32(0x1000000).
				raw([]byte(text(128))...).basic(3, 4).u32(0x1000000), text(72)...),
			[]got{{9, 1, 100000, "a"}, {9, 1, 100000 + 0x1000000, long}},
		},
		{
			"extended delta, the absolute time repeated", append(chunks{}.type0(4, 100000, 1, 9, 1).raw('a').type1(4, 0xffffff, 200, 9).u32(0x1000000).
				raw([]byte(text(128))...).basic(3, 4).u32(100000+0x1000000), text(72)...),
			[]got{{9, 1, 100000, "a"}, {9, 1, 100000 + 0x1000000, long}},
		},
		{
			"extended delta inherited by a message of type 3", chunks{}.type0(4, 100000, 1, 9, 1).raw('a').type2(4, 0xffffff).u32(0x1000000).raw('b').
				basic(3, 4).u32(0x1000000).raw('c'),
			[]got{{9, 1, 100000, "a"}, {9, 1, 100000 + 0x1000000, "b"}, {9, 1, 100000 + 2*0x1000000, "c"}},
		},
		{
			"a negative delta", chunks{}.type0(4, 100000, 1, 9, 1).raw('a').type1(4, 0xffffff, 1, 9).u32(0xffffffd8).raw('b'),
			[]got{{9, 1, 100000, "a"}, {9, 1, 99960, "b"}},
		},
		{
			"the clock wraps", chunks{}.type0(4, 0xffffff, 1, 9, 1).u32(0xffffffd8).raw('a').type1(4, 40, 1, 9).raw('b').type2(4, 40).raw('c'),
			[]got{{9, 1, 0xffffffd8, "a"}, {9, 1, 0, "b"}, {9, 1, 40, "c"}},
		},
		{
			"a small time after an extended one", chunks{}.type0(4, 0xffffff, 1, 9, 1).u32(0x1000000).raw('a').type0(4, 5, 200, 9, 1).
				raw([]byte(text(128))...).basic(3, 4).raw([]byte(text(72))...),
			[]got{{9, 1, 0x1000000, "a"}, {9, 1, 5, long}},
		},
	}
	for _, tt := range tests {
		for _, src := range []struct {
			how    string
			reader io.Reader
		}{
			{"whole", bytes.NewReader(tt.bytes)},
			{"byte by byte", iotest.OneByteReader(bytes.NewReader(tt.bytes))},
			{"data with EOF", iotest.DataErrReader(bytes.NewReader(tt.bytes))},
		} {
			t.Run(tt.name+"/"+src.how, func(t *testing.T) {
				out, err := readAll(newChunkReader(src.reader, 64, testLimits))
				if err != nil {
					t.Fatal(err)
				}
				if len(out) != len(tt.want) {
					t.Fatalf("got %d messages %v, want %d", len(out), out, len(tt.want))
				}
				for i, want := range tt.want {
					if out[i] != want {
						t.Errorf("message %d: got %+v, want %+v", i, out[i], want)
					}
				}
			})
		}
	}
}

func TestChunkReaderFaults(t *testing.T) {
	small := limits{message: 1000, partial: 1500, streams: 4}
	x := make([]byte, 128)
	tests := []struct {
		name  string
		bytes chunks
		want  session.Reason
	}{
		{"first chunk of type 2", chunks{}.type2(4, 1), session.ProtocolError},
		{"first chunk of type 3", chunks{}.basic(3, 4), session.ProtocolError},
		{"chunk size zero", chunks{}.type0(2, 0, 4, 1, 0).u32(0), session.ProtocolError},
		{"chunk size with the high bit", chunks{}.type0(2, 0, 4, 1, 0).u32(1<<31 | 128), session.ProtocolError},
		{"message too big", chunks{}.type0(4, 0, 1001, 9, 1), session.MessageTooBig},
		{"message too big, header only", chunks{}.type0(4, 0, 1<<24-1, 9, 1), session.MessageTooBig},
		{"command too big", chunks{}.type0(4, 0, maxCommand+2, 20, 1), session.BadCommand},
		{"control message too big", chunks{}.type0(4, 0, maxOther+1, 3, 1), session.MessageTooBig},
		{"another length in mid-message", chunks{}.type0(4, 0, 200, 9, 1).raw(x...).type1(4, 0, 201, 9), session.ProtocolError},
		{"a smaller length in mid-message", chunks{}.type0(4, 0, 200, 9, 1).raw(x...).type0(4, 0, 100, 9, 1), session.ProtocolError},
		{"another type in mid-message", chunks{}.type0(4, 0, 200, 9, 1).raw(x...).type0(4, 0, 200, 8, 1), session.ProtocolError},
		{
			"too many chunk streams", chunks{}.type0(4, 0, 0, 9, 1).type0(5, 0, 0, 9, 1).type0(6, 0, 0, 9, 1).type0(70, 0, 0, 9, 1).type0(400, 0, 0, 9, 1),
			session.TooManyChunks,
		},
		{"partial too big", chunks{}.type0(4, 0, 1000, 9, 1).raw(x...).type0(5, 0, 1000, 9, 1).raw(x...), session.PartialTooBig},
		{"ends in a basic header", chunks{}.raw(1), session.PeerClosed},
		{"ends in a header", chunks{}.type0(4, 0, 5, 9, 1)[:5], session.PeerClosed},
		{"ends in an extended time", chunks{}.type0(4, 0xffffff, 5, 9, 1).raw(1), session.PeerClosed},
		{"ends in a payload", chunks{}.type0(4, 0, 5, 9, 1).raw(1), session.PeerClosed},
		{"ends between two chunks", chunks{}.type0(4, 0, 200, 9, 1).raw(x...), session.PeerClosed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := readAll(newChunkReader(bytes.NewReader(tt.bytes), 64, small))
			if err == nil {
				t.Fatalf("got %v and no error", out)
			}
			if got := reasonOf(err); got != tt.want {
				t.Errorf("got %v (%v), want %v", got, err, tt.want)
			}
		})
	}
}

func TestChunkReaderNoProgress(t *testing.T) {
	r := newChunkReader(idler{}, 64, testLimits)
	if err := r.readMessage(&message{}); !errors.Is(err, errNoProgress) {
		t.Errorf("got %v", err)
	}
}

type idler struct{}

func (idler) Read([]byte) (int, error) { return 0, nil }

// TestChunkReaderMemory announces much and sends little.
func TestChunkReaderMemory(t *testing.T) {
	var in chunks
	for id := range uint32(60) {
		in = in.type0(4+id, 0, 8<<20, 9, 1).raw(make([]byte, 128)...)
	}
	r := newChunkReader(bytes.NewReader(in), readBuffer, testLimits)
	if _, err := readAll(r); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	if r.held > 512<<10 {
		t.Errorf("%d bytes held for %d that came", r.held, r.got)
	}
	if r.got != 60*128 {
		t.Errorf("counted %d bytes", r.got)
	}
}

// TestChunksRoundTrip writes messages through every way of cutting them and reads
// them back.
func TestChunksRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{1, 2, 127, 128, 129, 4096, 60000}).Draw(t, "size")
		kind := rapid.SampledFrom([]uint8{3, 8, 9, 18, 20, 22, 77})
		id := rapid.SampledFrom([]uint32{2, 3, 63, 64, 319, 320, 65599})
		time := rapid.OneOf(rapid.Uint32(), rapid.SampledFrom([]uint32{0, 0xfffffe, 0xffffff, 0x1000000, 1<<32 - 1}))
		var wire chunks
		var want []got
		if size != defaultChunkSize {
			wire = appendMessage(wire, defaultChunkSize, 2, typeSetChunkSize, 0, 0, []byte{0, 0, byte(size >> 8), byte(size)})
		}
		for range rapid.IntRange(1, 6).Draw(t, "messages") {
			m := got{
				kind.Draw(t, "kind"), rapid.Uint32().Draw(t, "stream"), time.Draw(t, "time"),
				string(rapid.SliceOfN(rapid.Byte(), 0, 5*min(size, 200)).Draw(t, "payload")),
			}
			want = append(want, m)
			wire = appendMessage(wire, size, id.Draw(t, "id"), m.kind, m.stream, m.time, []byte(m.payload))
		}
		out, err := readAll(newChunkReader(cutter{bytes.NewReader(wire), rapid.IntRange(1, 300).Draw(t, "cut")}, 64, testLimits))
		if err != nil || len(out) != len(want) {
			t.Fatalf("got %d messages and %v, want %d", len(out), err, len(want))
		}
		for i := range want {
			if out[i] != want[i] {
				t.Fatalf("message %d: got %+v, want %+v", i, out[i], want[i])
			}
		}
	})
}

type cutter struct {
	r io.Reader
	n int
}

func (c cutter) Read(p []byte) (int, error) { return c.r.Read(p[:min(len(p), c.n)]) }

// TestInterleaved shuffles the chunks of several messages as an encoder might.
func TestInterleaved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		type source struct {
			id      uint32
			time    uint32
			payload []byte
			sent    int
		}
		var sources []*source
		for i := range rapid.IntRange(1, 8).Draw(t, "sources") {
			sources = append(sources, &source{id: uint32(60 + i*60), time: rng.Uint32(), payload: make([]byte, rng.IntN(1000))})
			for k := range sources[i].payload {
				sources[i].payload[k] = byte(rng.Uint32())
			}
		}
		var wire []byte
		want := map[uint32]got{}
		for len(sources) > 0 {
			i := rng.IntN(len(sources))
			s := sources[i]
			if s.sent == 0 {
				wire = appendHeader(wire, s.id, typeVideo, s.id, s.time, len(s.payload))
				want[s.id] = got{typeVideo, s.id, s.time, string(s.payload)}
			} else {
				wire = appendContinuation(wire, s.id, s.time)
			}
			n := min(defaultChunkSize, len(s.payload)-s.sent)
			wire = append(wire, s.payload[s.sent:s.sent+n]...)
			if s.sent += n; s.sent == len(s.payload) {
				sources = append(sources[:i], sources[i+1:]...)
			}
		}
		out, err := readAll(newChunkReader(bytes.NewReader(wire), 256, testLimits))
		if err != nil || len(out) != len(want) {
			t.Fatalf("got %d messages and %v, want %d", len(out), err, len(want))
		}
		for _, m := range out {
			if m != want[m.stream] {
				t.Fatalf("got %+v, want %+v", m, want[m.stream])
			}
		}
	})
}

// TestMessageLayout wants media laid out as an FLV tag, however it grew.
func TestMessageLayout(t *testing.T) {
	for _, n := range []int{0, 1, 128, 129, lazyBytes, eagerBytes - 1, eagerBytes, eagerBytes + 1, eagerBytes + 10, 300_000, 1_000_000} {
		payload := make([]byte, n)
		rand.NewChaCha8([32]byte{}).Read(payload)
		wire := appendMessage(nil, 128, 6, typeVideo, 1, 5, payload)
		var m message
		if err := newChunkReader(bytes.NewReader(wire), readBuffer, testLimits).readMessage(&m); err != nil {
			t.Fatal(n, err)
		}
		want := flv.New(flv.Video, 0, payload).Wire
		if !bytes.Equal(m.wire, want) || cap(m.wire) > len(want)+len(want)/8+4096 {
			t.Errorf("%d bytes: %d bytes of wire with room for %d, want %d", n, len(m.wire), cap(m.wire), len(want))
		}
	}
}

// record is a sink that keeps what is written.
type record struct {
	bytes.Buffer
	writes int
	err    error
}

func (r *record) write(bufs *net.Buffers) error {
	r.writes++
	if r.err != nil {
		return r.err
	}
	_, err := bufs.WriteTo(&r.Buffer)
	return err
}

func TestChunkWriter(t *testing.T) {
	var out record
	w := newChunkWriter(&out)
	if err := w.control(chunksControl, typeSetChunkSize, 0, []byte{0, 0, 0x10, 0}); err != nil {
		t.Fatal(err)
	}
	if w.chunkSize() != 4096 {
		t.Errorf("chunk size is %d", w.chunkSize())
	}
	tags := []flv.Tag{
		flv.New(flv.Script, 0, []byte("meta")),
		flv.New(flv.Video, 0xffffff, bytes.Repeat([]byte{9}, 10000)),
		flv.New(flv.Audio, 1<<32+5, nil),
	}
	var b batch
	before := out.writes
	for range 2 {
		b.reset()
		for _, tag := range tags {
			b.add(w.chunkSize(), 3, tag)
		}
		if err := w.media(&b); err != nil {
			t.Fatal(err)
		}
	}
	if out.writes != before+2 {
		t.Errorf("%d writes for two batches", out.writes-before)
	}
	got, err := readAll(newChunkReader(&out, 64, testLimits))
	if err != nil || len(got) != 6 {
		t.Fatalf("got %d messages and %v", len(got), err)
	}
	for i, m := range got {
		tag := tags[i%3]
		if m.kind != uint8(tag.Kind) || m.stream != 3 || m.time != uint32(tag.DTS) || m.payload != string(tag.Payload()) {
			t.Errorf("message %d differs: kind %d stream %d time %d", i, m.kind, m.stream, m.time)
		}
	}
}

// TestControlDoesNotWait queues control messages while a player's write blocks.
func TestControlDoesNotWait(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	var out record
	var first sync.Once
	w := newChunkWriter(sinkFunc(func(bufs *net.Buffers) error {
		first.Do(func() {
			close(entered)
			<-leave
		})
		return out.write(bufs)
	}))
	var b batch
	b.add(128, 1, flv.New(flv.Audio, 0, []byte("a")))
	failed := make(chan error, 1)
	go func() { failed <- w.media(&b) }()
	<-entered
	if err := w.control(chunksControl, typeAck, 0, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	var err error
	for range 2 * maxQueued / 4 {
		if err = w.control(chunksControl, typeAck, 0, make([]byte, 4)); err != nil {
			break
		}
	}
	if !errors.Is(err, errQueueFull) {
		t.Errorf("a flood gives %v", err)
	}
	close(leave)
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	got, err := readAll(newChunkReader(&out, 64, testLimits))
	if err != nil || len(got) < 2 || got[0].kind != typeAudio || got[1].kind != typeAck {
		t.Errorf("got %d messages and %v", len(got), err)
	}
}

type sinkFunc func(*net.Buffers) error

func (f sinkFunc) write(bufs *net.Buffers) error { return f(bufs) }

func TestChunkWriterKeepsItsError(t *testing.T) {
	broken := errors.New("broken")
	w := newChunkWriter(&record{err: broken})
	for range 2 {
		if err := w.control(chunksControl, typeAck, 0, nil); err != broken {
			t.Errorf("got %v", err)
		}
	}
}
