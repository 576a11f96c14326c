package httpflv

import (
	"time"

	"golang.org/x/sys/unix"

	"millrace/internal/session"
)

// pause sleeps until there is something to do. When passes follow one another
// closely it first rests for a while in which only sockets are looked at.
func (s *shard) pause(end time.Duration) {
	rest := quantum(s.load.interval)
	often := end-s.passEnd < 3*rest
	s.passEnd = end
	if often {
		for now := end; now < end+rest; now = s.now() {
			s.wait(end + rest - now)
		}
	}
	for {
		s.asleep.Store(true)
		now := s.now()
		next := s.next()
		if s.hasWork() || next <= now {
			break
		}
		s.wait(next - now)
		if !s.asleep.Load() {
			break
		}
	}
	s.asleep.Store(false)
}

// hasWork reports whether something was handed over or published.
func (s *shard) hasWork() bool {
	if s.mail.Load() {
		return true
	}
	for _, f := range s.feeds {
		if f.dirty.Load() {
			return true
		}
	}
	return false
}

// next returns when something is due by itself.
func (s *shard) next() time.Duration {
	next := s.sweepAt
	for _, f := range s.feeds {
		next = min(next, f.due)
	}
	return next
}

// longestWait bounds a wait, so that the sum of now and a time far away is a time.
const longestWait = time.Minute

// wait sleeps for d, or until a socket or the eventfd has something, and deals with
// what the sockets have.
func (s *shard) wait(d time.Duration) {
	s.ready = 0
	if d > 0 {
		_ = s.epoll.SetReadDeadline(time.Now().Add(min(d, longestWait)))
		_ = s.raw.Read(s.poll) // the error is that the time is over
	}
	s.handle(s.now())
}

// yield lets other goroutines run in the middle of a long pass: requests that came
// in above all. runtime.Gosched would not do, because a scheduler that finds the
// caller in its queue does not ask the network poller for others. So the shard
// really parks, having rung its own bell: the poller is asked, and brings the shard
// back behind those that wait already.
func (s *shard) yield() {
	s.yielding = true
	s.wait(longestWait)
	s.yielding = false
}

// handle deals with the events of the last poll.
func (s *shard) handle(now time.Duration) {
	for i := range s.ready {
		ev := s.events[i]
		slot := uint32(ev.Fd)
		if slot == wakeSlot {
			hush(s.wakefd)
			continue
		}
		// A number that was given up in this round names nobody: numbers are only
		// given out again by takeMail.
		v := s.slots[slot]
		if v == nil {
			continue
		}
		if ev.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
			s.leave(v, session.PeerClosed)
			continue
		}
		if ev.Events&unix.EPOLLOUT != 0 && v.blocked {
			v.blocked = false
			v.cur.Held(drainTime(now - v.took))
			s.serve(v, now)
		}
	}
	if s.ready > 0 {
		s.stats.publish(s)
	}
	s.ready = 0
}

// drainTime is how long it takes until the peer has read all that a full socket
// holds, when it was blocked for so long: the kernel reports it writable when half of
// its bound has gone (TCP_NOTSENT_LOWAT), it is filled again at once, and about half
// as much is in flight and in the peer's own buffer.
func drainTime(blocked time.Duration) time.Duration { return 3 * blocked }
