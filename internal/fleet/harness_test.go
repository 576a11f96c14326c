package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"millrace/internal/control"
	"millrace/internal/plan"
	"millrace/internal/sched"
	"millrace/internal/store"
	"millrace/internal/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quiet is a log that nobody reads.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func memory(t testing.TB) *store.Memory {
	t.Helper()
	s, err := store.NewMemory(store.MemoryConfig{}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newFleet(t testing.TB, id string, s store.Store, change func(*Config)) *Fleet {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Router = id
	if change != nil {
		change(&cfg)
	}
	f, err := New(cfg, s, quiet())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// running is a Fleet at work.
type running struct {
	*Fleet
	*heard
	stop func()
}

// heard is what a listener was told.
type heard struct {
	mu      sync.Mutex
	orders  []string
	seen    []sched.Observation
	changes int
}

func (h *heard) OrdersChanged(nodes []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.orders = append(h.orders, nodes...)
	h.changes++
}

func (h *heard) Observed(obs []sched.Observation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = obs
}

func (h *heard) told() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.orders
	h.orders = nil
	return out
}

// run starts a Fleet. It is stopped by stop, or at the end of the test.
func run(t testing.TB, id string, s store.Store, change func(*Config)) *running {
	t.Helper()
	f := newFleet(t, id, s, change)
	r := &running{Fleet: f, heard: &heard{}}
	f.Connect(r.heard)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	r.stop = func() { cancel(); <-done }
	t.Cleanup(r.stop)
	return r
}

// node is a node that sends heartbeats.
type node struct {
	control.Identity
	boot     string
	started  time.Time
	sequence uint64
	from     netip.Addr
	load     int64
	pulled   int64
	viewers  int
	streams  []control.Carried
	samples  []plan.Sample
	events   []control.Event
	players  []control.Players
	orders   string
	draining bool
	full     bool
}

// newNode returns a node of a role. An edge gets an address for players.
func newNode(id, role, datacenter string) *node {
	n := &node{
		Identity: control.Identity{
			ID: id, Role: role, Datacenter: datacenter, Region: "north", ISPs: []string{"*"}, URL: "http://" + id + ":8080",
			Push: "rtmp://" + id + ":1935", Probe: id + ":8080", Capacity: 1 << 30, Program: "test",
		},
		boot: "BOOT" + id, started: time.Now().UTC(), from: netip.MustParseAddr("198.51.100.7"),
	}
	if role == plan.Edge {
		n.Addresses, n.HTTPPort = []netip.Addr{addressOf(id)}, 8080
	}
	return n
}

// addressOf makes up an address of documentation for an id.
func addressOf(id string) netip.Addr {
	sum := uint16(0)
	for _, c := range id {
		sum = sum*31 + uint16(c)
	}
	return netip.AddrFrom4([4]byte{203, 0, byte(sum >> 8), byte(sum)})
}

// message is the next heartbeat, with everything.
func (n *node) message() *control.Heartbeat {
	n.sequence++
	identity := n.Identity
	h := &control.Heartbeat{
		Node: n.ID, Boot: n.boot, Started: n.started, Sequence: n.sequence, At: time.Now(), Identity: &identity, Load: n.load, Pulled: n.pulled,
		Viewers: n.viewers, Draining: n.draining, Full: n.full, Streams: control.Carrying{Set: n.streams}, Samples: n.samples, Events: n.events,
		Players: n.players, Orders: n.orders,
	}
	n.samples, n.events, n.players = nil, nil, nil
	return h
}

// beat sends it.
func (n *node) beat(t testing.TB, f *Fleet) control.Ack {
	t.Helper()
	ack, why, err := f.Heartbeat(time.Now(), n.message(), n.from)
	if why != control.NotRefused || err != nil {
		t.Fatalf("the heartbeat of %s was refused: %v: %v", n.ID, why, err)
	}
	if ack.Orders != "" {
		n.orders = ack.Orders
	}
	return ack
}

// network is a small system: a center, two relays and four edges in two datacenters.
func network() []*node {
	list := []*node{
		newNode("center-1", plan.Center, "north"),
		newNode("relay-a", plan.Relay, "a"), newNode("relay-b", plan.Relay, "b"),
		newNode("edge-a1", plan.Edge, "a"), newNode("edge-a2", plan.Edge, "a"),
		newNode("edge-b1", plan.Edge, "b"), newNode("edge-b2", plan.Edge, "b"),
	}
	for _, n := range list {
		n.pulled = 1 << 20
	}
	return list
}

// live lets nodes send heartbeats for a time, each second. It ends between two frames.
func live(t testing.TB, span time.Duration, f *Fleet, nodes ...*node) {
	t.Helper()
	for range span / time.Second {
		for _, n := range nodes {
			n.beat(t, f)
		}
		time.Sleep(time.Second)
	}
	time.Sleep(beside)
}

// beside is added to whole seconds, at which routers work.
const beside = 170 * time.Millisecond

// carry returns n streams.
func carry(n int, from string) []control.Carried {
	out := make([]control.Carried, n)
	for i := range out {
		out[i] = control.Carried{Name: stream.Name(fmt.Sprintf("live/s%d", i)), Epoch: 1, From: from, Bitrate: 250_000, Viewers: i % 3, Delay: 20}
	}
	return out
}

func contains(s, part string) bool { return strings.Contains(s, part) }
