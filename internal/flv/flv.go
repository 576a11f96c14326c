// Package flv frames and classifies FLV tags: what travels between an encoder
// and a player (Adobe FLV 10.1, annex E; enhanced RTMP v2 for the newer codecs).
//
// A [Tag] carries the bytes of the whole tag as they stand on the wire: 11 bytes
// of header, the payload, and the 4-byte size behind it. They are allocated once
// by [Alloc], filled by whoever reads them from a socket, and immutable from the
// moment the tag is published. Payloads are never rewritten.
//
//	 0       1         4         7      8          11            11+n        15+n
//	+-------+---------+---------+------+----------+-------------+-----------+
//	| kind  | n (24)  | dts(24) | dts  | stream 0 | payload (n) | 11+n (32) |
//	|       |         | low     | high |  (24)    |             |           |
//	+-------+---------+---------+------+----------+-------------+-----------+
//
// The package never looks deeper into a payload than it needs to find the codec,
// keyframes and sequence headers, does no I/O and panics on no input.
package flv

import "encoding/binary"

// Sizes of the framing around a payload, in bytes.
const (
	HeaderSize  = 11
	TrailerSize = 4
	// MaxPayload is what the 24-bit size field can say.
	MaxPayload = 1<<24 - 1
)

// Kind is the type of a tag (FLV 10.1, E.4.1: TagType).
type Kind uint8

// The kinds of tag, with their numbers on the wire. RTMP message types are the same.
const (
	Audio  Kind = 8
	Video  Kind = 9
	Script Kind = 18
)

// String returns the word used in logs and the API.
func (k Kind) String() string {
	switch k {
	case Audio:
		return "audio"
	case Video:
		return "video"
	case Script:
		return "script"
	}
	return "unknown"
}

// Flags say what a tag is good for.
type Flags uint8

// The flags of a tag.
const (
	Keyframe Flags = 1 << iota // a video frame at which decoding can start
	Header                     // a sequence header: decoder configuration, no frame
	Metadata                   // script data that describes the stream (onMetaData)
	EndOfSequence
	Frame // an audio or video frame, as opposed to configuration or signalling
)

// Tag is one audio, video or script unit. It is a small value; Wire is shared by
// all copies and must not be written after publishing.
type Tag struct {
	Wire  []byte // header, payload, trailer
	DTS   int64  // decoding time in milliseconds, not wrapped
	Kind  Kind
	Codec Codec
	Flags Flags
}

// Is reports whether the tag has all of the given flags.
func (t Tag) Is(f Flags) bool { return t.Flags&f == f }

// Payload returns the payload within Wire. It must not be written.
func (t Tag) Payload() []byte { return t.Wire[HeaderSize : len(t.Wire)-TrailerSize] }

// Alloc returns the wire bytes of a tag with room for n bytes of payload and with
// everything around the payload filled in but the time. n must be 0 to MaxPayload.
// It is the one allocation that a tag costs.
func Alloc(kind Kind, n int) []byte {
	wire := make([]byte, HeaderSize+n+TrailerSize)
	PutHeader(wire, kind, n, 0)
	binary.BigEndian.PutUint32(wire[HeaderSize+n:], uint32(HeaderSize+n))
	return wire
}

// Make returns the tag whose wire bytes, from [Alloc], now have their payload. It
// classifies the payload; the time in the wire bytes is left for [SetTime].
// It keeps wire.
func Make(wire []byte, dts int64) Tag {
	t := Tag{Wire: wire, DTS: dts, Kind: Kind(wire[0])}
	t.Codec, t.Flags = Classify(t.Kind, t.Payload())
	return t
}

// New returns a tag around a copy of payload.
func New(kind Kind, dts int64, payload []byte) Tag {
	wire := Alloc(kind, len(payload))
	copy(wire[HeaderSize:], payload)
	SetTime(wire, dts)
	return Make(wire, dts)
}

// SetTime writes dts into the header of wire, modulo 2^32 ms. Only the one who
// has not published the tag yet may call it.
func SetTime(wire []byte, dts int64) {
	wire[4], wire[5], wire[6], wire[7] = byte(dts>>16), byte(dts>>8), byte(dts), byte(dts>>24)
}

// PutHeader writes the 11 header bytes of a tag with n bytes of payload into dst.
func PutHeader(dst []byte, kind Kind, n int, dts int64) {
	_ = dst[HeaderSize-1]
	dst[0] = byte(kind)
	dst[1], dst[2], dst[3] = byte(n>>16), byte(n>>8), byte(n)
	dst[4], dst[5], dst[6], dst[7] = byte(dts>>16), byte(dts>>8), byte(dts), byte(dts>>24)
	dst[8], dst[9], dst[10] = 0, 0, 0
}

// FileHeaderSize is the size of the FLV header with the first, zero, tag size.
const FileHeaderSize = 13

// AppendFileHeader appends the FLV header (E.2) and the zero that stands before
// the first tag. The flags say which tracks are known.
func AppendFileHeader(dst []byte, audio, video bool) []byte {
	var flags byte
	if audio {
		flags |= 4
	}
	if video {
		flags |= 1
	}
	return append(dst, 'F', 'L', 'V', 1, flags, 0, 0, 0, 9, 0, 0, 0, 0)
}
