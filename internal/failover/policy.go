package failover

import (
	"time"

	"millrace/internal/session"
)

// MaxTrials is how many candidates flow beside the current connection at most.
const MaxTrials = 2

// Rules of the policy that are not settings.
const (
	// believe is the pace above which a candidate keeps up. One at 0.6 of the bitrate
	// must be below, with the error of counting frames over Config.Judge.
	believe = 0.75
	// newMedia is the lead by which a candidate wins over a connection that is silent.
	newMedia = 100 * time.Millisecond
	// persist is for how long a candidate must be better: a burst of the source reaches
	// both connections, but not in the same instant.
	persist = 200 * time.Millisecond
	// behind is how far behind the current connection a preferred candidate, or one
	// with more frames, may be: viewers wait that long at the joint.
	behind = 200 * time.Millisecond
	// longJudge is how long a candidate is watched that cannot be compared frame by
	// frame, or that should have more frames.
	longJudge = 1500 * time.Millisecond
	// recovered is how long a connection must be well again for a trial to end.
	recovered = 500 * time.Millisecond
	// firstRound is how many candidates are tried, one after another, before the first
	// hold-off; after it one is tried at a time.
	firstRound = 4
)

// class sorts troubles by what a fruitless trial says about the next: each has a
// hold-off of its own.
type class uint8

const (
	well    class = iota
	lost          // nothing to lose: no hold-off, the pool has its own
	hard          // silent
	soft          // slow, thin, idle: it may well be the source
	moving        // the publisher may have gone elsewhere
	wanted        // all is well, but there is a better place
	classes       // how many there are
)

// Policy decides about trials and switches of one session. Its state is what it has
// tried, and until when it holds off.
type Policy struct {
	cfg *Config

	class   class     // of the round of trials
	tried   int       // in this round
	triedAt time.Time // the last of them
	idleAt  time.Time // since when the source is idle
	goodAt  time.Time // since when all is well
	epoch   int64     // newest that was ever forwarded
	hold    [classes]holdOff
	leads   [MaxTrials]leading
	ended   bool // the current connection was just replaced
}

// holdOff is when trials of one class may begin again.
type holdOff struct {
	until time.Time
	pause time.Duration // the last one; 0: none yet
}

// leading is since when a trial has been winning.
type leading struct {
	id    int
	since time.Time
}

// NewPolicy returns the policy of a session that has no connection yet. It keeps cfg.
func NewPolicy(cfg *Config) *Policy { return &Policy{cfg: cfg} }

// Step says what to do now. Perform it and call Step again until it says [None]; the
// view must show what was done. Call it about every 100 ms, and at once when a
// connection is lost or a candidate sends its first frame.
func (p *Policy) Step(now time.Time, v View) Decision {
	c, reason := p.trouble(now, v)
	if c != well {
		p.goodAt = time.Time{}
		p.class = c
	} else if p.goodAt.IsZero() {
		p.goodAt = now
	}
	p.epoch = max(p.epoch, v.Epoch)
	if v.Current.Present {
		p.epoch = max(p.epoch, v.Current.Epoch)
	}
	if c == well {
		p.calm(now, v)
	}
	if d, ok := p.win(now, v, c, reason); ok {
		return p.explain(v, d)
	}
	if d, ok := p.giveUp(now, v, c); ok {
		return p.explain(v, d)
	}
	if c != well && len(v.Trials) == 0 && p.tried > 0 && (v.Left == 0 || p.tried >= p.limit(c)) {
		p.endRound(now, c)
	}
	if c != well && p.mayTry(now, v, c) {
		p.tried++
		p.triedAt = now
		return p.explain(v, Decision{Action: Try, Reason: reason})
	}
	return p.explain(v, Decision{})
}

// Withdraw takes back the newest Try of a round: it turned out that the candidate is none,
// so that nothing can be learned from its having failed.
func (p *Policy) Withdraw() { p.tried = max(0, p.tried-1) }

// calm forgets what was fruitless once all is well for long enough, and ends a round
// whose trials are gone.
func (p *Policy) calm(now time.Time, v View) {
	if len(v.Trials) == 0 {
		p.endRound(now, p.class)
	}
	if now.Sub(p.goodAt) >= p.cfg.Calm {
		p.hold = [classes]holdOff{}
	}
	if now.Sub(p.goodAt) >= p.cfg.Calm/6 {
		p.hold[hard] = holdOff{}
	}
}

// explain completes a decision with the figures it was based on.
func (p *Policy) explain(v View, d Decision) Decision {
	d.Current = v.Current.Figures
	for _, t := range v.Trials {
		if d.Action != None && d.Action != Try && t.ID == d.ID {
			d.Trial, d.Lead, d.Aligned = t.Figures, t.Lead, t.Aligned
		}
	}
	return d
}

// trouble says whether, and why, somebody else should be tried.
func (p *Policy) trouble(now time.Time, v View) (class, Reason) {
	cur := v.Current
	if !cur.Present || cur.Verdict != SourceIdle {
		p.idleAt = time.Time{}
	} else if p.idleAt.IsZero() {
		p.idleAt = now
	}
	switch {
	case !cur.Present && cur.Lost == session.None:
		return lost, NoUpstream
	case !cur.Present:
		return lost, UpstreamLost
	case cur.Verdict == Silent:
		return hard, UpstreamSilent
	case cur.Grace:
		return moving, UpstreamGrace
	case cur.Verdict == Slow:
		return soft, UpstreamSlow
	case cur.Verdict == Thin:
		return soft, UpstreamThin
	case !p.idleAt.IsZero() && now.Sub(p.idleAt) >= p.cfg.SourceIdle:
		return soft, UpstreamIdle
	case v.Prefer:
		return wanted, preferred(v.Planned)
	}
	for _, t := range v.Trials {
		if t.Preferred {
			return wanted, preferred(t.Planned)
		}
	}
	return well, NoReason
}

func preferred(planned bool) Reason {
	if planned {
		return Planned
	}
	return Preferred
}

// win looks for a trial that is better than the current connection.
func (p *Policy) win(now time.Time, v View, c class, reason Reason) (Decision, bool) {
	best, why := -1, NoReason
	for i, t := range v.Trials {
		ok, r := p.wins(now, v, t, c, reason)
		if !ok {
			p.unlead(t.ID)
			continue
		}
		if c != lost && r != NewerEpoch && !p.persists(now, t.ID) {
			continue
		}
		if best < 0 || better(t, v.Trials[best]) {
			best, why = i, r
		}
	}
	if best < 0 {
		return Decision{}, false
	}
	won := v.Trials[best]
	if won.Epoch > 0 {
		p.epoch = won.Epoch
	}
	p.hold = [classes]holdOff{}
	p.leads = [MaxTrials]leading{}
	p.tried, p.ended = 0, true
	return Decision{Action: Switch, ID: won.ID, Reason: why}, true
}

// better reports whether a should be preferred to b when both win.
func better(a, b TrialView) bool {
	switch {
	case a.Epoch != b.Epoch:
		return a.Epoch > b.Epoch
	case a.Preferred != b.Preferred:
		return a.Preferred
	case a.Aligned != b.Aligned:
		return a.Aligned
	}
	return a.Aligned && a.Lead > b.Lead
}

// wins reports whether t is better than the current connection, and why.
func (p *Policy) wins(now time.Time, v View, t TrialView, c class, reason Reason) (bool, Reason) {
	cur := v.Current
	if t.State != Flowing || t.Verdict == Silent {
		return false, NoReason
	}
	if p.stale(t) {
		return false, NoReason
	}
	if cur.Present && t.Epoch > cur.Epoch && cur.Epoch > 0 {
		return true, NewerEpoch
	}
	live := t.Figures.Flowing >= p.cfg.Judge && t.Figures.Recent >= believe
	leads := live && t.Aligned && t.Lead >= p.cfg.Lead
	watched := live && t.Verdict == Good && t.Figures.Flowing >= longJudge
	switch {
	case c == lost:
		return true, reason
	case c == hard:
		return t.Aligned && t.Lead >= newMedia || !t.Aligned && live, reason
	case c == moving:
		return leads || !t.Aligned && live, reason
	case c == wanted || t.Preferred && t.Verdict == Good:
		return t.Preferred && live && t.Aligned && t.Lead >= -behind, preferred(t.Planned)
	case reason == UpstreamSlow && !t.Aligned:
		return watched && t.Figures.Short >= 0.9 && cur.Figures.Long < 0.9, reason
	case reason == UpstreamThin:
		return leads || watched && t.Aligned && t.Lead >= -behind && t.Figures.FPS >= 1.3*cur.Figures.FPS, reason
	case c == soft:
		return leads, reason
	}
	return false, NoReason
}

// stale reports whether a trial has what a publisher left behind when it moved. Who has
// seen a frame of the newer publish must see none of it: it is no upstream, whatever
// else there is.
func (p *Policy) stale(t TrialView) bool { return t.Epoch > 0 && t.Epoch < p.epoch }

// persists reports whether the trial has been winning for a while.
func (p *Policy) persists(now time.Time, id int) bool {
	free := -1
	for i := range p.leads {
		switch {
		case p.leads[i].since.IsZero():
			free = i
		case p.leads[i].id == id:
			return now.Sub(p.leads[i].since) >= persist
		}
	}
	if free < 0 { // of trials that are over
		free = 0
	}
	p.leads[free] = leading{id, now}
	return false
}

func (p *Policy) unlead(id int) {
	for i := range p.leads {
		if p.leads[i].id == id {
			p.leads[i] = leading{}
		}
	}
}
