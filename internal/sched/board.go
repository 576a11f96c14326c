package sched

import (
	"slices"
	"time"

	"millrace/internal/stream"
)

// Observation is what an observer saw of a node over one address family.
type Observation struct {
	Observer string    `json:"observer"`
	Node     string    `json:"node"`
	Family   Families  `json:"family"` // V4 or V6
	At       time.Time `json:"at"`
	Up       bool      `json:"up"`
	RTT      Duration  `json:"rtt,omitempty"`
	Error    string    `json:"error,omitempty"`
	Draining bool      `json:"draining,omitempty"` // the node says so; it takes no new viewers
	Figures  *Figures  `json:"figures,omitempty"`  // nil: the node told none
}

// Figures are what a node tells of itself.
type Figures struct {
	Load    int64  `json:"load"` // bytes/s
	Viewers int    `json:"viewers"`
	Refused uint64 `json:"refused"` // connections, since it started
	// Streams are those that it carries; nil: it was not asked, and what was known before
	// stays.
	Streams []stream.Name `json:"streams,omitempty"`
}

// Board gathers the observations of one or more observers into a State. It belongs to
// one goroutine.
//
// Observers are believed optimistically: a node is up over a family while one of them
// has seen it up lately, so that an observer with a bad network of its own evicts
// nobody that another one reaches.
type Board struct {
	config HealthConfig
	nodes  []*record // by id
	byID   map[string]*record
}

// record is what is known of one node.
type record struct {
	id       string
	v4, v6   sightings
	drained  time.Time // of the newest observation that says whether it is draining
	draining bool
	told     time.Time // when the figures are of
	figures  Figures
	hashes   []uint64 // of the streams in figures
	attack   alarm
}

// NewBoard returns a Board that tracks no node. A zero c is DefaultHealth.
func NewBoard(c HealthConfig) *Board {
	if c == (HealthConfig{}) {
		c = DefaultHealth()
	}
	return &Board{config: c}
}

// Track makes the nodes of p, and only those, the nodes of the board, and takes over
// the settings of p. What is known of nodes that stay is kept.
func (b *Board) Track(p *Plan) {
	b.config = p.Health
	old := b.byID
	b.nodes, b.byID = make([]*record, len(p.Nodes)), make(map[string]*record, len(p.Nodes))
	for i := range p.Nodes {
		id := p.Nodes[i].ID
		r := old[id]
		if r == nil {
			r = &record{id: id}
		}
		b.nodes[i], b.byID[id] = r, r
	}
}

// Observe takes in o. It leaves out what is older than what it has from the same
// observer, and nodes that are not tracked. It keeps what o.Figures points to.
func (b *Board) Observe(o *Observation) {
	r := b.byID[o.Node]
	if r == nil {
		return
	}
	switch o.Family {
	case V4:
		r.v4.note(o, &b.config)
	case V6:
		r.v6.note(o, &b.config)
	}
	if o.Up || o.Draining { // else it was not there to say anything
		if !o.At.Before(r.drained) {
			r.drained, r.draining = o.At, o.Draining
		}
	}
	if o.Figures != nil && o.At.After(r.told) {
		r.tell(o.Figures, o.At, &b.config)
	}
}

// tell takes over newer figures.
func (r *record) tell(f *Figures, at time.Time, c *HealthConfig) {
	r.attack.note(at, f.Refused, c)
	streams := f.Streams[:min(len(f.Streams), MaxStreams)]
	switch {
	case f.Streams == nil:
		streams = r.figures.Streams
	case !slices.Equal(f.Streams, r.figures.Streams):
		r.hashes = streamHashes(f.Streams)
	}
	r.told, r.figures = at, *f
	r.figures.Streams = streams
}

// State returns what is known at now, by node id.
func (b *Board) State(now time.Time) *State {
	s := &State{At: now, Nodes: make([]NodeState, len(b.nodes))}
	for i, r := range b.nodes {
		s.Nodes[i] = NodeState{
			ID: r.id, Load: r.figures.Load, Viewers: r.figures.Viewers, Refused: r.attack.rate, Draining: r.draining,
			UnderAttack: r.attack.active(now, &b.config), Streams: r.figures.Streams, hashes: r.hashes,
			V4: r.v4.health(now, &b.config), V6: r.v6.health(now, &b.config),
		}
	}
	return s
}
