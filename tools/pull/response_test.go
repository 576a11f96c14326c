package pull

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http/httputil"
	"strings"
	"testing"
)

// unwrap reads an HTTP response in pieces of n bytes.
func unwrap(raw string, n int) (body string, r response, err error) {
	for b := []byte(raw); len(b) > 0 && err == nil; {
		k := min(n, len(b))
		err = r.feed(b[:k], func(p []byte) error {
			body += string(p)
			return nil
		})
		b = b[k:]
	}
	return body, r, err
}

func TestResponse(t *testing.T) {
	f := func(raw, want string, wantErr error, ended bool) {
		t.Helper()
		for _, n := range []int{1, 2, 3, 5, 1000} {
			got, r, err := unwrap(raw, n)
			if got != want || !errors.Is(err, wantErr) || r.ended != ended {
				t.Errorf("pieces of %d: body %q, ended %v, %v; want %q, %v, %v", n, got, r.ended, err, want, ended, wantErr)
			}
		}
	}
	const ok, chunks = "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n"
	f(ok+"FLV", "FLV", nil, false)
	f("HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nFLV\r\n", "FLV\r\n", nil, false)
	f(chunks+"3\r\nabc\r\n1\r\nd\r\n", "abcd", nil, false)
	f(chunks+"3\r\nabc\r\n0\r\n\r\n", "abc", nil, true)
	f(chunks+"00B;ext=1\r\nhello world\r\n0\r\n\r\n", "hello world", nil, true)
	f("HTTP/1.1 102 Processing\r\nMillrace-Path: relay\r\n\r\nHTTP/1.1 200 OK\r\n\r\nFLV", "FLV", nil, false)
	f("HTTP/1.1 404 Not Found\r\n\r\nno", "", StatusError(404), false)
	f("HTTP/1.1 503 Busy\r\nRetry-After: 3\r\n\r\n", "", StatusError(503), false)
	f("SSH-2.0-x\r\n\r\n", "", ErrHead, false)
	f("HTTP/1.1 abc\r\n\r\n", "", ErrHead, false)
	f(chunks+"3\r\nabcd\r\n", "abc", ErrChunk, false)
	f(chunks+"3\r\nabc\rx", "abc", ErrChunk, false)
	f(chunks+"zz\r\n", "", ErrChunk, false)
	f(chunks+"-1\r\n", "", ErrChunk, false)
	f(chunks+"fffffffff\r\n", "", ErrChunk, false)
	f("HTTP/1.1 200 OK\r\nX: "+strings.Repeat("y", maxHead), "", ErrHead, false)
	f(chunks+strings.Repeat("0", maxChunkLine+1), "", ErrChunk, false)
}

func FuzzResponse(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", uint8(2))
	f.Add("HTTP/1.0 200 OK\r\n\r\nFLV", uint8(1))
	f.Fuzz(func(t *testing.T, raw string, n uint8) {
		want, r1, err1 := unwrap(raw, len(raw)+1)
		got, r2, err2 := unwrap(raw, int(n)+1)
		if err1 == nil && err2 == nil && (got != want || r1.ended != r2.ended) {
			t.Errorf("whole %q, pieces %q", want, got)
		}
	})
}

// FuzzChunks holds the chunk reader against the standard library's writer.
func FuzzChunks(f *testing.F) {
	f.Add([]byte("some body"), uint8(3), uint8(4))
	f.Fuzz(func(t *testing.T, body []byte, chunk, piece uint8) {
		var raw bytes.Buffer
		raw.WriteString("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		w := httputil.NewChunkedWriter(&raw)
		for b := body; len(b) > 0; {
			k := min(len(b), int(chunk)+1)
			if _, err := w.Write(b[:k]); err != nil {
				t.Fatal(err)
			}
			b = b[k:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		io.WriteString(&raw, "\r\n")
		got, r, err := unwrap(raw.String(), int(piece)+1)
		if got != string(body) || !r.ended || err != nil {
			t.Error(fmt.Errorf("got %q, ended %v, %v, want %q", got, r.ended, err, body))
		}
	})
}
