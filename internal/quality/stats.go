package quality

import "time"

// Stats is what was reported since the program started.
type Stats struct {
	Reports [reasons]uint64 // by what came of them
	First   Mean
	Stalls  uint64
	Stalled time.Duration
	Played  time.Duration
}

// Reasons returns every reason, in order.
func Reasons() []Reason {
	out := make([]Reason, reasons)
	for i := range out {
		out[i] = Reason(i)
	}
	return out
}

// Stats returns the figures of now.
func (b *Book) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stats
}

func (s *Stats) count(r Reason) { s.Reports[r]++ }

func (s *Stats) report(r *Report) {
	s.count(Accepted)
	if r.FirstFrame > 0 {
		s.First.add(r.FirstFrame)
	}
	s.Stalls += uint64(r.Stalls)
	s.Stalled += r.Stalled
	s.Played += r.Played
}
