package upstream

import (
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/httpflv"
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

// node is a whole node without its RTMP and admin sides.
type node struct {
	t      *testing.T
	id     string
	hub    *stream.Hub
	origin *Origin
	table  *session.Table
	url    string
	stop   func()
}

// option changes a node before it starts.
type option func(*Config, *Options)

func pool(urls ...string) option { return func(c *Config, _ *Options) { c.Pool = urls } }

func keys(k ...string) option {
	return func(_ *Config, o *Options) { _ = o.Cluster.Reload(auth.ClusterConfig{Keys: k}) }
}

// listen opens a port for a node that others must know before it starts.
func listen(t *testing.T) (net.Listener, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln, "http://" + ln.Addr().String()
}

func start(t *testing.T, id string, opts ...option) *node {
	t.Helper()
	ln, _ := listen(t)
	return startOn(t, ln, id, opts...)
}

func startOn(t *testing.T, ln net.Listener, id string, opts ...option) *node {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	streams := stream.DefaultConfig()
	streams.Grace = 300 * time.Millisecond
	hub, err := stream.NewHub(streams)
	must(err)
	cluster, err := auth.NewCluster(auth.ClusterConfig{})
	must(err)
	gate, err := auth.NewGate(auth.DefaultConfig())
	must(err)
	cfg := DefaultConfig()
	cfg.Linger, cfg.LocateTime = 200*time.Millisecond, patience
	o := Options{Self: id, Hub: hub, Gate: gate, Cluster: cluster, Grace: streams.Grace, Log: log}
	for _, f := range opts {
		f(&cfg, &o)
	}
	origin, err := New(cfg, o)
	must(err)
	hub.SetSource(origin)
	fcfg := httpflv.DefaultConfig()
	fcfg.MergeMin, fcfg.MergeMax, fcfg.DrainSpread, fcfg.Shards = 0, 0, 0, 1
	fan, err := httpflv.NewFanout(fcfg, log)
	must(err)
	table := session.NewTable()
	server, err := httpflv.New(fcfg, ln, fan, hub, gate, table, httpflv.Identity{ID: id, Cluster: cluster, Ring: origin}, nil, log)
	must(err)

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{origin.Run, fan.Run, server.Run} {
		running.Go(func() { _ = run(ctx) })
	}
	running.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				hub.Sweep(now)
			case <-ctx.Done():
				return
			}
		}
	})
	n := &node{t: t, id: id, hub: hub, origin: origin, table: table, url: "http://" + ln.Addr().String()}
	var once sync.Once
	n.stop = func() { once.Do(func() { cancel(); running.Wait() }) }
	t.Cleanup(n.stop)
	for !n.running() { // Want needs the context of Run
		time.Sleep(time.Millisecond)
	}
	return n
}

func (n *node) running() bool {
	n.origin.mu.Lock()
	defer n.origin.mu.Unlock()
	return n.origin.ctx != nil
}

// reader reads a stream of a node as a player of any protocol does: through a cursor.
type reader struct {
	t    *testing.T
	n    *node
	s    *stream.Stream
	cur  stream.Cursor
	wake chan struct{}
	last int64 // number of the newest picture; -1 before the first
}

func (r *reader) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (n *node) attach(name stream.Name) *reader { return n.attachFor(name, stream.Demand{}) }

func (n *node) attachFor(name stream.Name, d stream.Demand) *reader {
	n.t.Helper()
	s, err := n.hub.Attach(name, d)
	if err != nil {
		n.t.Fatal(err)
	}
	r := &reader{t: n.t, n: n, s: s, cur: s.NewCursor(stream.CursorOptions{KeepClock: true}), wake: make(chan struct{}, 1), last: -1}
	s.Watch(r)
	return r
}

func (r *reader) detach() {
	r.s.Unwatch(r)
	r.n.hub.Detach(r.s)
}

// read reads count pictures, each the successor of the one before. It returns why it
// cannot.
func (r *reader) read(count int) string {
	r.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	var tags [16]flv.Tag
	for count > 0 {
		n := r.cur.Peek(tags[:])
		for _, t := range tags[:n] {
			if !t.Is(flv.Frame) {
				continue
			}
			p := t.Payload()
			i := int64(binary.BigEndian.Uint32(p[len(p)-4:]))
			if r.last >= 0 && i != r.last+1 {
				r.t.Errorf("%s: picture %d after %d", r.n.id, i, r.last)
			}
			r.last = i
			count--
		}
		r.cur.Advance(n)
		if n > 0 {
			continue
		}
		if r.cur.Ended() {
			if !r.cur.Started() {
				return r.s.Failure().String()
			}
			return "ended"
		}
		select {
		case <-r.wake:
		case <-limit.C:
			return "nothing came"
		}
	}
	return ""
}

// waiting returns how many searches wait for their turn.
func (n *node) waiting() int {
	n.origin.turns.mu.Lock()
	defer n.origin.turns.mu.Unlock()
	return len(n.origin.turns.waiting)
}

// count returns how many events there were.
func (n *node) count(kind EventKind, reason string) int {
	c := 0
	for _, e := range n.origin.Events() {
		if e.Kind == kind && (reason == "" || e.Reason == reason) {
			c++
		}
	}
	return c
}

// total returns how many events of a kind there ever were, those forgotten included.
func (n *node) total(kind EventKind) (c uint64) {
	for of, count := range n.origin.Stats().Events {
		if of.Kind == kind {
			c += count
		}
	}
	return c
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came to this: " + what)
		}
	}
}
