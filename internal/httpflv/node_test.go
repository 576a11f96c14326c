package httpflv

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The worker pool of the HTTP library notices only after its idle time that it ended.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		// It keeps the date of the Date header up to date for the life of the process.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// patience is how long a test waits for what must come; it is never waited out when all
// is well.
const patience = time.Minute

// node is everything that a viewer needs, on a port of its own.
type node struct {
	t      *testing.T
	hub    *stream.Hub
	table  *session.Table
	fan    *Fanout
	server *Server
	addr   string
	stop   func()  // ends all and waits; may be called again
	trunks *Trunks // of the node below; nil where it has none
}

// quickly is a configuration in which nothing waits for long.
func quickly() Config {
	cfg := DefaultConfig()
	cfg.MergeMin, cfg.MergeMax = 0, 0
	cfg.DrainSpread = 0
	cfg.Shards = 2
	return cfg
}

func start(t *testing.T, cfg Config, access auth.Config) *node {
	t.Helper()
	return startOn(t, cfg, access, listen(t))
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func startOn(t *testing.T, cfg Config, access auth.Config, ln net.Listener) *node {
	t.Helper()
	cluster, err := auth.NewCluster(auth.ClusterConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return startAs(t, cfg, access, ln, Identity{ID: "here", Cluster: cluster})
}

func startAs(t *testing.T, cfg Config, access auth.Config, ln net.Listener, self Identity) *node {
	t.Helper()
	hub, err := stream.NewHub(stream.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	gate, err := auth.NewGate(access)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	n := &node{t: t, hub: hub, table: session.NewTable(), fan: newFanout(cfg, log), addr: ln.Addr().String()}
	// StallTimeout may be shorter here than an operator may set it.
	valid := cfg
	valid.StallTimeout = DefaultConfig().StallTimeout
	if n.server, err = New(valid, ln, n.fan, hub, gate, n.table, self, nil, log); err != nil {
		t.Fatal(err)
	}
	st := *n.server.settings.Load()
	st.cfg.StallTimeout = cfg.StallTimeout
	n.server.settings.Store(&st)

	serving, stopServing := context.WithCancel(context.Background())
	sending, stopSending := context.WithCancel(context.Background())
	var servers, fans sync.WaitGroup
	servers.Go(func() {
		if err := n.server.Run(serving); err != nil {
			t.Errorf("Server.Run: %v", err)
		}
	})
	fans.Go(func() {
		if err := n.fan.Run(sending); err != nil {
			t.Errorf("Fanout.Run: %v", err)
		}
	})
	n.stop = func() {
		stopServing()
		servers.Wait()
		stopSending()
		fans.Wait()
	}
	t.Cleanup(n.stop)
	return n
}

// source publishes numbered tags.
type source struct {
	t   *testing.T
	p   *stream.Publisher
	n   int   // frames so far
	dts int64 // of the next frame
}

var (
	avcHeader = []byte{0x17, 0, 0, 0, 0, 1, 2, 3}
	aacHeader = []byte{0xaf, 0, 0x12, 0x10}
)

func (n *node) publish(name stream.Name) *source {
	n.t.Helper()
	p, err := n.hub.Publish(time.Now(), name, "owner", nil)
	if err != nil {
		n.t.Fatal(err)
	}
	return &source{t: n.t, p: p}
}

func (s *source) write(kind flv.Kind, payload []byte) {
	s.t.Helper()
	now := time.Now().Add(time.Duration(s.dts) * time.Millisecond) // as if it came when it is due
	if err := s.p.Write(now, flv.New(kind, s.dts, payload)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *source) headers() {
	s.write(flv.Video, avcHeader)
	s.write(flv.Audio, aacHeader)
}

// frame publishes a picture of about size bytes that carries its number.
func (s *source) frame(key bool, size int) {
	s.t.Helper()
	p := make([]byte, max(size, 10))
	p[0], p[1] = 0x27, 1
	if key {
		p[0] = 0x17
	}
	p[5], p[6], p[7] = byte(s.n>>16), byte(s.n>>8), byte(s.n)
	s.write(flv.Video, p)
	s.n++
	s.dts += 40
}

// frames publishes n pictures, a GOP of ten each.
func (s *source) frames(n, size int) {
	s.t.Helper()
	for range n {
		s.frame(s.n%10 == 0, size)
	}
}

func number(t flv.Tag) int {
	p := t.Payload()
	return int(p[5])<<16 | int(p[6])<<8 | int(p[7])
}

// reader is a player.
type reader struct {
	t    *testing.T
	conn net.Conn
	resp *http.Response
	flv  *flv.Reader
}

// get asks for a path and reads the response header.
func (n *node) get(request string) *reader {
	n.t.Helper()
	conn, err := net.Dial("tcp", n.addr)
	if err != nil {
		n.t.Fatal(err)
	}
	return ask(n.t, conn, request)
}

func ask(t *testing.T, conn net.Conn, request string) *reader {
	t.Helper()
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return respond(t, conn)
}

func respond(t *testing.T, conn net.Conn) *reader {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: "GET"})
	if err != nil {
		t.Fatalf("read the response header: %v", err)
	}
	return &reader{t: t, conn: conn, resp: resp, flv: flv.NewReader(resp.Body, 1<<20)}
}

func get11(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n" }

// tag reads the next tag.
func (r *reader) tag() flv.Tag {
	r.t.Helper()
	t, err := r.flv.Read()
	if err != nil {
		r.t.Fatalf("read a tag: %v", err)
	}
	return t
}

// frame reads up to the next picture and returns its number.
func (r *reader) frame() int {
	r.t.Helper()
	for {
		if t := r.tag(); t.Kind == flv.Video && t.Is(flv.Frame) {
			return number(t)
		}
	}
}

func (r *reader) wantFrames(from, to int) {
	r.t.Helper()
	for want := from; want <= to; want++ {
		if got := r.frame(); got != want {
			r.t.Fatalf("frame %d, want %d", got, want)
		}
	}
}

// eventually waits for a condition that nothing announces. It polls, because what
// it waits for is seen from outside only: counters, and what the kernel does.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("still not: %s", what)
		}
	}
}

// ended returns how many plays ended for a reason.
func (n *node) ended(r session.Reason) (total uint64) {
	for _, c := range n.table.Counts() {
		if c.Action == session.Play {
			total += c.Ended[r]
		}
	}
	return total
}

func (n *node) wantEnded(r session.Reason, want uint64) {
	n.t.Helper()
	eventually(n.t, "ended for "+r.String(), func() bool { return n.ended(r) == want })
}

func body(t *testing.T, r *reader) string {
	t.Helper()
	b, err := io.ReadAll(r.resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(b))
}
