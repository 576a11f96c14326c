package control

import (
	"time"

	"millrace/internal/plan"
)

// Figures is what a node says of itself in every heartbeat.
type Figures struct {
	Load     int64  // bytes/s that it sends
	Pulled   int64  // bytes/s that it pulls
	Viewers  int    // of all protocols
	Refused  uint64 // connections, since it started
	Draining bool
	Full     bool
	Orders   string // the token of the orders in force
}

// Gather is where a Beat finds what it tells. All methods are called by one goroutine,
// about once a second, and must not block.
type Gather interface {
	Identity() Identity
	Figures(now time.Time) Figures
	// Streams returns all that the node has, in any order, at most MaxCarried of them.
	Streams() []Carried
	// Samples returns what was measured since the last call, at most max of them, the
	// newest if there are more. They are the Beat's then: it tells them until a router
	// has taken them.
	Samples(max int) []plan.Sample
	// Players returns how players fared since the last call, likewise.
	Players(max int) []Players
	// Rechecks returns the counts since the program started.
	Rechecks() []Rechecked
	// Events returns those with a number above after, the oldest first, at most max.
	Events(after uint64, max int) []Event
}
