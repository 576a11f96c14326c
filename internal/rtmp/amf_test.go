package rtmp

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/yutopp/go-amf0"
	"pgregory.net/rapid"

	"millrace/internal/flv"
	"millrace/internal/session"
)

func TestDecodeValues(t *testing.T) {
	text := func(marker byte, s string) []byte { return append([]byte{marker, 0, 0, 0, byte(len(s))}, s...) }
	for _, tt := range []struct {
		name  string
		bytes []byte
		want  []any
	}{
		{"nothing", nil, nil},
		{"scalars", encode(1.5, true, false, "a", nil), []any{1.5, true, false, "a", nil}},
		{"undefined, unsupported", []byte{amfUndefined, amfUnsupported}, []any{nil, nil}},
		{"a date and a reference count for null", append(append([]byte{amfDate}, make([]byte, 10)...), amfReference, 0, 1, amfNull), []any{nil, nil, nil}},
		{"long string, XML", append(text(amfLongString, "ab"), text(amfXML, "<x>")...), []any{"ab", "<x>"}},
		{"not UTF-8", []byte{amfString, 0, 3, 'a', 0xff, 'b'}, []any{"a\ufffdb"}},
		{"object", encode(object{{"a", 1.0}, {"", nil}, {"b", object{{"c", "d"}}}}), []any{object{{"a", 1.0}, {"", nil}, {"b", object{{"c", "d"}}}}}},
		{"typed object", slicesOf([]byte{amfTypedObject, 0, 1, 'T'}, member("a", amfNull), []byte{0, 0, amfObjectEnd}), []any{object{{"a", nil}}}},
		{"ECMA array, count too small", slicesOf([]byte{amfECMAArray, 0, 0, 0, 0}, member("a", amfNull), []byte{0, 0, amfObjectEnd}), []any{object{{"a", nil}}}},
		{"ECMA array, count too big", []byte{amfECMAArray, 0xff, 0xff, 0xff, 0xff, 0, 0, amfObjectEnd}, []any{object{}}},
		{"strict array", encode([]any{1.0, "a"}), []any{[]any{1.0, "a"}}},
		{"an object end without its empty key", slicesOf([]byte{amfObject}, member("a", amfNull), []byte{amfObjectEnd}, encode("x")), []any{object{{"a", nil}}, "x"}},
		{"an object end for a value", slicesOf([]byte{amfObject}, member("a", amfObjectEnd), encode("x")), []any{object{}, "x"}},
		{"an object that ends early", append([]byte{amfObject}, member("a", encode(1.0)...)...), []any{object{{"a", 1.0}}}},
		{"an object cut in a key", []byte{amfObject, 0, 5, 'a'}, []any{object{}}},
		{"an object cut in a nested value", slicesOf([]byte{amfObject}, member("a", amfObject), member("b", encode(1.0)...)), []any{object{{"a", object{{"b", 1.0}}}}}},
		{"an array that ends early", append(encode("a"), amfStrictArray, 0xff, 0xff, 0xff, 0xff, amfNull), []any{"a"}},
		{"an unknown marker ends it", append(encode("a", 2.0), 0x31, 1, 2, 3), []any{"a", 2.0}},
		{"AMF3 ends it", append(encode("a", 2.0), amfAMF3, 6, 3, 'x'), []any{"a", 2.0}},
		{"movie clip, record set", append(encode("a"), amfMovieClip), []any{"a"}},
		{"a key of 2,304 bytes is a key", slicesOf([]byte{amfObject}, appendKey(nil, strings.Repeat("k", 2304)), encode(1.0), []byte{0, 0, amfObjectEnd}), []any{object{{strings.Repeat("k", 2304), 1.0}}}},
		{"a string cut", []byte{amfString, 0, 9, 'a'}, nil},
		{"a number cut", []byte{amfNumber, 0, 0}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := decodeValues(tt.bytes)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(out, tt.want) {
				t.Errorf("got %#v, want %#v", out, tt.want)
			}
		})
	}
}

func TestDecodeLimits(t *testing.T) {
	nest := func(n int) []byte {
		return append(bytes.Repeat([]byte{amfStrictArray, 0, 0, 0, 1}, n), amfNull)
	}
	if _, err := decodeValues(nest(maxDepth)); err != nil {
		t.Error(err)
	}
	for name, b := range map[string][]byte{
		"arrays too deep":       nest(maxDepth + 1),
		"objects too deep":      bytes.Repeat([]byte{amfObject, 0, 1, 'a'}, maxDepth+1),
		"ECMA arrays too deep":  bytes.Repeat([]byte{amfECMAArray, 0, 0, 0, 1, 0, 1, 'a'}, maxDepth+1),
		"too many values":       bytes.Repeat([]byte{amfNull}, maxValues+1),
		"too many in an array":  append([]byte{amfStrictArray, 0xff, 0xff, 0xff, 0xff}, bytes.Repeat([]byte{amfNull}, maxValues)...),
		"too many in an object": slicesOf([]byte{amfObject}, bytes.Repeat(member("a", amfNull), maxValues)),
	} {
		if _, err := decodeValues(b); err == nil || reasonOf(err) != session.BadCommand {
			t.Errorf("%s: %v", name, err)
		}
		if len(b) < 100 && validScript(b) {
			t.Errorf("%s: is valid script data", name)
		}
	}
	if validScript(make([]byte, maxScript+1)) {
		t.Error("script data has no limit")
	}
	if n := testing.AllocsPerRun(100, func() { validScript(encode4k) }); n > 0 {
		t.Errorf("%v allocations to check script data", n)
	}
}

var encode4k = append(encode(onMetaData), encode(object{{"a", []any{1.0, "b", object{{"c", nil}}}}, {"d", strings.Repeat("x", 4000)}})...)

// draw returns a value that AMF0 can say.
func draw(t *rapid.T, depth int) any {
	scalar := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.String().AsAny(),
		rapid.Float64().AsAny(), rapid.Just[any](strings.Repeat("long", 20000)),
	}
	if depth == 0 || rapid.Bool().Draw(t, "scalar") {
		return rapid.OneOf(scalar...).Draw(t, "value")
	}
	n := rapid.IntRange(0, 4).Draw(t, "n")
	if rapid.Bool().Draw(t, "array") {
		var out []any
		for range n {
			out = append(out, draw(t, depth-1))
		}
		return out
	}
	out := object{}
	for i := range n {
		out = append(out, property{fmt.Sprintf("k%d", i), draw(t, depth-1)})
	}
	return out
}

// TestValuesRoundTrip encodes and decodes, and lets go-amf0 read what we write.
func TestValuesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := draw(t, 3)
		b := encode(v)
		out, err := decodeValues(b)
		if err != nil || len(out) != 1 || !reflect.DeepEqual(out[0], v) {
			t.Fatalf("got %#v and %v, want %#v", out, err, v)
		}
		if !validScript(b) {
			t.Fatal("not valid")
		}
		if len(b) > math.MaxUint16 {
			return // go-amf0 has no long strings
		}
		var other any
		if err := amf0.NewDecoder(bytes.NewReader(b)).Decode(&other); err != nil {
			t.Fatalf("go-amf0: %v", err)
		}
	})
}

func TestValueAccess(t *testing.T) {
	o := object{{"s", "x"}, {"n", 4.0}, {"b", true}, {"f", false}, {"z", nil}}
	if o.text("s") != "x" || o.text("n") != "" || o.text("none") != "" {
		t.Error("text")
	}
	if o.number("n") != 4 || o.number("b") != 1 || o.number("f") != 0 || o.number("s") != 0 || o.number("z") != 0 {
		t.Error("number")
	}
	if !bytes.Equal(encode(uint32(7)), encode(7.0)) || !bytes.Equal(encode(struct{}{}), encode(nil)) {
		t.Error("encode")
	}
}

// FuzzCommand feeds any bytes to what every command goes through. What comes out
// must be safe for go-rtmp: its decoder runs over it as well.
func FuzzCommand(f *testing.F) {
	f.Add(encode("connect", 1, object{{"app", "live"}}), false)
	f.Add(append([]byte{0}, encode("publish", 2, nil, "a", "live")...), true)
	f.Add(append(encode("connect", 1), amfStrictArray, 0x7f, 0xff, 0xff, 0xff), false)
	f.Add(bytes.Repeat([]byte{amfObject, 0, 1, 'a'}, 40), false)
	f.Add([]byte{amfString, 0, 1, 'x', amfNumber, 0x7f, 0xf8, 0, 0, 0, 0, 0, 1, amfDate}, false)
	f.Fuzz(func(t *testing.T, b []byte, amf3 bool) {
		m := message{kind: typeCommand, wire: flv.New(typeCommand, 0, b).Wire}
		if amf3 {
			m.kind = typeCommandAMF3
		}
		cmd, err := parseCommand(&m)
		var f *fault
		if err != nil {
			if !errors.As(err, &f) || f.reason != session.BadCommand {
				t.Fatalf("unexpected error %v", err)
			}
			return
		}
		if math.IsNaN(cmd.tx) {
			t.Fatal("a transaction id that is not a number")
		}
		c := &conn{streams: map[uint32]*netStream{}}
		c.connect(&cmd)
		wire := c.calls[0].encode(0)
		out, err := readAll(newChunkReader(bytes.NewReader(append([]byte(nil), retag(wire)...)), 64, testLimits))
		if err != nil || len(out) != 1 || len(out[0].payload) > boxChunk {
			t.Fatalf("%d messages, %v", len(out), err)
		}
		d := amf0.NewDecoder(strings.NewReader(out[0].payload))
		var name string
		var tx int64
		var o map[string]any
		for _, v := range []any{&name, &tx, &o} {
			if err := d.Decode(v); err != nil {
				t.Fatalf("go-amf0 cannot read what we made of it: %v", err)
			}
		}
	})
}

// retag puts the chunk size between us and go-rtmp in front of a chunk.
func retag(wire []byte) []byte {
	return append(appendMessage(nil, 128, 2, typeSetChunkSize, 0, 0, []byte{0, 1, 0, 0}), wire...)
}

// FuzzScript feeds any bytes to the makers of tags.
func FuzzScript(f *testing.F) {
	f.Add(encode(setDataFrame, onMetaData, object{{"width", 640}}), uint8(typeData))
	f.Add(append([]byte{0}, encode(onMetaData)...), uint8(typeDataAMF3))
	f.Add(slicesOf(flv.New(flv.Video, 5, keyframe(1)).Wire, flv.New(flv.Audio, 6, aac(1)).Wire), uint8(typeAggregate))
	f.Add([]byte{0x17, 0}, uint8(typeVideo))
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		check := func(m *message) {
			tag, r := mediaTag(m)
			if r != session.None {
				return
			}
			want := flv.New(tag.Kind, 0, tag.Payload()).Wire
			if !bytes.Equal(tag.Wire[:4], want[:4]) || !bytes.Equal(tag.Wire[len(want)-4:], want[len(want)-4:]) {
				t.Fatalf("framed as % x", tag.Wire)
			}
			if name, _ := dataName(tag.Payload()); tag.Kind == flv.Script && name == setDataFrame && kind != typeAggregate {
				if inner, n := dataName(b); inner != setDataFrame || n == 0 {
					t.Fatal("a call of @setDataFrame was passed on")
				}
			}
		}
		m := message{kind: kind, time: 9, wire: flv.New(flv.Kind(kind), 0, b).Wire}
		if kind == typeAggregate {
			_ = splitAggregate(&m, func(p *message) error { check(p); return nil })
			return
		}
		if isMedia(kind) || kind == typeDataAMF3 {
			check(&m)
		}
	})
}

// FuzzChunkReader reads any bytes as chunks, and wants limits kept and messages
// laid out as tags.
func FuzzChunkReader(f *testing.F) {
	f.Add([]byte(chunks{}.type0(4, 7, 2, 8, 1).raw('a', 'b').type1(4, 1, 1, 8).raw('c').type2(4, 1).raw('d').basic(3, 4).raw('e')), uint16(3))
	f.Add([]byte(chunks{}.type0(4, 0xffffff, 200, 9, 1).u32(1<<24).raw(make([]byte, 128)...).basic(3, 4).u32(1<<24).raw(make([]byte, 72)...)), uint16(100))
	f.Add([]byte(chunks{}.type0(2, 0, 4, 1, 0).u32(1).type0(400, 0, 2, 9, 1).raw(1).basic(3, 400).raw(2)), uint16(1))
	f.Add([]byte(chunks{}.type0(5, 0, 500, 9, 1).raw(make([]byte, 128)...).type0(2, 0, 4, 2, 0).u32(5)), uint16(64))
	f.Add([]byte(chunks{}.type0(4, 0xffffff, 0, 9, 1).u32(5).basic(3, 4).u32(5).basic(3, 4)), uint16(7))
	small := limits{message: 4096, partial: 8192, streams: 8}
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		r := newChunkReader(cutter{bytes.NewReader(b), int(cut)%512 + 1}, 64, small)
		payload := 0
		for {
			var m message
			if err := r.readMessage(&m); err != nil {
				break
			}
			n := len(m.payload())
			payload += n
			if want := flv.New(flv.Kind(m.kind), 0, m.payload()).Wire; !bytes.Equal(m.wire, want) {
				t.Fatal("not laid out as a tag")
			}
			if n > small.message || r.held > small.partial+framing || r.streams > small.streams {
				t.Fatalf("limits: %d bytes, %d held, %d streams", n, r.held, r.streams)
			}
			if m.kind == typeSetChunkSize || m.kind == typeAbort {
				t.Fatal("a message of the chunk layer came out")
			}
		}
		if payload > len(b) {
			t.Fatalf("%d bytes of payload out of %d", payload, len(b))
		}
		if r.got > r.held || r.held < 0 || r.got < 0 {
			t.Fatalf("%d held, %d received", r.held, r.got)
		}
	})
}
