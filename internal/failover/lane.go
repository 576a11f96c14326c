package failover

import "millrace/internal/flv"

// lane is the state of one track.
type lane struct {
	header description
	last   int64 // time given out last
	any    bool  // last is valid
	offset int64 // added to the connection's clock

	// Of the newest joint.
	cursor  cursor
	settled bool  // past what was forwarded before: everything goes
	needKey bool  // nothing before a keyframe can be decoded
	raw     int64 // time of the newest unit on the connection's clock
	began   bool  // raw is valid
	mark    int64 // raw time since when units were dropped in a row, not as duplicates
	marked  bool
}

// description is a header or metadata: what was sent last, and what is to be sent
// before the next frame.
type description struct {
	sent    uint64
	any     bool
	pending flv.Tag
	sum     uint64
	waiting bool
}

// pass reports whether t, of a track that is not past the window yet, is new.
func (s *Splicer) pass(l *lane, t flv.Tag, sum uint64) bool {
	track := trackOf(t.Kind)
	r := &s.w.tracks[track]
	dts := t.DTS + l.offset
	reached := l.cursor.next >= l.cursor.end && l.cursor.matched
	o, _, _ := l.cursor.step(r, sum, dts)
	switch {
	case o == duplicate:
		l.marked = false
		s.report.Duplicates++
		if track == s.w.main() {
			s.report.Kind = Overlap // also if it began before the window
		}
		return false
	case t.Is(flv.Frame):
	case track == script && !s.passing && dts < s.w.newest, track != script && !reached:
		s.report.Late++ // the window says nothing about its place
		return false
	}
	if !l.marked || o == late && dts < r.time(r.oldest()) {
		l.mark, l.marked = t.DTS, true
	}
	dropped := t.DTS - l.mark
	switch {
	case o == late && (s.same || dropped <= maxLate):
		s.report.Late++
		return false
	case !reached && l.needKey && s.keyed && !t.Is(flv.Keyframe) && dropped <= keyWait:
		return false
	}
	if !reached && t.Is(flv.Frame) && s.report.Missing >= 0 {
		s.report.Missing += r.missing(dts)
	}
	l.settled = true
	return true
}

// stamp maps the time of a unit. The result is never before the last one of its
// track. A jump of the connection's clock is closed up, for both tracks together.
func (s *Splicer) stamp(l *lane, t flv.Tag) int64 {
	dts := t.DTS + l.offset
	fits := func(dts int64) bool { return !l.any || !jumped(dts-l.last) }
	switch {
	case !t.Is(flv.Frame):
		if dts = min(dts, s.w.newest); l.any {
			dts = max(dts, l.last)
		}
		l.last, l.any = dts, true
		return dts
	case fits(dts) || !l.settled:
	case l.offset != s.offset && fits(t.DTS+s.offset):
		l.offset = s.offset
		dts = t.DTS + l.offset
	default:
		s.setOffset(s.w.newest + step - t.DTS)
		l.offset = s.offset
		dts = t.DTS + l.offset
	}
	if l.any {
		dts = max(dts, l.last)
	}
	l.last, l.any = dts, true
	return dts
}

// step is how far the clock goes on over a joint of which nothing is known: a frame.
const step = 33

func jumped(step int64) bool { return step < -maxStepBack || step > maxStepAhead }

// describe sends a header or metadata if it is another than the last, at once or
// before the next frame that is forwarded.
func (s *Splicer) describe(d *description, t flv.Tag, send bool, dts int64, out []flv.Tag) []flv.Tag {
	sum := digest(t)
	d.waiting = !d.any || d.sent != sum
	d.pending, d.sum = t, sum
	if d.waiting && send {
		return s.send(d, dts, out)
	}
	return out
}

func (s *Splicer) send(d *description, dts int64, out []flv.Tag) []flv.Tag {
	t := d.pending
	t.DTS = dts
	d.sent, d.any, d.waiting, d.pending = d.sum, true, false, flv.Tag{}
	return append(out, t)
}
