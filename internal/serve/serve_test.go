package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"millrace/internal/listen"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// Of the HTTP library: one ends up to ten seconds after its server, one never.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

const (
	maxHead = 4 << 10
	maxBody = 1 << 10
)

// served is a server that runs until the test ends.
type served struct {
	ln      net.Listener
	guarded *listen.Listener // ln, or what is below it
	end     func() error     // ends it, and returns what Run did
}

// start runs a Server on a free port of loopback, behind TLS if secure.
func start(t *testing.T, secure bool, handler fasthttp.RequestHandler, end func() time.Duration) *served {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	guarded, err := listen.New(listen.DefaultConfig(), ln, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := &served{ln: guarded, guarded: guarded}
	if secure {
		s.ln = tls.NewListener(guarded, &tls.Config{Certificates: []tls.Certificate{certificate(t)}})
	}
	srv := New(&fasthttp.Server{
		Handler: handler, ReadTimeout: time.Minute, ReadBufferSize: maxHead, MaxRequestBodySize: maxBody,
	}, func(ctx *fasthttp.RequestCtx, status int, err error) {
		ctx.Error("refused: "+err.Error(), status)
	}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- srv.Run(ctx, s.ln, end) }()
	s.end = sync.OnceValue(func() error { cancel(); return <-over })
	t.Cleanup(func() {
		if err := s.end(); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return s
}

func hello(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("hello") }

// certificate makes one for 127.0.0.1.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(4e9, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (s *served) dial(t *testing.T, secure bool) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if secure {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute)) // so that a fault fails, not hangs
	return c
}

// TestRefusalArrives: whoever sends all of what is too much, and reads only then, finds
// the answer, and the end of the connection after it.
func TestRefusalArrives(t *testing.T) {
	const much = 8 << 20
	post := "POST / HTTP/1.1\r\nHost: x\r\n"
	for _, c := range []struct {
		name, head string
		size       int
		status     int
	}{
		{"a body", post + fmt.Sprintf("Content-Length: %d\r\n\r\n", much), much, 413},
		{"a body of unknown size", post + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", much), much, 413},
		{"a head", post + "X-Long: ", much, 431},
		{"no HTTP", "what is this\r\n\r\n", much, 400},
	} {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, TLS %v", c.name, secure), func(t *testing.T) {
				s := start(t, secure, hello, nil)
				for range 3 {
					conn := s.dial(t, secure)
					if _, err := io.WriteString(conn, c.head); err != nil {
						t.Fatal(err)
					}
					if n, err := io.Copy(conn, io.LimitReader(zeros{}, int64(c.size))); err != nil {
						t.Fatalf("cut off after %d bytes: %v", n, err)
					}
					r := bufio.NewReader(conn)
					res, err := http.ReadResponse(r, nil)
					if err != nil {
						t.Fatal(err)
					}
					text, err := io.ReadAll(res.Body)
					if err != nil || res.StatusCode != c.status || !bytes.HasPrefix(text, []byte("refused: ")) {
						t.Fatalf("%d %q, %v; want %d", res.StatusCode, text, err, c.status)
					}
					if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
						t.Fatalf("after the answer: %q, %v", rest, err)
					}
					_ = conn.Close()
				}
			})
		}
	}
}

// zeros is a body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// TestShutdownWhileLingering: who still sends what was refused does not outlast Run.
func TestShutdownWhileLingering(t *testing.T) {
	for _, secure := range []bool{false, true} {
		s := start(t, secure, hello, nil)
		conn := s.dial(t, secure)
		if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if answer, err := io.ReadAll(conn); err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 413 ")) {
			t.Fatalf("%q, %v", answer, err)
		}
		if secure { // TLS says that it ends before the connection does
			_, _ = io.Copy(io.Discard, conn.(*tls.Conn).NetConn())
		}
		if n := s.guarded.Stats().Open; n != 1 {
			t.Errorf("TLS %v: %d connections are open, want the one that lingers", secure, n)
		}
		if err := s.end(); err != nil {
			t.Error(err)
		}
		if n := s.guarded.Stats().Open; n != 0 {
			t.Errorf("TLS %v: %d connections are open after the end", secure, n)
		}
	}
}

// TestOthersDoNotLinger: after a request that was read, the connection just closes.
func TestOthersDoNotLinger(t *testing.T) {
	s := start(t, false, hello, nil)
	conn := s.dial(t, false)
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || !bytes.HasSuffix(answer, []byte("hello")) {
		t.Fatalf("%q, %v", answer, err)
	}
	if n, err := io.Copy(conn, io.LimitReader(zeros{}, 8<<20)); err == nil {
		t.Errorf("%d more bytes were taken", n)
	}
}

// TestEnd: who waits is let go by end, and is answered before Run returns.
func TestEnd(t *testing.T) {
	waiting, released := make(chan struct{}), make(chan struct{})
	s := start(t, false, func(ctx *fasthttp.RequestCtx) {
		close(waiting)
		<-released
		ctx.SetBodyString("no news")
	}, func() time.Duration {
		close(released)
		return time.Minute
	})
	conn := s.dial(t, false)
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-waiting
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || !bytes.HasSuffix(answer, []byte("no news")) {
		t.Errorf("%q, %v", answer, err)
	}
}

// TestListenerFails: Run says so, after it has ended as it always does.
func TestListenerFails(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	ended := false
	err = New(&fasthttp.Server{Handler: hello}, nil, slog.New(slog.DiscardHandler)).Run(t.Context(), ln, func() time.Duration {
		ended = true
		return time.Minute
	})
	if want := "serve HTTP on " + ln.Addr().String() + ": "; err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v, want %s%v", err, want, net.ErrClosed)
	}
	if !ended {
		t.Error("end was not called")
	}
}
