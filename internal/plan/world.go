package plan

import (
	"cmp"
	"slices"
	"time"
)

// world is a Network made ready for questions: nodes numbered in the order of their
// ids, edits applied, measurements turned into costs.
type world struct {
	cfg   *Config
	net   *Network
	nodes []node
	ids   map[string]int32
	*atlas
	cells []cell
	rules *rules
	links [][]measured // by the node that pulls, by upstream
	tiers [3][]int32   // usable centers, relays, edges
}

type tier uint8

const (
	tierCenter tier = iota
	tierRelay
	tierEdge
	tierNone // the role is none of ours
)

// node is a Node with the edits applied.
type node struct {
	*Node
	tier     tier
	cell     int32
	domain   int32   // what fails together
	capacity float64 // bytes/s
	load     float64
	demand   float64
	price    float64
	weight   float64
	why      Reason // it is not usable as an upstream; None: it is
}

// measured is a link that somebody measured.
type measured struct {
	from  int32
	parts Breakdown
}

// newWorld makes n ready. Of two nodes with one id only one counts.
func newWorld(now time.Time, n *Network, cfg *Config) *world {
	sorted := slices.Clone(n.Nodes)
	slices.SortStableFunc(sorted, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	sorted = slices.CompactFunc(sorted, func(a, b Node) bool { return a.ID == b.ID })
	w := &world{cfg: cfg, net: n, nodes: make([]node, len(sorted)), ids: make(map[string]int32, len(sorted))}
	w.atlas = newAtlas(n.Regions, sorted, &cfg.Costs)
	all, of := w.atlas.cells(sorted)
	w.cells = all
	domains := map[string]int32{}
	for i := range sorted {
		w.ids[sorted[i].ID] = int32(i)
		w.nodes[i] = w.node(&sorted[i], of[i], domains)
	}
	w.rules = newRules(now, w, &n.Edits)
	for i := range w.nodes {
		m := &w.nodes[i]
		switch {
		case !m.Alive:
			m.why = Dead
		case m.Draining || w.rules.drained.has(int32(i)):
			m.why = Draining
		case m.capacity <= 0:
			m.why = NoCapacity
		}
		if m.why == None && m.tier != tierNone {
			w.tiers[m.tier] = append(w.tiers[m.tier], int32(i))
		}
	}
	w.measure(now)
	return w
}

func (w *world) node(n *Node, cell int32, domains map[string]int32) node {
	m := node{
		Node: n, tier: tierNone, cell: cell, capacity: float64(n.Capacity), load: max(float64(n.Load), 0),
		demand: float64(w.cfg.Demand), price: n.Price, weight: n.Weight,
	}
	for t, role := range [...]string{Center, Relay, Edge} {
		if n.Role == role {
			m.tier = tier(t)
		}
	}
	if m.weight <= 0 {
		m.weight = 1
	}
	if d, ok := w.net.Demand[n.ID]; ok {
		m.demand = max(float64(d), 0)
	}
	// The marks keep a domain, a datacenter and a node of one name apart.
	name := "domain " + n.Domain
	if n.Domain == "" {
		name = "datacenter " + n.Datacenter
		if n.Datacenter == "" {
			name = "node " + n.ID
		}
	}
	at, ok := domains[name]
	if !ok {
		at = int32(len(domains))
		domains[name] = at
	}
	m.domain = at
	return m
}

// measure turns the links that were measured into costs.
func (w *world) measure(now time.Time) {
	w.links = make([][]measured, len(w.nodes))
	if w.net.Scores == nil {
		return
	}
	at := now.UnixNano()
	for i := range w.nodes {
		entries := w.net.Scores.links[w.nodes[i].ID]
		if len(entries) == 0 {
			continue
		}
		list := make([]measured, 0, len(entries))
		for _, e := range entries { // by id, and so by number
			if from, ok := w.ids[e.from]; ok {
				list = append(list, measured{from, e.link.parts(at, w.promised(from, int32(i)), w.cfg)})
			}
		}
		w.links[i] = list
	}
}

// promised is the delay that distance and ISPs promise.
func (w *world) promised(from, to int32) float64 {
	a, b := &w.cells[w.nodes[from].cell], &w.cells[w.nodes[to].cell]
	return w.between(a, b)
}

func (w *world) between(a, b *cell) float64 {
	c := &w.cfg.Costs
	v := c.Base + w.way(a.region, b.region)
	switch a.isps.meet(&b.isps) {
	case ispAny:
		v += c.ISPAny
	case ispUnknown:
		v += c.ISPUnknown
	case ispOther:
		v += c.ISPOther
	}
	return v
}

// crosses reports whether a link leaves the region or the ISP, so that it is paid for.
func (w *world) crosses(from, to int32) bool {
	a, b := &w.cells[w.nodes[from].cell], &w.cells[w.nodes[to].cell]
	return a.region != b.region || a.isps.meet(&b.isps) == ispOther
}

// parts returns what a link costs but for load, tier and what is behind.
func (w *world) parts(from, to int32) Breakdown {
	b := Breakdown{Weight: 1}
	if list := w.links[to]; len(list) > 0 {
		if i, ok := slices.BinarySearchFunc(list, from, func(m measured, from int32) int { return cmp.Compare(m.from, from) }); ok {
			b = list[i].parts
		} else {
			b.Delay = w.promised(from, to)
		}
	} else {
		b.Delay = w.promised(from, to)
	}
	up := &w.nodes[from]
	if up.price > 0 && w.crosses(from, to) {
		b.Money = w.cfg.Costs.Money * up.price
	}
	b.Weight = up.weight * w.rules.weight(from, to)
	return b
}
