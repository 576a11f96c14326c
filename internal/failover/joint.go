package failover

import (
	"slices"
	"time"

	"millrace/internal/flv"
)

// hold keeps t until it is clear where the connection stands.
func (s *Splicer) hold(now time.Time, t flv.Tag) {
	s.held = append(s.held, t)
	s.bytes += len(t.Wire)
	if !unit(t) {
		return
	}
	s.marks = append(s.marks, markOf(t))
	if !t.Is(flv.Frame) {
		return
	}
	if s.since.IsZero() {
		s.since = now
	}
	if s.paceAt.IsZero() {
		s.paceAt, s.paceDTS = now, t.DTS
	}
}

func markOf(t flv.Tag) mark {
	return mark{sum: digest(t), dts: t.DTS, track: trackOf(t.Kind), frame: t.Is(flv.Frame)}
}

// full reports whether no more can be held.
func (s *Splicer) full() bool {
	n := len(s.marks)
	return s.bytes > heldBytes || n > 0 && s.marks[n-1].dts-s.marks[0].dts > heldMedia
}

// over reports whether waiting longer makes no sense.
func (s *Splicer) over(now time.Time) bool {
	if s.paceAt.IsZero() { // no frame yet
		return s.full()
	}
	waited := now.Sub(s.since)
	if passed := now.Sub(s.paceAt); passed >= quiet/2 {
		newest := s.marks[len(s.marks)-1].dts
		s.burst = ms(newest-s.paceDTS) > 2*passed
		s.paceAt, s.paceDTS = now, newest
	}
	return waited >= patience || waited >= quiet && !s.burst || s.full()
}

// decide looks for the overlap and, once it is found or not waited for any more,
// appends what is to be forwarded of what was held.
func (s *Splicer) decide(now time.Time, out []flv.Tag) []flv.Tag {
	n := len(s.marks)
	if n == 0 {
		return out
	}
	s.check = n + 1 + n/4
	if s.w.empty() { // another publish: there is nothing to overlap with
		if s.lanes[video].any && !slices.ContainsFunc(s.held, func(t flv.Tag) bool { return t.Is(flv.Keyframe) }) && !s.over(now) {
			return out
		}
		return s.release(now, s.keyframe(clock{offset: s.offset, known: s.same}), out)
	}
	if s.align == nil {
		s.align = newAligner(s.w)
	}
	over := s.over(now)
	known := clock{offset: s.offset, known: s.w.joined, same: s.same}
	e, ok := evidence{}, false
	if s.hint != nil {
		if e = s.align.try(s.marks, *s.hint); e.compared && !e.contradicted() {
			ok = true
		}
	}
	if !ok {
		e, ok = s.align.align(s.marks, known, over)
	}
	switch {
	case ok:
		s.overlap(e)
		return s.release(now, 0, out)
	case !over || s.old(known, now):
		return out
	case known.same && known.known:
		// What it sends may be what a joint before has left out. On the same clock that is
		// late, and no picture of it is a new one.
		s.overlap(evidence{offset: known.wrapped(s.marks[0].dts, s.w.newest)})
		return s.release(now, 0, out)
	}
	return s.release(now, s.keyframe(known), out)
}

// old reports whether by its clock, if that is believed, all that the connection has
// sent is older than the window, so that the overlap is yet to come.
func (s *Splicer) old(known clock, now time.Time) bool {
	if s.full() || now.Sub(s.since) >= oldPatience {
		return false
	}
	r := &s.w.tracks[s.w.main()]
	offset, ok := s.believed(known)
	if !ok || r.total == 0 {
		return false
	}
	for _, m := range s.marks {
		if m.dts+offset >= r.time(r.oldest()) {
			return false
		}
	}
	return true
}

// overlap sets the joint up for an offset at which both agree, or at which the new
// connection is known to begin behind what was forwarded.
func (s *Splicer) overlap(e evidence) {
	s.report = Report{Kind: Overlap, Offset: e.offset, Run: e.agreed()}
	s.setOffset(e.offset)
	if e.matched[s.w.main()] == 0 {
		s.report.Kind = Keyframe
	}
	for t := range s.lanes {
		l := &s.lanes[t]
		l.offset = e.offset
		l.cursor = s.w.tracks[t].cursor()
		l.needKey = t == video && e.matched[t] == 0
	}
}

// keyframe sets the joint up without an overlap, and returns with which of the held
// tags it begins: a keyframe if there is one.
func (s *Splicer) keyframe(known clock) (from int) {
	offset, believed := s.believed(known)
	first, newest := -1, -1 // keyframes: the first one worth having, and the newest
	for i, t := range s.held {
		if !t.Is(flv.Keyframe) {
			continue
		}
		newest = i
		if first < 0 && (!believed || s.w.empty() || t.DTS+offset > s.lanes[video].last) {
			first = i
		}
	}
	switch {
	case first >= 0:
		from = first
	case newest >= 0:
		from, believed = newest, false
	default:
		believed = false
	}

	// The clock goes on a frame behind the newest of each track, and the tracks stay
	// together: the largest offset that one of them needs is for both.
	need, any := int64(0), false
	var begun [tracks]bool
	for _, t := range s.held[from:] {
		l := &s.lanes[trackOf(t.Kind)]
		if !t.Is(flv.Frame) || begun[trackOf(t.Kind)] {
			continue
		}
		begun[trackOf(t.Kind)] = true
		at := s.w.newest
		if l.any {
			at = l.last
		}
		if o := at + step - t.DTS; !any || o > need {
			need, any = o, true
		}
	}
	switch {
	case !any:
		offset = s.offset
	case !believed || offset < need-step || offset > need+nearby:
		offset = need
	}
	s.report = Report{Kind: Keyframe, Offset: offset, Missing: -1}
	s.setOffset(offset)
	for t := range s.lanes {
		l := &s.lanes[t]
		l.offset = offset
		l.cursor = cursor{}
		l.needKey = t == video
	}
	return from
}

// believed returns the offset of the connection before, if by it the new one is near.
func (s *Splicer) believed(known clock) (offset int64, ok bool) {
	if !known.known {
		return 0, false
	}
	offset = known.wrapped(s.marks[0].dts, s.w.newest)
	newest := s.marks[0].dts
	for _, m := range s.marks {
		newest = max(newest, m.dts)
	}
	lead := newest + offset - s.w.newest
	return offset, max(lead, -lead) <= nearby
}

// release forwards what was held, of the tags before from only what describes.
func (s *Splicer) release(now time.Time, from int, out []flv.Tag) []flv.Tag {
	held := s.held
	s.held, s.marks, s.align, s.decided = nil, nil, nil, true
	for i, t := range held {
		if i >= from || !unit(t) {
			out = s.Take(now, t, out)
		}
	}
	return out
}
