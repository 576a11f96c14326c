package upstream

import (
	"time"

	"millrace/internal/stream"
)

// Arrival is how a stream comes to this node.
type Arrival struct {
	From  string        // the node that it is pulled from; empty for a publish of this node
	Delay time.Duration // of that hop
	Away  bool          // a publish of this node that is pushed to a center, where others find it
}

// Arrivals returns how the streams come here that are pulled, looked for or pushed on.
// What is not among them is published here.
func (o *Origin) Arrivals() map[stream.Name]Arrival {
	out := make(map[stream.Name]Arrival)
	o.mu.Lock()
	for n, x := range o.sessions {
		a := Arrival{}
		if hops := x.path(); len(hops) > 0 {
			a.From, a.Delay = hops[0].Node, hops[0].Delay
		}
		out[n] = a
	}
	o.mu.Unlock()
	o.inletsMu.Lock()
	defer o.inletsMu.Unlock()
	for n, in := range o.inlets {
		if in.away.Load() {
			out[n] = Arrival{Away: true}
		}
	}
	return out
}

// EventsAfter returns the events that are remembered with a number above n, the oldest
// first, at most limit of them.
func (o *Origin) EventsAfter(n uint64, limit int) []Event { return o.journal.after(n, limit) }
