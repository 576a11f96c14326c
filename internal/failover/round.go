package failover

import "time"

// giveUp looks for a trial that is not worth waiting for.
func (p *Policy) giveUp(now time.Time, v View, c class) (Decision, bool) {
	for _, t := range v.Trials {
		r := p.hopeless(now, v, t, c)
		if r == NoReason {
			continue
		}
		p.unlead(t.ID)
		d := Decision{Action: GiveUp, ID: t.ID, Reason: r}
		if len(v.Trials) == 1 && (c == well || v.Left == 0 || p.tried >= p.limit(c)) {
			p.endRound(now, p.class)
			d.HoldOff = p.hold[p.class].pause
		}
		return d, true
	}
	if len(v.Trials) == 0 {
		p.ended = false
	}
	return Decision{}, false
}

func (p *Policy) hopeless(now time.Time, v View, t TrialView, c class) Reason {
	full := len(v.Trials) == MaxTrials && v.Left > 0
	switch {
	case p.stale(t):
		return OlderEpoch
	case c == well && p.ended:
		return Superseded
	case c == well && now.Sub(p.goodAt) >= recovered:
		return Recovered
	case c == wanted && !t.Preferred:
		return Recovered
	case c == lost && t.State == Flowing && t.Verdict == Silent:
		return NoMedia
	case c == lost && t.State != Flowing && t.Age >= p.cfg.MediaTime && v.Left > 0:
		return NoMedia
	case c == lost:
		return NoReason
	case t.Age >= p.cfg.TrialTime && t.State != Flowing:
		return NoMedia
	case t.Age >= p.cfg.TrialTime:
		return NotBetter
	case full && p.tried < p.limit(c) && t.State == Flowing &&
		t.Figures.Flowing >= 2*p.cfg.Judge && t.Aligned && t.Lead < p.cfg.Lead/2 && t.Figures.Recent < 1:
		return NotBetter // its place is needed
	}
	return NoReason
}

// limit is how many candidates a round may try.
func (p *Policy) limit(c class) int {
	switch {
	case c == lost:
		return 1 << 30
	case c == wanted || p.hold[c].pause > 0:
		return 1
	}
	return firstRound
}

// endRound begins the hold-off after a round in which nobody was better.
func (p *Policy) endRound(now time.Time, c class) {
	if p.tried == 0 {
		return
	}
	p.tried = 0
	if c == lost || c == well {
		return
	}
	first, most := p.cfg.HoldOff, p.cfg.MaxHoldOff
	if c == hard { // others may be better at any moment
		first, most = first/4, most/6
	}
	h := &p.hold[c]
	h.pause = min(max(2*h.pause, first), most)
	h.until = now.Add(h.pause)
}

// mayTry reports whether another candidate may be dialled.
func (p *Policy) mayTry(now time.Time, v View, c class) bool {
	stagger := p.cfg.Stagger
	if c == lost {
		stagger = p.cfg.StaggerLost
	}
	switch {
	case v.Left == 0 || len(v.Trials) >= MaxTrials || p.tried >= p.limit(c):
		return false
	case now.Before(p.hold[c].until):
		return false
	case len(v.Trials) > 0 && now.Sub(p.triedAt) < stagger:
		return false
	}
	return true
}
