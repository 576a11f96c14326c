package flv

import (
	"encoding/binary"
	"math"
)

// Bounds of what is read of metadata.
const (
	maxMetadata = 64 << 10
	maxDepth    = 8 // of objects within objects
)

// Types of AMF0 values (AMF0 specification, 2.1).
const (
	amfNumber      = 0x00
	amfBoolean     = 0x01
	amfString      = 0x02
	amfObject      = 0x03
	amfNull        = 0x05
	amfUndefined   = 0x06
	amfReference   = 0x07
	amfECMAArray   = 0x08
	amfObjectEnd   = 0x09
	amfStrictArray = 0x0a
	amfDate        = 0x0b
	amfLongString  = 0x0c
	amfUnsupported = 0x0d
	amfXML         = 0x0f
	amfTypedObject = 0x10
)

// MetadataSize reads what the payload of a script tag claims about the picture, as
// a fallback for streams whose sequence header says nothing: encoders put anything
// there. What is missing or absurd is 0; ok is false if there is no size.
func MetadataSize(payload []byte) (width, height int, framerate float64, ok bool) {
	if len(payload) > maxMetadata {
		return 0, 0, 0, false
	}
	a := amf{p: payload}
	name, isString := a.name()
	if name == "@setDataFrame" {
		name, isString = a.name()
	}
	if !isString || name != "onMetaData" {
		return 0, 0, 0, false
	}
	switch a.byte() {
	case amfObject:
	case amfECMAArray:
		a.take(4) // the count, which is often wrong: 2.10
	default:
		return 0, 0, 0, false
	}
	for {
		key, more := a.key()
		if !more {
			break
		}
		kind := a.byte()
		if kind != amfNumber {
			a.skip(kind, maxDepth)
			continue
		}
		v := a.number()
		switch key {
		case "width":
			width = side(v)
		case "height":
			height = side(v)
		case "framerate":
			if v > 0 && v <= 1000 {
				framerate = v
			}
		}
	}
	if width == 0 || height == 0 {
		width, height = 0, 0
	}
	return width, height, framerate, width > 0
}

// side returns v as the side of a picture, 0 if it cannot be one.
func side(v float64) int {
	if !(v >= 1 && v <= maxSide) { // NaN too
		return 0
	}
	return int(v)
}

// amf reads AMF0. Each step takes at least a byte, so that the work is bounded by
// the payload whatever its counts say. After the end everything reads as zero and
// bad is set.
type amf struct {
	p   []byte
	bad bool
}

// take returns the next n bytes, nil if there are not so many.
func (a *amf) take(n int) []byte {
	if a.bad || n < 0 || n > len(a.p) {
		a.bad = true
		return nil
	}
	out := a.p[:n]
	a.p = a.p[n:]
	return out
}

func (a *amf) byte() byte {
	if b := a.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (a *amf) number() float64 {
	if b := a.take(8); b != nil {
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	}
	return 0
}

// short reads a string with 16 bits of length.
func (a *amf) short() []byte {
	b := a.take(2)
	if b == nil {
		return nil
	}
	return a.take(int(binary.BigEndian.Uint16(b)))
}

// name reads a value that should be a string.
func (a *amf) name() (string, bool) {
	if a.byte() != amfString {
		return "", false
	}
	s := a.short()
	return string(s), !a.bad
}

// key reads the next key of an object; more is false at its end, or at the end of
// the payload: encoders forget the end marker.
func (a *amf) key() (key string, more bool) {
	s := a.short()
	if a.bad {
		return "", false
	}
	if len(s) == 0 && len(a.p) > 0 && a.p[0] == amfObjectEnd {
		a.take(1)
		return "", false
	}
	return string(s), true
}

// skip passes over a value whose type was read.
func (a *amf) skip(kind byte, depth int) {
	if depth == 0 {
		a.bad = true
		return
	}
	switch kind {
	case amfNumber:
		a.take(8)
	case amfBoolean:
		a.take(1)
	case amfString:
		a.short()
	case amfNull, amfUndefined, amfUnsupported:
	case amfReference:
		a.take(2)
	case amfDate:
		a.take(10)
	case amfLongString, amfXML:
		if b := a.take(4); b != nil {
			a.take(int(binary.BigEndian.Uint32(b)))
		}
	case amfTypedObject:
		a.short()
		a.members(depth)
	case amfECMAArray:
		a.take(4)
		a.members(depth)
	case amfObject:
		a.members(depth)
	case amfStrictArray:
		b := a.take(4)
		if b == nil {
			return
		}
		for n := binary.BigEndian.Uint32(b); n > 0 && !a.bad; n-- {
			a.skip(a.byte(), depth-1)
		}
	default:
		a.bad = true
	}
}

func (a *amf) members(depth int) {
	for !a.bad {
		if _, more := a.key(); !more {
			return
		}
		a.skip(a.byte(), depth-1)
	}
}
