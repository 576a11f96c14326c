package httpflv

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"millrace/internal/session"
	"millrace/internal/stream"
)

// shard writes to the viewers it owns. One goroutine, run, does all of that.
//
// Whoever hands something over puts it where the shard looks (joining, kicks,
// answers, the dirty flag of a feed) and then calls wake. The shard says that it
// sleeps before it looks for the last time, so nothing is ever left lying.
type shard struct {
	// Fixed at construction.
	fan    *Fanout
	began  time.Time // time 0 of its clock
	epoll  *os.File  // the epoll instance; itself in the runtime's poller
	raw    syscall.RawConn
	epfd   int
	wakefd int // an eventfd in the epoll instance

	// Owned by run.
	feeds    []*feed
	byStream map[*stream.Stream]*feed
	slots    []*viewer // by the number that epoll gives back
	free     []uint32
	count    int // viewers
	waiting  int // of those, without anything to play yet
	answers  []answer
	batch    *batch
	events   []unix.EpollEvent
	ready    int // how many events there are
	poll     func(uintptr) bool
	yielding bool // the next poll rings for itself
	load     load
	worked   time.Duration // in the load window
	served   uint64        // writes to viewers in it
	windowAt time.Duration // when the load window began
	passEnd  time.Duration
	sweepAt  time.Duration
	passes   uint64
	ending   ending

	// Guarded by mu.
	mu      sync.Mutex
	inbox   inbox
	stopped bool // nothing is taken any more

	// Safe from any goroutine.
	asleep   atomic.Bool
	mail     atomic.Bool  // the inbox is not empty
	held     atomic.Int64 // answers
	interval atomic.Int64
	stats    shardCounters
}

// inbox is what other goroutines hand over.
type inbox struct {
	joining []*viewer
	kicks   []kick
	answers []answer
}

type kick struct {
	v *viewer
	r session.Reason
}

// wakeSlot is the number of the eventfd among those of viewers.
const wakeSlot = 1<<32 - 1

// maxEvents is how many events are taken from the kernel in one call.
const maxEvents = 256

func newShard(fan *Fanout, began time.Time) *shard {
	s := &shard{
		fan: fan, began: began, byStream: make(map[*stream.Stream]*feed),
		batch: newBatch(), events: make([]unix.EpollEvent, maxEvents),
	}
	s.load.interval = fan.config().MergeMin
	s.interval.Store(int64(s.load.interval))
	return s
}

// open makes what the shard sleeps on.
func (s *shard) open() (err error) {
	if s.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("create an epoll instance: %w", err)
	}
	if err = unix.SetNonblock(s.epfd, true); err != nil {
		unix.Close(s.epfd)
		return fmt.Errorf("make the epoll instance pollable: %w", err)
	}
	s.epoll = os.NewFile(uintptr(s.epfd), "epoll")
	if s.wakefd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		s.epoll.Close()
		return fmt.Errorf("create an eventfd: %w", err)
	}
	if err = s.watch(s.wakefd, wakeSlot, unix.EPOLLIN|unix.EPOLLET); err == nil {
		s.raw, err = s.epoll.SyscallConn()
	}
	if err != nil {
		s.close()
		return fmt.Errorf("watch the eventfd: %w", err)
	}
	s.poll = func(uintptr) bool {
		if s.yielding {
			s.yielding = false
			s.ring()
			return false
		}
		n, errno := pollEvents(s.epfd, s.events)
		s.ready = n
		return n > 0 || errno != 0 && errno != unix.EINTR
	}
	return nil
}

// close frees what open made. run must be over.
func (s *shard) close() {
	unix.Close(s.wakefd)
	s.epoll.Close()
}

// watch has events of fd reported under the given number.
func (s *shard) watch(fd int, slot uint32, events uint32) error {
	ev := unix.EpollEvent{Events: events, Fd: int32(slot)}
	return unix.EpollCtl(s.epfd, unix.EPOLL_CTL_ADD, fd, &ev)
}

func (s *shard) now() time.Duration { return time.Since(s.began) }

// wake ends the sleep of the shard if it sleeps.
func (s *shard) wake() {
	if s.asleep.Load() && s.asleep.Swap(false) {
		s.ring()
	}
}

// ring makes the eventfd readable.
func (s *shard) ring() { ring(s.wakefd) }

// run serves until ctx ends and the viewers are closed.
func (s *shard) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		s.mail.Store(true)
		s.wake()
	})
	defer stop()
	for {
		s.takeMail()
		now := s.now()
		if ctx.Err() != nil && s.drain(now) {
			break
		}
		writes := s.batch.counts.writes
		s.pass(now)
		if now >= s.sweepAt {
			s.sweepAt = s.sweep(now)
		}
		end := s.now()
		s.batch.release()
		s.measure(now, end, s.batch.counts.writes-writes)
		s.pause(end)
	}
	s.abandonRest()
}

// takeMail takes in what others handed over.
func (s *shard) takeMail() {
	if !s.mail.Load() {
		return
	}
	s.mu.Lock()
	s.mail.Store(false)
	in := s.inbox
	s.inbox = inbox{}
	s.mu.Unlock()
	for _, v := range in.joining {
		s.adopt(v)
	}
	for _, k := range in.kicks {
		// One that is not here yet is looked at by adopt.
		if k.v.feed != nil && !k.v.gone {
			s.finish(k.v, k.r)
		}
	}
	s.answers = append(s.answers, in.answers...)
	if len(in.joining)+len(in.answers) > 0 {
		s.sweepAt = 0
	}
}

// pass visits the feeds that have something to do.
func (s *shard) pass(now time.Duration) {
	for i := 0; i < len(s.feeds); i++ {
		f := s.feeds[i]
		fresh := f.dirty.Load()
		if fresh {
			f.dirty.Store(false) // before looking, or something could be missed
			f.observe(now, s.load.interval, s.batch.tags[:])
			f.arrived++
			s.batch.used = batchTags
		} else {
			f.pace.fresh = 0
		}
		if fresh && !f.nothingYet(now) || now >= f.due {
			s.visit(f, now)
		}
		if len(f.viewers) == 0 {
			s.drop(f)
			i--
		}
	}
}

// visitGroup is how many viewers are served before others get their turn on the
// processor: a quarter of a millisecond or so.
const visitGroup = 16

// visit serves the viewers of f whose turn it is, or who have waited enough.
func (s *shard) visit(f *feed, now time.Duration) {
	idle := f.stream.State() == stream.Idle
	f.due, f.oldest = never, now
	f.visiting = true
	served := 0
	for i := 0; i < len(f.viewers); i++ {
		v := f.viewers[i]
		switch {
		case v == nil:
			continue
		case idle || v.ending || !v.begun:
			s.visitOdd(v, now)
			continue
		case v.blocked:
			continue
		case v.seen == f.arrived:
			f.oldest = min(f.oldest, v.served)
			continue
		}
		if patience := v.served + f.pace.hold; now < patience && !f.pace.turn(v.phase) {
			f.due = min(f.due, patience)
			f.oldest = min(f.oldest, v.served)
			continue
		}
		s.serve(v, now)
		if served++; served%visitGroup == 0 {
			s.yield()
			now = s.now()
		}
	}
	f.compact()
}

// visitOdd deals with a viewer that waits, or that is to end.
func (s *shard) visitOdd(v *viewer, now time.Duration) {
	switch {
	case !v.begun && v.cur.Ended():
		s.answerMissing(v)
	case !v.begun:
		if s.start(v) {
			s.serve(v, now)
		}
	case !v.blocked:
		s.serve(v, now)
	}
}

// serve writes to v what it lacks, and notes how that went.
func (s *shard) serve(v *viewer, now time.Duration) {
	before := s.batch.counts.bytes
	out := s.batch.serve(v)
	if s.batch.counts.bytes != before {
		v.took, v.unacked = now, -1
	}
	switch out {
	case drained:
		v.cur.Held(0)
		v.seen, v.served = v.feed.arrived, now
		switch {
		case v.ending:
			s.leave(v, v.reason)
		case v.cur.Ended():
			s.finish(v, session.StreamEnded)
		}
	case blocked:
		v.blocked = true
	case more:
		v.seen, v.served = v.feed.arrived-1, now-v.feed.pace.hold
		v.feed.due = 0 // at once, after the others
	case failed:
		s.leave(v, session.PeerClosed)
	}
}

// start begins the response of a viewer that waited, if there is something to play.
func (s *shard) start(v *viewer) bool {
	if v.cur.Peek(s.batch.tags[:4]) == 0 {
		return false
	}
	s.batch.used = max(s.batch.used, 4)
	s.waiting--
	v.feed.waiting--
	v.begin()
	v.took = s.now()
	return true
}

// measure keeps account of how busy the shard is, and what it got done for that.
func (s *shard) measure(begin, end time.Duration, served uint64) {
	s.passes++
	s.worked += end - begin
	s.served += served
	if elapsed := end - s.windowAt; elapsed >= loadWindow {
		cfg := s.fan.config()
		s.load.step(s.worked, elapsed, s.served, s.count, cfg.MergeMin, cfg.MergeMax)
		s.interval.Store(int64(s.load.interval))
		s.worked, s.served, s.windowAt = 0, 0, end
	}
	s.stats.publish(s)
}
