package httpflv

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
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/session"
)

// certificate returns one for tests, and the pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// startTLS starts a node that speaks TLS, and returns how to dial it.
func startTLS(t *testing.T, cfg Config) (*node, func() net.Conn) {
	t.Helper()
	cert, pool := certificate(t)
	ln := tls.NewListener(listen(t), &tls.Config{Certificates: []tls.Certificate{cert}})
	n := startOn(t, cfg, auth.DefaultConfig(), ln)
	return n, func() net.Conn {
		t.Helper()
		conn, err := tls.Dial("tcp", n.addr, &tls.Config{RootCAs: pool, ServerName: "localhost"})
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
}

func TestTLS(t *testing.T) {
	n, dial := startTLS(t, quickly())
	s := n.publish("live/a")
	s.headers()
	s.frames(10, 50_000)
	r := ask(t, dial(), get11("/live/a.flv"))
	r.wantFrames(0, 9)
	s.frames(20, 20_000)
	r.wantFrames(10, 29)
	eventually(t, "the session has counted all that came", func() bool {
		l := n.table.List()
		return len(l) == 1 && l[0].Info.TLS && l[0].Bytes >= 900_000 && l[0].Tags >= 30
	})
	old := ask(t, dial(), "GET /live/a.flv HTTP/1.0\r\n\r\n")
	if len(old.resp.TransferEncoding) > 0 {
		t.Error("1.0 gets chunks")
	}
	old.wantFrames(20, 29)
	old.conn.Close()
	n.wantEnded(session.PeerClosed, 1)
	s.p.Close(time.Now())
	n.hub.Sweep(time.Now().Add(time.Minute))
	if _, err := r.flv.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	n.wantEnded(session.StreamEnded, 1)
	missing := ask(t, dial(), get11("/live/b.flv"))
	if missing.resp.StatusCode != 404 {
		t.Errorf("missing: %d", missing.resp.StatusCode)
	}
	eventually(t, "nobody left", func() bool { return n.fan.Stats().Viewers == 0 })
}

func TestTLSWaitsAndIsKicked(t *testing.T) {
	cfg := quickly()
	cfg.PlayWait = patience
	n, dial := startTLS(t, cfg)
	conn := dial()
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, get11("/live/a.flv")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one waits", func() bool { return n.fan.Stats().Viewers == 1 })
	s := n.publish("live/a")
	s.frames(3, 300)
	r := respond(t, conn)
	r.wantFrames(0, 2)
	n.table.Kick(n.table.List()[0].ID, session.Kicked)
	if _, err := r.flv.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("after the kick: %v, want a proper end", err)
	}
	n.wantEnded(session.Kicked, 1)

	cfg.PlayWait = 50 * time.Millisecond
	if err := n.server.SetConfig(cfg); err != nil {
		t.Fatal(err)
	}
	if r := ask(t, dial(), get11("/live/b.flv")); r.resp.StatusCode != 404 {
		t.Errorf("after the wait: %d", r.resp.StatusCode)
	}
}

// A viewer that takes nothing does not hold up the end, nor a kick.
func TestABlockedWriterCanBeEnded(t *testing.T) {
	n, dial := startTLS(t, quickly())
	s := n.publish("live/a")
	s.frames(1, 300)
	conn := dial()
	r := ask(t, conn, get11("/live/a.flv"))
	r.frame()
	r2 := ask(t, dial(), get11("/live/a.flv"))
	r2.frame()
	for n.table.List()[0].Bytes < 2_000_000 && s.n < 100 {
		s.frames(1, 200_000)
	}
	id := n.table.List()[0].ID
	n.table.Kick(id, session.Kicked)
	n.wantEnded(session.Kicked, 1)
	n.stop()
	n.wantEnded(session.Draining, 1)
}

// dialWS opens a WebSocket with the client of another library.
func (n *node) dialWS(path string) (net.Conn, io.Reader) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, buffered, _, err := ws.Dial(ctx, "ws://"+n.addr+path)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	var in io.Reader = conn
	if buffered != nil {
		in = io.MultiReader(io.LimitReader(buffered, int64(buffered.Buffered())), conn)
	}
	return conn, in
}

// messages turns the binary messages of a WebSocket into one stream; others are
// handed to other.
type messages struct {
	in    io.Reader
	left  int64
	other func(ws.OpCode, []byte)
}

func (m *messages) Read(p []byte) (int, error) {
	for m.left == 0 {
		h, err := ws.ReadHeader(m.in)
		if err != nil {
			return 0, err
		}
		if h.Masked || !h.Fin {
			return 0, errors.New("a masked or fragmented message from a server")
		}
		if h.OpCode == ws.OpBinary {
			m.left = h.Length
			continue
		}
		b := make([]byte, h.Length)
		if _, err := io.ReadFull(m.in, b); err != nil {
			return 0, err
		}
		m.other(h.OpCode, b)
		if h.OpCode == ws.OpClose {
			return 0, io.EOF
		}
	}
	n, err := m.in.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	return n, err
}

func sendFrame(t *testing.T, conn net.Conn, f ws.Frame) {
	t.Helper()
	if err := ws.WriteFrame(conn, ws.MaskFrame(f)); err != nil {
		t.Fatal(err)
	}
}

func TestWebSocket(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.headers()
	s.frames(5, 70_000)
	conn, in := n.dialWS("/live/a.flv")
	var got []string
	m := &messages{in: in, other: func(op ws.OpCode, p []byte) { got = append(got, string(p)) }}
	r := &reader{t: t, conn: conn, flv: flv.NewReader(m, 1<<20)}
	r.wantFrames(0, 4)
	if l := n.table.List(); len(l) != 1 || l[0].Info.Protocol != session.WSFLV {
		t.Errorf("sessions %+v", l)
	}
	sendFrame(t, conn, ws.NewTextFrame([]byte("hello"))) // ignored
	sendFrame(t, conn, ws.NewPingFrame([]byte("are you there")))
	for len(got) == 0 {
		s.frames(1, 100)
		r.wantFrames(s.n-1, s.n-1)
	}
	if got[0] != "are you there" {
		t.Errorf("pong %q", got)
	}
	sendFrame(t, conn, ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusNormalClosure, "bye")))
	n.wantEnded(session.PeerClosed, 1)
	if _, err := r.flv.Read(); err == nil || len(got) != 2 || !strings.HasSuffix(got[1], "bye") {
		t.Errorf("after the close: %v, control frames %q", err, got)
	}
}

func TestWebSocketStreamEnd(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.frames(3, 100)
	conn, in := n.dialWS("/live/a.flv")
	var code ws.StatusCode
	var why string
	m := &messages{in: in, other: func(_ ws.OpCode, p []byte) { code, why = ws.ParseCloseFrameData(p) }}
	r := &reader{t: t, conn: conn, flv: flv.NewReader(m, 1<<20)}
	r.wantFrames(0, 2)
	s.p.Close(time.Now())
	n.hub.Sweep(time.Now().Add(time.Minute))
	if _, err := r.flv.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	if code != ws.StatusNormalClosure || why != "stream_ended" {
		t.Errorf("close %d %q", code, why)
	}
	n.wantEnded(session.StreamEnded, 1)
}

// Rules that a WebSocket client may break, each of which ends its connection.
func TestWebSocketClientsThatBreakTheRules(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.frames(3, 100)
	long := ws.MaskFrame(ws.NewPingFrame(make([]byte, 126)))
	unmasked := ws.NewTextFrame([]byte("x"))
	reserved := ws.MaskFrame(ws.NewTextFrame([]byte("x")))
	reserved.Header.Rsv = ws.Rsv(true, false, false)
	huge := ws.MaskFrame(ws.NewBinaryFrame(make([]byte, maxIgnored+1)))
	for i, f := range []ws.Frame{long, unmasked, reserved, huge} {
		conn, in := n.dialWS("/live/a.flv")
		m := &messages{in: in, other: func(ws.OpCode, []byte) {}}
		r := &reader{t: t, conn: conn, flv: flv.NewReader(m, 1<<20)}
		r.wantFrames(0, 2)
		_ = ws.WriteFrame(conn, f)
		n.wantEnded(session.ProtocolError, uint64(i+1))
	}
}

func TestWebSocketOfAnotherOrigin(t *testing.T) {
	cfg := quickly()
	cfg.Origins = []string{"https://a.example"}
	n := start(t, cfg, auth.DefaultConfig())
	n.publish("live/a").frames(1, 100)
	f := func(origin string, status int) {
		t.Helper()
		conn, err := net.Dial("tcp", n.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		req := "GET /live/a.flv HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n" +
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: " + origin + "\r\n\r\n"
		if _, err := io.WriteString(conn, req); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != status {
			t.Fatalf("origin %s: %v %v, want %d", origin, resp, err, status)
		}
		// The example of RFC 6455, 1.3.
		if status == 101 && resp.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
			t.Errorf("accept %q", resp.Header.Get("Sec-WebSocket-Accept"))
		}
	}
	f("https://a.example", 101)
	f("https://b.example", 403)
	f("null", 403)
}

func FuzzReadFrames(f *testing.F) {
	for _, x := range []ws.Frame{
		ws.NewPingFrame([]byte("p")), ws.NewTextFrame(nil), ws.NewCloseFrame(nil),
		ws.NewBinaryFrame(make([]byte, 300)), ws.NewFrame(ws.OpContinuation, false, nil),
	} {
		f.Add(ws.MustCompileFrame(ws.MaskFrame(x)))
		f.Add(ws.MustCompileFrame(x))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		control := make(chan []byte, 4)
		readFrames(bytes.NewReader(in), control)
		for len(control) > 0 {
			h, err := ws.ReadHeader(bytes.NewReader(<-control))
			if err != nil || h.Masked || h.Length > ws.MaxControlFramePayloadSize {
				t.Errorf("answer with header %+v: %v", h, err)
			}
		}
	})
}
