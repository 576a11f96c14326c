package upstream

import (
	"slices"
	"time"

	"millrace/internal/auth"
	"millrace/internal/failover"
	"millrace/internal/httpflv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// step does what the policy says. mu is held.
func (x *Session) step(now time.Time) {
	if x.ending != session.None || x.displaced() {
		return
	}
	x.forward(now, x.splicer.Poll(now, x.out[:0]))
	if x.awaitRoute(now) {
		x.showPath()
		return
	}
	x.keepRoute(now)
	for range 16 {
		d := x.policy.Step(now, x.view(now))
		switch d.Action {
		case failover.Try:
			if !x.try(now, d) {
				x.look(now)
				return
			}
		case failover.Switch:
			x.switchTo(now, d)
		case failover.GiveUp:
			x.giveUp(now, d)
		case failover.None:
			x.look(now)
			return
		}
		if x.ending != session.None {
			return
		}
	}
}

// displaced ends a session when somebody publishes its stream on this node. It may have
// nothing to write, and so not find out for as long as it is wanted.
func (x *Session) displaced() bool {
	switch {
	case x.pub != nil && x.pub.Reason() != session.None:
		x.end(x.pub.Reason())
		return true
	case x.pub != nil:
		return false
	}
	switch x.stream.State() {
	case stream.Live:
		x.end(session.Displaced)
		return true
	case stream.Grace: // somebody has published here, and readers have stayed
		x.had = x.stream.Epoch()
	}
	return false
}

// look ends a session that has nowhere left to go, and keeps the path up to date.
func (x *Session) look(now time.Time) {
	x.showPath()
	if x.current != nil || len(x.trials) > 0 || x.left(now) > 0 {
		return
	}
	// All have failed. What was never there is not here; what was lost may come back.
	if x.pub == nil || slices.Contains(x.failures, failover.Ended) || now.Sub(x.lostAt) >= x.o.opt.Grace {
		x.end(x.verdict())
	}
}

// verdict sums up how the upstreams failed.
func (x *Session) verdict() session.Reason {
	has := func(f failover.Failure) bool { return slices.Contains(x.failures, f) }
	switch {
	case has(failover.Ended):
		return session.StreamEnded
	case has(failover.Lost), has(failover.Timeout), has(failover.Refused), has(failover.Unreached):
		return session.UpstreamLost
	case has(failover.Loop):
		return session.Loop
	case has(failover.NotFound):
		return session.NotFound
	case len(x.failures) == 0 && len(x.route.to) == 0 && x.o.nowhere(): // nobody is to be asked
		return session.NotFound
	}
	return session.UpstreamLost
}

// view is what the policy decides by.
func (x *Session) view(now time.Time) failover.View {
	var v failover.View
	if c := x.current; c != nil {
		verdict := c.health.Verdict(now)
		c.judged(verdict)
		v.Current = failover.CurrentView{
			Present: true, Verdict: verdict, Figures: c.health.Figures(now),
			Epoch: c.link.Epoch, Grace: c.link.State == httpflv.LinkGrace,
		}
	} else {
		v.Current.Lost = x.lost
	}
	v.Epoch = x.had
	aim, has := x.goal(now)
	for _, f := range x.trials {
		if f.state == dialing && len(f.via) == 1 {
			// It waits for a stream that nobody brings it, in case it comes. That must not
			// keep another upstream from being asked.
			continue
		}
		t := failover.TrialView{
			ID: f.id, Age: now.Sub(f.began), Epoch: f.link.Epoch,
			Preferred: f.move && has && aim.to.url == f.to.url, Planned: aim.planned,
		}
		if f.state == open {
			t.State = failover.Waiting
			t.Verdict, t.Figures = f.health.Verdict(now), f.health.Figures(now)
			if len(f.trial.Backlog()) > 0 {
				t.State = failover.Flowing
				t.Lead, t.Aligned = f.trial.Lead(x.splicer.Window(), f.on(x.feedOn))
			}
		}
		v.Trials = append(v.Trials, t)
	}
	v.Left = x.left(now)
	v.Prefer, v.Planned = has && x.prefers(now, aim), aim.planned
	return v
}

// peers reports whether the stream may be looked for inside the datacenter.
func (x *Session) peers(now time.Time) bool {
	return !x.demand.Peer || now.Sub(x.began) >= peerTime
}

// busy reports whether a url is in use, or does not have the stream.
func (x *Session) busy(now time.Time) func(url string) bool {
	return func(url string) bool {
		return x.away.is(now, url) || x.current != nil && x.current.to.url == url ||
			slices.ContainsFunc(x.trials, func(f *feed) bool { return f.to.url == url })
	}
}

// left returns how many upstreams may be tried now.
func (x *Session) left(now time.Time) int {
	return x.o.left(now, x.search(now))
}

// try starts a feed beside the current one, and reports whether there was one to try.
func (x *Session) try(now time.Time, d failover.Decision) bool {
	var to target
	move := false
	if d.Reason == failover.Preferred || d.Reason == failover.Planned {
		aim, ok := x.goal(now)
		if !ok || !x.moves(now, aim) {
			return false
		}
		to, move = aim.to, true
	} else {
		var err error
		if to, err = x.o.next(now, x.search(now)); err != nil {
			return false
		}
		home, ok := x.home(now)
		move = ok && to == home
		if !to.peer() && now.Sub(x.route.at) >= x.o.opt.calm.fresh {
			x.ask(now) // for the one after it
		}
	}
	x.ids++
	f := &feed{
		s: x, id: x.ids, to: to, began: now, move: move, purpose: purposeOf(to, x.current != nil), heard: x.o.heardFrom(to.url),
		trial: failover.NewTrial(&failoverConfig, now),
	}
	if !move || !to.peer() || x.current == nil {
		// Who was the first to want it may have it from elsewhere by now, such as the owner
		// that it moves to. What keeps a move in circles off is the path of the stream.
		f.behalf = x.demand.Via
	}
	f.health = f.trial.Health
	f.back = x.demand.Back
	if x.pub != nil {
		f.back = x.backFor(now)
	} else if quiet, ok := x.stream.Quiet(now); ok && x.stream.State() == stream.Grace {
		f.back = max(f.back, minBack, quiet+backMargin) // it may be the same publish that goes on
	}
	x.trials = append(x.trials, f)
	f.cancel = x.spawn(f.run)
	x.showPath()
	fig := figures(d)
	if f.back > 0 {
		fig["back_ms"] = f.back.Milliseconds()
	}
	x.o.note(Event{
		Stream: x.stream.Name(), Kind: Tried, From: x.currentName(), To: to.String(),
		Reason: d.Reason.String(), Fig: fig, search: x.pub == nil,
	})
	return true
}

// backFor returns how far a new feed is asked to go back, to begin with what was forwarded
// already: as far as that is behind, and a margin in which the tags of both connections
// can be aligned. A feed beside another one must not be more than a trial keeps.
func (x *Session) backFor(now time.Time) time.Duration {
	back := backMargin + max(now.Sub(x.newestAt), x.lag.at(now))
	if rate := x.stream.Bitrate(); x.current != nil && rate > 0 {
		back = min(back, time.Duration(failoverConfig.TrialBytes/2)*time.Second/time.Duration(rate))
	}
	return max(back, minBack)
}

func purposeOf(to target, beside bool) auth.Purpose {
	switch {
	case to.peer():
		return auth.Peer
	case beside:
		return auth.Trial
	}
	return auth.Pull
}

// switchTo makes a trial the current feed.
func (x *Session) switchTo(now time.Time, d failover.Decision) {
	i := slices.IndexFunc(x.trials, func(f *feed) bool { return f.id == d.ID })
	if i < 0 {
		return
	}
	f, old := x.trials[i], x.current
	x.trials = slices.Delete(x.trials, i, i+1)
	from := x.currentName()
	trial := f.trial
	x.current, f.trial = f, nil
	f.since = now
	x.outside.Store(!f.to.peer())
	x.lost, x.lostAt, x.failures = session.None, now, nil
	if d.Reason == failover.Planned {
		x.plan.fruit = 0
	}
	switch epoch := f.link.Epoch; {
	case x.pub == nil:
		if !x.begin(now) {
			return
		}
	case epoch != 0 && x.had == 0: // where the stream came from before did not say
		x.had = epoch
		x.pub.SetEpoch(epoch)
	case epoch != 0 && epoch != x.had:
		x.renew(epoch)
	}
	x.reported = false
	if old != nil {
		if fault(d.Reason) {
			x.leave(now, old)
		}
		x.close(old)
	}
	x.switches++
	x.o.note(Event{
		Stream: x.stream.Name(), Kind: Switched, From: from, To: f.to.String(), Reason: d.Reason.String(), Fig: figures(d),
	})
	out := x.splicer.JoinTrial(now, trial, f.on(x.feedOn), x.out[:0])
	x.feedOn = f.link.Clock
	x.forward(now, out)
	x.o.good(now, f.to)
	x.showPath()
}

// giveUp ends a trial.
func (x *Session) giveUp(now time.Time, d failover.Decision) {
	i := slices.IndexFunc(x.trials, func(f *feed) bool { return f.id == d.ID })
	if i < 0 {
		return
	}
	f := x.trials[i]
	x.trials = slices.Delete(x.trials, i, i+1)
	x.close(f)
	switch d.Reason {
	case failover.NoMedia:
		x.blame(now, f, failover.Timeout)
	case failover.NotBetter, failover.OlderEpoch:
		x.away.note(now, f.to.url, failover.Worse)
	}
	x.o.note(Event{Stream: x.stream.Name(), Kind: GaveUp, From: x.currentName(), To: f.to.String(), Reason: d.Reason.String(), Fig: figures(d), search: x.pub == nil})
}

// close ends a feed. Its goroutine finds out by itself.
func (x *Session) close(f *feed) {
	f.state = over
	f.tally(false)
	f.cancel()
}

func (x *Session) currentName() string {
	if x.current == nil {
		return ""
	}
	return x.current.to.String()
}

// figures are what a decision was based on.
func figures(d failover.Decision) map[string]any {
	out := map[string]any{}
	if d.Aligned {
		out["lead_ms"] = d.Lead.Milliseconds()
	}
	if d.HoldOff > 0 {
		out["hold_off_ms"] = d.HoldOff.Milliseconds()
	}
	if s := d.Current.Silence; s > 0 {
		out["silence_ms"] = s.Milliseconds()
	}
	return out
}
