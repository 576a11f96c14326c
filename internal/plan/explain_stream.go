package plan

import (
	"cmp"
	"slices"

	"millrace/internal/stream"
)

// StreamExplanation is the tree of a stream.
type StreamExplanation struct {
	Stream  stream.Name `json:"stream"`
	Known   bool        `json:"known"`
	Source  string      `json:"source,omitempty"`
	Epoch   uint64      `json:"epoch,omitempty"`
	Bitrate int64       `json:"bitrate,omitempty"`
	Nodes   []TreeNode  `json:"nodes"`   // who carries it, by hops and id
	Copies  int         `json:"copies"`  // links that carry it
	Crosses int         `json:"crosses"` // of them, those between regions or ISPs
	Deepest int         `json:"deepest"` // the most hops
}

// TreeNode is a node in the tree of a stream.
type TreeNode struct {
	Node     string  `json:"node"`
	Upstream string  `json:"upstream,omitempty"` // empty: it is not known
	Hops     int     `json:"hops"`               // from where its encoder is; -1: it does not hang on that
	Cost     float64 `json:"cost"`               // ms of the link, for its quality
	Delay    float64 `json:"delay"`              // ms of all links from there
	Crosses  bool    `json:"crosses"`
}

// ExplainStream tells where a stream comes from and how it spreads.
func (v *View) ExplainStream(s stream.Name) StreamExplanation {
	e := StreamExplanation{Stream: s, Nodes: []TreeNode{}}
	if v.net.Streams == nil {
		return e
	}
	at, ok := v.net.Streams.Find(s)
	if !ok {
		return e
	}
	e.Known, e.Source, e.Epoch, e.Bitrate = true, at.Source, at.Epoch, at.Bitrate
	top := at.top()
	for id, up := range at.Carriers {
		n := TreeNode{Node: id, Upstream: up}
		if n.Upstream != "" {
			e.Copies++
			if n.Cost, _, n.Crosses = v.hop(n.Upstream, id); n.Crosses {
				e.Crosses++
			}
		}
		n.Hops, n.Delay = v.depth(at, top, id)
		e.Deepest = max(e.Deepest, n.Hops)
		e.Nodes = append(e.Nodes, n)
	}
	slices.SortFunc(e.Nodes, func(a, b TreeNode) int {
		return cmp.Or(cmp.Compare(uint(a.Hops), uint(b.Hops)), cmp.Compare(a.Node, b.Node))
	})
	return e
}

// hop returns what a link costs for its quality, its delay, and whether it is paid for.
func (v *View) hop(from, to string) (cost, delay float64, crosses bool) {
	a, okA := v.ids[from]
	b, okB := v.ids[to]
	if !okA || !okB {
		return 0, 0, false
	}
	parts := v.parts(a, b)
	return parts.quality(), parts.Delay, v.crosses(a, b)
}

// Ingest is the node where the encoder of a stream is, if that pushes it to the source;
// else, and when that is not known, it is empty.
func (s *Stream) Ingest() string {
	if top := s.top(); top != s.Source {
		return top
	}
	return ""
}

// top follows the pushes from the source up to the node where the encoder is, as far as
// they are known.
func (s *Stream) top() string {
	at := s.Source
	for range maxHops {
		up := s.Carriers[at]
		if _, carries := s.Carriers[up]; !carries || up == s.Source {
			break
		}
		at = up
	}
	return at
}

// depth follows a stream from a node to the top.
func (v *View) depth(at *Stream, top, id string) (hops int, delay float64) {
	for ; hops <= 2*maxHops; hops++ { // a push may have as many as the pulls below it
		if id == top {
			return hops, delay
		}
		up := at.Carriers[id]
		if up == "" {
			break
		}
		_, d, _ := v.hop(up, id)
		delay += d
		id = up
	}
	return -1, 0
}

// PathExplanation tells how the path of a stream to a node is found.
type PathExplanation struct {
	Answer PathAnswer `json:"answer"`
	Near   bool       `json:"near"` // the source is near
	Same   bool       `json:"same"` // and of the same ISP, or good from all
	Ways   []Way      `json:"ways"` // that were looked at, by cost
}

// Way is a way to the source, straight or over one node.
type Way struct {
	Over   string  `json:"over"`
	Kind   string  `json:"kind"` // straight, home_carrier, home, carrier or other
	Cost   float64 `json:"cost"`
	Reason Reason  `json:"reason"` // why it is closed, or how it is in the answer; dearer: others are better
}

var rankWords = [...]string{"home_carrier", "home", "carrier", "other", "straight"}

// ExplainPath tells how the path of a stream to a node is found.
func (v *View) ExplainPath(id string, s stream.Name) PathExplanation {
	e := PathExplanation{Ways: []Way{}}
	v.Path(id, s, &e.Answer)
	i, ok := v.ids[id]
	if !ok || e.Answer.Source == "" || e.Answer.Source == id {
		return e
	}
	q := question{v: v, node: i, stream: s, source: none}
	q.at, _ = v.net.Streams.Find(s)
	up, ok := v.ids[e.Answer.Source]
	if !ok || !v.nodes[up].Alive {
		return e
	}
	q.source = up
	q.gather()
	e.Near, e.Same = q.near()
	for at := range q.n {
		w := &q.ways[at]
		out := Way{Over: v.nodes[w.over].ID, Kind: rankWords[w.rank], Cost: w.cost, Reason: w.closed}
		if out.Reason == None {
			out.Reason = Dearer
		}
		for c := range e.Answer.Choices {
			if e.Answer.Choices[c].Upstream == out.Over {
				out.Reason = e.Answer.Choices[c].Reason
			}
		}
		e.Ways = append(e.Ways, out)
	}
	slices.SortStableFunc(e.Ways, func(a, b Way) int { return cmp.Compare(a.Cost, b.Cost) })
	return e
}
