package flv

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"
)

// amfWriter writes AMF0.
type amfWriter []byte

func (w amfWriter) key(s string) amfWriter {
	return append(binary.BigEndian.AppendUint16(w, uint16(len(s))), s...)
}

func (w amfWriter) str(s string) amfWriter { return append(w, amfString).key(s) }

func (w amfWriter) num(v float64) amfWriter {
	return binary.BigEndian.AppendUint64(append(w, amfNumber), math.Float64bits(v))
}

func (w amfWriter) count(kind byte, n uint32) amfWriter {
	return binary.BigEndian.AppendUint32(append(w, kind), n)
}

func (w amfWriter) end() amfWriter { return append(w, 0, 0, amfObjectEnd) }

func size(w amfWriter, width, height float64) amfWriter {
	return w.key("width").num(width).key("height").num(height).key("framerate").num(29.97)
}

func onMeta() amfWriter { return amfWriter{}.str("onMetaData") }

func TestMetadataSize(t *testing.T) {
	f := func(name string, payload []byte, width, height int, rate float64) {
		t.Helper()
		w, h, r, ok := MetadataSize(payload)
		if w != width || h != height || r != rate || ok != (width > 0) {
			t.Errorf("%s: %dx%d at %v, %v, want %dx%d at %v", name, w, h, r, ok, width, height, rate)
		}
	}
	array := func() amfWriter { return onMeta().count(amfECMAArray, 3) }
	f("array", size(array(), 1280, 720).end(), 1280, 720, 29.97)
	f("object", size(append(onMeta(), amfObject), 1280, 720).end(), 1280, 720, 29.97)
	f("behind @setDataFrame", size(append(amfWriter{}.str("@setDataFrame").str("onMetaData"), amfObject), 1280, 720).end(), 1280, 720, 29.97)
	f("wrong count", size(onMeta().count(amfECMAArray, 0xffffffff), 1280, 720).end(), 1280, 720, 29.97)
	f("end forgotten", size(array(), 1280, 720), 1280, 720, 29.97)
	f("fractions", size(array(), 1280.9, 720.1).end(), 1280, 720, 29.97)
	f("largest", size(array(), 16384, 16384).end(), 16384, 16384, 29.97)
	f("last one wins", size(size(array(), 1, 1), 1280, 720).end(), 1280, 720, 29.97)

	// Values of every type before the ones that are looked for.
	odd := array().key("a").str("x")
	odd = append(odd.key("b"), amfBoolean, 1)
	odd = append(odd.key("c"), amfNull)
	odd = append(odd.key("d"), amfUndefined)
	odd = append(odd.key("e"), amfReference, 0, 1)
	odd = append(odd.key("f"), amfDate, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	odd = append(odd.key("g").count(amfLongString, 3), "abc"...)
	odd = append(odd.key("h").count(amfXML, 3), "<a>"...)
	odd = append(odd.key("i"), amfUnsupported)
	odd = append(odd.key("j"), amfTypedObject).key("Class").key("width").num(1).end()
	odd = append(odd.key("keyframes"), amfObject).key("times").count(amfStrictArray, 2).num(0).num(2).end()
	odd = odd.key("k").count(amfECMAArray, 1).key("height").num(1).end()
	odd = odd.key("").num(5) // an empty key is legal
	f("values of every type", size(odd, 1280, 720).end(), 1280, 720, 29.97)

	f("nothing", nil, 0, 0, 0)
	f("name alone", onMeta(), 0, 0, 0)
	f("another event", size(amfWriter{}.str("onCuePoint").count(amfECMAArray, 1), 1280, 720).end(), 0, 0, 0)
	f("a string for an object", onMeta().str("width"), 0, 0, 0)
	f("size as strings", array().key("width").str("1280").key("height").str("720").end(), 0, 0, 0)
	f("width alone", array().key("width").num(1280).end(), 0, 0, 0)
	for _, v := range []float64{0, -1, 16385, 1e300, math.NaN(), math.Inf(1), math.Inf(-1), 0.5} {
		f("absurd", size(array(), v, 720).end(), 0, 0, 29.97)
	}
	f("absurd rate", size(array(), 1280, 720).key("framerate").num(1e6).end(), 1280, 720, 29.97)
	f("unknown type", append(array().key("x"), 0x42), 0, 0, 0)
	f("AMF3", append(array().key("x"), 0x11, 1), 0, 0, 0)
	f("too long", size(array(), 1280, 720).key("x").str(strings.Repeat("x", 60000)).key("y").str(strings.Repeat("y", 10000)).end(), 0, 0, 0)
}

// Counts that promise more than there is, and objects within objects, must cost
// no more than their bytes.
func TestMetadataBombs(t *testing.T) {
	deep := onMeta().count(amfECMAArray, 1)
	for range 10_000 {
		deep = append(deep.key("a"), amfObject)
	}
	arrays := onMeta().count(amfECMAArray, 1).key("a")
	for range 10_000 {
		arrays = arrays.count(amfStrictArray, 0xffffffff)
	}
	nulls := onMeta().count(amfECMAArray, 1).key("a").count(amfStrictArray, 0xffffffff)
	nulls = append(nulls, strings.Repeat("\x05", 60_000)...)
	long := onMeta().count(amfECMAArray, 1).key("a").count(amfLongString, 0xffffffff)
	for name, payload := range map[string][]byte{"depth": deep, "arrays": arrays, "nulls": nulls, "long string": long} {
		began := time.Now()
		if _, _, _, ok := MetadataSize(payload); ok {
			t.Errorf("%s: a size out of nothing", name)
		}
		if d := time.Since(began); d > 30*time.Second {
			t.Errorf("%s took %v", name, d)
		}
		if n := testing.AllocsPerRun(10, func() { MetadataSize(payload) }); n > 10 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func FuzzMetadataSize(f *testing.F) {
	f.Add([]byte(size(onMeta().count(amfECMAArray, 3), 1280, 720).end()))
	f.Add([]byte(size(append(amfWriter{}.str("@setDataFrame").str("onMetaData"), amfObject), 1280, 720).end()))
	f.Add([]byte(size(append(onMeta().count(amfECMAArray, 1).key("keyframes"), amfObject).key("times").count(amfStrictArray, 2).num(0).num(2).end(), 640, 360)))
	f.Fuzz(func(t *testing.T, payload []byte) {
		w, h, r, ok := MetadataSize(payload)
		if ok != (w > 0) || (w == 0) != (h == 0) || w < 0 || w > maxSide || h < 0 || h > maxSide || !(r >= 0 && r <= 1000) {
			t.Errorf("%dx%d at %v, %v", w, h, r, ok)
		}
	})
}
