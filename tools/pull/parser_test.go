package pull

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"millrace/internal/flv"
	"millrace/tools/frames"
)

// synthetic returns an FLV stream of n frames.
func synthetic(t testing.TB, n int) []byte {
	t.Helper()
	cfg := frames.DefaultConfig()
	cfg.VideoKbps, cfg.Start = 300, 1<<32-500
	g, err := frames.NewGenerator(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b := flv.AppendFileHeader(nil, true, true)
	for _, h := range g.Headers() {
		b = append(b, h.Wire...)
	}
	for range n {
		b = append(b, g.Next(time.Unix(1, 0)).Wire...)
	}
	return b
}

type brief struct {
	Kind  flv.Kind
	Time  uint32
	Size  int
	Stamp int
	Sum   uint32
	Head  string
}

// parse feeds b in pieces of the given sizes, the last of them again and again.
func parse(b []byte, verify bool, sizes ...int) (out []brief, err error) {
	p := Parser{Verify: verify}
	for i := 0; len(b) > 0; i++ {
		n := min(len(b), max(1, sizes[min(i, len(sizes)-1)]))
		err = p.Feed(b[:n], func(t *Tag) {
			out = append(out, brief{t.Kind, t.Time, t.Size, t.Stamp, t.Sum, string(t.Prefix)})
		})
		if err != nil {
			return out, err
		}
		b = b[n:]
	}
	return out, nil
}

func equal(a, b []brief) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestParserReadsWhatTheReaderReads(t *testing.T) {
	b := synthetic(t, 300)
	got, err := parse(b, true, len(b))
	if err != nil {
		t.Fatal(err)
	}
	r := flv.NewReader(bytes.NewReader(b), flv.MaxPayload)
	for i := 0; ; i++ {
		tag, err := r.Read()
		if err == io.EOF {
			if i != len(got) {
				t.Errorf("%d tags, want %d", len(got), i)
			}
			break
		}
		if err != nil || i >= len(got) {
			t.Fatalf("tag %d: %v; the parser has %d", i, err, len(got))
		}
		g, p := got[i], tag.Payload()
		if g.Kind != tag.Kind || g.Time != uint32(tag.DTS) || g.Size != len(p) || !bytes.HasPrefix(p, []byte(g.Head)) {
			t.Fatalf("tag %d: got %+v, want %s of %d bytes at %d", i, g, tag.Kind, len(p), tag.DTS)
		}
		if tag.Flags&flv.Frame == 0 {
			continue
		}
		if s, err := frames.Parse(p[g.Stamp:]); err != nil || s.Body != g.Sum {
			t.Fatalf("tag %d: stamp %+v, %v; sum %#x", i, s, err, g.Sum)
		}
	}
}

func TestParserDoesNotCareHowBytesArrive(t *testing.T) {
	b := synthetic(t, 50)
	want, err := parse(b, true, len(b))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2, 3, 7, 64, 100, 1000} {
		if got, err := parse(b, true, n); err != nil || !equal(got, want) {
			t.Errorf("pieces of %d bytes: %d tags, %v, want %d", n, len(got), err, len(want))
		}
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		sizes := make([]int, 200)
		for i := range sizes {
			sizes[i] = 1 + rnd.IntN(3000)
		}
		if got, err := parse(b, true, sizes...); err != nil || !equal(got, want) {
			t.Fatalf("pieces %v: %d tags, %v", sizes, len(got), err)
		}
	}
}

func TestParserRefuses(t *testing.T) {
	head := flv.AppendFileHeader(nil, true, true)
	tag := flv.New(flv.Audio, 0, []byte{0xaf, 1, 2, 3}).Wire
	f := func(name string, want error, change func(b []byte)) {
		t.Helper()
		b := append(bytes.Clone(head), tag...)
		change(b)
		if _, err := parse(b, false, 5); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	f("whole", nil, func([]byte) {})
	f("HTML", ErrNotFLV, func(b []byte) { copy(b, "<html>") })
	f("header length", ErrNotFLV, func(b []byte) { b[8] = 10 })
	f("first size", ErrNotFLV, func(b []byte) { b[12] = 1 })
	f("kind", ErrKind, func(b []byte) { b[13] = 10 })
	f("trailer", ErrTrailer, func(b []byte) { b[len(b)-1]++ })
	f("size", ErrTrailer, func(b []byte) { b[13+3]-- })
}

func TestParserTakesEmptyAndTinyPayloads(t *testing.T) {
	b := flv.AppendFileHeader(nil, true, true)
	for n := range frames.PrefixSize + 3 {
		b = append(b, flv.New(flv.Video, int64(n), make([]byte, n)).Wire...)
	}
	got, err := parse(b, true, 1)
	if err != nil || len(got) != frames.PrefixSize+3 {
		t.Fatalf("%d tags, %v", len(got), err)
	}
	for n, g := range got {
		if g.Size != n || len(g.Head) != min(n, frames.PrefixSize) {
			t.Errorf("payload of %d bytes: %+v", n, g)
		}
	}
}

func FuzzParser(f *testing.F) {
	f.Add(synthetic(f, 3), uint16(7))
	f.Add([]byte("FLV\x01\x05\x00\x00\x00\x09\x00\x00\x00\x00\x08\x00\x00\x00"), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, n uint16) {
		want, err1 := parse(b, true, len(b)+1)
		got, err2 := parse(b, true, int(n))
		if !equal(got, want) || (err1 == nil) != (err2 == nil) {
			t.Errorf("whole: %d tags, %v; pieces of %d: %d tags, %v", len(want), err1, n, len(got), err2)
		}
		c := NewChecker(AnyStream, true)
		p := Parser{Verify: true}
		p.Feed(b, func(tag *Tag) { c.Tag(tag) })
	})
}
