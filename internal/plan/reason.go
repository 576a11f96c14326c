package plan

import "fmt"

// Reason says why a choice is as it is, or why a node is not chosen. Its word is the
// same in logs, metrics, the API and tests.
type Reason uint8

// Reasons of choices in pools and paths.
const (
	None         Reason = iota
	Cheapest            // of those with room
	Kept                // from the old plan: what is cheaper gains less than the threshold
	Pinned              // by an operator
	Spilled             // what is cheaper has no room
	OtherDomain         // what is cheaper fails together with the first
	OverCapacity        // nothing has room: this is the least bad

	Source     // the stream is published at this very node
	Direct     // from the source, which is near and of the same ISP
	DirectFar  // from the source: no node between is of use
	DirectISP  // from the source across ISPs: no node between is of use
	Between    // over a node between, for the distance
	Bridged    // over a node that has the ISPs of both
	Carrier    // over a node that carries the stream already
	Pool       // of the node's pool, because the way to the source is not known or not open
	NoUpstream // there is nothing to pull from

	// Reasons why something is not chosen.
	Unknown    // no node has this id
	Self       // a node pulls nothing from itself
	WrongRole  // its tier is not above
	Dead       // it is not alive
	Draining   // it takes no new work
	Banned     // by an operator
	NoCapacity // its capacity is 0
	Full       // it has no room
	Blind      // it has no upstream itself
	OtherISP   // it has not the ISPs that it should join
	Loop       // the stream comes to it over the node that asks, or might
	Dearer     // others cost less

	reasons // how many there are
)

var reasonWords = [reasons]string{
	None: "none", Cheapest: "cheapest", Kept: "kept", Pinned: "pinned", Spilled: "spilled",
	OtherDomain: "other_domain", OverCapacity: "over_capacity",

	Source: "source", Direct: "direct", DirectFar: "direct_far", DirectISP: "direct_isp", Between: "between",
	Bridged: "bridged", Carrier: "carrier", Pool: "pool", NoUpstream: "no_upstream",

	Unknown: "unknown", Self: "self", WrongRole: "wrong_role", Dead: "dead", Draining: "draining",
	Banned: "banned", NoCapacity: "no_capacity", Full: "full", Blind: "blind", OtherISP: "other_isp", Loop: "loop", Dearer: "dearer",
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

// UnmarshalText reads the word of a reason: plans are kept on disk.
func (r *Reason) UnmarshalText(b []byte) error {
	for i, w := range reasonWords {
		if w == string(b) {
			*r = Reason(i)
			return nil
		}
	}
	return fmt.Errorf("there is no reason %.40q", b)
}

// Reasons returns every reason, for documentation and metrics.
func Reasons() []Reason {
	out := make([]Reason, reasons)
	for i := range out {
		out[i] = Reason(i)
	}
	return out
}
