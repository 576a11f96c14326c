package httpflv

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/session"
)

// canned is a connection to a server that says what it says.
type canned struct {
	in     io.Reader
	out    bytes.Buffer
	closed bool
}

func (c *canned) Read(b []byte) (int, error)       { return c.in.Read(b) }
func (c *canned) Write(b []byte) (int, error)      { return c.out.Write(b) }
func (c *canned) Close() error                     { c.closed = true; return nil }
func (c *canned) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *canned) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80} }
func (c *canned) SetDeadline(time.Time) error      { return nil }
func (c *canned) SetReadDeadline(time.Time) error  { return nil }
func (c *canned) SetWriteDeadline(time.Time) error { return nil }

// servers answers dials in turn.
type servers struct {
	conns []*canned
	addrs []string
}

func serving(answers ...string) *servers {
	s := &servers{}
	for _, a := range answers {
		s.conns = append(s.conns, &canned{in: strings.NewReader(a)})
	}
	return s
}

func (s *servers) config() PullConfig {
	return PullConfig{MessageBytes: 1 << 16, Agent: "test/1", Dial: func(_ context.Context, network, addr string) (net.Conn, error) {
		if len(s.addrs) == len(s.conns) {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		s.addrs = append(s.addrs, addr)
		return s.conns[len(s.addrs)-1], nil
	}}
}

// pullAll reads all tags of one answer.
func pullAll(s *servers, req PullRequest) (tags []flv.Tag, pulled bool, err error) {
	p, err := Pull(context.Background(), req, s.config())
	if err != nil {
		return nil, false, err
	}
	defer p.Close()
	for {
		t, err := p.Read()
		if err != nil {
			return tags, true, err
		}
		tags = append(tags, t)
	}
}

// someTags is a stream of three tags, in the given framing.
func someTags(f framing) (body string, tags []flv.Tag) {
	tags = []flv.Tag{
		flv.New(flv.Video, 0, avcHeader), flv.New(flv.Video, 1<<24, picture(true, 30_000, 0)), AppendLink(nil, someLink),
	}
	b := f.appendFrame(nil, flv.FileHeaderSize, false)
	b = flv.AppendFileHeader(b, true, true)
	for _, t := range tags {
		b = append(f.appendFrame(b, len(t.Wire), true), t.Wire...)
	}
	return string(b), tags
}

const streamURL = "http://up.example/live/a.flv"

func TestPullReadsAndEnds(t *testing.T) {
	f := func(name, answer string, tags int, want error) {
		t.Helper()
		for _, slow := range []bool{false, true} {
			s := serving(answer)
			if slow {
				s.conns[0].in = iotest.OneByteReader(s.conns[0].in)
			}
			_, all := someTags(chunked)
			got, pulled, err := pullAll(s, PullRequest{URL: streamURL})
			if len(got) != tags || !errors.Is(err, want) || !pulled {
				t.Errorf("%s: %d tags, %v, want %d, %v", name, len(got), err, tags, want)
			}
			for i := range got {
				if got[i].DTS&(1<<32-1) != all[i].DTS&(1<<32-1) || !bytes.Equal(got[i].Payload(), all[i].Payload()) {
					t.Errorf("%s: tag %d is another one", name, i)
				}
			}
			if !s.conns[0].closed {
				t.Errorf("%s: the connection is left open", name)
			}
		}
	}
	plain, _ := someTags(closeDelimited)
	chunks, _ := someTags(chunked)
	const ok, te = "HTTP/1.1 200 OK\r\nContent-Type: video/x-flv\r\n", "Transfer-Encoding: chunked\r\n\r\n"
	f("chunked, ended", ok+te+chunks+crlf+lastChunk, 3, io.EOF)
	f("chunked, cut between tags", ok+te+chunks, 3, io.ErrUnexpectedEOF)
	f("chunked, cut in a tag", ok+te+chunks[:len(chunks)-1], 2, io.ErrUnexpectedEOF)
	f("chunked, cut in a chunk size", ok+te+chunks+crlf+"1", 3, io.ErrUnexpectedEOF)
	f("chunked, ended in a tag", ok+te+"d\r\n"+plain[:13]+"\r\n5\r\n"+plain[13:18]+crlf+lastChunk, 0, io.ErrUnexpectedEOF)
	f("to the end", ok+crlf+plain, 3, io.EOF)
	f("to the end, cut in a tag", ok+crlf+plain[:len(plain)-1], 2, io.ErrUnexpectedEOF)
	f("of HTTP/1.0", "HTTP/1.0 200\r\n\r\n"+plain, 3, io.EOF)
	f("with a length", fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", ok, len(plain), plain), 3, io.EOF)
	f("with a length, cut between tags", fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", ok, len(plain)+1, plain), 3, io.ErrUnexpectedEOF)
	f("nothing", ok+te+lastChunk, 0, io.ErrUnexpectedEOF)
	f("nothing to the end", ok+crlf, 0, io.ErrUnexpectedEOF)
	f("a page", ok+crlf+"<!DOCTYPE html>", 0, flv.ErrNotFLV)
	f("a big tag", ok+crlf+plain[:13]+"\x09\x01\x00\x01", 0, io.ErrUnexpectedEOF)
	f("a too big tag", ok+crlf+plain[:13]+"\x09\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00", 0, flv.ErrTooBig)
	f("a wrong tag", ok+crlf+plain[:13]+"\x09\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09", 0, flv.ErrTag)

	_, _, err := pullAll(serving("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<!DOCTYPE html>"), PullRequest{URL: streamURL})
	if err == nil || !strings.Contains(err.Error(), `"text/html"`) {
		t.Errorf("a page: %v, want its type", err)
	}
	reset := serving("")
	reset.conns[0].in = io.MultiReader(strings.NewReader(ok+crlf+plain), iotest.ErrReader(&net.OpError{Op: "read", Err: syscall.ECONNRESET}))
	if got, _, err := pullAll(reset, PullRequest{URL: streamURL}); len(got) != 3 || !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reset: %d tags, %v", len(got), err)
	}
}

func TestPullRequest(t *testing.T) {
	mark := auth.Mark{Stream: "live/a", Node: "r1", Via: []string{"e1", "r1"}, Purpose: auth.Peer}
	f := func(name string, req PullRequest, addr, want string) {
		t.Helper()
		s := serving("HTTP/1.1 200 OK\r\n\r\n")
		_, _, _ = pullAll(s, req)
		if !slices.Equal(s.addrs, []string{addr}) || s.conns[0].out.String() != want {
			t.Errorf("%s: to %q %q, want %q %q", name, s.addrs, s.conns[0].out.String(), addr, want)
		}
	}
	const rest = "User-Agent: test/1\r\nAccept: */*\r\nConnection: close\r\n"
	f("plain", PullRequest{URL: streamURL, Mark: mark, Signature: "1:2", Back: time.Second}, "up.example:80",
		"GET /live/a.flv HTTP/1.1\r\nHost: up.example\r\n"+rest+"\r\n")
	f("marked", PullRequest{URL: "http://[::1]:8080/live/%C3%A9.flv?a=b%20c", Marked: true, Mark: mark, Signature: "1:2", Back: 1500 * time.Millisecond}, "[::1]:8080",
		"GET /live/%C3%A9.flv?a=b%20c HTTP/1.1\r\nHost: [::1]:8080\r\n"+rest+
			"Via: 1.1 e1 (millrace), 1.1 r1 (millrace)\r\nMillrace-Purpose: peer\r\nMillrace-Signature: 1:2\r\nMillrace-Resume: 1500\r\n\r\n")
	f("a user", PullRequest{URL: "http://u:p@up.example?a b"}, "up.example:80",
		"GET /?a%20b HTTP/1.1\r\nHost: up.example\r\n"+rest+"Authorization: Basic dTpw\r\n\r\n")

	for _, bad := range []string{"", "up.example/live/a.flv", "rtmp://up.example/live/a", "http:///live/a.flv", "http://h/\r\nX: y", "http://u:hush@h:x/"} {
		s := serving("")
		if _, err := Pull(t.Context(), PullRequest{URL: bad}, s.config()); err == nil || len(s.addrs) > 0 || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, dialled %v", bad, err, s.addrs)
		}
	}
	_, _, err := pullAll(serving(), PullRequest{URL: "http://u:hush@up.example/live/a.flv?key=hush"})
	if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), streamURL) || strings.Contains(err.Error(), "hush") {
		t.Errorf("refused: %v", err)
	}
}

func TestPullRefused(t *testing.T) {
	f := func(name, answer string, want PullError) {
		t.Helper()
		_, _, err := pullAll(serving("HTTP/1.1 "+answer), PullRequest{URL: streamURL})
		got, ok := errors.AsType[*PullError](err)
		if !ok || *got != want {
			t.Errorf("%s: %v (%+v), want %+v", name, err, got, want)
		}
	}
	ours := string(refusal{
		status: 508, reason: session.Loop, text: "in a circle", header: "Retry-After: 5\r\n",
	}.append(nil, "", time.Now()))
	f("ours", ours[len("HTTP/1.1 "):], PullError{Status: 508, Reason: "loop", Text: "in a circle", RetryAfter: 5 * time.Second})
	f("a newer reason", "503 x\r\nMillrace-Reason: brand_new\r\n\r\n", PullError{Status: 503, Reason: "brand_new"})
	f("no reason", "503 x\r\nMillrace-Reason: Brand new\r\n\r\n", PullError{Status: 503, Reason: "over_limit"})
	f("not found", "404 x\r\nContent-Type: text/html\r\n\r\n<html>", PullError{Status: 404, Reason: "not_found"})
	f("gone", "410 x\r\n\r\n", PullError{Status: 410, Reason: "not_found"})
	f("forbidden", "403 x\r\n\r\n", PullError{Status: 403, Reason: "forbidden"})
	f("unauthorized", "401 x\r\n\r\n", PullError{Status: 401, Reason: "unauthorized"})
	f("bad", "400 x\r\n\r\n", PullError{Status: 400, Reason: "bad_request"})
	f("slow down", "429 x\r\nRetry-After: 99999999\r\n\r\n", PullError{Status: 429, Reason: "over_limit", RetryAfter: time.Hour})
	f("loop", "508 x\r\n\r\n", PullError{Status: 508, Reason: "loop"})
	f("broken", "500 x\r\nRetry-After: soon\r\n\r\n", PullError{Status: 500, Reason: "none"})
	f("no content", "204 x\r\n\r\n", PullError{Status: 204, Reason: "none"})
	f("a part", "206 x\r\n\r\nFLV", PullError{Status: 206, Reason: "none"})
	f("other protocol", "101 x\r\n\r\n", PullError{Status: 101, Reason: "none"})
	f("without a target", "302 x\r\n\r\n", PullError{Status: 302, Reason: "none"})
	f("garbage text", "500 x\r\nContent-Type: text/plain\r\n\r\na\x00\x1b[1m\xffb\u00e9\nmore", PullError{Status: 500, Reason: "none", Text: "a[1mb\u00e9"})
	f("long text", "500 x\r\nContent-Type: text/plain\r\n\r\n"+strings.Repeat("x", 5000), PullError{Status: 500, Reason: "none", Text: strings.Repeat("x", maxRefusal)})

	for _, answer := range []string{"", "x", "HTTP/1.1 200", "FLV\x01", "HTTP/1.1 200 OK\r\nA", "HTTP/1.1 102 x\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"} {
		if _, pulled, err := pullAll(serving(answer), PullRequest{URL: streamURL}); err == nil || pulled {
			t.Errorf("answer %q: %v", answer, err)
		}
	}
	for _, long := range []string{"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", pullHead), strings.Repeat("HTTP/1.1 102 x\r\n\r\n", pullHead)} {
		if _, _, err := pullAll(serving(long), PullRequest{URL: streamURL}); !errors.Is(err, errHead) {
			t.Errorf("a long header: %v", err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	f := func(value string, want time.Duration) {
		t.Helper()
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
	f("", 0)
	f("0", 0)
	f("120", 2*time.Minute)
	f("-1", 0)
	f("3601", time.Hour)
	f("99999999999999999999", 0)
	f(now.Add(time.Minute).UTC().Format(http.TimeFormat), time.Minute)
	f(now.Add(-time.Minute).UTC().Format(http.TimeFormat), 0)
	f(now.Add(48*time.Hour).UTC().Format(http.TimeFormat), time.Hour)
}

func TestPullIsToldThePath(t *testing.T) {
	answer := string(AppendPath(nil, []string{"r1"})) + "HTTP/1.1 102 x\r\n\r\n" + "HTTP/1.1 103 x\r\nMillrace-Path: a b\r\n\r\n" +
		string(AppendPath(nil, []string{"r1", "c1"})) + "HTTP/1.1 404 x\r\n\r\n"
	for _, on := range []bool{true, false} {
		var paths []string
		req := PullRequest{URL: streamURL}
		if on {
			req.OnPath = func(p []string) { paths = append(paths, strings.Join(p, " ")) }
		}
		_, _, err := pullAll(serving(answer), req)
		if e, ok := errors.AsType[*PullError](err); !ok || e.Status != 404 {
			t.Errorf("%v", err)
		}
		if want := []string{"r1", "r1 c1"}; on && !slices.Equal(paths, want) {
			t.Errorf("paths %q, want %q", paths, want)
		}
	}
}

func TestPullIsRedirected(t *testing.T) {
	to := func(u string) string {
		return "HTTP/1.1 302 Found\r\nLocation: " + u + "\r\nContent-Length: 5\r\n\r\nthere"
	}
	plain, _ := someTags(closeDelimited)
	ok := "HTTP/1.1 200 OK\r\n\r\n" + plain
	req := PullRequest{URL: streamURL, Marked: true, Mark: auth.Mark{Node: "r1", Via: []string{"r1"}}, Signature: "1:2"}

	s := serving(to("/other/b.flv?x=1"), to("//near.example:81/c.flv"), to("http://up.example/d.flv"), ok)
	if tags, _, err := pullAll(s, req); len(tags) != 3 || err != io.EOF {
		t.Fatalf("%d tags, %v", len(tags), err)
	}
	if want := []string{"up.example:80", "up.example:80", "near.example:81", "up.example:80"}; !slices.Equal(s.addrs, want) {
		t.Errorf("dialled %q, want %q", s.addrs, want)
	}
	for i, c := range s.conns {
		out := c.out.String()
		path := []string{"/live/a.flv ", "/other/b.flv?x=1 ", "/c.flv ", "/d.flv "}[i]
		if !strings.HasPrefix(out, "GET "+path) || !strings.Contains(out, "Via: 1.1 r1 (millrace)") ||
			strings.Contains(out, "Millrace-Signature") != (i < 2) || !c.closed {
			t.Errorf("request %d: %q, closed %v", i, out, c.closed)
		}
	}

	f := func(name, first, want string, answers ...string) {
		t.Helper()
		if _, _, err := pullAll(serving(answers...), PullRequest{URL: first}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	f("for ever", streamURL, "more than 3 redirects", slices.Repeat([]string{to("/a")}, 5)...)
	f("to another protocol", streamURL, "scheme", to("rtmp://up.example/live/a"))
	f("to nowhere", streamURL, "no host", to("http:///a"))
	f("to garbage", streamURL, "URL", to("http://[::1"))
}

func TestPullTakesItsTime(t *testing.T) {
	// server says what it has to say and is silent then.
	pull := func(t *testing.T, req PullRequest, cfg PullConfig, answer string) (*PullConn, error) {
		here, there := net.Pipe()
		cfg.MessageBytes = 1 << 16
		cfg.Dial = func(context.Context, string, string) (net.Conn, error) { return here, nil }
		go func() {
			_, _ = io.ReadAtLeast(there, make([]byte, maxHeader), len("GET / HTTP/1.1\r\n"))
			_, _ = io.WriteString(there, answer)
			_, _ = io.Copy(io.Discard, there)
		}()
		req.URL = streamURL
		return Pull(t.Context(), req, cfg)
	}
	plain, _ := someTags(closeDelimited)
	took := func(t *testing.T, since time.Time, want time.Duration) {
		t.Helper()
		if got := time.Since(since); got != want {
			t.Errorf("it took %v, want %v", got, want)
		}
	}
	f := func(name string, body func(t *testing.T, start time.Time)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { body(t, time.Now()) })
		})
	}
	f("no answer", func(t *testing.T, start time.Time) {
		_, err := pull(t, PullRequest{}, PullConfig{Timeout: 3 * time.Second}, "")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		took(t, start, 3*time.Second)
	})
	f("half an answer", func(t *testing.T, start time.Time) {
		_, err := pull(t, PullRequest{}, PullConfig{Timeout: 3 * time.Second}, "HTTP/1.1 102 x\r\n\r\nHTTP/1.1 200 OK\r\n")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		took(t, start, 3*time.Second)
	})
	f("text of a refusal that does not end", func(t *testing.T, start time.Time) {
		_, err := pull(t, PullRequest{}, PullConfig{Timeout: 3 * time.Second}, "HTTP/1.1 404 x\r\nContent-Type: text/plain\r\n\r\nno")
		if e, ok := errors.AsType[*PullError](err); !ok || e.Text != "no" {
			t.Errorf("%v", err)
		}
		took(t, start, refusalTime)
	})
	f("idle", func(t *testing.T, start time.Time) {
		p, err := pull(t, PullRequest{}, PullConfig{Timeout: time.Second, Idle: 10 * time.Second}, "HTTP/1.1 200 OK\r\n\r\n"+plain)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for err == nil {
			_, err = p.Read()
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), "10s") {
			t.Errorf("%v", err)
		}
		took(t, start, 10*time.Second)
	})
	f("closed from elsewhere", func(t *testing.T, start time.Time) {
		p, err := pull(t, PullRequest{}, PullConfig{Timeout: time.Second}, "HTTP/1.1 200 OK\r\n\r\n"+plain[:20])
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Minute, func() {
			if err := errors.Join(p.Close(), p.Close()); err != nil {
				t.Error(err)
			}
		})
		if _, err := p.Read(); err != net.ErrClosed {
			t.Errorf("%v", err)
		}
		took(t, start, time.Minute)
	})
	f("given up", func(t *testing.T, start time.Time) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		here, there := net.Pipe()
		defer there.Close()
		_, err := Pull(ctx, PullRequest{URL: streamURL}, PullConfig{Timeout: time.Minute, Dial: func(context.Context, string, string) (net.Conn, error) { return here, nil }})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		took(t, start, time.Second)
	})
}

// The context of Pull has no hold on what Pull returned.
func TestPullOutlivesItsContext(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.headers()
	s.frames(2, 100)
	ctx, cancel := context.WithCancel(t.Context())
	p, err := Pull(ctx, PullRequest{URL: "http://" + n.addr + "/live/a.flv"}, PullConfig{Timeout: patience, MessageBytes: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	cancel()
	s.frames(2, 100)
	for i, want := range []flv.Kind{flv.Video, flv.Audio, flv.Video, flv.Video, flv.Video, flv.Video} {
		if tag, err := p.Read(); err != nil || tag.Kind != want {
			t.Fatalf("tag %d: %v %v, want %v", i, tag.Kind, err, want)
		}
	}
	if p.Addr().String() != n.addr {
		t.Errorf("address %v, want %v", p.Addr(), n.addr)
	}
}

func TestPullOverTLS(t *testing.T) {
	plain, all := someTags(closeDelimited)
	release := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/down" {
			http.Redirect(w, r, "http://up.example/a.flv", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, plain)
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/open" {
			<-release
		}
	})
	srv := httptest.NewUnstartedServer(handler)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // one client here refuses the certificate
	srv.StartTLS()
	defer srv.Close()
	defer close(release)
	good := srv.Client().Transport.(*http.Transport).TLSClientConfig
	pull := func(path string, cfg *tls.Config) (*PullConn, error) {
		return Pull(t.Context(), PullRequest{URL: srv.URL + path}, PullConfig{Timeout: patience, Idle: patience, MessageBytes: 1 << 16, TLS: cfg})
	}
	for _, path := range []string{"/ended", "/open"} {
		p, err := pull(path, good)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			if tag, err := p.Read(); err != nil || !bytes.Equal(tag.Payload(), all[i].Payload()) {
				t.Fatalf("tag %d: %v", i, err)
			}
		}
		if path == "/ended" {
			if _, err := p.Read(); err != io.EOF {
				t.Errorf("end: %v", err)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if _, err := p.Read(); err != net.ErrClosed {
			t.Errorf("closed: %v", err)
		}
	}
	if good.ServerName != "" {
		t.Errorf("the configuration was changed: %q", good.ServerName)
	}
	if _, err := pull("/ended", nil); err == nil {
		t.Error("an unknown certificate is accepted")
	}
	if _, err := pull("/down", good); err == nil || !strings.Contains(err.Error(), "not encrypted") {
		t.Errorf("redirected to http: %v", err)
	}
}

// A pull is cheap enough to have thousands: the figure in the comment of PullConn.
func TestPullMemory(t *testing.T) {
	const pulls = 200
	plain, all := someTags(chunked)
	ln := listen(t)
	defer ln.Close()
	served := make(chan []net.Conn)
	go func() {
		var conns []net.Conn
		req := make([]byte, maxHeader)
		for range pulls {
			c, err := ln.Accept()
			if err != nil {
				break
			}
			conns = append(conns, c)
			_, _ = c.Read(req)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+plain)
		}
		served <- conns
	}()
	used := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := used()
	conns := make([]*PullConn, pulls)
	for i := range conns {
		p, err := Pull(t.Context(), PullRequest{URL: "http://" + ln.Addr().String() + "/live/a.flv"}, PullConfig{Timeout: patience, Idle: time.Minute, MessageBytes: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = p
		for range all {
			if _, err := p.Read(); err != nil {
				t.Fatal(err)
			}
		}
	}
	after := used()
	each := (int64(after) - int64(before)) / pulls
	t.Logf("%d bytes for each pull, with its share of the server", each)
	if each > 48<<10 {
		t.Errorf("a pull costs %d bytes, want at most %d", each, 48<<10)
	}
	for _, p := range conns {
		_ = p.Close()
	}
	for _, c := range <-served {
		_ = c.Close()
	}
}

// endless repeats what comes after its head.
type endless struct {
	head, body []byte
	at         int
}

func (e *endless) Read(b []byte) (int, error) {
	if n := copy(b, e.head); n > 0 {
		e.head = e.head[n:]
		return n, nil
	}
	n := copy(b, e.body[e.at:])
	e.at = (e.at + n) % len(e.body)
	return n, nil
}

// A tag of a stream of 2 Mbit/s with 73 tags/s, in a chunk.
func BenchmarkPullRead(b *testing.B) {
	tag := flv.New(flv.Video, 0, picture(false, 3400, 0))
	head := chunked.appendFrame([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), flv.FileHeaderSize, false)
	head = append(flv.AppendFileHeader(head, true, true), crlf...)
	body := append(append(chunked.appendFrame(nil, len(tag.Wire), false), tag.Wire...), crlf...)
	s := &servers{conns: []*canned{{in: &endless{head: head, body: body}}}}
	p, err := Pull(b.Context(), PullRequest{URL: streamURL}, s.config())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(tag.Wire)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Read(); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzPull gives Pull whatever a server can answer.
func FuzzPull(f *testing.F) {
	plain, _ := someTags(closeDelimited)
	chunks, _ := someTags(chunked)
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\n\r\n" + plain, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + crlf + lastChunk,
		"HTTP/1.1 302 x\r\nLocation: ?\r\n\r\n", string(AppendPath(nil, []string{"r1"})) + "HTTP/1.1 404 x\r\nContent-Type: text/plain\r\nRetry-After: 1\r\n\r\nno",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		s := serving(slices.Repeat([]string{string(answer)}, maxRedirects+2)...)
		tags, pulled, err := pullAll(s, PullRequest{URL: streamURL, OnPath: func(p []string) {
			for _, id := range p {
				if !auth.ValidNodeID(id) {
					t.Errorf("hop %q", id)
				}
			}
		}})
		if err == nil || len(s.addrs) > maxRedirects+1 || !pulled && err == io.EOF || err == io.EOF && len(tags) == 0 {
			t.Errorf("%d tags, %v, dialled %v", len(tags), err, s.addrs)
		}
		for i, c := range s.conns[:len(s.addrs)] {
			if !c.closed {
				t.Errorf("connection %d is left open", i)
			}
		}
		if e, ok := errors.AsType[*PullError](err); ok && (!isWord(e.Reason) || strings.ContainsAny(e.Text, "\r\n\x00")) {
			t.Errorf("%+v", e)
		}
		if _, ok := errors.AsType[*url.Error](err); ok {
			t.Errorf("an error that repeats a whole URL: %v", err)
		}
	})
}
