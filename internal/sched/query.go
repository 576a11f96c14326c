package sched

import (
	"net/netip"
	"time"

	"millrace/internal/geo"
	"millrace/internal/stream"
)

// Query is what is asked.
type Query struct {
	// Client is the player's address (/32 or /128), a prefix of it (ECS), or what
	// stands for it: its resolver's address. An invalid one is at an unknown place.
	Client netip.Prefix
	// Region and ISP are where the client is, if the caller knows; what is empty comes
	// from the geo table.
	Region, ISP string
	Access      Access
	Domain      string      // in any case, with or without a dot at the end
	Stream      stream.Name // empty: unknown
	Families    Families    // that the client can use; 0: both
	HTTPS       bool        // only edges with HTTPS
	Want        int         // how many candidates; 0: as the domain says; at most MaxWant
	Self        string      // the edge that asks, for SelfCost
}

// MaxWant is how many candidates an Answer can hold.
const MaxWant = 8

// Candidate is an edge that the client may use. Its figures are in ms; Cost is the
// sum of the others.
type Candidate struct {
	Node  *Node // of the Plan; not to be changed
	Index int32 // in Plan.Nodes
	// Addr4 and Addr6 are valid where the query asked for the family and the edge is
	// usable over it.
	Addr4, Addr6 netip.Addr
	Cost         float32
	Coverage     float32 // distance and ISP
	Quality      float32 // how players of this place are served, against what coverage promises
	Stream       float32 // negative if the edge carries the stream
	Load         float32
	Health       float32 // of an edge that is kept though it seems down, or is the least bad
	Weight       uint16  // 1…100, for clients that choose by chance
	Reason       Reason
}

// Answer is what was decided. It is for reuse: Decide overwrites all but the
// Candidates from N on.
type Answer struct {
	Candidates [MaxWant]Candidate // the first N are valid, the best first
	N          int
	// Near is how many of them cost no more than the margin above the best: what to tell
	// those who use several without an order, as resolvers do. All N of a degraded answer.
	Near     int
	Domain   *Domain // that serves the query, nil if none does; not to be changed
	Reason   Reason
	TTL      time.Duration
	Bits     int // of Client that the decision used: all clients that share them get this answer
	Place    geo.Place
	SelfCost float32 // of Query.Self, to compare with Candidates[0].Cost
	SelfOK   bool    // Query.Self is an edge that this query may be answered with
}
