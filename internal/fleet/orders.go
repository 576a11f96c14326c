package fleet

import (
	"slices"
	"sync"
	"sync/atomic"

	"millrace/internal/control"
	"millrace/internal/plan"
)

// papers are the orders that were made, by node: of those who have asked.
type papers struct {
	version atomic.Uint64 // rises when orders may be others

	mu   sync.Mutex
	made map[string]paper
}

// paper is the orders of a node.
type paper struct {
	version uint64
	paper   *control.OrdersPaper // nil: there are none yet
}

// Orders returns what a node is to follow, nil if there is nothing yet. A node that is not
// in the plan, because nobody heard it lately, keeps what it had until it is forgotten.
func (f *Fleet) Orders(node string) *control.OrdersPaper {
	o := &f.orders
	version := o.version.Load()
	o.mu.Lock()
	have, ok := o.made[node]
	full := !ok && len(o.made) >= 2*f.cfg.MaxNodes
	o.mu.Unlock()
	if ok && have.version == version {
		return have.paper
	}
	made := f.makeOrders(node)
	if made == nil {
		made = have.paper
	}
	if made != nil && have.paper != nil && made.Token() == have.paper.Token() {
		made = have.paper // what was packed for it stays so
	}
	if !full {
		o.mu.Lock()
		o.made[node] = paper{version, made}
		o.mu.Unlock()
	}
	return made
}

// refreshOrders makes the orders anew of all who have asked, and tells those whose orders
// are others.
func (f *Fleet) refreshOrders() {
	o := &f.orders
	o.mu.Lock()
	o.version.Add(1) // under the lock: what is made from now on is not in before
	before := make(map[string]*control.OrdersPaper, len(o.made))
	for node, p := range o.made {
		before[node] = p.paper
	}
	o.mu.Unlock()
	var changed []string
	for node, was := range before {
		if !f.nodes.known(node) && (was == nil || f.ordersOf(node) == nil) {
			o.mu.Lock()
			delete(o.made, node)
			o.mu.Unlock()
			continue
		}
		if is := f.Orders(node); is != nil && (was == nil || is.Token() != was.Token()) {
			changed = append(changed, node)
		}
	}
	if len(changed) > 0 {
		slices.Sort(changed)
		f.out.OrdersChanged(changed)
	}
}

// makeOrders writes down what the plan in force tells a node, nil if it says nothing.
func (f *Fleet) makeOrders(node string) *control.OrdersPaper {
	if o := f.ordersOf(node); o != nil {
		return control.NewOrdersPaper(o)
	}
	return nil
}

// ordersOf is what the plan in force tells a node. It is the same on all routers, from
// what was published and what nodes say of themselves.
func (f *Fleet) ordersOf(node string) *control.Orders {
	in := f.published.Load()
	if in == nil {
		return nil
	}
	p := in.plan
	pool, planned := p.Pools[node]
	members := p.Members[node]
	center := slices.Contains(p.Centers, node)
	if !planned && !center {
		return nil
	}
	o := &control.Orders{
		Origin: f.origin(), Version: p.Version, Node: node, Pool: []control.Target{}, Peers: []control.Target{}, Centers: []control.Target{},
		Measure: []control.Target{}, Weight: 1, Paths: f.cfg.Paths,
	}
	f.nodes.mu.RLock()
	defer f.nodes.mu.RUnlock()
	for _, c := range pool {
		if m := f.nodes.reached(c.Upstream, node); m != nil {
			o.Pool = append(o.Pool, control.Target{Node: m.ID, URL: m.URL, Probe: m.Probe})
			o.Measure = append(o.Measure, control.Target{Node: m.ID, URL: m.URL, Probe: m.Probe})
		}
	}
	for _, id := range in.measure[node] {
		if m := f.nodes.reached(id, node); m != nil {
			o.Measure = append(o.Measure, control.Target{Node: m.ID, URL: m.URL, Probe: m.Probe})
		}
	}
	f.nodes.peers(o, members)
	if !center {
		for _, id := range p.Centers {
			if m := f.nodes.reached(id, node); m != nil && m.Push != "" { // it may take none
				o.Centers = append(o.Centers, control.Target{Node: m.ID, URL: m.URL, Push: m.Push, Weight: weightOf(p, id)})
			}
		}
	}
	return o
}

// weightOf returns how big a share of publishes a center takes: 0 while it drains, so
// that they go elsewhere as long as there is elsewhere.
func weightOf(p *plan.Plan, center string) float64 {
	for _, m := range p.Members[center] {
		if m.ID == center {
			return m.Weight
		}
	}
	return 1
}

// peers fills in with whom a node shares streams. The lock is held.
func (r *registry) peers(o *control.Orders, members []plan.Peer) {
	for _, peer := range members {
		if peer.ID == o.Node {
			o.Weight, o.Capacity = peer.Weight, peer.Capacity
			continue
		}
		if m := r.reached(peer.ID, o.Node); m != nil {
			o.Peers = append(o.Peers, control.Target{Node: m.ID, URL: m.URL, Weight: peer.Weight, Capacity: peer.Capacity})
		}
	}
}

// reached returns what a node says of itself, nil if another one cannot reach it. The
// lock is held.
func (r *registry) reached(id, by string) *control.Identity {
	m := r.nodes[id]
	if m == nil || id == by || m.identity == nil || m.identity.URL == "" {
		return nil
	}
	return m.identity
}
