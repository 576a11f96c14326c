package upstream

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"millrace/internal/failover"
	"millrace/internal/flv"
	"millrace/internal/httpflv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// forward writes to the readers what came out of the splicer, which is x.out grown.
func (x *Session) forward(now time.Time, tags []flv.Tag) {
	x.out = tags
	for _, t := range tags {
		if name, ok := x.clock.changed(x.o, x.feedOn, x.splicer.Offset()); ok {
			x.pub.SetClock(name, x.clock.own)
		}
		if err := x.pub.Write(now, t); err != nil {
			x.end(x.pub.Reason())
			break
		}
		x.newestAt = now
		if t.Is(flv.Frame) {
			x.lag.came(now, t.DTS)
		}
	}
	clear(x.out)
	if !x.reported {
		x.report()
	}
}

// begin takes the publisher's slot of the stream for the first upstream. If that has the
// publish that was here before, it goes on where that one stopped.
func (x *Session) begin(now time.Time) bool {
	epoch := x.current.link.Epoch
	pub, err := x.o.opt.Hub.Continue(now, x.stream.Name(), stream.PullOwner, epoch, nil)
	switch {
	case errors.Is(err, stream.ErrBusy): // somebody publishes it on this node, or has done so
		x.end(session.Displaced)
		return false
	case err != nil:
		x.end(session.Draining)
		return false
	}
	x.pub, x.had, x.newestAt = pub, epoch, now
	if pub.Resumed() {
		x.splicer.Seed(x.stream.Past())
		x.feedOn = x.stream.Clock()
	}
	return true
}

// renew tells that what comes from now on is of another publish.
func (x *Session) renew(epoch int64) {
	x.had, x.lag = epoch, lag{}
	x.pub.Renew(epoch)
	x.splicer.Renew()
	x.current.health.Renew()
}

// report notes how the newest feed was joined, once that is decided.
func (x *Session) report() {
	r, ok := x.splicer.Report()
	if !ok {
		return
	}
	x.reported = true
	x.o.note(Event{
		Stream: x.stream.Name(), Kind: Spliced, To: x.currentName(), Reason: r.Kind.String(),
		Fig: map[string]any{"duplicates": r.Duplicates, "missing": r.Missing, "offset_ms": r.Offset, "run": r.Run},
	})
}

// opened notes that the upstream has the stream.
func (x *Session) opened(f *feed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if f.state == dialing {
		f.state = open
		f.s.o.links.note(f.to, func(y *tally) { y.opened++ })
	}
	x.showPath()
}

// took takes in a tag of a feed. It keeps t. An error ends the feed.
func (x *Session) took(f *feed, t flv.Tag) error {
	now := time.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	if f.state == over || x.ending != session.None {
		return errOver
	}
	if t.Kind == flv.Script && f.to.http() {
		if l, ok, err := httpflv.ParseLink(t); ok {
			if err != nil {
				return err
			}
			return x.tookLink(now, f, l)
		}
	}
	f.heard.now(now)
	f.tags++
	f.bytes += uint64(len(t.Wire))
	if !f.begun && t.Is(flv.Frame) {
		f.framed(now)
	}
	if f == x.current {
		f.health.Came(now, t)
		x.forward(now, x.splicer.Take(now, t, x.out[:0]))
		return nil
	}
	if !f.trial.Take(now, t) {
		return fmt.Errorf("on trial: %w", errTooMuch)
	}
	if x.current == nil {
		x.step(now)
	}
	return nil
}

var errTooMuch = errors.New("more came than can be kept")

// tookLink takes in what the node above says of the stream.
func (x *Session) tookLink(now time.Time, f *feed, l httpflv.Link) error {
	if l.Node == x.o.opt.Self || slices.ContainsFunc(l.Path, func(h stream.Hop) bool { return h.Node == x.o.opt.Self }) {
		return errLoop
	}
	changed := !f.linked || f.link.State != l.State || f.link.Epoch != l.Epoch
	other := f.linked && f.link.Epoch != l.Epoch
	f.tell(l)
	f.heard.now(now)
	f.health.Link(now, time.UnixMilli(l.Sent), l.Idle)
	f.hop.came(now, time.UnixMilli(l.Sent))
	if f != x.current {
		if other {
			f.trial.Restart()
		}
		if changed {
			x.step(now)
		}
		return nil
	}
	switch gone := l.State == httpflv.LinkGrace; {
	case l.Epoch != 0 && l.Epoch < x.had:
		return errOlder
	case l.Epoch != 0 && l.Epoch > x.had && x.had != 0:
		x.renew(l.Epoch)
	case l.Epoch != 0 && x.had == 0: // it did not say so at first
		x.had = l.Epoch
		x.pub.SetEpoch(l.Epoch)
	case gone && !f.gone: // who joins now gets nothing old
		x.pub.Pause()
		f.health.Renew()
	}
	f.gone = l.State == httpflv.LinkGrace
	x.feedOn = l.Clock
	x.showPath()
	return nil
}

// errOlder ends an upstream that goes back to a publish before the one that it had.
var errOlder = errors.New("it has an older publish than before")

var errLoop = errors.New("the path of the stream leads back to this node")

// passing notes through whom the upstream that is asked looks for the stream itself.
func (x *Session) passing(f *feed, path []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if f.state != dialing {
		return
	}
	f.via, f.waited = path, true
	f.heard.now(time.Now())
	if slices.Contains(path, x.o.opt.Self) {
		x.lose(time.Now(), f, errLoop)
		return
	}
	x.showPath()
}

// ended notes that a feed is over, and goes on without it.
func (x *Session) ended(f *feed, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lose(time.Now(), f, err)
}

// redirected takes in that the owner of the stream has another member bring it in.
func (x *Session) redirected(now time.Time, f *feed, err error) failover.Failure {
	refused, ok := errors.AsType[*httpflv.PullError](err)
	if !ok || !f.to.peer() {
		return failover.Refused // it was not asked as a member
	}
	x.policy.Withdraw() // or it would come home later, the more often it was elsewhere
	x.word = x.o.members.heardOf(now, f.to.node, refused)
	return failover.OverBound
}

func (x *Session) lose(now time.Time, f *feed, err error) {
	if f.state == over || x.ending != session.None {
		return
	}
	was := f.state
	x.close(f)
	if answers(err) {
		f.heard.now(now)
	}
	why := failureOf(err)
	if f.link.State == httpflv.LinkEnded {
		why = failover.Ended
	}
	if f == x.current {
		clear(x.away) // the stream may have moved to where it was not before
	}
	if why == failover.OverBound {
		why = x.redirected(now, f, err)
	}
	why = x.blame(now, f, why)
	e := Event{Stream: x.stream.Name(), Kind: GaveUp, From: x.currentName(), To: f.to.String(), Reason: why.String(), Detail: err.Error(), search: x.pub == nil}
	if f == x.current {
		if gone(why) {
			x.leave(now, f)
		}
		x.away.changed()
		x.current, x.lost, x.lostAt = nil, session.UpstreamLost, now
		if why == failover.Ended {
			x.lost = session.StreamEnded
		}
		e.Kind, e.From, e.To = Lost, f.to.String(), ""
	} else {
		x.trials = slices.DeleteFunc(x.trials, func(t *feed) bool { return t == f })
		if was == dialing {
			e.From = ""
		}
	}
	x.o.note(e)
	x.step(now)
}
