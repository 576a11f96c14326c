package plan

import (
	"cmp"
	"slices"
	"time"
)

// Bounds of Scores: 200,000 links are 60 MB.
const (
	MaxLinks     = 200_000
	maxUpstreams = 64 // that one node reports of
)

// Scores are the links that were measured. They are not safe for use from several
// goroutines: who takes samples and who plans agree on a lock.
type Scores struct {
	half  Halves
	links map[string][]entry // by the node that pulls
	count int
}

type entry struct {
	from string
	link *Link
}

// NewScores returns Scores without a link.
func NewScores(h Halves) *Scores { return &Scores{half: h, links: map[string][]entry{}} }

// Refused are samples that were not taken: how many, by reason, and the first ones.
type Refused struct {
	Taken  int
	Counts [refusals]int
	First  []RefusedSample // at most 8
}

// RefusedSample is one of them.
type RefusedSample struct {
	From, To string
	Why      Refusal
}

// Take takes what the node by sent at a time; known says whether a node exists. An
// empty by may speak of all links. Those that are refused disturb nothing.
func (s *Scores) Take(now time.Time, by string, samples []Sample, known func(id string) bool) Refused {
	var r Refused
	for i := range samples {
		why := s.take(now, by, &samples[i], known)
		r.Counts[why]++
		switch {
		case why == Taken:
			r.Taken++
		case len(r.First) < 8:
			r.First = append(r.First, RefusedSample{samples[i].From, samples[i].To, why})
		}
	}
	return r
}

func (s *Scores) take(now time.Time, by string, m *Sample, known func(id string) bool) Refusal {
	if by != "" && m.To != by {
		return NotYours
	}
	if why := m.Check(now); why != Taken {
		return why
	}
	if l := s.Link(m.From, m.To); l != nil {
		if m.At.UnixNano() < l.at {
			return TooOld
		}
		l.Update(m, &s.half)
		return Taken
	}
	if !known(m.From) || !known(m.To) {
		return UnknownNode
	}
	list := s.links[m.To]
	switch {
	case len(list) == maxUpstreams:
		// The link that nobody has spoken of for longest makes room.
		i := 0
		for j := range list {
			if list[j].link.at < list[i].link.at {
				i = j
			}
		}
		list = slices.Delete(list, i, i+1)
	case s.count == MaxLinks:
		return TableFull
	default:
		s.count++
	}
	at, _ := slices.BinarySearchFunc(list, m.From, entry.compare)
	l := &Link{}
	l.Update(m, &s.half)
	s.links[m.To] = slices.Insert(list, at, entry{m.From, l})
	return Taken
}

func (e entry) compare(from string) int { return cmp.Compare(e.from, from) }

// Link returns how a link measured, or nil.
func (s *Scores) Link(from, to string) *Link {
	list := s.links[to]
	if i, ok := slices.BinarySearchFunc(list, from, entry.compare); ok {
		return list[i].link
	}
	return nil
}

// Len returns how many links there are.
func (s *Scores) Len() int { return s.count }

// Prune forgets links whose nodes are not known, and those without a sample for so
// long that they count for nothing. It looks at all of them: call it once a minute.
func (s *Scores) Prune(now time.Time, known func(id string) bool) {
	// After ten times the memory the 60 samples count as a sixteenth of one.
	before := now.Add(-10 * s.half.Memory).UnixNano()
	s.count = 0
	for to, list := range s.links {
		list = slices.DeleteFunc(list, func(e entry) bool { return e.link.at < before || !known(e.from) })
		if len(list) == 0 || !known(to) {
			delete(s.links, to)
			continue
		}
		s.links[to] = list
		s.count += len(list)
	}
}
