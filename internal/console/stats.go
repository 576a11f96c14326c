package console

import "sync/atomic"

// counts are figures that only rise.
type counts struct {
	answered, logins, edits atomic.Uint64
	refused                 [reasons]atomic.Uint64
	left                    [leavings]atomic.Uint64
}

// Stats is what the console has done, and is doing.
type Stats struct {
	Answered  uint64            `json:"answered"`
	Logins    uint64            `json:"logins"`
	Edits     uint64            `json:"edits"`
	Refused   map[string]uint64 `json:"refused"` // by reason
	Listeners int               `json:"listeners"`
	Left      map[string]uint64 `json:"left"` // listeners, by why
}

// Stats returns the figures.
func (c *Console) Stats() Stats {
	s := Stats{
		Answered: c.counts.answered.Load(), Logins: c.counts.logins.Load(), Edits: c.counts.edits.Load(),
		Refused: map[string]uint64{}, Listeners: c.live.count(), Left: map[string]uint64{},
	}
	for _, r := range Reasons() {
		s.Refused[r.String()] = c.counts.refused[r].Load()
	}
	for l := range leavings {
		s.Left[l.String()] = c.counts.left[l].Load()
	}
	return s
}
