package failover

import (
	"time"

	"millrace/internal/flv"
)

// Limits of a joint.
const (
	// patience is how long a joint waits for an overlap, or for more of it, since the
	// first tag; quiet how long if the burst at the start of the connection is over,
	// so that little more can come of the past.
	patience = 500 * time.Millisecond
	quiet    = 200 * time.Millisecond
	// oldPatience is how long if all that came seems to be older than the window.
	oldPatience = 3 * time.Second
	// heldBytes and heldMedia bound what is held in that time.
	heldBytes = 8 << 20
	heldMedia = 10_000 // ms
	// maxStepAhead and maxStepBack, in ms, bound what counts as the same clock, as they
	// do in package stream; maxLate is how much of a track may come late, in a row,
	// before the alignment is not believed any more.
	maxStepAhead = 10_000
	maxStepBack  = 1_000
	maxLate      = 10_000
	// keyWait is how much of a track may be dropped, in ms, while a keyframe is waited for.
	keyWait = 10_000
)

// Splicer makes one stream of the tags of one connection after another:
//
//	window          k p p p k p p p k p|
//	new connection          k p p p k p p p k p p ...
//	                        \-dropped-/ \-forwarded
//
// What a new connection sends is held until it is clear where it stands against
// what was forwarded. Then each track drops its units up to the last one forwarded,
// and goes on with the next: the tracks may be interleaved in another way.
//
// The zero value is not usable.
type Splicer struct {
	w      *Window
	lanes  [tracks]lane
	meta   description
	offset int64 // of the current connection; lanes may lag behind at a jump
	keyed  bool  // a keyframe was forwarded, ever
	report Report

	// Of the newest joint.
	begun   bool // there was one
	decided bool
	passing bool // a frame of this connection was forwarded
	same    bool
	hint    *int64 // the offset that a trial found
	held    []flv.Tag
	marks   []mark
	bytes   int
	check   int // look for the overlap again when so many are held
	align   *aligner
	since   time.Time // of the first frame held
	paceAt  time.Time // when the pace was looked at last
	paceDTS int64
	burst   bool // media comes faster than time goes
}

// NewSplicer returns a Splicer that has forwarded nothing.
func NewSplicer() *Splicer { return &Splicer{w: NewWindow()} }

// Window returns the window of what was forwarded. It is valid as long as s.
func (s *Splicer) Window() *Window { return s.w }

// Offset returns what is added to the times of the current connection, in ms.
func (s *Splicer) Offset() int64 { return s.offset }

// Join begins with a new connection, whose tags so far are the backlog, and appends
// to out what of it is to be forwarded now. sameClock says that this connection and
// the one before are known to have one clock.
func (s *Splicer) Join(now time.Time, backlog []flv.Tag, sameClock bool, out []flv.Tag) []flv.Tag {
	s.reset(sameClock)
	return s.replay(now, backlog, out)
}

// JoinTrial is Join with the backlog of a trial and with what it knows: where it
// stands, and since when it flows.
func (s *Splicer) JoinTrial(now time.Time, t *Trial, sameClock bool, out []flv.Tag) []flv.Tag {
	s.reset(sameClock)
	if offset := t.offset; t.aligned {
		s.hint = &offset
	}
	s.since = t.since
	return s.replay(now, t.tags, out)
}

// Renew tells that another publish begins. Nothing of the one before is forwarded any
// more. Whatever looks like a frame of it is none, so that the new one begins at its
// first keyframe, behind all that was forwarded; and its metadata and headers are
// forwarded also where they are the same as before, because who reads what is forwarded
// has let go of the old ones.
func (s *Splicer) Renew() {
	s.w.forget()
	begun := s.begun
	s.reset(begun)
	s.begun = begun
	s.meta = description{}
	for i := range s.lanes {
		s.lanes[i].header = description{}
	}
}

// Seed has s go on where another has ended: tags are what was forwarded, on the
// forwarded clock, with the headers that are valid at their end. s must be new.
func (s *Splicer) Seed(tags []flv.Tag) {
	for _, t := range tags {
		l := &s.lanes[trackOf(t.Kind)]
		switch {
		case t.Is(flv.Metadata):
			s.meta.sent, s.meta.any = digest(t), true
		case t.Is(flv.Header):
			l.header.sent, l.header.any = digest(t), true
		default:
			l.last, l.any = t.DTS, true
			s.keyed = s.keyed || t.Is(flv.Keyframe)
			s.w.Add(t)
		}
	}
	s.w.joined = true // the clock may be the same
}

func (s *Splicer) reset(sameClock bool) {
	first := !s.w.any
	s.begun, s.decided, s.passing, s.same = true, first, false, sameClock
	s.held, s.marks, s.bytes, s.check, s.align, s.hint = nil, nil, 0, 0, nil, nil
	s.since, s.paceAt, s.burst = time.Time{}, time.Time{}, true
	s.report = Report{Kind: First, Settled: first}
	s.meta.waiting = false
	for i := range s.lanes {
		l := &s.lanes[i]
		*l = lane{header: l.header, last: l.last, any: l.any, offset: l.offset, settled: first}
		l.header.waiting = false
		if first {
			l.offset = 0
		}
	}
	if first {
		s.setOffset(0)
	}
}

func (s *Splicer) setOffset(o int64) { s.offset, s.w.offset, s.w.joined = o, o, true }

// replay takes a backlog in: while it is undecided only the last tag looks for the
// overlap, since all are there already.
func (s *Splicer) replay(now time.Time, tags, out []flv.Tag) []flv.Tag {
	if s.decided {
		for _, t := range tags {
			out = s.forward(now, t, out)
		}
		return out
	}
	for _, t := range tags {
		s.hold(now, t)
	}
	return s.decide(now, out)
}

// Take appends to out what is to be forwarded because t came over the connection
// that joined last: nothing, t, or t and what was held before it. It keeps t. Its
// bytes are not touched; only DTS of the appended values is on the forwarded clock.
func (s *Splicer) Take(now time.Time, t flv.Tag, out []flv.Tag) []flv.Tag {
	switch {
	case s.decided:
		return s.forward(now, t, out)
	case !s.begun:
		return s.Join(now, []flv.Tag{t}, false, out)
	}
	s.hold(now, t)
	if len(s.marks) < s.check && !s.full() {
		return out
	}
	return s.decide(now, out)
}

// Poll releases what a joint holds once waiting longer makes no sense. Call it about
// every 100 ms.
func (s *Splicer) Poll(now time.Time, out []flv.Tag) []flv.Tag {
	if s.decided || len(s.marks) == 0 {
		return out
	}
	return s.decide(now, out)
}

// Report returns how the newest connection was joined; ok is false while that is
// undecided. Its counts rise until it is settled.
func (s *Splicer) Report() (r Report, ok bool) {
	r = s.report
	r.Settled = s.decided && s.settled()
	return r, s.decided && (r.Kind == First || s.passing || r.Duplicates > 0)
}

// settled reports whether all tracks that the window knows are past it. A track that
// does not come any more never is, which holds back nothing.
func (s *Splicer) settled() bool {
	for t := range script {
		if !s.lanes[t].settled && s.w.tracks[t].total > 0 {
			return false
		}
	}
	return true
}

// forward appends what is to be sent because t came: t with its time on the
// forwarded clock, behind the headers that it needs, or nothing.
func (s *Splicer) forward(now time.Time, t flv.Tag, out []flv.Tag) []flv.Tag {
	l := &s.lanes[trackOf(t.Kind)]
	switch {
	case t.Is(flv.Metadata):
		return s.describe(&s.meta, t, s.passing || s.report.Kind == First, s.w.newest, out)
	case t.Is(flv.Header):
		return s.describe(&l.header, t, l.settled, l.last, out)
	}
	sum := digest(t)
	if !l.settled {
		if l.began && jumped(t.DTS-l.raw) && t.Is(flv.Frame) {
			return s.again(now, t, out)
		}
		if t.Is(flv.Frame) {
			l.raw, l.began = t.DTS, true
		}
		if !s.pass(l, t, sum) {
			return out
		}
	}
	t.DTS = s.stamp(l, t)
	if s.meta.waiting {
		out = s.send(&s.meta, s.w.newest, out)
	}
	if l.header.waiting {
		s.report.HeadersChanged = true
		out = s.send(&l.header, t.DTS, out)
	}
	s.passing = true
	if t.Is(flv.Keyframe) {
		s.keyed = true
	}
	s.w.add(trackOf(t.Kind), sum, t.DTS, t.Is(flv.Frame))
	return append(out, t)
}

// again begins the joint anew, because the clock of the connection restarted within
// what was being dropped.
func (s *Splicer) again(now time.Time, t flv.Tag, out []flv.Tag) []flv.Tag {
	var tags []flv.Tag
	for _, d := range []*description{&s.meta, &s.lanes[video].header, &s.lanes[audio].header} {
		if d.waiting {
			tags = append(tags, d.pending)
		}
	}
	s.reset(false)
	return s.replay(now, append(tags, t), out)
}
