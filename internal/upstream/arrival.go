package upstream

import (
	"time"

	"millrace/internal/stream"
)

// Arrival is how a stream comes to this node.
type Arrival struct {
	From   string        // the node that it is pulled from, or that pushes it here; empty for an encoder
	Delay  time.Duration // of that hop, as far as it is measured: that of a push is not
	Pushed bool          // From pushes it here
	Away   bool          // a publish of this node that is pushed to a center, where others find it
}

// Source reports whether others find the stream here.
func (a Arrival) Source() bool { return a.Pushed && !a.Away }

// Arrivals returns how the streams come here that are pulled, looked for or pushed, here or
// on. What is not among them is published here by an encoder.
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
		in.mu.Lock()
		a := Arrival{From: in.by, Pushed: in.by != "", Away: in.away.Load()}
		in.mu.Unlock()
		if a.Pushed || a.Away {
			out[n] = a
		}
	}
	return out
}

// EventsAfter returns the events that are remembered with a number above n, the oldest
// first, at most limit of them.
func (o *Origin) EventsAfter(n uint64, limit int) []Event { return o.journal.after(n, limit) }
