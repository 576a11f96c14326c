package fleet

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"millrace/internal/control"
	"millrace/internal/stream"
)

// registry is the table of nodes and of what they carry.
type registry struct {
	// Fixed at construction.
	cfg *Config

	mu      sync.RWMutex
	nodes   map[string]*member
	streams *streams
	// identities rises whenever a node is new, gone, or says something else of itself.
	identities uint64
	began      time.Time
}

// member is a node. It is guarded by the lock of the registry.
type member struct {
	id       string
	identity *control.Identity // never changed, but replaced
	leftOut  string            // why players are not sent to it, by its identity
	boot     string
	started  time.Time
	sequence uint64
	heard    time.Time  // of the last heartbeat, by the clock here; that of the start of this router for seeds
	seed     bool       // it is known from what was published, and has not been heard since
	router   string     // that hears it
	from     netip.Addr // where its heartbeats come from
	down     bool       // as events told it last

	load, pulled   int64
	demand         int64 // what it pulls, without short dips
	demandAt       time.Time
	viewers        int
	refused        uint64 // connections
	draining, full bool
	orders         string // token of those in force
	rechecks       []control.Rechecked

	carried map[stream.Name]*item
	based   uint64 // sequence of the last heartbeat taken here; 0: the next must have all streams
	changed uint64 // sequence of the last heartbeat that changed carried

	samples map[string]int // refused since it is known here, by reason

	// Owned by the goroutine that makes frames.
	uses   map[string]use // by upstream
	names  []stream.Name  // of the streams, for reports
	counts int            // of them, those published here
	usedAt uint64         // changed, when these were made
	made   bool
}

// use is what a node pulls from another one.
type use struct {
	streams int
	rate    int64
}

func newRegistry(cfg *Config, now time.Time) *registry {
	r := &registry{cfg: cfg, nodes: map[string]*member{}, began: now}
	r.streams = newStreams(&r.mu)
	return r
}

// known reports whether there is a node.
func (r *registry) known(id string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.nodes[id] != nil
}

// version rises whenever a node is new, gone, or says something else of itself.
func (r *registry) version() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.identities
}

// refusedSamples notes what a node was refused.
func (r *registry) refusedSamples(id string, counts map[string]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.nodes[id]; m != nil {
		if m.samples == nil {
			m.samples = map[string]int{}
		}
		for word, n := range counts {
			m.samples[word] += n
		}
	}
}

// taken is what a heartbeat did.
type taken struct {
	resend    bool // this router needs a heartbeat with everything
	unknown   bool // and took nothing of this one
	added     bool // the node was not known
	restarted bool // it is another run of the program
	returned  bool // it was down
	leftOut   string
}

// take takes a heartbeat. What it refuses disturbs nothing.
func (r *registry) take(now time.Time, h *control.Heartbeat, from netip.Addr) (taken, control.Refusal, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var t taken
	m := r.nodes[h.Node]
	switch {
	case m == nil && h.Identity == nil:
		return taken{resend: true, unknown: true}, control.NotRefused, nil
	case m == nil:
		if len(r.nodes) >= r.cfg.MaxNodes {
			return t, control.TableFull, fmt.Errorf("%d nodes are known already, as many as this router keeps: raise its limit", len(r.nodes))
		}
		m = r.add(h.Node)
		t.added = true
	case m.boot == h.Boot:
		if h.Sequence <= m.sequence {
			return t, control.Replayed, fmt.Errorf("heartbeat %d of %s is not newer than %d, which was taken already", h.Sequence, h.Node, m.sequence)
		}
	case h.Identity == nil:
		return taken{resend: true, unknown: true}, control.NotRefused, nil
	default:
		if err := r.replaceable(now, m, h, from); err != nil {
			return t, control.IdentityTaken, err
		}
		t.restarted = m.boot != "" && !m.seed // what was kept of a seed may be older than its last start
		r.restart(m)
	}
	t.returned = m.down
	r.update(now, m, h, from)
	t.leftOut = m.leftOut
	t.resend = !r.carry(m, h)
	return t, control.NotRefused, nil
}

// add makes a node.
func (r *registry) add(id string) *member {
	m := &member{id: id, carried: map[stream.Name]*item{}}
	r.nodes[id] = m
	r.identities++
	return m
}

// remove forgets a node.
func (r *registry) remove(m *member) {
	r.streams.hide(m)
	r.streams.count -= len(m.carried)
	delete(r.nodes, m.id)
	r.identities++
}

// longSilent is after how long a silence anybody may take the name of a node, whatever
// the clocks of the two say.
const longSilent = 30 * time.Second

// replaceable decides whether another run of a program may go by the name of m.
func (r *registry) replaceable(now time.Time, m *member, h *control.Heartbeat, from netip.Addr) error {
	silent := now.Sub(m.heard)
	switch {
	case m.seed, m.boot == "", silent > max(longSilent, r.cfg.Alive):
		return nil
	case !h.Started.After(m.started):
		return fmt.Errorf("another program goes by the name %s: it began at %s, later than this one, and was heard %s ago from %v: give each node an id of its own",
			h.Node, m.started.UTC().Format(time.RFC3339), silent.Round(time.Millisecond), m.from)
	case silent > r.cfg.Alive, from == m.from && from.IsValid():
		return nil
	}
	return fmt.Errorf("another program goes by the name %s: it was heard %s ago from %v, and this is %v: give each node an id of its own",
		h.Node, silent.Round(time.Millisecond), m.from, from)
}

// restart forgets what was of the run before.
func (r *registry) restart(m *member) {
	r.clear(m)
	m.sequence, m.changed = 0, 0
	m.rechecks, m.orders = nil, ""
	m.demand = 0
	m.made = false
}

// clear takes all streams from m.
func (r *registry) clear(m *member) {
	for name := range m.carried {
		r.streams.drop(m, name)
	}
	m.based = 0
}

// update takes all but the streams.
func (r *registry) update(now time.Time, m *member, h *control.Heartbeat, from netip.Addr) {
	if h.Identity != nil {
		r.identify(m, h.Identity)
	}
	if m.boot != h.Boot || m.router != r.cfg.Router {
		m.based = 0
	}
	m.boot, m.started, m.sequence = h.Boot, h.Started, h.Sequence
	m.heard, m.seed, m.router, m.from = now, false, r.cfg.Router, from
	m.load, m.viewers, m.refused = h.Load, h.Viewers, h.Refused
	m.draining, m.full, m.orders = h.Draining, h.Full, h.Orders
	m.needs(now, h.Pulled)
	if h.Rechecks != nil {
		m.rechecks = h.Rechecks
	}
	if m.down {
		m.down = false
		r.streams.show(m)
	}
}

// identify sets what a node says of itself, and what follows from it.
func (m *member) identify(to *control.Identity) { m.identity, m.leftOut = to, leftOut(to) }

// identify replaces what a node says of itself.
func (r *registry) identify(m *member, to *control.Identity) {
	if m.identity != nil && sameIdentity(m.identity, to) {
		return
	}
	m.identify(to)
	r.identities++
}

// demandHalf is in which time what a node is believed to need falls half of the way to
// what it pulls: an upstream that fails for a moment makes no room for others.
const demandHalf = 30 * time.Second

// needs takes what a node pulls.
func (m *member) needs(now time.Time, pulled int64) {
	m.pulled = pulled
	if pulled < m.demand {
		share := min(float64(now.Sub(m.demandAt))/float64(2*demandHalf), 1)
		pulled = m.demand - int64(float64(m.demand-pulled)*max(share, 0))
	}
	m.demand, m.demandAt = pulled, now
}

// carry takes the streams of a heartbeat. It reports whether it could: a change of what
// is not known here can not be taken.
func (r *registry) carry(m *member, h *control.Heartbeat) bool {
	c := &h.Streams
	whole := c.Based == 0
	if !whole && c.Based != m.based {
		m.based = 0
		return false
	}
	news := false
	if whole && len(m.carried) == 0 {
		m.carried = make(map[stream.Name]*item, len(c.Set))
	}
	for i := range c.Set {
		news = r.streams.set(m, &c.Set[i], h.Sequence, r.cfg.MaxStreams) || news
	}
	if whole {
		for name, it := range m.carried {
			if it.seen != h.Sequence {
				news = r.streams.drop(m, name) || news
			}
		}
	}
	for _, name := range c.Gone {
		news = r.streams.drop(m, name) || news
	}
	if news {
		m.changed = h.Sequence
	}
	m.based = h.Sequence
	return true
}
