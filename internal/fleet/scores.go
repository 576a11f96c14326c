package fleet

import (
	"maps"
	"sync"
	"time"

	"millrace/internal/control"
	"millrace/internal/plan"
)

// scores are the links that were measured, and the samples that wait to be taken in:
// planning holds the lock of the links for a while, and no heartbeat waits for that.
type scores struct {
	mu    sync.Mutex
	links *plan.Scores

	queued  sync.Mutex
	waiting []batch
	samples int               // in waiting
	fresh   []plan.Sample     // that the other routers have not been told of
	refused map[string]uint64 // by reason, taken among them
}

// batch is what one node measured; by is empty if another router has checked it.
type batch struct {
	by      string
	samples []plan.Sample
}

// maxQueued bounds the samples that wait: those of a second of as many links as there
// can be.
const maxQueued = plan.MaxLinks

func newScores(h plan.Halves) *scores {
	return &scores{links: plan.NewScores(h), refused: map[string]uint64{}}
}

// check sorts out what cannot be true of what a node measured, and keeps the rest of its
// samples. The Ack tells the node what was refused.
func (s *scores) check(now time.Time, by string, samples []plan.Sample, known func(id string) bool, ack *control.Ack) []plan.Sample {
	if len(samples) == 0 {
		return nil
	}
	good := samples[:0]
	for i := range samples {
		m := &samples[i]
		why := plan.Taken
		switch {
		case m.To != by:
			why = plan.NotYours
		default:
			if why = m.Check(now); why == plan.Taken && !known(m.From) {
				why = plan.UnknownNode
			}
		}
		if why == plan.Taken {
			good = append(good, *m)
			continue
		}
		if ack.Refused == nil {
			ack.Refused = map[string]int{}
		}
		ack.Refused[why.String()]++
		if len(ack.First) < 8 {
			ack.First = append(ack.First, m.From+" "+m.To+" "+why.String())
		}
	}
	return good
}

// queue lets samples wait for the next second.
func (s *scores) queue(by string, samples []plan.Sample, ack *control.Ack, tell bool) {
	if len(samples) == 0 && len(ack.Refused) == 0 {
		return
	}
	s.queued.Lock()
	defer s.queued.Unlock()
	for word, n := range ack.Refused {
		s.refused[word] += uint64(n)
	}
	if len(samples) == 0 {
		return
	}
	if s.samples+len(samples) > maxQueued {
		s.refused[plan.TableFull.String()] += uint64(len(samples))
		return
	}
	s.waiting = append(s.waiting, batch{by, samples})
	s.samples += len(samples)
	if tell && len(s.fresh)+len(samples) <= maxShared {
		s.fresh = append(s.fresh, samples...)
	}
}

// untold returns what the other routers have not been told of, and takes it for told.
func (s *scores) untold() []plan.Sample {
	s.queued.Lock()
	defer s.queued.Unlock()
	out := s.fresh
	s.fresh = nil
	return out
}

// take takes in what waits. known says whether a node exists.
func (s *scores) take(now time.Time, known func(id string) bool) {
	s.queued.Lock()
	waiting := s.waiting
	s.waiting, s.samples = nil, 0
	s.queued.Unlock()
	counts := map[string]uint64{}
	s.mu.Lock()
	for i := range waiting {
		r := s.links.Take(now, waiting[i].by, waiting[i].samples, known)
		for why, n := range r.Counts {
			if n > 0 {
				counts[plan.Refusal(why).String()] += uint64(n)
			}
		}
	}
	s.mu.Unlock()
	s.queued.Lock()
	defer s.queued.Unlock()
	for word, n := range counts {
		s.refused[word] += n
	}
}

// prune forgets links that nobody measures, and those of nodes that are not in a frame.
func (s *scores) prune(now time.Time, fr *frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links.Prune(now, func(id string) bool { return fr.node(id) != nil })
}

// stats returns how many links there are, and what became of samples.
func (s *scores) stats() (links int, samples map[string]uint64) {
	s.mu.Lock()
	links = s.links.Len()
	s.mu.Unlock()
	s.queued.Lock()
	defer s.queued.Unlock()
	return links, maps.Clone(s.refused)
}
