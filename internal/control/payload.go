package control

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// payload is a body that many are answered with. Each encoding is made once, when the
// first one asks for it, and shared. Safe from any goroutine.
type payload struct {
	// Fixed at construction.
	token string
	plain func() []byte // called once

	once    [encodings]sync.Once
	encoded [encodings]body
}

// body is bytes to send.
type body struct {
	encoding encoding
	bytes    []byte
	sum      [sha256.Size]byte
}

// encoding is how a body is compressed.
type encoding uint8

const (
	identity encoding = iota
	gzipped
	zstandard
	encodings
)

// String returns the name in Content-Encoding and Accept-Encoding.
func (e encoding) String() string { return [...]string{"", "gzip", "zstd"}[e] }

// best returns the strongest encoding that a request accepts.
func best(accept string) encoding {
	for _, e := range []encoding{zstandard, gzipped} {
		for part := range strings.SplitSeq(accept, ",") {
			name, params, _ := strings.Cut(part, ";")
			if strings.TrimSpace(name) == e.String() && strings.ReplaceAll(params, " ", "") != "q=0" {
				return e
			}
		}
	}
	return identity
}

func newPayload(token string, plain func() []byte) *payload {
	return &payload{token: token, plain: sync.OnceValue(plain)}
}

// bytesOf is for a payload that is there already.
func bytesOf(b []byte) func() []byte { return func() []byte { return b } }

// in returns the body in an encoding, or as it is where that is no longer.
func (p *payload) in(e encoding) *body {
	p.once[e].Do(func() {
		plain := p.plain()
		b, as := compressed(e, plain), e
		if len(b) >= len(plain) {
			b, as = plain, identity
		}
		p.encoded[e] = body{as, b, sha256.Sum256(b)}
	})
	return &p.encoded[e]
}

// compressed returns plain in an encoding.
func compressed(e encoding, plain []byte) []byte {
	switch e {
	case gzipped:
		var buf bytes.Buffer
		w := gzip.NewWriter(&buf)
		w.Write(plain) // to memory: it cannot fail
		w.Close()
		return buf.Bytes()
	case zstandard:
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic("control: " + err.Error()) // its options are constants
		}
		return w.EncodeAll(plain, nil)
	}
	return plain
}

// errTooBig is returned for what would unpack to more than is allowed.
var errTooBig = errors.New("unpacks to more than is allowed")

// maxWindow bounds the memory for unpacking, whatever comes out. The encoder never
// asks for more.
const maxWindow = 8 << 20

// unpack returns what b holds in the encoding of that name, at most limit bytes. A
// body that would unpack to more costs no more than that.
func unpack(name string, b []byte, limit int64) ([]byte, error) {
	var r io.Reader
	switch name {
	case "":
		if int64(len(b)) > limit {
			return nil, errTooBig
		}
		return b, nil
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		r = z
	case "zstd":
		z, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		r = z
	default:
		return nil, fmt.Errorf("unknown content encoding %.40q", name)
	}
	return readAll(r, limit)
}

// readAll reads r to its end, at most limit bytes. Its memory grows with what has
// come, not with what was promised.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = errTooBig
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}
