package plan

import (
	"millrace/internal/sched"
	"millrace/internal/stream"
)

// Node is a node as planning sees it.
type Node struct {
	ID         string   `json:"id"`
	Role       string   `json:"role"` // center, relay or edge
	Datacenter string   `json:"datacenter,omitempty"`
	Region     string   `json:"region"`
	ISPs       []string `json:"isps,omitempty"`   // "*": good from all of them (BGP, multi-homed)
	Domain     string   `json:"domain,omitempty"` // what fails together; empty: its datacenter
	Capacity   int64    `json:"capacity"`         // bytes/s that it can send
	Load       int64    `json:"load"`             // bytes/s that it sends now
	Price      float64  `json:"price,omitempty"`  // money per GB that it sends to another region or ISP
	Draining   bool     `json:"draining,omitempty"`
	Alive      bool     `json:"alive"`
	Weight     float64  `json:"weight,omitempty"` // its cost as an upstream is divided by it; 0: 1
}

// Roles of nodes, as in their configuration.
const (
	Center = "center"
	Relay  = "relay"
	Edge   = "edge"
)

// anyISP is the ISP of nodes that are good from all.
const anyISP = "*"

// Network is all that a plan is made from. Nothing of it is changed by this package.
type Network struct {
	Nodes   []Node
	Scores  *Scores // nil: nothing was measured
	Streams Streams // nil: nothing is carried
	// Demand is what a node pulls, in bytes/s, by id; Config.Demand where it is missing.
	Demand  map[string]int64
	Edits   Edits
	Regions []sched.Region // how far regions are apart
}

// Streams tells who carries what. Find is called from any goroutine.
type Streams interface {
	// Find returns a stream; what it points to is not changed afterwards.
	Find(stream.Name) (*Stream, bool)
}

// Stream is where one stream is.
type Stream struct {
	Source  string // the node that its publisher is at, by the newest epoch; empty: nobody knows
	Epoch   uint64
	Bitrate int64 // bytes/s
	// Carriers are the nodes that have it, and where each pulls it from; empty where it is
	// not known. That of the source is the node that pushes it there; empty for an encoder.
	Carriers map[string]string
}

// StreamMap are streams by name.
type StreamMap map[stream.Name]*Stream

// Find implements Streams.
func (m StreamMap) Find(n stream.Name) (*Stream, bool) {
	s, ok := m[n]
	return s, ok
}
