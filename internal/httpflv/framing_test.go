package httpflv

import (
	"bytes"
	"fmt"
	"io"
	"net/http/httputil"
	"testing"

	"github.com/gobwas/ws"

	"millrace/internal/flv"
)

func TestAppendHex(t *testing.T) {
	for _, n := range []uint32{0, 1, 9, 10, 15, 16, 255, 256, 4095, 65535, 65536, 1<<24 - 1, 1 << 24, 1<<32 - 1} {
		if got, want := string(appendHex(nil, n)), fmt.Sprintf("%x", n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestFrames(t *testing.T) {
	for _, size := range []int{0, 1, 100, 110, 111, 65535 - 15, 65536 - 15, flv.MaxPayload} {
		tag := flv.New(flv.Video, 7, make([]byte, size))
		for _, open := range []bool{false, true} {
			for f := closeDelimited; f <= webSocket; f++ {
				head := f.appendTagHead(make([]byte, 0, maxPrefix), &tag, open)
				if cap(head) > maxPrefix {
					t.Fatalf("framing %d, %d bytes: the head is over maxPrefix", f, size)
				}
				in := io.MultiReader(bytes.NewReader(head), bytes.NewReader(tag.Wire[flv.HeaderSize:]))
				got, err := unframe(f, in, open)
				if err != nil || !bytes.Equal(got, tag.Wire) {
					t.Errorf("framing %d, %d bytes, open %v: %d bytes come out, want %d (%v)", f, size, open, len(got), len(tag.Wire), err)
				}
			}
		}
	}
}

func unframe(f framing, in io.Reader, open bool) ([]byte, error) {
	switch f {
	case chunked:
		if open {
			var end [2]byte
			if _, err := io.ReadFull(in, end[:]); err != nil || string(end[:]) != crlf {
				return nil, fmt.Errorf("no end of the last chunk: %q %v", end, err)
			}
		}
		return io.ReadAll(httputil.NewChunkedReader(io.MultiReader(in, bytes.NewReader([]byte(crlf+lastChunk)))))
	case webSocket:
		h, err := ws.ReadHeader(in)
		if err != nil || h.OpCode != ws.OpBinary || !h.Fin || h.Masked {
			return nil, fmt.Errorf("header %+v: %v", h, err)
		}
		b, err := io.ReadAll(in)
		if int64(len(b)) != h.Length {
			err = fmt.Errorf("%d bytes, announced %d", len(b), h.Length)
		}
		return b, err
	}
	return io.ReadAll(in)
}
