package fleet

import (
	"time"

	"millrace/internal/stream"
)

// Kinds of events of routers themselves; nodes have kinds of their own.
const (
	KindNodeUp      = "node_up"
	KindNodeDown    = "node_down"
	KindNodeGone    = "node_forgotten"
	KindNodeRestart = "node_restarted"
	KindRefused     = "heartbeat_refused" // reason: a word of control.Refusal
	KindRouterUp    = "router_up"
	KindRouterDown  = "router_down"
	KindLeader      = "leader" // a router plans from now on
	KindPlan        = "plan"   // a new version
	KindEdit        = "edit"   // of a document, by an operator
	KindStoreDown   = "store_down"
	KindStoreUp     = "store_up"
	KindBundle      = "snapshot"         // a new one for schedulers
	KindLeftOut     = "node_left_out"    // of the snapshot for schedulers: it cannot be offered
	KindUnreadable  = "document_refused" // what is in the store cannot be used
)

// Event is something that happened, on a node or a router.
type Event struct {
	// Number rises, and is of the time at which this router learned of it, so that a number
	// of one router serves as After at another: what comes twice has the same ID.
	Number  uint64         `json:"number"`
	ID      string         `json:"id"`
	At      time.Time      `json:"at"`
	Node    string         `json:"node,omitempty"`   // where; empty: a router
	Router  string         `json:"router,omitempty"` // that learned of it first
	Kind    string         `json:"kind"`
	Stream  stream.Name    `json:"stream,omitempty"`
	From    string         `json:"from,omitempty"`
	To      string         `json:"to,omitempty"`
	Reason  string         `json:"reason,omitempty"`
	Detail  string         `json:"detail,omitempty"`
	Figures map[string]any `json:"figures,omitempty"`
}

// EventFilter chooses events. An empty field takes all.
type EventFilter struct {
	Kind   string
	Node   string // that it happened on, or that it is from or to
	Stream stream.Name
	Reason string
}

// Events are some of the events.
type Events struct {
	Events []Event  `json:"events"` // the newest first
	Next   uint64   `json:"next"`   // to be given as after to get what comes
	Total  int      `json:"total"`  // that are remembered
	Kinds  []string `json:"kinds"`  // of all that are remembered
}
