package rtmp

import (
	"encoding/binary"
	"math"
)

// get returns the member called key, or nil.
func (o object) get(key string) any {
	for _, p := range o {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

// text returns the member called key if it is a string.
func (o object) text(key string) string {
	s, _ := o.get(key).(string)
	return s
}

// number returns the member called key as a number: some encoders send booleans
// as numbers and the other way round.
func (o object) number(key string) float64 { return toNumber(o.get(key)) }

func toNumber(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case bool:
		if v {
			return 1
		}
	}
	return 0
}

// appendValue appends v in AMF0. It takes the types that [decoder] returns, and
// integers.
func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case float64:
		return binary.BigEndian.AppendUint64(append(dst, amfNumber), math.Float64bits(v))
	case int:
		return appendValue(dst, float64(v))
	case uint32:
		return appendValue(dst, float64(v))
	case bool:
		if v {
			return append(dst, amfBoolean, 1)
		}
		return append(dst, amfBoolean, 0)
	case string:
		if len(v) > math.MaxUint16 {
			dst = binary.BigEndian.AppendUint32(append(dst, amfLongString), uint32(len(v)))
			return append(dst, v...)
		}
		return appendKey(append(dst, amfString), v)
	case object:
		dst = append(dst, amfObject)
		for _, p := range v {
			dst = appendValue(appendKey(dst, p.key), p.value)
		}
		return append(dst, 0, 0, amfObjectEnd)
	case []any:
		dst = binary.BigEndian.AppendUint32(append(dst, amfStrictArray), uint32(len(v)))
		for _, e := range v {
			dst = appendValue(dst, e)
		}
		return dst
	}
	return append(dst, amfNull)
}

func appendKey(dst []byte, s string) []byte {
	s = s[:min(len(s), math.MaxUint16)]
	return append(binary.BigEndian.AppendUint16(dst, uint16(len(s))), s...)
}

// encode returns values in AMF0.
func encode(values ...any) []byte {
	var dst []byte
	for _, v := range values {
		dst = appendValue(dst, v)
	}
	return dst
}
