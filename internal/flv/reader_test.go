package flv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// awkward are times around every wrap there is: 24 and 32 bits, signed and not.
var awkward = []int64{0, 1, 1<<24 - 2, 1<<24 - 1, 1 << 24, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 1, 1 << 32, 1<<32 + 1, 1<<33 - 1, 1 << 33}

func readAll(r *Reader) (tags []Tag, err error) {
	for {
		t, err := r.Read()
		if err != nil {
			return tags, err
		}
		tags = append(tags, t)
	}
}

func file(tags ...Tag) []byte {
	b := AppendFileHeader(nil, true, true)
	for _, t := range tags {
		b = append(b, t.Wire...)
	}
	return b
}

func same(a, b Tag) bool {
	return a.Kind == b.Kind && a.Codec == b.Codec && a.Flags == b.Flags && bytes.Equal(a.Wire, b.Wire)
}

func TestFraming(t *testing.T) {
	tag := New(Video, 0x01020304, []byte{0x17, 1, 0, 0, 0, 9})
	want := []byte{9, 0, 0, 6, 2, 3, 4, 1, 0, 0, 0, 0x17, 1, 0, 0, 0, 9, 0, 0, 0, 17}
	if !bytes.Equal(tag.Wire, want) {
		t.Errorf("wire %x, want %x", tag.Wire, want)
	}
	if !tag.Is(Frame|Keyframe) || tag.Is(Header) || tag.Codec != H264 || tag.DTS != 0x01020304 {
		t.Errorf("tag %+v", tag)
	}
	if n := len(New(Audio, 0, nil).Payload()); n != 0 {
		t.Errorf("an empty payload has %d bytes", n)
	}
	if n := len(New(Audio, 0, make([]byte, MaxPayload)).Payload()); n != MaxPayload {
		t.Errorf("the longest payload has %d bytes", n)
	}
	for _, h := range []struct {
		audio, video bool
		flags        byte
	}{{false, false, 0}, {true, false, 4}, {false, true, 1}, {true, true, 5}} {
		want := []byte{'F', 'L', 'V', 1, h.flags, 0, 0, 0, 9, 0, 0, 0, 0}
		if got := AppendFileHeader(nil, h.audio, h.video); !bytes.Equal(got, want) || len(got) != FileHeaderSize {
			t.Errorf("file header %x, want %x", got, want)
		}
	}
}

// Times come back as they were, unwrapped, wherever the stream begins (CASES A8, A9).
func TestReaderClock(t *testing.T) {
	for _, start := range awkward {
		var tags []Tag
		at := start
		for _, step := range []int64{0, 40, 0, 23, -23, 40, 1 << 20, -1000, 40, 1<<31 - 1, 40} {
			at += step
			tags = append(tags, New(Audio, at, []byte{0xaf, 1, 0}))
		}
		got, err := readAll(NewReader(bytes.NewReader(file(tags...)), 100))
		if err != io.EOF || len(got) != len(tags) {
			t.Fatalf("from %d: %d tags, %v", start, len(got), err)
		}
		base := start - int64(uint32(start)) // the first tag says only 32 bits
		for i := range got {
			if got[i].DTS+base != tags[i].DTS {
				t.Errorf("from %d, tag %d: time %d, want %d", start, i, got[i].DTS+base, tags[i].DTS)
			}
			if !same(got[i], tags[i]) {
				t.Errorf("from %d, tag %d: %+v, want %+v", start, i, got[i], tags[i])
			}
		}
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.SampledFrom(awkward).Draw(t, "start")
		tags := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Tag {
			kind := rapid.SampledFrom([]Kind{Audio, Video, Script}).Draw(t, "kind")
			at += rapid.Int64Range(-50, 5000).Draw(t, "step")
			return New(kind, at, rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "payload"))
		}), 0, 20).Draw(t, "tags")
		in := file(tags...)
		for _, r := range []io.Reader{bytes.NewReader(in), iotest.OneByteReader(bytes.NewReader(in)), iotest.DataErrReader(bytes.NewReader(in))} {
			got, err := readAll(NewReader(r, 300))
			if err != io.EOF || !slices.EqualFunc(got, tags, same) {
				t.Fatalf("%d tags, %v, want %d", len(got), err, len(tags))
			}
			for i := 1; i < len(got); i++ {
				if a, b := got[i].DTS-got[i-1].DTS, tags[i].DTS-tags[i-1].DTS; a != b {
					t.Fatalf("tag %d is %d ms after the last, want %d", i, a, b)
				}
			}
		}
	})
}

func TestReaderTolerates(t *testing.T) {
	tag := New(Video, 40, []byte{0x17, 1, 0, 0, 0, 9})
	f := func(name string, in []byte, want ...Tag) {
		t.Helper()
		got, err := readAll(NewReader(bytes.NewReader(in), 1000))
		if err != io.EOF || !slices.EqualFunc(got, want, same) {
			t.Errorf("%s: %d tags, %v, want %d", name, len(got), err, len(want))
		}
	}
	edit := func(change func(b []byte)) []byte {
		b := file(tag)
		change(b[FileHeaderSize:])
		return b
	}
	f("nothing but a header", file())
	f("plain", file(tag), tag)
	f("reserved bits", edit(func(b []byte) { b[0] |= 0xc0 }), tag)
	f("a stream number", edit(func(b []byte) { b[10] = 1 }), tag)
	f("tag size of zero", edit(func(b []byte) { copy(b[len(b)-4:], make([]byte, 4)) }), tag)
	f("an encrypted tag", append(edit(func(b []byte) { b[0] |= 0x20 }), tag.Wire...), tag)
	f("a tag of another kind", append(edit(func(b []byte) { b[0] = 15 }), tag.Wire...), tag)
	f("empty tags", file(New(Audio, 0, nil), New(Video, 0, nil), tag), New(Audio, 0, nil), New(Video, 0, nil), tag)

	long := append([]byte("FLV\x01\x05\x00\x00\x00\x0c???\x00\x00\x00\x00"), tag.Wire...)
	f("a longer file header", long, tag)

	r := NewReader(bytes.NewReader(AppendFileHeader(nil, true, false)), 10)
	if _, err := r.Read(); err != io.EOF {
		t.Error(err)
	}
	if a, v := r.Tracks(); !a || v {
		t.Errorf("tracks %v %v, want audio only", a, v)
	}
}

func TestReaderRefuses(t *testing.T) {
	tag := New(Video, 40, bytes.Repeat([]byte{7}, 100))
	f := func(name string, in []byte, limit int, want error) {
		t.Helper()
		if _, err := readAll(NewReader(bytes.NewReader(in), limit)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	f("nothing", nil, 100, io.EOF)
	f("not FLV", []byte("HTTP/1.1 404 Not Found"), 100, ErrNotFLV)
	f("header cut", []byte("FLV\x01"), 100, io.ErrUnexpectedEOF)
	f("header too short", []byte("FLV\x01\x05\x00\x00\x00\x08"), 100, ErrNotFLV)
	f("header too long", []byte("FLV\x01\x05\xff\xff\xff\xff"), 100, ErrNotFLV)
	f("header longer than the file", []byte("FLV\x01\x05\x00\x00\x01\x00"), 100, io.ErrUnexpectedEOF)
	f("as big as allowed", file(tag), 100, io.EOF)
	f("bigger", file(tag), 99, ErrTooBig)
	wrong := file(tag)
	wrong[len(wrong)-1]++
	f("wrong tag size", wrong, 100, ErrTag)
	whole := file(tag)
	for n := FileHeaderSize + 1; n < len(whole); n++ {
		f("tag cut", whole[:n], 100, io.ErrUnexpectedEOF)
	}
	broken := errors.New("broken")
	r := io.MultiReader(bytes.NewReader(whole), iotest.ErrReader(broken))
	if tags, err := readAll(NewReader(r, 100)); len(tags) != 1 || !errors.Is(err, broken) {
		t.Errorf("%d tags, %v, want one and the error of the source", len(tags), err)
	}
}

// A size that is announced but not sent must not be paid for beyond the limit.
func TestReaderAllocatesOnce(t *testing.T) {
	in := file(New(Video, 0, make([]byte, 1000)))
	src := bytes.NewReader(in)
	n := testing.AllocsPerRun(100, func() {
		src.Reset(in)
		r := NewReader(src, 1000)
		if _, err := r.Read(); err != nil {
			t.Fatal(err)
		}
	})
	if n > 4 { // the reader, its buffer, and the tag
		t.Errorf("%v allocations for a reader and a tag, want at most 4", n)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(file())
	f.Add(file(New(Audio, 1<<24-1, []byte{0xaf, 1, 2}), New(Video, 1<<32-1, []byte{0x17, 1, 0, 0, 0, 1}), New(Script, 0, nil)))
	f.Add(file(New(Video, 0, bytes.Repeat([]byte{1}, 300)))[:200])
	f.Add([]byte("FLV\x01\x05\x00\x00\x00\x0c???\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 4096
		tags, err := readAll(NewReader(bytes.NewReader(in), limit))
		if err == nil {
			t.Fatal("reading ended without an error")
		}
		var out []byte
		for i, tag := range tags {
			n := len(tag.Payload())
			if n > limit || len(tag.Wire) != HeaderSize+n+TrailerSize ||
				binary.BigEndian.Uint32(tag.Wire[HeaderSize+n:]) != uint32(HeaderSize+n) {
				t.Fatalf("tag %d: wire %x", i, tag.Wire)
			}
			if raw := binary.BigEndian.Uint32([]byte{tag.Wire[7], tag.Wire[4], tag.Wire[5], tag.Wire[6]}); uint32(tag.DTS) != raw {
				t.Fatalf("tag %d: time %d, on the wire %d", i, tag.DTS, raw)
			}
			out = append(out, tag.Wire...)
		}
		// What was read reads the same when written again.
		again, err := readAll(NewReader(bytes.NewReader(append(AppendFileHeader(nil, true, true), out...)), limit))
		if err != io.EOF || !slices.EqualFunc(again, tags, same) {
			t.Fatalf("again: %d tags, %v, want %d", len(again), err, len(tags))
		}
	})
}

func BenchmarkReader(b *testing.B) {
	var tags []Tag
	for i := range 100 {
		tags = append(tags, New(Video, int64(i)*40, make([]byte, 8000)), New(Audio, int64(i)*40, make([]byte, 372)))
	}
	in := file(tags...)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readAll(NewReader(bytes.NewReader(in), 1<<20)); err != io.EOF {
			b.Fatal(err)
		}
	}
}
