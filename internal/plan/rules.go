package plan

import (
	"strings"
	"time"

	"millrace/internal/stream"
)

// How nodes are named in edits beside by their id.
const (
	datacenterMark = "dc:"
	all            = "*"
)

// bitset is a set of nodes.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) has(i int32) bool { return b[i>>6]&(1<<(i&63)) != 0 }
func (b bitset) add(i int32)      { b[i>>6] |= 1 << (i & 63) }

// rules are Edits made ready.
type rules struct {
	drained bitset
	toAll   bitset     // upstreams that are banned for everybody
	bans    [][]bitset // upstreams that are banned, by the node that pulls
	weights [][]factor
	general []factor // weights for everybody
	pins    [][]int32
	streams map[streamPin][]int32
}

type factor struct {
	from   bitset
	weight float64
}

type streamPin struct {
	node   int32
	stream stream.Name
}

func newRules(now time.Time, w *world, e *Edits) *rules {
	n := len(w.nodes)
	r := &rules{drained: newBitset(n), toAll: newBitset(n), bans: make([][]bitset, n), weights: make([][]factor, n), pins: make([][]int32, n)}
	s := selector{w: w, sets: map[string]bitset{}}
	for i := range e.Drains {
		if d := &e.Drains[i]; d.holds(now) {
			s.each(d.Node, r.drained.add)
		}
	}
	for i := range e.Prices {
		if p := &e.Prices[i]; p.holds(now) {
			s.each(p.Node, func(i int32) { w.nodes[i].price = p.Price })
		}
	}
	for i := range e.Capacities {
		if c := &e.Capacities[i]; c.holds(now) {
			s.each(c.Node, func(i int32) { w.nodes[i].capacity = float64(c.Capacity) })
		}
	}
	for i := range e.Bans {
		b := &e.Bans[i]
		switch {
		case !b.holds(now):
		case b.To == all:
			s.each(b.From, r.toAll.add)
		default:
			s.each(b.To, func(to int32) { r.bans[to] = append(r.bans[to], s.set(b.From)) })
		}
	}
	for i := range e.Weights {
		f := &e.Weights[i]
		switch {
		case !f.holds(now):
		case f.To == all:
			r.general = append(r.general, factor{s.set(f.From), f.Weight})
		default:
			s.each(f.To, func(to int32) { r.weights[to] = append(r.weights[to], factor{s.set(f.From), f.Weight}) })
		}
	}
	r.readPins(now, &s, e.Pins)
	return r
}

// readPins takes pins in their order, those of one node after those of many: the last
// word is that of the more exact pin.
func (r *rules) readPins(now time.Time, s *selector, pins []Pin) {
	r.streams = map[streamPin][]int32{}
	for exact := range 3 {
		for i := range pins {
			p := &pins[i]
			if !p.holds(now) || exactness(p.Node) != exact {
				continue
			}
			var ups []int32
			for _, id := range p.Upstreams {
				if up, ok := s.w.ids[id]; ok {
					ups = append(ups, up)
				}
			}
			s.each(p.Node, func(i int32) {
				if p.Stream == "" {
					r.pins[i] = ups
				} else {
					r.streams[streamPin{i, p.Stream}] = ups
				}
			})
		}
	}
}

func exactness(node string) int {
	switch {
	case node == all:
		return 0
	case strings.HasPrefix(node, datacenterMark):
		return 1
	}
	return 2
}

func (r *rules) banned(from, to int32) bool {
	if r.toAll.has(from) {
		return true
	}
	for _, set := range r.bans[to] {
		if set.has(from) {
			return true
		}
	}
	return false
}

func (r *rules) weight(from, to int32) float64 {
	v := 1.0
	for _, f := range r.general {
		if f.from.has(from) {
			v *= f.weight
		}
	}
	for _, f := range r.weights[to] {
		if f.from.has(from) {
			v *= f.weight
		}
	}
	return v
}

// pinsOf returns the upstreams that are pinned for a stream at a node.
func (r *rules) pinsOf(node int32, s stream.Name) []int32 {
	if len(r.streams) > 0 {
		if pins, ok := r.streams[streamPin{node, s}]; ok {
			return pins
		}
	}
	return r.pins[node]
}

// selector finds the nodes that an edit names.
type selector struct {
	w    *world
	sets map[string]bitset
}

func (s *selector) each(name string, f func(int32)) {
	if exactness(name) == 2 {
		if i, ok := s.w.ids[name]; ok {
			f(i)
		}
		return
	}
	dc := strings.TrimPrefix(name, datacenterMark)
	for i := range s.w.nodes {
		if name == all || s.w.nodes[i].Datacenter == dc {
			f(int32(i))
		}
	}
}

func (s *selector) set(name string) bitset {
	b, ok := s.sets[name]
	if !ok {
		b = newBitset(len(s.w.nodes))
		s.each(name, b.add)
		s.sets[name] = b
	}
	return b
}
