package fleet

import (
	"slices"
	"strings"
	"sync"
	"time"

	"millrace/internal/control"
	"millrace/internal/plan"
	"millrace/internal/sched"
	"millrace/internal/stream"
)

// frame is all that is known at one time. It is made each second and not changed after,
// so that many may look at it while nobody waits.
type frame struct {
	at        time.Time
	nodes     []nodeFrame // by id
	index     map[string]int
	network   plan.Network
	view      *plan.View
	published *published // nil: there is no plan yet
	docs      *documents
	links     []LinkRow // that are in use, or first in a pool; by to, place and from
	routers   []RouterRow
	store     bool
	streams   int                // different ones
	denied    map[string]*Denied // by name
	// identities is the version of the registry that the nodes are of.
	identities uint64

	once  sync.Once
	model *Network
}

// nodeFrame is a node in a frame.
type nodeFrame struct {
	identity *control.Identity
	leftOut  string // why players are not sent to it
	state    NodeState
	down     bool
	seed     bool
	boot     string
	heard    time.Time
	started  time.Time
	router   string
	load     int64
	pulled   int64
	demand   int64
	capacity int64 // with the edits applied
	viewers  int
	refused  uint64
	draining bool // by itself
	full     bool
	orders   string
	streams  int
	sources  int
	uses     map[string]use // by upstream; not changed
	names    []stream.Name  // of the streams that an edge carries; not changed
	edited   bool
}

// makeFrame looks at everything.
func (f *Fleet) makeFrame(now time.Time) *frame {
	fr := &frame{at: now, published: f.published.Load(), docs: f.docs.Load(), store: f.reached.Load(), denied: f.events.deniedNow(now)}
	fr.nodes, fr.streams, fr.identities = f.nodes.frame()
	fr.index = make(map[string]int, len(fr.nodes))
	edits := &fr.docs.edits.Edits
	marks := newMarks(now, edits)
	fr.network = plan.Network{
		Nodes: make([]plan.Node, len(fr.nodes)), Scores: f.scores.links, Streams: f.nodes.streams, Demand: make(map[string]int64, len(fr.nodes)),
		Edits: *edits, Regions: fr.docs.regions(),
	}
	for i := range fr.nodes {
		n := &fr.nodes[i]
		of := n.identity
		fr.index[of.ID] = i
		n.capacity = of.Capacity
		if n.capacity <= 0 {
			n.capacity = f.cfg.Capacity
		}
		fr.network.Nodes[i] = plan.Node{
			ID: of.ID, Role: of.Role, Datacenter: of.Datacenter, Region: of.Region, ISPs: of.ISPs, Domain: of.Domain, Capacity: n.capacity,
			Load: n.load, Price: of.Price, Draining: n.draining, Alive: !n.down, Weight: of.Weight,
		}
		if !n.down {
			fr.network.Demand[of.ID] = n.demand
		}
		var drained bool
		n.capacity, drained, n.edited = marks.of(of, n.capacity)
		switch {
		case n.down:
			n.state = NodeDown
		case n.draining || drained:
			n.state = NodeDraining
		case n.full:
			n.state = NodeFull
		default:
			n.state = NodeUp
		}
	}
	fr.routers = f.routerRows(fr, now)
	known := func(id string) bool { _, ok := fr.index[id]; return ok }
	f.scores.take(now, known)
	var p *plan.Plan
	if fr.published != nil {
		p = fr.published.plan
	}
	f.scores.mu.Lock()
	fr.view = plan.NewView(now, &fr.network, p, &f.cfg.Plan)
	fr.links = f.linkRows(fr, now)
	f.scores.mu.Unlock()
	return fr
}

// node returns a node of the frame, nil if there is none.
func (fr *frame) node(id string) *nodeFrame {
	if i, ok := fr.index[id]; ok {
		return &fr.nodes[i]
	}
	return nil
}

// frame copies what is known of nodes, by id.
func (r *registry) frame() (out []nodeFrame, streams int, identities uint64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out = make([]nodeFrame, 0, len(r.nodes))
	for _, m := range r.nodes {
		if m.identity == nil {
			continue
		}
		m.digest()
		out = append(out, nodeFrame{
			identity: m.identity, leftOut: m.leftOut, down: m.down, seed: m.seed, boot: m.boot, heard: m.heard, started: m.started, router: m.router,
			load: m.load, pulled: m.pulled, demand: m.demand, viewers: m.viewers, refused: m.refused, draining: m.draining, full: m.full,
			orders: m.orders, streams: len(m.carried), sources: m.counts, uses: m.uses, names: m.names,
		})
	}
	slices.SortFunc(out, func(a, b nodeFrame) int { return strings.Compare(a.identity.ID, b.identity.ID) })
	return out, len(r.streams.table), r.identities
}

// digest sums up what m carries, if that has changed. It is called by one goroutine.
func (m *member) digest() {
	if m.made && m.usedAt == m.changed {
		return
	}
	m.made, m.usedAt = true, m.changed
	m.uses, m.counts = map[string]use{}, 0
	m.names = make([]stream.Name, 0, min(len(m.carried), sched.MaxStreams))
	for name, it := range m.carried {
		if it.source {
			m.counts++
		}
		if it.from != "" {
			u := m.uses[it.from]
			u.streams++
			u.rate += it.bitrate
			m.uses[it.from] = u
		}
		if len(m.names) < sched.MaxStreams {
			m.names = append(m.names, name)
		}
	}
	slices.Sort(m.names)
}

// marks are what operators say of single nodes.
type marks struct {
	now        time.Time
	edits      *plan.Edits
	named      map[string]bool
	everything bool
}

func newMarks(now time.Time, e *plan.Edits) *marks {
	m := &marks{now: now, edits: e, named: map[string]bool{}}
	add := func(by *plan.By, names ...string) {
		if !by.Until.IsZero() && !now.Before(by.Until) {
			return
		}
		for _, name := range names {
			m.everything = m.everything || name == "*" && len(names) == 1
			m.named[name] = true
		}
	}
	for i := range e.Pins {
		add(&e.Pins[i].By, e.Pins[i].Node)
	}
	for i := range e.Bans {
		add(&e.Bans[i].By, e.Bans[i].From, e.Bans[i].To)
	}
	for i := range e.Weights {
		add(&e.Weights[i].By, e.Weights[i].From, e.Weights[i].To)
	}
	for i := range e.Prices {
		add(&e.Prices[i].By, e.Prices[i].Node)
	}
	for i := range e.Capacities {
		add(&e.Capacities[i].By, e.Capacities[i].Node)
	}
	for i := range e.Drains {
		add(&e.Drains[i].By, e.Drains[i].Node)
	}
	return m
}

// of returns the capacity of a node with the edits applied, whether operators drain it, and
// whether any edit names it.
func (m *marks) of(n *control.Identity, capacity int64) (_ int64, drained, edited bool) {
	for i := range m.edits.Capacities {
		if c := &m.edits.Capacities[i]; m.holds(&c.By) && selects(c.Node, n) {
			capacity = c.Capacity
		}
	}
	for i := range m.edits.Drains {
		if d := &m.edits.Drains[i]; m.holds(&d.By) && selects(d.Node, n) {
			drained = true
		}
	}
	edited = m.everything || m.named[n.ID] || n.Datacenter != "" && m.named["dc:"+n.Datacenter]
	return capacity, drained, edited
}

func (m *marks) holds(by *plan.By) bool { return by.Until.IsZero() || m.now.Before(by.Until) }

// selects reports whether the word of an edit names a node.
func selects(word string, n *control.Identity) bool {
	return word == "*" || word == n.ID || n.Datacenter != "" && word == "dc:"+n.Datacenter
}
