package fleet

import (
	"time"

	"millrace/internal/plan"
)

// Plan is the plan in force and the edits that it was made with.
type Plan struct {
	Version uint64     `json:"version"`        // 0: there is none yet
	Origin  string     `json:"origin"`         // the store of the routers
	Leader  string     `json:"leader"`         // the router that plans; empty: none now
	At      time.Time  `json:"at,omitzero"`    // when it was made
	Frozen  bool       `json:"frozen"`         // by operators
	Stats   plan.Stats `json:"stats"`          //
	Pools   []PoolRow  `json:"pools"`          // by role, datacenter and id
	Centers []string   `json:"centers"`        // that take publishes
	Edits   Edits      `json:"edits"`          // of operators, as they are now
	Took    float64    `json:"took,omitempty"` // ms that the last plan took on this router; 0: it does not plan
}

// PoolRow is the pool of a node.
type PoolRow struct {
	Node       string        `json:"node"`
	Role       string        `json:"role"`
	Datacenter string        `json:"datacenter"`
	Region     string        `json:"region"`
	State      NodeState     `json:"state"`
	Demand     int64         `json:"demand"`     // bytes/s that it pulls
	Follows    bool          `json:"follows"`    // it has these orders
	Pool       []plan.Choice `json:"pool"`       // the best first
	Downstream int           `json:"downstream"` // nodes whose first choice it is
	Edited     bool          `json:"edited"`     // an edit names it
}

// Edits are the edits of operators, as the newest version of their document says.
type Edits struct {
	Version uint64     `json:"version"` // of the document; 0: nobody has edited yet
	At      time.Time  `json:"at,omitzero"`
	Author  string     `json:"author"`
	Comment string     `json:"comment"`
	Edits   plan.Edits `json:"edits"`
}

// Document is a version of a document of operators.
type Document struct {
	Key     string    `json:"key"`
	Version uint64    `json:"version"` // 0: nobody has written it yet
	At      time.Time `json:"at,omitzero"`
	Author  string    `json:"author"`
	Comment string    `json:"comment"`
	Body    string    `json:"body,omitempty"` // left out in a history
	Size    int       `json:"size"`           // of Body; 0 in a history
}
