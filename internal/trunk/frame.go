package trunk

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// kind says what a frame is.
type kind uint8

// The kinds. They are on the wire: new ones come at the end.
const (
	data kind = iota + 1
	open
	closed
	window
	ping
	pong
	kinds
)

const (
	headSize = 8
	// maxFrame is the biggest payload: what one connection may say before another one.
	maxFrame = 32 << 10
	// maxCredit bounds what a peer may grant.
	maxCredit = 16 << 20
	readSize  = 64 << 10
)

// head is what stands before a payload.
type head struct {
	kind kind
	id   uint32
	size int
}

func appendHead(dst []byte, h head) []byte {
	dst = append(dst, byte(h.kind))
	dst = binary.BigEndian.AppendUint32(dst, h.id)
	return append(dst, byte(h.size>>16), byte(h.size>>8), byte(h.size))
}

// parseHead reads the first headSize bytes of b. Its errors wrap [ErrProtocol].
func parseHead(b []byte) (head, error) {
	h := head{kind(b[0]), binary.BigEndian.Uint32(b[1:]), int(b[5])<<16 | int(b[6])<<8 | int(b[7])}
	var most, least int
	switch h.kind {
	case data:
		least, most = 1, maxFrame
	case window:
		least, most = 4, 4
	case open, closed, ping, pong:
	default:
		return h, fmt.Errorf("%w: a frame of kind %d", ErrProtocol, h.kind)
	}
	if h.size < least || h.size > most {
		return h, fmt.Errorf("%w: a frame of kind %d with %d bytes", ErrProtocol, h.kind, h.size)
	}
	if about := h.kind != ping && h.kind != pong; about != (h.id != 0) {
		return h, fmt.Errorf("%w: a frame of kind %d about connection %d", ErrProtocol, h.kind, h.id)
	}
	return h, nil
}

// windowOf returns the bytes that a window frame grants.
func windowOf(payload []byte) uint32 { return binary.BigEndian.Uint32(payload) }

// reader reads frames.
type reader struct{ buf *bufio.Reader }

func newReader(first []byte, carrier net.Conn) reader {
	var src io.Reader = carrier
	if len(first) > 0 {
		src = io.MultiReader(bytes.NewReader(bytes.Clone(first)), carrier)
	}
	return reader{bufio.NewReaderSize(src, readSize)}
}

// next returns the next frame. Its payload is good until the next call.
func (r reader) next() (head, []byte, error) {
	b, err := r.buf.Peek(headSize)
	if err != nil {
		return head{}, nil, err
	}
	h, err := parseHead(b)
	if err != nil || h.size == 0 {
		_, _ = r.buf.Discard(headSize) // it is buffered
		return h, nil, err
	}
	if b, err = r.buf.Peek(headSize + h.size); err != nil {
		return h, nil, unexpected(err)
	}
	payload := b[headSize:]
	_, _ = r.buf.Discard(len(b)) // leaves the bytes where they are until the next Peek
	return h, payload, nil
}
