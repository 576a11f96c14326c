package fleet

import (
	"errors"
	"fmt"
	"time"

	"millrace/internal/auth"
	"millrace/internal/control"
	"millrace/internal/plan"
)

// Config says how a router minds its nodes.
type Config struct {
	Router  string // its id
	Program string // its version
	// URL is where operators reach its console, for the others to show; may be empty.
	URL  string
	Plan plan.Config
	// Every is how often the plan is made anew. Short reacts fast; a plan of 5,000 nodes
	// takes 0.2 s of a core.
	Every time.Duration
	// Alive is how long a node counts as alive after its last heartbeat. Short moves others
	// away from it sooner; too short does so for a lost packet.
	Alive time.Duration
	// Grace takes the place of Alive for nodes that last talked to a router that has gone:
	// they need time to find another one.
	Grace time.Duration
	// Forget is how long a node is remembered that is silent. Until then it is shown as
	// down, and schedulers that see it themselves go on using it.
	Forget time.Duration
	// Lease is how long the router that plans may be silent before another one does.
	Lease time.Duration
	// Interval is when the next heartbeat of a node is wanted.
	Interval time.Duration
	// Paths has nodes ask where to pull each stream from. Without it all go by their pools.
	Paths bool
	// Capacity is that of a node that says none, in bytes/s.
	Capacity int64
	// MaxNodes and MaxStreams bound what is remembered: a node takes about 2 KB, a stream on
	// a node 200 bytes.
	MaxNodes   int
	MaxStreams int
	// MMDB are files with places of addresses, the same on all routers.
	MMDB []*control.Blob
}

// DefaultConfig returns the settings of a router without an id.
func DefaultConfig() Config {
	return Config{
		Plan: plan.DefaultConfig(), Every: time.Second, Alive: 3 * time.Second, Grace: 10 * time.Second, Forget: 10 * time.Minute,
		Lease: 1500 * time.Millisecond, Interval: time.Second, Paths: true, Capacity: 125_000_000, MaxNodes: 20_000, MaxStreams: 1_000_000,
	}
}

// Validate checks every value. Its errors name the key and the accepted range.
func (c *Config) Validate() error {
	var errs []error
	if !auth.ValidNodeID(c.Router) {
		errs = append(errs, fmt.Errorf("id %.80q: want letters, digits, dots, underscores and hyphens, at most %d", c.Router, auth.MaxNodeID))
	}
	span := func(key string, v, lo, hi time.Duration) {
		if v < lo || v > hi {
			errs = append(errs, fmt.Errorf("%s %v must be between %v and %v", key, v, lo, hi))
		}
	}
	span("every", c.Every, 100*time.Millisecond, time.Minute)
	span("alive", c.Alive, time.Second, time.Minute)
	span("grace", c.Grace, c.Alive, 10*time.Minute)
	span("forget", c.Forget, c.Grace, 7*24*time.Hour)
	span("lease", c.Lease, time.Second, time.Minute)
	span("interval", c.Interval, 100*time.Millisecond, time.Minute)
	if c.Interval*2 > c.Alive {
		errs = append(errs, fmt.Errorf("alive %v must be twice the interval %v at least: one heartbeat may be late", c.Alive, c.Interval))
	}
	count := func(key string, v, lo, hi int64) {
		if v < lo || v > hi {
			errs = append(errs, fmt.Errorf("%s %d must be between %d and %d", key, v, lo, hi))
		}
	}
	count("capacity", c.Capacity, 1, 1<<50)
	count("max_nodes", int64(c.MaxNodes), 1, 100_000)
	count("max_streams", int64(c.MaxStreams), 1, 10_000_000)
	count("mmdb", int64(len(c.MMDB)), 0, control.MaxMMDB)
	errs = append(errs, c.Plan.Validate())
	return errors.Join(errs...)
}
