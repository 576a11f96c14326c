package plan

import (
	"time"

	"github.com/cespare/xxhash/v2"

	"millrace/internal/ring"
	"millrace/internal/stream"
)

// PathAnswer says where a node should pull a stream from.
type PathAnswer struct {
	Node    string       `json:"node"`
	Stream  stream.Name  `json:"stream"`
	Source  string       `json:"source,omitempty"` // where it is published; empty: nobody knows
	Epoch   uint64       `json:"epoch,omitempty"`
	Version uint64       `json:"version"` // of the plan
	Reason  Reason       `json:"reason"`  // of the first choice
	Choices []PathChoice `json:"choices"` // the best first; empty if there is nothing to pull from, or need not be
}

// PathChoice is one way to the source.
type PathChoice struct {
	Upstream string    `json:"upstream"`
	Hops     []string  `json:"hops"` // from the upstream to the source as far as they are known
	Cost     float64   `json:"cost"` // ms, the total of Parts
	Parts    Breakdown `json:"parts"`
	Reason   Reason    `json:"reason"`
}

// maxChoices is how many ways an answer has; the pool of the node fills it up.
const maxChoices = 3

// maxHops bounds a way to the source; a node refuses a pull with more.
const maxHops = 6

// alike is how many ms apart nodes between count as equal. Of those the ones come first that
// bring the stream into their datacenter: all others of it pull it from them. Else streams
// are spread over them by their names, so that all who ask in one place agree on a node
// before it carries the stream.
const alike = 3

// Path answers like [View.Path], from scratch. It is for tests and single questions.
func Path(now time.Time, n *Network, p *Plan, cfg *Config, node string, s stream.Name) PathAnswer {
	var a PathAnswer
	NewView(now, n, p, cfg).Path(node, s, &a)
	return a
}

// Path answers where a node should pull a stream from, into a, whose slices are used
// again. It allocates nothing after the first call with an a.
func (v *View) Path(id string, s stream.Name, a *PathAnswer) {
	*a = PathAnswer{Node: id, Stream: s, Version: v.plan.Version, Choices: a.Choices[:0]}
	i, ok := v.ids[id]
	if !ok {
		a.Reason = Unknown
		return
	}
	q := question{v: v, node: i, stream: s, source: none}
	if v.net.Streams != nil {
		if found, ok := v.net.Streams.Find(s); ok {
			q.at = found
			a.Source, a.Epoch = found.Source, found.Epoch
		}
	}
	if q.at != nil && q.at.Source == id {
		a.Reason = Source
		return
	}
	if q.at != nil {
		if up, ok := v.ids[q.at.Source]; ok && v.nodes[up].Alive {
			q.source = up
		}
	}
	q.pinned(a)
	if q.source != none {
		q.gather()
		q.choose(a)
	}
	q.fallBack(a)
	if len(a.Choices) == 0 {
		a.Reason = NoUpstream
		return
	}
	a.Reason = a.Choices[0].Reason
}

// question is one asked path. It lives on the stack.
type question struct {
	v      *View
	at     *Stream
	stream stream.Name
	node   int32
	source int32 // none: not known, or not alive
	ways   [2*nearest + 1]way
	n      int
	// The rings that were looked at last, and who owns the stream in them.
	rings  [ringsKept]*ring.Member
	owners [ringsKept]int32
	ringAt int
}

// ringsKept is more than the datacenters that the nearest nodes are in, as a rule.
const ringsKept = 4

// way is a way to the source: straight, if over is the source, or over a node between.
type way struct {
	over   int32
	cost   float64
	rank   rank
	closed Reason // None: it is open
}

// rank orders nodes between that are equal within the bound: what serves neighbours
// before what does not, and of either what carries the stream before what does not.
type rank uint8

const (
	homeCarrier rank = iota
	home
	carrier
	other
	straight
)

// gather looks at the way straight to the source and at those over the nodes around.
func (q *question) gather() {
	v := q.v
	q.ways[0] = q.straight()
	q.n = 1
	for _, list := range [...][]int32{v.near[v.nodes[q.node].cell], v.near[v.nodes[q.source].cell]} {
		for at, m := range list {
			if at == nearest {
				break
			}
			if !q.seen(m) {
				q.ways[q.n] = q.over(m)
				q.n++
			}
		}
	}
}

func (q *question) seen(m int32) bool {
	for i := range q.n {
		if q.ways[i].over == m {
			return true
		}
	}
	return false
}

// straight looks at the way from the source itself.
func (q *question) straight() way {
	w := way{over: q.source, rank: straight}
	switch {
	case q.v.rules.banned(q.source, q.node):
		w.closed = Banned
	case q.v.nodes[q.source].capacity <= 0:
		w.closed = NoCapacity
		return w
	case !q.room(q.source):
		w.closed = Full
	}
	b := q.first(q.source)
	w.cost = Cost(b)
	return w
}

// over looks at the way over m. Only nodes that would pull straight from the source
// themselves stand between, or those that carry the stream.
func (q *question) over(m int32) way {
	v := q.v
	w := way{over: m, rank: other}
	up, carries := q.at.Carriers[v.nodes[m].ID]
	switch {
	case m == q.node || m == q.source:
		w.closed = Self
		return w
	case v.nodes[m].why != None:
		w.closed = v.nodes[m].why
		return w
	case v.rules.banned(m, q.node) || !carries && v.rules.banned(q.source, m):
		w.closed = Banned
	case !v.meets(q.node, m) || !carries && !v.meets(m, q.source):
		w.closed = OtherISP
	case !q.before(m), !carries && (q.straightens() || q.circles(m)):
		w.closed = Loop
	case q.elsewhere(m, carries):
		w.closed = Pinned
	case !q.room(m) || !carries && !q.room(q.source):
		w.closed = Full
	}
	b := q.first(m)
	if carries {
		behind, ok := q.chain(m, up)
		if !ok {
			w.closed = Loop
		}
		b.Behind = behind
		w.rank = carrier
	} else {
		b.Behind = q.behind(m)
	}
	if v.way(v.cells[v.nodes[m].cell].region, v.cells[v.nodes[q.node].cell].region) <= v.cfg.Near {
		w.rank -= carrier // carrier becomes homeCarrier, and other home
	}
	w.cost = Cost(b)
	return w
}

// before reports whether m comes before the node that asks in an order that every way
// over a node between goes up: edges are last, then come those that have no ISP of the
// source, then by a draw that is the stream's. So no two answers can make a ring, whatever
// nodes carry by now.
func (q *question) before(m int32) bool {
	v := q.v
	if v.nodes[q.node].tier == tierEdge {
		return true // and edges stand between nobody
	}
	if mine, its := v.meets(q.node, q.source), v.meets(m, q.source); mine != its {
		return its
	}
	hash := q.streamHash()
	mine, its := mix(hash^v.hashes[q.node]), mix(hash^v.hashes[m])
	return its > mine || its == mine && m < q.node
}

// straightens reports whether the node that asks is one that others may count on to
// pull straight from the source: over another node only if that carries the stream.
func (q *question) straightens() bool {
	return q.v.nodes[q.node].tier != tierEdge && q.v.meets(q.node, q.source)
}

// elsewhere reports whether operators have m pull the stream from another node than
// the one that it would be chosen for. A pin is outside of the order that keeps answers from making
// a ring: what is pinned elsewhere stands between for edges only.
func (q *question) elsewhere(m int32, carries bool) bool {
	for _, up := range q.v.rules.pinsOf(m, q.stream) {
		if up != q.source {
			return !carries || q.v.nodes[q.node].tier != tierEdge
		}
	}
	return false
}

// meets reports whether a link stays within an ISP.
func (v *View) meets(a, b int32) bool {
	return v.cells[v.nodes[a].cell].isps.meet(&v.cells[v.nodes[b].cell].isps) != ispOther
}

func (q *question) room(m int32) bool {
	n := &q.v.nodes[m]
	return n.load+float64(q.at.Bitrate) <= q.v.cfg.MaxUse*n.capacity
}

// first is what the link from m costs the node that asks.
func (q *question) first(m int32) Breakdown {
	n := &q.v.nodes[m]
	b := q.v.parts(m, q.node)
	b.Load = q.v.cfg.Costs.loadCost((n.load + float64(q.at.Bitrate)) / n.capacity)
	return b
}

// owner returns who brings the stream into the datacenter of m, where that is neither m nor
// the node that asks: m pulls it from there. It is none where m brings it in.
func (q *question) owner(m int32) int32 {
	members := q.v.rings[m]
	if len(members) < 2 {
		return none
	}
	at := -1
	for i, r := range q.rings {
		if r == &members[0] {
			at = i
		}
	}
	if at < 0 {
		at = q.ringAt % ringsKept
		q.ringAt++
		id, _ := ring.Owners(q.stream, members)
		o, ok := q.v.ids[id]
		if !ok {
			o = none
		}
		q.rings[at], q.owners[at] = &members[0], o
	}
	if o := q.owners[at]; o != m && o != q.node && o != q.source {
		return o
	}
	return none
}

// behind is what it costs m to begin to pull from the source, over the owner in its
// datacenter if that is another.
func (q *question) behind(m int32) float64 {
	o := q.owner(m)
	if o == none {
		return q.fromSource(m)
	}
	b := q.v.parts(o, m)
	if up, carries := q.at.Carriers[q.v.nodes[o].ID]; carries {
		paid, _ := q.chain(o, up)
		return b.quality() + paid
	}
	return b.quality() + q.fromSource(o)
}

// circles reports whether m, which does not carry the stream, might get it over the node
// that asks, by way of the owner in its datacenter.
func (q *question) circles(m int32) bool {
	o := q.owner(m)
	if o == none {
		return false
	}
	if up, carries := q.at.Carriers[q.v.nodes[o].ID]; carries {
		_, ok := q.chain(o, up)
		return !ok
	}
	// One with an ISP of the source goes straight, and edges stand between nobody.
	return q.v.nodes[q.node].tier != tierEdge && !q.v.meets(o, q.source)
}

// fromSource is what it costs m to begin to pull straight from the source.
func (q *question) fromSource(m int32) float64 {
	s := &q.v.nodes[q.source]
	b := q.v.parts(q.source, m)
	if s.capacity > 0 {
		b.Load = q.v.cfg.Costs.loadCost((s.load + float64(q.at.Bitrate)) / s.capacity)
	}
	return Cost(b)
}

// chain follows the stream from m, which pulls it from up, to the source, and returns what
// the links cost for their quality: money and load are paid already. It reports
// false if the way leads over the node that asks, or does not end.
func (q *question) chain(m int32, up string) (float64, bool) {
	v := q.v
	sum := 0.0
	for range maxHops - 1 {
		if up == "" {
			// Nobody said where m pulls from: surely not from one that has nothing.
			if _, carries := q.at.Carriers[v.nodes[q.node].ID]; carries {
				return sum, false
			}
			up = q.at.Source
		}
		next, ok := v.ids[up]
		if !ok || next == q.node {
			return sum, false
		}
		b := v.parts(next, m)
		sum += b.quality()
		if next == q.source {
			return sum, true
		}
		m, up = next, q.at.Carriers[up]
	}
	return sum, false
}

// streamHash tells streams apart when they are spread over nodes between.
func (q *question) streamHash() uint64 { return xxhash.Sum64String(string(q.stream)) }
