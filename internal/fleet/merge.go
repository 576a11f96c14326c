package fleet

import (
	"time"

	"github.com/cespare/xxhash/v2"

	"millrace/internal/control"
	"millrace/internal/stream"
)

// told is what a router tells the others of the nodes that it hears.
type told struct {
	nodes      []nodeWire
	identities []control.Identity // nil: the others have them
	streams    [buckets]*streamsWire
	rechecks   []recheckTold
}

// bucketOf is in which entry it stands what a node carries.
func bucketOf(node string) int { return int(xxhash.Sum64String(node) % buckets) }

// heardBy returns how many nodes a router hears.
func (r *registry) heardBy(router string, now time.Time) (n int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, m := range r.nodes {
		if m.router == router && now.Sub(m.heard) <= r.cfg.Alive {
			n++
		}
	}
	return n
}

// tell gathers what the others should know: of what changes rarely only what has changed,
// unless all is wanted.
func (r *registry) tell(now time.Time, router string, s *share, whole bool) *told {
	r.mu.RLock()
	defer r.mu.RUnlock()
	t := &told{nodes: []nodeWire{}}
	all := whole || s.identities != r.identities
	s.identities = r.identities
	var marks [buckets]uint64
	var of [buckets][]*member
	for _, m := range r.nodes {
		silent := now.Sub(m.heard)
		if m.router != router || silent > r.cfg.Grace {
			continue
		}
		t.nodes = append(t.nodes, nodeWire{
			ID: m.id, Boot: m.boot, Started: m.started.UTC(), Sequence: m.sequence, Silent: silent.Milliseconds(), From: m.from, Load: m.load,
			Pulled: m.pulled, Viewers: m.viewers, Refused: m.refused, Draining: m.draining, Full: m.full, Orders: m.orders,
		})
		if all {
			t.identities = append(t.identities, *m.identity)
		}
		if whole && len(m.rechecks) > 0 {
			t.rechecks = append(t.rechecks, recheckTold{m.id, m.boot, m.rechecks})
		}
		at := bucketOf(m.id)
		marks[at] += xxhash.Sum64String(m.id+m.boot) * (2*m.changed + 1) // in any order
		of[at] = append(of[at], m)
	}
	for at, list := range of {
		if len(list) > 0 && (whole || marks[at] != s.told[at]) {
			t.streams[at] = carriedBy(list)
		}
	}
	s.told = marks
	return t
}

// carriedBy writes down what nodes carry.
func carriedBy(list []*member) *streamsWire {
	w := &streamsWire{Names: []stream.Name{}}
	index := map[stream.Name]int{}
	for _, m := range list {
		c := carryWire{ID: m.id, Boot: m.boot, Changed: m.changed, Items: make([]itemWire, 0, len(m.carried))}
		for name, it := range m.carried {
			at, ok := index[name]
			if !ok {
				at = len(w.Names)
				index[name], w.Names = at, append(w.Names, name)
			}
			c.Items = append(c.Items, itemWire{
				Name: at, Source: it.source, Epoch: it.epoch, From: it.from, Bitrate: it.bitrate, Viewers: it.viewers, Delay: it.delay,
			})
		}
		w.Nodes = append(w.Nodes, c)
	}
	return w
}

// mergeIdentities takes what nodes say of themselves, as another router has heard it. Those
// that it does not hear any more are told by the one that does.
func (r *registry) mergeIdentities(now time.Time, router string, list []control.Identity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range list {
		to := &list[i]
		m := r.nodes[to.ID]
		switch {
		case m == nil:
			if len(r.nodes) < r.cfg.MaxNodes && to.ID != "" {
				m = r.add(to.ID)
				// It has not been heard yet: the entry of nodes, which is read next, tells when.
				m.identify(to)
				m.router, m.down, m.heard = router, true, now
			}
		case m.router == router:
			r.identify(m, to)
		}
	}
}

// merge takes what another router hears. It returns the nodes that were down.
func (r *registry) merge(now time.Time, router string, list []nodeWire) []back {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []back
	for i := range list {
		w := &list[i]
		m := r.nodes[w.ID]
		if m == nil || !m.older(w) {
			continue
		}
		if m.boot != w.Boot {
			b := back{id: w.ID, boot: w.Boot, sequence: w.Sequence, added: m.boot == "", restarted: m.boot != "" && !m.seed}
			if b.added || b.restarted || m.down {
				out = append(out, b)
			}
			r.restart(m)
		} else if m.down {
			out = append(out, back{id: w.ID, boot: w.Boot, sequence: w.Sequence})
		}
		m.boot, m.started, m.sequence = w.Boot, w.Started, w.Sequence
		m.heard, m.seed, m.router, m.from, m.based = now.Add(-time.Duration(max(w.Silent, 0))*time.Millisecond), false, router, w.From, 0
		m.load, m.viewers, m.refused, m.draining, m.full, m.orders = w.Load, w.Viewers, w.Refused, w.Draining, w.Full, w.Orders
		m.needs(now, w.Pulled)
		if m.down {
			m.down = false
			r.streams.show(m)
		}
	}
	return out
}

// back is a node that is there again, or for the first time.
type back struct {
	id, boot         string
	sequence         uint64
	added, restarted bool
}

// older reports whether what is known of m is older than w.
func (m *member) older(w *nodeWire) bool {
	switch {
	case m.boot == w.Boot:
		return w.Sequence > m.sequence
	case m.boot == "" || m.seed:
		return true
	}
	return w.Started.After(m.started)
}

// mergeStreams takes what nodes carry, as another router has heard it. It reports false
// if some of the nodes are not known yet.
func (r *registry) mergeStreams(router string, w *streamsWire) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	whole := true
	for i := range w.Nodes {
		c := &w.Nodes[i]
		m := r.nodes[c.ID]
		switch {
		case m == nil || m.down && m.router == router:
			whole = false
		case m.router == router && m.boot == c.Boot && m.changed != c.Changed:
			r.replace(m, c, w.Names)
		}
	}
	return whole
}

// replace makes c all that m carries.
func (r *registry) replace(m *member, c *carryWire, names []stream.Name) {
	for i := range c.Items {
		it := &c.Items[i]
		if it.Name < 0 || it.Name >= len(names) {
			continue
		}
		r.streams.set(m, &control.Carried{
			Name: names[it.Name], Source: it.Source, Epoch: it.Epoch, From: it.From, Bitrate: it.Bitrate, Viewers: it.Viewers, Delay: it.Delay,
		}, c.Changed, r.cfg.MaxStreams)
	}
	for name, it := range m.carried {
		if it.seen != c.Changed {
			r.streams.drop(m, name)
		}
	}
	m.changed = c.Changed
}

// mergeRechecks takes what edges count, as another router has heard it.
func (r *registry) mergeRechecks(list []recheckTold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range list {
		if m := r.nodes[list[i].Node]; m != nil && m.boot == list[i].Boot && m.router != r.cfg.Router {
			m.rechecks = list[i].Counts
		}
	}
}
