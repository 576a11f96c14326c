package console

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// frame is some events, plain and as a part of a gzip stream.
type frame struct{ plain, packed []byte }

func (f *frame) in(packed bool) []byte {
	if packed {
		return f.packed
	}
	return f.plain
}

// gzipHead begins a gzip stream: by deflate, of no name, time or system.
const gzipHead = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

func (l *live) opening(packed bool) []byte {
	text := fmt.Appendf(nil, "retry: %d\n\n", liveRetry.Milliseconds())
	if !packed {
		return text
	}
	return append([]byte(gzipHead), stored(text)...)
}

// stored is b as a part of a gzip stream, not compressed: RFC 1951, 3.2.4.
func stored(b []byte) []byte {
	n := uint16(len(b))
	return append([]byte{0, byte(n), byte(n >> 8), byte(^n), byte(^n >> 8)}, b...)
}

// comment keeps a connection from seeming dead.
var comment = frame{plain: []byte(":\n\n"), packed: stored([]byte(":\n\n"))}

func (l *live) begin() { l.buffer.Reset() }

// event appends one to the frame that was begun.
func (l *live) event(name string, id uint64, data any) {
	b, err := json.Marshal(data)
	if err != nil { // a figure that is no number
		l.console.log.Error("an event for pages cannot be written", "event", name, "err", err)
		return
	}
	if id > 0 {
		fmt.Fprintf(&l.buffer, "id: %d\n", id)
	}
	fmt.Fprintf(&l.buffer, "event: %s\ndata: ", name)
	l.buffer.Write(b) // JSON has no line ends
	l.buffer.WriteString("\n\n")
}

// end returns the frame, nil if there is nothing in it.
func (l *live) end() *frame {
	if l.buffer.Len() == 0 {
		return nil
	}
	var packed bytes.Buffer
	l.pack.Reset(&packed)
	_, _ = l.pack.Write(l.buffer.Bytes()) // into memory
	_ = l.pack.Flush()
	return &frame{bytes.Clone(l.buffer.Bytes()), packed.Bytes()}
}
