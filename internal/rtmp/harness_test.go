package rtmp

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come; it is never waited out when all
// is well.
const patience = time.Minute

// node is a server on loopback with what it needs.
type node struct {
	*Server
	t     testing.TB
	addr  string
	hub   *stream.Hub
	gate  *auth.Gate
	table *session.Table
	log   *logBuffer
	stop  func() // ends Run and waits for it
}

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type option struct {
	cfg    func(*Config)
	auth   func(*auth.Config)
	stream func(*stream.Config)
	level  slog.Level
	wrap   func(net.Listener) net.Listener
	noGate bool // to make a callback panic
}

func newNode(t testing.TB, opt option) *node {
	t.Helper()
	cfg, acfg, scfg := DefaultConfig(), auth.DefaultConfig(), stream.DefaultConfig()
	scfg.Grace = 0
	if opt.cfg != nil {
		opt.cfg(&cfg)
	}
	if opt.auth != nil {
		opt.auth(&acfg)
	}
	if opt.stream != nil {
		opt.stream(&scfg)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	if opt.wrap != nil {
		ln = opt.wrap(ln)
	}
	n := &node{t: t, addr: addr, table: session.NewTable(), log: &logBuffer{}}
	if n.hub, err = stream.NewHub(scfg); err != nil {
		t.Fatal(err)
	}
	if n.gate, err = auth.NewGate(acfg); err != nil {
		t.Fatal(err)
	}
	if opt.noGate {
		n.gate = nil
	}
	log := slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: opt.level}))
	if n.Server, err = New(cfg, ln, n.hub, n.gate, nil, n.table, log); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- n.Run(ctx) }()
	n.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ran:
			if err != nil {
				t.Errorf("Run returned %v", err)
			}
		case <-time.After(patience):
			t.Error("Run did not return")
		}
	})
	t.Cleanup(func() {
		n.stop()
		if t.Failed() {
			t.Logf("log of the server:\n%s", n.log)
		}
	})
	return n
}

// url returns the address of a stream.
func (n *node) url(path string) string { return "rtmp://" + n.addr + path }

// limit changes limits of the server. A test that needs a short one sets it when its
// peers are where they must be, so that a slow machine does not end them on the way.
func (n *node) limit(set func(*Config)) {
	n.t.Helper()
	cfg := *n.config()
	set(&cfg)
	if err := n.SetConfig(cfg); err != nil {
		n.t.Fatal(err)
	}
}

// eventually waits for f to become true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	limit, tick := time.After(patience), time.NewTicker(2*time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("never: %s", what)
		}
	}
}

// endsWith waits until a connection has ended with reason r.
func (n *node) endsWith(t testing.TB, r session.Reason) {
	t.Helper()
	eventually(t, fmt.Sprintf("a connection that ends with %v (ended so far: %v)", r, n.Stats().Ended), func() bool {
		return n.Stats().Ended[r] > 0
	})
}

// peer is a scripted RTMP client that can send anything. Its methods fail the test.
type peer struct {
	t    testing.TB
	net  net.Conn
	in   *chunkReader
	seen []string // codes of the statuses that came
}

// dialRaw connects without a handshake.
func (n *node) dialRaw(t testing.TB) *peer {
	t.Helper()
	nc, err := net.Dial("tcp", n.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(patience))
	return &peer{t: t, net: nc, in: newChunkReader(nc, readBuffer, testLimits)}
}

// dial connects and does the handshake.
func (n *node) dial(t testing.TB) *peer {
	t.Helper()
	p := n.dialRaw(t)
	if err := clientHandshake(p.net, p.in); err != nil {
		t.Fatal(err)
	}
	return p
}

// connected is a peer whose connect was accepted.
func (n *node) connected(t testing.TB, app string) *peer {
	t.Helper()
	p := n.dial(t)
	p.command(0, "connect", 1, object{{"app", app}, {"tcUrl", "rtmp://x/" + app}})
	p.expect("_result")
	return p
}

// publisher is a peer whose publish was accepted, on message stream 1.
func (n *node) publisher(t testing.TB, app, key string) *peer {
	t.Helper()
	p := n.connected(t, app)
	p.publish(key)
	p.expectStatus(codePublishStart)
	return p
}

func (p *peer) publish(key string) {
	p.t.Helper()
	p.command(0, "createStream", 2, nil)
	p.expect("_result")
	p.command(1, "publish", 0, nil, key, "live")
}

// write sends bytes as they are. The peer may be gone: that is for reads to find.
func (p *peer) write(b []byte) { _, _ = p.net.Write(b) }

func (p *peer) command(stream uint32, name string, args ...any) {
	p.message(3, typeCommand, stream, 0, encode(append([]any{name}, args...)...))
}

func (p *peer) message(chunks uint32, kind uint8, stream, time uint32, payload []byte) {
	p.write(appendMessage(nil, defaultChunkSize, chunks, kind, stream, time, payload))
}

// read returns the next message.
func (p *peer) read() (message, error) {
	var m message
	err := p.in.readMessage(&m)
	return m, err
}

// expect reads up to the command name, and returns it.
func (p *peer) expect(name string) *command {
	p.t.Helper()
	for {
		m, err := p.read()
		if err != nil {
			p.t.Fatalf("waiting for %s: %v (saw %v)", name, err, p.seen)
		}
		if m.kind != typeCommand {
			continue
		}
		cmd, err := parseCommand(&m)
		if err != nil {
			p.t.Fatal(err)
		}
		p.seen = append(p.seen, cmd.name+" "+cmd.status().code)
		if cmd.name == name {
			return &cmd
		}
	}
}

// expectStatus reads up to an onStatus with the code.
func (p *peer) expectStatus(code string) *command {
	p.t.Helper()
	for {
		if cmd := p.expect("onStatus"); cmd.status().code == code {
			return cmd
		}
	}
}

// expectKind reads up to a message of a type.
func (p *peer) expectKind(kind uint8) *message {
	p.t.Helper()
	for {
		m, err := p.read()
		if err != nil {
			p.t.Fatalf("waiting for a message of type %d: %v", kind, err)
		}
		if m.kind == kind {
			return &m
		}
	}
}

// expectEnd reads until the server closes.
func (p *peer) expectEnd() {
	p.t.Helper()
	for {
		if _, err := p.read(); err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				p.t.Fatal("the server did not close the connection")
			}
			return
		}
	}
}

// sync waits for the answer to a ping: everything before it was dealt with.
func (p *peer) sync() {
	p.t.Helper()
	p.message(2, typeUserControl, 0, 0, []byte{0, eventPing, 1, 2, 3, 4})
	for {
		m := p.expectKind(typeUserControl)
		if bytes.Equal(m.payload(), []byte{0, eventPong, 1, 2, 3, 4}) {
			return
		}
	}
}

// Payloads of H.264 and AAC as the classifier knows them.
var (
	avcHeader = []byte{0x17, 0, 0, 0, 0, 1, 0x64, 0, 0x1f, 0xff, 0xe1, 0, 0, 1, 0, 0}
	aacHeader = []byte{0xaf, 0, 0x12, 0x10}
)

func keyframe(n int) []byte {
	return binary.BigEndian.AppendUint32([]byte{0x17, 1, 0, 0, 0}, uint32(n))
}

func inter(n int) []byte {
	return binary.BigEndian.AppendUint32([]byte{0x27, 1, 0, 0, 0}, uint32(n))
}

func aac(n int) []byte { return binary.BigEndian.AppendUint32([]byte{0xaf, 1}, uint32(n)) }

// watcher reads what is published under a name.
type watcher struct {
	t      testing.TB
	cursor stream.Cursor
	wake   chan struct{}
}

func (w *watcher) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// watch attaches to a stream before it is published.
func (n *node) watch(t testing.TB, name stream.Name) *watcher {
	t.Helper()
	s, err := n.hub.Attach(name, stream.Demand{})
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{t: t, cursor: s.NewCursor(stream.CursorOptions{KeepClock: true}), wake: make(chan struct{}, 1)}
	s.Watch(w)
	t.Cleanup(func() { s.Unwatch(w); n.hub.Detach(s) })
	return w
}

// next returns the next n tags.
func (w *watcher) next(n int) []flv.Tag {
	w.t.Helper()
	var out []flv.Tag
	limit := time.After(patience)
	for len(out) < n {
		var tags [16]flv.Tag
		k := min(w.cursor.Peek(tags[:]), n-len(out))
		w.cursor.Advance(k)
		out = append(out, tags[:k]...)
		if k > 0 {
			continue
		}
		select {
		case <-w.wake:
		case <-limit:
			w.t.Fatalf("got %d of %d tags", len(out), n)
		}
	}
	return out
}

// drain reads a connection to its end.
func drain(nc net.Conn) { _, _ = io.Copy(io.Discard, nc) }
