// Package plan decides where nodes pull streams from.
//
// It computes on values: a [Network] (the nodes, how links between them measured, who
// carries which stream, what nodes need, what operators say) at a time. [Make] plans
// an ordered pool of upstreams for every node at once, under the capacity of all;
// [View.Path] answers where one node should pull one stream from. It opens nothing,
// reads no clock and draws no random number: the same input gives the same plan on
// every router. README.md has the formulas.
//
// # Inputs
//
// [Node] rows, [Scores] made of [Sample] rows, [Streams], the demand of each node in
// bytes/s, [Edits] of operators, the regions of the map; the plan before this one.
//
// # Decision
//
//  1. A link costs ms: delay, loss, stalls, first-frame time, failures, money, and a load
//     term that grows without bound towards the capacity of the upstream. What was not
//     measured, or long ago, is as the distance and the ISPs promise.
//  2. Pools: relays choose among centers, then edges among relays and centers. Firsts are
//     placed by regret under capacity and improved by moves and exchanges; the second
//     is of another failure domain where one exists.
//  3. Choices of the old plan stay unless another one gains more than a threshold.
//  4. Paths: straight from the source where that is near and of the same ISP, else with
//     one node between, which has the ISPs of both; one that carries the stream already
//     is preferred.
//
// # Invariants
//
// The order of rows in the input does not count. A pool leads to the tier above only,
// and a path to the source over at most one relay, so that neither can cycle. A node
// that is dead is in no pool. No upstream is planned beyond its share of capacity while
// another one could be used. Each choice and each refusal has a [Reason].
package plan

import "time"

// Plan is who pulls from whom. It is not changed after Make returned it.
type Plan struct {
	// Version is one more than that of the plan before if something differs that nodes
	// follow: pools, members or centers.
	Version uint64    `json:"version"`
	At      time.Time `json:"at"`
	Frozen  bool      `json:"frozen,omitempty"` // operators froze it
	// Pools has an entry for each relay and edge that is alive: its upstreams, the best
	// first. It is empty if there is none for it.
	Pools map[string][]Choice `json:"pools"`
	// Members has the nodes that share streams with a node: those of its role in its
	// datacenter, itself among them. Nodes of one datacenter share the slice.
	Members map[string][]Peer `json:"members"`
	Centers []string          `json:"centers"` // that are alive, by id
	Stats   Stats             `json:"stats"`
}

// Choice is one upstream of a pool.
type Choice struct {
	Upstream string    `json:"upstream"`
	Cost     float64   `json:"cost"` // ms, the total of Parts
	Parts    Breakdown `json:"parts"`
	Reason   Reason    `json:"reason"`
}

// Peer is a member of a datacenter.
type Peer struct {
	ID       string  `json:"id"`
	Weight   float64 `json:"weight"`   // 0 while it drains: it owns no streams
	Capacity int64   `json:"capacity"` // bytes/s
}

// Stats sums a plan up.
type Stats struct {
	Cost         float64 `json:"cost"`          // ms, of all first choices
	Backhaul     int64   `json:"backhaul"`      // bytes/s that first choices carry between regions or ISPs
	Placed       int     `json:"placed"`        // nodes with an upstream
	Unplaced     int     `json:"unplaced"`      // nodes without one
	OverCapacity int     `json:"over_capacity"` // nodes whose first choice has no room for them
	Moved        int     `json:"moved"`         // nodes whose first choice is not that of the old plan
}
