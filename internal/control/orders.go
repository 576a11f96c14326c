package control

import "millrace/internal/stream"

// Orders is what a node follows: whom it pulls from, with whom it shares streams, where
// it pushes publishes to.
type Orders struct {
	Origin  string   `json:"origin"`  // of the plan: the store of the routers
	Version uint64   `json:"version"` // of the plan that these were made from
	Node    string   `json:"node"`
	Pool    []Target `json:"pool"`    // the best first
	Peers   []Target `json:"peers"`   // of its datacenter and role, itself left out
	Centers []Target `json:"centers"` // that take publishes
	// Weight is that of this node among its peers, 0 while it drains. All of a datacenter
	// must count with the same weights, or streams enter it twice.
	Weight float64 `json:"weight"`
	// Capacity is that of this node, in bytes/s; 0: not known.
	Capacity int64 `json:"capacity,omitempty"`
	// Measure are nodes that it might pull from, and those that it does.
	Measure []Target `json:"measure"`
	// Paths tells to ask the router where to pull each stream from.
	Paths bool `json:"paths,omitempty"`
}

// Target is a node as another one reaches it.
type Target struct {
	Node     string  `json:"node"`
	URL      string  `json:"url,omitempty"`      // to pull from
	Push     string  `json:"push,omitempty"`     // to push publishes to
	Probe    string  `json:"probe,omitempty"`    // that answers UDP probes
	Weight   float64 `json:"weight,omitempty"`   // of a peer; 0 while it drains
	Capacity int64   `json:"capacity,omitempty"` // bytes/s, of a peer
}

// Route is the answer to where a node should pull a stream from.
type Route struct {
	Version uint64      `json:"version"` // of the plan
	Stream  stream.Name `json:"stream"`
	Source  string      `json:"source,omitempty"` // the node that it is published at; empty: nobody knows
	Reason  string      `json:"reason"`           // a word of plan.Reason
	Choices []Target    `json:"choices"`          // the best first
}
