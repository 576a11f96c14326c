package sched

import "fmt"

// Reason says why an answer is as it is, or why a node is not in it. Its word is the
// same in logs, metrics, the API and tests.
type Reason uint8

// Reasons of an answer and of its candidates.
const (
	None          Reason = iota
	Placed               // by coverage, quality and load
	Pinned               // by an operator's override
	Spilled              // the nearest are too loaded
	Held                 // a candidate that seems down, but so many of its group do that it is kept
	Degraded             // nothing is eligible: these are the least bad
	NoEdges              // the domain has no edge that could serve this query at all
	UnknownDomain        // no domain of the snapshot has this name

	// Reasons why a node is left out.
	NotEdge       // its role is another
	Group         // it is in no group of the domain
	Family        // it has no address of a family that the client can use
	NoHTTPS       // it has no HTTPS port
	Banned        // by an operator's override
	Unhealthy     // all fresh observations say that it is down
	UnknownHealth // nobody has ever observed it
	StaleHealth   // nobody has observed it lately
	Draining      // it takes no new viewers
	UnderAttack   // as an operator or its figures say
	Full          // its load has reached its capacity

	reasons // how many there are
)

var reasonWords = [reasons]string{
	None: "none", Placed: "placed", Pinned: "pinned", Spilled: "spilled", Held: "held",
	Degraded: "degraded", NoEdges: "no_edges", UnknownDomain: "unknown_domain",

	NotEdge: "not_edge", Group: "group", Family: "family", NoHTTPS: "no_https", Banned: "banned",
	Unhealthy: "unhealthy", UnknownHealth: "unknown_health", StaleHealth: "stale_health",
	Draining: "draining", UnderAttack: "under_attack", Full: "full",
}

// String returns the word of r.
func (r Reason) String() string {
	if r >= reasons {
		return fmt.Sprintf("reason(%d)", uint8(r))
	}
	return reasonWords[r]
}

// MarshalText returns the word of r, for JSON.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Reasons returns every reason, for documentation and metrics.
func Reasons() []Reason {
	out := make([]Reason, reasons)
	for i := range out {
		out[i] = Reason(i)
	}
	return out
}
