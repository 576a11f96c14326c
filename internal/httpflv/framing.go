package httpflv

import (
	"encoding/binary"

	"millrace/internal/flv"
)

// framing is how tags are told apart, or not, in what a viewer gets.
type framing uint8

// The framings.
const (
	closeDelimited framing = iota // nothing around the bytes
	chunked                       // RFC 9112, 7.1: a chunk for each tag
	webSocket                     // RFC 6455, 5.2: a binary message for each tag
)

// maxPrefix is the longest thing that stands before a payload: the end of the last
// chunk, a chunk size of seven digits (the biggest payload has six, its tag seven)
// with its end of line, and the tag header. The header of a WebSocket message, 10
// bytes at most, is no longer.
const maxPrefix = 2 + 7 + 2 + flv.HeaderSize

const (
	crlf      = "\r\n"
	lastChunk = "0\r\n\r\n"
)

// appendFrame appends what announces n bytes. open says that the chunk before
// this one was not ended yet.
func (f framing) appendFrame(dst []byte, n int, open bool) []byte {
	switch f {
	case chunked:
		if open {
			dst = append(dst, crlf...)
		}
		return append(appendHex(dst, uint32(n)), crlf...)
	case webSocket:
		const finalBinary = 0x82
		switch {
		case n < 126:
			return append(dst, finalBinary, byte(n))
		case n < 1<<16:
			return append(dst, finalBinary, 126, byte(n>>8), byte(n))
		}
		return binary.BigEndian.AppendUint64(append(dst, finalBinary, 127), uint64(n))
	}
	return dst
}

// appendTagHead appends everything that stands before the payload of t: framing,
// and the tag header with the time on the viewer's clock.
func (f framing) appendTagHead(dst []byte, t *flv.Tag, open bool) []byte {
	dst = f.appendFrame(dst, len(t.Wire), open)
	at := len(dst)
	dst = dst[:at+flv.HeaderSize] // callers have room for maxPrefix
	flv.PutHeader(dst[at:], t.Kind, len(t.Wire)-flv.HeaderSize-flv.TrailerSize, t.DTS)
	return dst
}

// appendHex appends n in hexadecimal without leading zeros.
func appendHex(dst []byte, n uint32) []byte {
	const digits = "0123456789abcdef"
	shift := 0
	for n>>shift > 0xf {
		shift += 4
	}
	for ; shift >= 0; shift -= 4 {
		dst = append(dst, digits[n>>shift&0xf])
	}
	return dst
}
