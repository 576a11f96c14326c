package failover

// Action is what the session has to do.
type Action uint8

// The actions.
const (
	None    Action = iota
	Try            // dial the next candidate of the pool beside the current connection
	Switch         // make trial ID the current connection
	GiveUp         // end trial ID
	actions        // how many there are
)

// String returns the word used in logs, metrics and the API.
func (a Action) String() string {
	if a >= actions {
		return "unknown"
	}
	return [actions]string{"none", "try", "switch", "give_up"}[a]
}

// MarshalText returns the word of a, for JSON.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Reason says why an action is taken.
type Reason uint8

// The reasons. The first ones are of Try, and of the Switch that follows.
const (
	NoReason     Reason = iota
	NoUpstream          // there is no current connection
	UpstreamLost        // the current connection broke
	UpstreamSilent
	UpstreamSlow
	UpstreamThin // frames are missing
	UpstreamIdle // the source sends nothing, or too little
	UpstreamGrace
	Preferred  // the stream belongs elsewhere in the datacenter
	Planned    // the plan has it come from elsewhere
	NewerEpoch // the publisher has moved
	OlderEpoch // the candidate has what the publisher left behind
	NotBetter  // the candidate has nothing that the current connection lacks
	NoMedia    // nothing came from the candidate in time
	Recovered  // the current connection is well again
	Superseded // another candidate won
	reasons    // how many there are
)

// String returns the word used in logs, metrics and the API.
func (r Reason) String() string {
	if r >= reasons {
		return "unknown"
	}
	return [reasons]string{
		"none", "no_upstream", "upstream_lost", "upstream_silent", "upstream_slow", "upstream_thin", "upstream_idle",
		"upstream_grace", "preferred", "planned", "newer_epoch", "older_epoch", "not_better", "no_media", "recovered", "superseded",
	}[r]
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
