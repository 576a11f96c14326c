package pull

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxHead is how long the header of a response may be.
const maxHead = 8 << 10

// maxChunkLine bounds the line before a chunk: size and extensions.
const maxChunkLine = 256

// Errors of a response.
var (
	ErrHead  = errors.New("malformed response header")
	ErrChunk = errors.New("malformed chunk")
)

// StatusError is an answer other than 200.
type StatusError int

// Error returns the code in words.
func (e StatusError) Error() string { return "status " + strconv.Itoa(int(e)) }

// response takes the HTTP around a body away: the header, and the chunks if there
// are any. It reads pieces of any size.
type response struct {
	head    []byte // of the response, or the line before a chunk; nil while in the body
	inBody  bool
	chunked bool
	left    int  // bytes of this chunk to come
	crlf    int  // bytes of the end of line behind a chunk to come
	ended   bool // the last chunk was there
}

// feed calls body with the bytes of the body that are in b.
func (r *response) feed(b []byte, body func([]byte) error) error {
	if !r.inBody {
		rest, err := r.readHead(b)
		if err != nil || !r.inBody {
			return err
		}
		b = rest
	}
	if !r.chunked {
		if len(b) == 0 {
			return nil
		}
		return body(b)
	}
	for len(b) > 0 && !r.ended {
		switch {
		case r.crlf > 0:
			if want := "\n\r"[r.crlf-1]; b[0] != want {
				return fmt.Errorf("%w: %q behind the data", ErrChunk, b[0])
			}
			r.crlf--
			b = b[1:]
		case r.left > 0:
			n := min(len(b), r.left)
			if err := body(b[:n]); err != nil {
				return err
			}
			r.left -= n
			b = b[n:]
			if r.left == 0 {
				r.crlf = 2
			}
		default:
			rest, err := r.readSize(b)
			if err != nil {
				return err
			}
			b = rest
		}
	}
	return nil
}

// readHead collects the header and returns what follows it.
func (r *response) readHead(b []byte) ([]byte, error) {
	was := len(r.head)
	r.head = append(r.head, b...)
	end := bytes.Index(r.head, []byte("\r\n\r\n"))
	if end < 0 {
		if len(r.head) > maxHead {
			return nil, fmt.Errorf("%w: over %d bytes", ErrHead, maxHead)
		}
		return nil, nil
	}
	lines := strings.Split(string(r.head[:end]), "\r\n")
	proto, code, ok := strings.Cut(lines[0], " ")
	code, _, _ = strings.Cut(code, " ")
	status, err := strconv.Atoi(code)
	if !ok || !strings.HasPrefix(proto, "HTTP/1.") || err != nil {
		return nil, fmt.Errorf("%w: %q", ErrHead, lines[0])
	}
	if status >= 100 && status < 200 { // an interim answer (RFC 9110, 15.2): the real one follows
		rest := bytes.Clone(r.head[end+4:])
		r.head = nil
		return r.readHead(rest)
	}
	if status != 200 {
		return nil, StatusError(status)
	}
	for _, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ":")
		if strings.EqualFold(name, "Transfer-Encoding") {
			r.chunked = strings.EqualFold(strings.TrimSpace(value), "chunked")
		}
	}
	r.inBody, r.head = true, nil
	return b[end+4-was:], nil
}

// readSize collects the line before a chunk and returns what follows it.
func (r *response) readSize(b []byte) ([]byte, error) {
	line, rest := b, []byte(nil)
	nl := bytes.IndexByte(b, '\n')
	if nl >= 0 {
		line, rest = b[:nl], b[nl+1:]
	}
	if len(r.head)+len(line) > maxChunkLine {
		return nil, fmt.Errorf("%w: line of over %d bytes", ErrChunk, maxChunkLine)
	}
	if nl < 0 || len(r.head) > 0 {
		r.head = append(r.head, line...)
		line = r.head
	}
	if nl < 0 {
		return nil, nil
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	if semi := bytes.IndexByte(line, ';'); semi >= 0 {
		line = line[:semi]
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 31)
	if err != nil {
		return nil, fmt.Errorf("%w: size %q", ErrChunk, line)
	}
	r.head = r.head[:0]
	r.left, r.ended = int(n), n == 0
	return rest, nil
}
