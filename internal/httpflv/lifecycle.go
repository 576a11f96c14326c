package httpflv

import (
	"time"

	"golang.org/x/sys/unix"

	"millrace/internal/session"
	"millrace/internal/stream"
)

// adopt takes a viewer in. What it lacks by now, because tags came while it was on
// its way here, is written at once.
func (s *shard) adopt(v *viewer) {
	f := s.byStream[v.stream]
	if f == nil {
		f = &feed{stream: v.stream, shard: s, due: never, at: len(s.feeds), video: -soundOnly}
		f.cur = v.stream.NewCursor(stream.CursorOptions{KeepClock: true})
		f.unsent = unsentFor(v.stream.Bitrate())
		f.dirty.Store(true)
		s.feeds = append(s.feeds, f)
		s.byStream[v.stream] = f
		v.stream.Watch(f)
	}
	f.add(v)
	s.count++
	if !v.begun {
		s.waiting++
	}
	v.slot = s.slotFor(v)
	now := s.now()
	v.took, v.unacked, v.served, v.seen = now, -1, now, f.arrived-1
	_ = boundUnsent(v.fd, f.unsent) // an old kernel only hides more of a backlog
	if err := s.watch(v.fd, v.slot, unix.EPOLLOUT|unix.EPOLLRDHUP|unix.EPOLLET); err != nil {
		s.fan.log.Error("watch a viewer's socket", "stream", v.info.Stream, "peer", v.info.Peer, "err", err)
		s.leave(v, session.Internal)
		return
	}
	if r := session.Reason(v.kicked.Load()); r != session.None {
		s.finish(v, r)
		return
	}
	if v.begun || s.start(v) {
		s.serve(v, now)
	}
	if v.stream.State() == stream.Idle {
		f.due = 0 // it may have ended while v was on its way here, and no wake will tell
	}
}

func (s *shard) slotFor(v *viewer) uint32 {
	if n := len(s.free); n > 0 {
		slot := s.free[n-1]
		s.free = s.free[:n-1]
		s.slots[slot] = v
		return slot
	}
	s.slots = append(s.slots, v)
	return uint32(len(s.slots) - 1)
}

// finish ends a viewer in good order: what is in progress goes out, and the end of
// the body. A viewer whose socket takes nothing does not get the time for that.
func (s *shard) finish(v *viewer, r session.Reason) {
	switch {
	case !v.begun, v.ending, v.blocked && r != session.StreamEnded:
		s.leave(v, r)
	default:
		v.end(r)
		if !v.blocked {
			s.serve(v, s.now())
		}
	}
}

// leave ends a viewer at once.
func (s *shard) leave(v *viewer, r session.Reason) {
	if v.gone {
		return
	}
	v.gone = true
	if r == session.Stalled {
		abandon(v.fd)
	} else {
		unix.Close(v.fd)
	}
	s.slots[v.slot] = nil
	s.free = append(s.free, v.slot)
	v.feed.remove(v)
	if len(v.feed.viewers) == 0 {
		v.feed.due = 0 // so that the next pass drops it
	}
	s.count--
	if !v.begun {
		s.waiting--
	}
	v.rest = rest{}
	s.fan.ended(v, r)
}

// drop lets go of a feed without viewers.
func (s *shard) drop(f *feed) {
	f.stream.Unwatch(f)
	delete(s.byStream, f.stream)
	last := len(s.feeds) - 1
	s.feeds[f.at] = s.feeds[last]
	s.feeds[f.at].at = f.at
	s.feeds[last] = nil
	s.feeds = s.feeds[:last]
}

// answerMissing tells a viewer that nothing came.
func (s *shard) answerMissing(v *viewer) {
	s.answer(v, missing(v.stream.Name(), v.stream.Failure()))
}

// answer ends a viewer that waited with a refusal.
func (s *shard) answer(v *viewer, r refusal) {
	_, _ = unix.Write(v.fd, r.append(nil, v.cors, time.Now())) // the first bytes of a connection always fit
	s.leave(v, r.reason)
}

// sweepEvery is how often stalls and expiries are looked for.
const sweepEvery = time.Second

// sweep looks for viewers whose time is over, and returns when to look again.
func (s *shard) sweep(now time.Duration) time.Duration {
	cfg := s.fan.config()
	next := now + sweepEvery
	for i := 0; i < len(s.feeds); i++ {
		f := s.feeds[i]
		s.resize(f)
		f.visiting = true
		for k := 0; k < len(f.viewers); k++ {
			v := f.viewers[k]
			switch {
			case v == nil:
			case !v.begun && now >= v.until:
				s.answerMissing(v)
			case !v.begun:
				next = min(next, v.until)
			case v.expires > 0 && now >= v.expires:
				s.finish(v, session.TokenExpired)
			case v.blocked && s.stalled(v, now, cfg.StallTimeout):
				s.leave(v, session.Stalled)
			case v.expires > 0:
				next = min(next, v.expires)
			}
		}
		f.compact()
		if len(f.viewers) == 0 {
			s.drop(f)
			i--
		}
	}
	kept := s.answers[:0]
	for _, a := range s.answers {
		if now >= a.at {
			a.deliver()
			s.held.Add(-1)
			continue
		}
		next = min(next, a.at)
		kept = append(kept, a)
	}
	clear(s.answers[len(kept):])
	s.answers = kept
	return next
}

// stalled reports whether the peer of a blocked viewer has taken nothing for
// timeout. The socket asks for more only when much of what it holds is gone; what a
// very slow peer takes until then shows in what is not acknowledged.
func (s *shard) stalled(v *viewer, now, timeout time.Duration) bool {
	quiet := now - v.took
	if quiet < timeout/2 {
		return false
	}
	n, err := unacknowledged(v.fd)
	if err != nil {
		return true
	}
	if v.unacked < 0 || n < v.unacked {
		if v.unacked >= 0 {
			v.took = now
		}
		v.unacked = n
		return false
	}
	return quiet >= timeout
}

// resize fits the bound of unsent bytes to a bitrate that has changed.
func (s *shard) resize(f *feed) {
	rate := f.stream.Bitrate()
	if rate == 0 {
		return
	}
	n := unsentFor(rate)
	if n <= f.unsent*3/2 && n >= f.unsent*2/3 {
		return
	}
	f.unsent = n
	for _, v := range f.viewers {
		_ = boundUnsent(v.fd, n)
	}
}

// ending is the state of a drain.
type ending struct {
	begun bool
	at    time.Duration
	total int
}

// drain closes viewers, evenly over the time there is, and reports whether there are none left. The body gets no proper end: the player shall see a broken
// connection and come back elsewhere, not the end of the programme.
func (s *shard) drain(now time.Duration) bool {
	if !s.ending.begun {
		s.mu.Lock()
		s.stopped = true
		s.mu.Unlock()
		s.mail.Store(true)
		s.takeMail() // what came before that
		s.ending.begun, s.ending.at, s.ending.total = true, now, s.count
	}
	keep := s.fan.keep(s.ending.total, s.ending.at, now)
	for _, v := range s.slots {
		if s.count <= keep {
			break
		}
		switch {
		case v == nil:
		case v.begun:
			s.leave(v, session.Draining)
		default:
			s.answer(v, draining)
		}
	}
	s.sweepAt = now + 10*time.Millisecond
	return s.count == 0
}

// abandonRest deals with what is left when the shard ends.
func (s *shard) abandonRest() {
	for _, a := range s.answers {
		a.deliver()
	}
	s.answers = nil
	for len(s.feeds) > 0 {
		s.drop(s.feeds[0])
	}
	s.stats.publish(s)
}
