package rtmp

import (
	"encoding/binary"
	"errors"
	"math"
	"unicode/utf8"

	"millrace/internal/session"
)

// AMF0 markers (Action Message Format, AMF 0, December 2007, section 2.1).
const (
	amfNumber      = 0x00
	amfBoolean     = 0x01
	amfString      = 0x02
	amfObject      = 0x03
	amfMovieClip   = 0x04
	amfNull        = 0x05
	amfUndefined   = 0x06
	amfReference   = 0x07
	amfECMAArray   = 0x08
	amfObjectEnd   = 0x09
	amfStrictArray = 0x0a
	amfDate        = 0x0b
	amfLongString  = 0x0c
	amfUnsupported = 0x0d
	amfRecordSet   = 0x0e
	amfXML         = 0x0f
	amfTypedObject = 0x10
	amfAMF3        = 0x11
)

// Limits of what a peer may send as AMF0. A connect of a browser plug-in has about
// 20 values and two levels.
const (
	maxCommand = 16 << 10 // bytes of a command
	maxValues  = 256      // values in a command
	maxDepth   = 16       // objects and arrays within one another

	// Script data may be longer: the seek tables of a file that is played as live.
	maxScript       = 1 << 20
	maxScriptValues = 1 << 16
)

var (
	errAMFEnd   = errors.New("AMF0 value ends early")
	errAMFKind  = errors.New("unknown AMF0 marker")
	errAMFDepth = faultf(session.BadCommand, "AMF0 values are nested more than %d deep", maxDepth)
	errAMFCount = faultf(session.BadCommand, "too many AMF0 values in one message")
)

// limitOf returns err if it is about a limit, which ends a connection; what is
// merely odd does not.
func limitOf(err error) error {
	if err == errAMFDepth || err == errAMFCount {
		return err
	}
	return nil
}

// property is a member of an object or an ECMA array, in order of arrival.
type property struct {
	key   string
	value any
}

// object is an AMF0 object, typed object or ECMA array.
type object []property

// The Go types of AMF0 values: float64, bool, string, nil (null, undefined, and
// what has no use to us: date, XML is a string), object, []any.

// decoder reads AMF0 values. It allocates by what has come, never by what a length
// announces. With skim it allocates nothing and returns only nils.
type decoder struct {
	b      []byte
	values int // how many more are allowed
	skim   bool
}

// decodeValues returns the AMF0 values of b. It is lenient: the values before the
// first thing that is not understood are returned. Only a limit is an error.
func decodeValues(b []byte) ([]any, error) {
	d := decoder{b: b, values: maxValues}
	var out []any
	for len(d.b) > 0 {
		v, err := d.value(0)
		if limit := limitOf(err); limit != nil {
			return nil, limit
		}
		if err == nil || v != nil { // of an object that ends early the part that came counts
			out = append(out, v)
		}
		if err != nil {
			break
		}
	}
	return out, nil
}

// validScript reports whether b is whole AMF0 values, one or more, within the
// limits of script data.
func validScript(b []byte) bool {
	if len(b) > maxScript {
		return false
	}
	d := decoder{b: b, values: maxScriptValues, skim: true}
	for first := true; first || len(d.b) > 0; first = false {
		if _, err := d.value(0); err != nil {
			return false
		}
	}
	return true
}

func (d *decoder) take(n int) ([]byte, error) {
	if n > len(d.b) {
		return nil, errAMFEnd
	}
	p := d.b[:n]
	d.b = d.b[n:]
	return p, nil
}

func (d *decoder) uint16() (int, error) {
	p, err := d.take(2)
	if err != nil {
		return 0, err
	}
	return int(binary.BigEndian.Uint16(p)), nil
}

func (d *decoder) uint32() (uint32, error) {
	p, err := d.take(4)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(p), nil
}

func (d *decoder) value(depth int) (any, error) {
	if d.values--; d.values < 0 {
		return nil, errAMFCount
	}
	p, err := d.take(1)
	if err != nil {
		return nil, err
	}
	switch p[0] {
	case amfNumber:
		if p, err = d.take(8); err != nil || d.skim {
			return nil, err
		}
		return math.Float64frombits(binary.BigEndian.Uint64(p)), nil
	case amfBoolean:
		if p, err = d.take(1); err != nil || d.skim {
			return nil, err
		}
		return p[0] != 0, nil
	case amfString:
		n, err := d.uint16()
		if err != nil {
			return nil, err
		}
		return d.text(n)
	case amfLongString, amfXML:
		n, err := d.uint32()
		if err != nil {
			return nil, err
		}
		return d.text(int(min(n, math.MaxInt32)))
	case amfNull, amfUndefined, amfUnsupported:
		return nil, nil
	case amfReference:
		_, err := d.take(2)
		return nil, err
	case amfDate:
		_, err := d.take(10)
		return nil, err
	case amfObject, amfECMAArray, amfTypedObject:
		return d.object(p[0], depth+1)
	case amfStrictArray:
		return d.array(depth + 1)
	case amfObjectEnd:
		return nil, errAMFObjectEnd
	}
	return nil, errAMFKind // movie clip, record set, AMF3 and what nobody knows
}

// errAMFObjectEnd is an object end where a value should be.
var errAMFObjectEnd = errors.New("AMF0 object ends where a value should be")

// text reads n bytes. What is not UTF-8 is mended, since names end up in logs.
func (d *decoder) text(n int) (any, error) {
	p, err := d.take(n)
	if err != nil || d.skim {
		return nil, err
	}
	return validText(p), nil
}

func validText(p []byte) string {
	if utf8.Valid(p) {
		return string(p)
	}
	return string([]rune(string(p))) // each bad byte becomes U+FFFD
}

// object reads the members of an object (section 2.5), a typed object (2.18) or an
// ECMA array (2.10), whose count is a mere hint. Encoders have been seen that leave
// out the empty key before the end marker, or the end altogether.
func (d *decoder) object(marker byte, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errAMFDepth
	}
	switch marker {
	case amfECMAArray:
		if _, err := d.uint32(); err != nil {
			return nil, err
		}
	case amfTypedObject:
		n, err := d.uint16()
		if err == nil {
			_, err = d.take(n)
		}
		if err != nil {
			return nil, err
		}
	}
	out := object{}
	done := func(err error) (any, error) {
		if d.skim {
			return nil, err
		}
		return out, err
	}
	for {
		if d.bareEnd() {
			return done(nil)
		}
		n, err := d.uint16()
		if err != nil {
			return done(err)
		}
		key, err := d.take(n)
		if err != nil {
			return done(err)
		}
		if n == 0 && len(d.b) > 0 && d.b[0] == amfObjectEnd {
			d.b = d.b[1:]
			return done(nil)
		}
		v, err := d.value(depth)
		if err == errAMFObjectEnd {
			return done(nil)
		}
		if limit := limitOf(err); limit != nil {
			return nil, limit
		}
		if (err == nil || v != nil) && !d.skim {
			out = append(out, property{validText(key), v})
		}
		if err != nil {
			return done(err)
		}
	}
}

// bareEnd takes an object end marker that stands without its empty key. It would
// otherwise be the length of a key of 2,304 bytes or more.
func (d *decoder) bareEnd() bool {
	if len(d.b) == 0 || d.b[0] != amfObjectEnd {
		return false
	}
	if len(d.b) >= 2 && int(binary.BigEndian.Uint16(d.b))+2 <= len(d.b) {
		return false
	}
	d.b = d.b[1:]
	return true
}

// array reads a strict array (section 2.12).
func (d *decoder) array(depth int) (any, error) {
	if depth > maxDepth {
		return nil, errAMFDepth
	}
	n, err := d.uint32()
	if err != nil {
		return nil, err
	}
	var out []any
	for range n {
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		if !d.skim {
			out = append(out, v)
		}
	}
	return out, nil
}
