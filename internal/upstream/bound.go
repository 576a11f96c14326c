package upstream

import (
	"math"
	"math/rand/v2"
	"time"

	"millrace/internal/httpflv"
	"millrace/internal/ring"
	"millrace/internal/session"
	"millrace/internal/stream"
)

const (
	// wordStands is how long what an owner has said of a stream stands whatever is heard
	// of it: what it says of itself when it is checked comes up to so much later.
	wordStands = 2 * time.Second
	// askOwner is how often, at least, an owner is asked again that has passed a stream on:
	// it keeps in mind what it is asked for, and may have forgotten it.
	askOwner = 5 * time.Minute
	// keepPassed is how long an owner remembers a stream that nobody asks it for any more.
	keepPassed = 2*askOwner + time.Minute
	// maxPassed bounds how many streams it remembers. More are not passed on.
	maxPassed = 10_000
)

// word is what a session was told by the owner of its stream, which is over its bound.
type word struct {
	by, to string // ids: the owner, and who has the stream instead; to is empty if it did not say
	at     time.Time
	until  time.Time // it is asked again
	over   int64     // since when it is over its bound, in its words; 0: it is not any more
}

// passed is what an owner has decided about a stream that it did not have.
type passed struct {
	to   string // who has it instead; empty: it fetches it itself
	at   time.Time
	used time.Time // when it was asked for last
}

// PassOn implements [httpflv.Ring].
func (o *Origin) PassOn(n stream.Name) (to string, over time.Time, ok bool) {
	if o.members.len() == 0 {
		return "", time.Time{}, false
	}
	_, live := o.opt.Hub.Lookup(n)
	o.mu.Lock()
	x := o.sessions[n]
	if x == nil && live || x != nil && x.outside.Load() {
		o.mu.Unlock()
		o.members.carried(n) // and who carries a stream is never passed over
		return "", time.Time{}, false
	}
	// With mu held, so that no session begins meanwhile.
	to, over, first := o.members.passOn(time.Now(), n, x != nil)
	o.mu.Unlock()
	if first {
		o.note(Event{Stream: n, Kind: PassedOn, To: to, Reason: session.OverBound.String(), search: true})
	}
	return to, over, to != ""
}

// Over implements [httpflv.Ring].
func (o *Origin) Over() time.Time {
	o.members.mu.Lock()
	defer o.members.mu.Unlock()
	return o.members.over
}

// weigh has this node judge itself by what it sends, and notes a change.
func (o *Origin) weigh(now time.Time) {
	if o.opt.Load == nil || !o.opt.Cluster.Enabled() { // without a key nobody tells a load
		return
	}
	was, is := o.members.weigh(now, o.opt.Load())
	if was == is {
		return
	}
	reason := "below_bound"
	if is {
		reason = session.OverBound.String()
	}
	at := o.Standing()
	o.note(Event{Kind: Member, To: o.opt.Self, Reason: reason, Fig: map[string]any{"load": at.Load, "bound": at.Bound}})
}

// weigh takes in what this node sends, in bytes/s, and returns whether it was over its
// bound and whether it is.
func (m *members) weigh(now time.Time, load float64) (was, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was = !m.over.IsZero()
	me := m.own.member(m.self)
	me.Load, me.Over = load, was
	all := []ring.Member{me}
	for id, p := range m.peers {
		if p.told && !p.dead {
			other := p.share.member(id)
			other.Load = float64(max(p.says.Load, 0))
			all = append(all, other)
		}
	}
	m.load, m.bound = load, ring.Bound(me, all)
	is = ring.Over(me, all)
	switch {
	case is && !was:
		m.over = now
	case !is:
		m.over = time.Time{}
	}
	for n, e := range m.passed {
		if e.to == "" && now.Sub(e.at) >= wordStands || now.Sub(e.used) >= keepPassed {
			delete(m.passed, n)
		}
	}
	return was, is
}

// told takes in what a member says of itself.
func (m *members) told(id string, f httpflv.Figures) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.peers[id]; p != nil {
		f.Streams = nil // they were not asked for
		p.told, p.says = true, f
	}
}

// passOn decides who brings in n, for which this node is asked and which it does not
// bring in. to is empty if it is to do that; begun says that it has begun to look for it.
// first is set when n is passed on that was not before.
func (m *members) passOn(now time.Time, n stream.Name, begun bool) (to string, over time.Time, first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	live := m.live(now)
	if e := m.passed[n]; e != nil {
		e.used = now
		switch {
		case e.to == "" && (begun || now.Sub(e.at) < wordStands):
			return "", m.over, false
		case e.to == "" || !usable(live, e.to): // it is decided anew
			delete(m.passed, n)
		case begun || !m.over.IsZero():
			return e.to, m.over, false
		default: // it comes home
			m.keep(now, n)
			return "", m.over, false
		}
	}
	if begun {
		return "", m.over, false
	}
	owner, _ := ring.Owners(n, live)
	if m.over.IsZero() || owner != m.self {
		m.keep(now, n)
		return "", m.over, false
	}
	for i := range live {
		p := m.peers[live[i].ID]
		live[i].Over = p == nil || !p.told || p.says.Over != 0
	}
	if to, _ = ring.Owners(n, live); to == m.self || len(m.passed) >= maxPassed {
		m.keep(now, n) // all are over their bounds
		return "", m.over, false
	}
	m.passed[n] = &passed{to: to, at: now, used: now}
	return to, m.over, true
}

// keep notes that this node is about to fetch n: who asks next is told the same. mu is
// held.
func (m *members) keep(now time.Time, n stream.Name) {
	if len(m.passed) < maxPassed || m.passed[n] != nil {
		m.passed[n] = &passed{at: now, used: now}
	}
}

// carried notes that this node brings n in itself.
func (m *members) carried(n stream.Name) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.passed, n)
}

// lent returns to whom this node has passed n on, empty if to nobody.
func (m *members) lent(n stream.Name) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.passed[n]; e != nil {
		return e.to
	}
	return ""
}

// elsewhere returns to whom this node, the owner of n, has passed it on, empty if it is to
// fetch n itself. mu is held.
func (m *members) elsewhere(n stream.Name, live []ring.Member) string {
	e := m.passed[n]
	if e == nil || m.over.IsZero() || !usable(live, e.to) {
		return ""
	}
	return e.to
}

// stands reports whether what an owner has said of a stream still counts. mu is held.
func (m *members) stands(now time.Time, w *word, live []ring.Member) bool {
	p := m.peers[w.by]
	switch {
	case p == nil:
		return false
	case now.Sub(w.at) < wordStands:
		return true
	case w.to != m.self && !usable(live, w.to):
		return false
	}
	// When it was over its bound since another time it has forgotten what it said.
	return w.over != 0 && w.over == p.says.Over && now.Before(w.until)
}

// instead returns where a stream is to be looked for that its owner has passed on. mu is
// held.
func (m *members) instead(n stream.Name, w *word, live []ring.Member) (first, second string) {
	others := make([]ring.Member, 0, len(live))
	for _, o := range live {
		if o.ID != w.by && o.ID != w.to {
			others = append(others, o)
		}
	}
	first, second = ring.Owners(n, others)
	if w.to == m.self || usable(live, w.to) {
		return w.to, first
	}
	return first, second
}

// usable reports whether a member lives and takes part.
func usable(live []ring.Member, id string) bool {
	for i := range live {
		if live[i].ID == id {
			return live[i].Weight > 0
		}
	}
	return false
}

// heardOf takes in what a session was told by an owner that is over its bound.
func (m *members) heardOf(now time.Time, by string, refused *httpflv.PullError) word {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.peers[by]; p != nil {
		p.says.Over = refused.Over
	}
	return word{by: by, to: refused.To, at: now, until: now.Add(askOwner/2 + rand.N(askOwner/2)), over: refused.Over}
}

// Standing returns how this node stands in its datacenter.
func (o *Origin) Standing() Standing {
	m := o.members
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Standing{Load: int64(m.load)}
	if !math.IsInf(m.bound, 0) {
		s.Bound = int64(m.bound)
	}
	if !m.over.IsZero() {
		s.OverSince = new(m.over)
	}
	for _, e := range m.passed {
		if e.to != "" {
			s.PassedOn++
		}
	}
	return s
}

// Standing is how much this node sends, and should, in its datacenter.
type Standing struct {
	Load      int64      `json:"load"`                 // bytes/s
	Bound     int64      `json:"bound,omitempty"`      // bytes/s; 0: none, or not known
	OverSince *time.Time `json:"over_since,omitempty"` // since when it is over its bound
	PassedOn  int        `json:"passed_on"`            // streams that it owns and others bring in meanwhile
}
