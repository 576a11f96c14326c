package upstream

import (
	"slices"
	"time"

	"millrace/internal/httpflv"
	"millrace/internal/stream"
)

// note keeps an event and logs it, if it is not one of too many.
func (o *Origin) note(e Event) {
	e.At = time.Now()
	if !o.journal.add(e) {
		return
	}
	attrs := []any{"event", e.Kind.String()}
	for _, a := range [...][2]string{{"stream", string(e.Stream)}, {"from", e.From}, {"to", e.To}, {"reason", e.Reason}, {"detail", e.Detail}} {
		if a[1] != "" {
			attrs = append(attrs, a[0], a[1])
		}
	}
	for k, v := range e.Fig {
		attrs = append(attrs, k, v)
	}
	o.opt.Log.Info("upstream", attrs...)
}

// Events returns the newest events, the oldest first.
func (o *Origin) Events() []Event { return o.journal.events() }

// Stats is a copy of the figures of an Origin.
type Stats struct {
	Sessions int
	Feeds    int // connections to upstreams, candidates included
	Trunks   httpflv.TrunkStats
	Events   map[Count]uint64
}

// Stats returns the figures of now.
func (o *Origin) Stats() Stats {
	o.mu.Lock()
	all := make([]*Session, 0, len(o.sessions))
	for _, x := range o.sessions {
		all = append(all, x)
	}
	o.mu.Unlock()
	st := Stats{Sessions: len(all), Trunks: o.trunks.Stats(), Events: o.journal.totals()}
	for _, x := range all {
		st.Feeds += x.feeds()
	}
	return st
}

// Path returns how a stream comes here, the nearest hop first, and what is known of
// the connections to upstreams. ok is false for a stream that is not brought here.
func (o *Origin) Path(n stream.Name) (Path, bool) {
	o.mu.Lock()
	x := o.sessions[n]
	o.mu.Unlock()
	if x == nil {
		return Path{}, false
	}
	p := x.describe()
	for _, e := range slices.Backward(o.journal.events()) {
		if e.Stream == n && len(p.Events) < 20 {
			p.Events = append(p.Events, e)
		}
	}
	return p, true
}
