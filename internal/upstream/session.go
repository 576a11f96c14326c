package upstream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/failover"
	"millrace/internal/flv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

const (
	// stepEvery is how often a session looks at its feeds when nothing happens.
	stepEvery = 50 * time.Millisecond
	// peerTime is how long a session that a node of the same datacenter asked for looks
	// in the pool only. After that it goes to the owner like any other: who asked may
	// have been wrong about the owner, and a stream shall enter the datacenter once. No
	// circle can come of it, because every node knows the path of its stream.
	peerTime = 3 * time.Second
	// minBack and backMargin are how far a new feed is asked to go back: as long as
	// nothing came, and a margin in which the tags of both connections can be aligned.
	minBack    = 2 * time.Second
	backMargin = time.Second
)

// Session is the back-to-origin work of one stream on this node.
type Session struct {
	// Fixed at construction.
	o      *Origin
	stream *stream.Stream
	demand stream.Demand

	began time.Time

	wake chan struct{} // capacity 1, never closed

	// Owned by run.
	searching *turns // of which it holds a turn, nil if of none

	// Guarded by Origin.mu.
	unwantedAt time.Time // zero while somebody wants the stream

	// Safe from any goroutine.
	hops    atomic.Pointer[[]stream.Hop]
	outside atomic.Bool // it comes from outside of the datacenter, or did so last

	// Guarded by mu.
	mu       sync.Mutex
	spawn    func(run func(context.Context)) context.CancelFunc // starts a feed
	policy   *failover.Policy
	splicer  *failover.Splicer
	pub      *stream.Publisher // nil until the first upstream
	had      int64             // newest epoch that the readers have had, from whomever; 0: unknown
	current  *feed             // nil when there is none
	trials   []*feed
	ids      int
	out      []flv.Tag
	lost     session.Reason // why there is no current feed
	lostAt   time.Time      // since when; of the start, before the first
	newestAt time.Time      // when something was forwarded last
	lag      lag            // of what is forwarded
	clock    clockName      // of what is forwarded
	feedOn   string         // the clock of the current feed, or of the one before; empty if it has no name
	reported bool           // the newest splice
	switches uint64
	failures []failover.Failure // since something was forwarded
	away     away               // upstreams without the stream
	word     word               // what its owner has said, which is over its bound
	route    route              // what a router says
	plan     plan               // what the plan wants
	ending   session.Reason     // why the session is over
}

func newSession(o *Origin, s *stream.Stream, d stream.Demand) *Session {
	x := &Session{
		o: o, stream: s, demand: d, began: time.Now(), wake: make(chan struct{}, 1),
		policy: failover.NewPolicy(&failoverConfig), splicer: failover.NewSplicer(), reported: true,
		away: make(away),
	}
	x.hops.Store(&[]stream.Hop{})
	return x
}

// wanted notes that somebody wants the stream, or nobody any more. Origin.mu is held.
func (x *Session) wanted(yes bool) {
	x.unwantedAt = time.Time{}
	if !yes {
		x.unwantedAt = time.Now()
		x.rouse()
	}
}

// isWanted reports whether somebody wants the stream. Origin.mu is held.
func (x *Session) isWanted() bool { return x.unwantedAt.IsZero() }

// path returns through whom the stream comes, or is looked for.
func (x *Session) path() []stream.Hop { return *x.hops.Load() }

// run brings the stream until nobody wants it, nobody has it, or ctx ends.
func (x *Session) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var feeds sync.WaitGroup
	x.mu.Lock()
	x.lostAt = time.Now()
	x.spawn = func(run func(context.Context)) context.CancelFunc {
		own, stop := context.WithCancel(ctx)
		feeds.Go(func() { defer stop(); run(own) })
		return stop
	}
	x.mu.Unlock()
	r := x.turn(ctx)
	if r == session.None {
		x.o.note(Event{Stream: x.stream.Name(), Kind: Started, search: true})
	}
	tick := time.NewTicker(stepEvery)
	defer tick.Stop()
	for r == session.None {
		x.mu.Lock()
		x.step(time.Now())
		r = x.ending
		found := x.pub != nil
		x.mu.Unlock()
		if found {
			x.pass()
		}
		if r != session.None {
			break
		}
		select {
		case <-ctx.Done():
			r = session.Draining
		case <-tick.C:
			r = x.unwanted()
		case <-x.wake:
		}
	}
	x.finish(r, cancel, &feeds)
}

// turn waits until the stream may be looked for. It returns why that makes no sense any
// more. Readers who have had the stream do not wait for those who ask for another.
func (x *Session) turn(ctx context.Context) session.Reason {
	if x.stream.State() != stream.Idle {
		return session.None
	}
	turns := x.o.turns
	if x.demand.Peer {
		turns = x.o.peerTurns
	}
	for wait := turns.ask(); wait != nil; {
		select {
		case <-wait:
			if x.deserted() {
				turns.give()
				return session.Idle
			}
			wait = nil
		case <-ctx.Done():
			if turns.leave(wait) {
				return session.Draining
			}
			wait = nil
		case <-x.wake:
			if x.deserted() {
				if !turns.leave(wait) {
					turns.give()
				}
				return session.Idle
			}
		}
	}
	x.searching = turns
	return session.None
}

// deserted reports whether nobody waits for the stream any more, and ends it then.
func (x *Session) deserted() bool {
	x.o.mu.Lock()
	wanted := x.isWanted()
	x.o.mu.Unlock()
	return !wanted && x.o.opt.Hub.EndUnread(time.Now(), x.stream, nil)
}

// pass lets the next one have its turn.
func (x *Session) pass() {
	if x.searching != nil {
		x.searching.give()
		x.searching = nil
	}
}

// unwanted ends the stream when nobody has wanted it for the linger time, and
// returns Idle if it did.
func (x *Session) unwanted() session.Reason {
	x.o.mu.Lock()
	over := !x.isWanted() && time.Since(x.unwantedAt) >= x.o.cfg.Load().Linger
	x.o.mu.Unlock()
	if !over {
		return session.None
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.o.opt.Hub.EndUnread(time.Now(), x.stream, x.pub) {
		return session.None
	}
	x.ending = session.Idle
	return session.Idle
}

// finish ends the session for the reason r.
func (x *Session) finish(r session.Reason, cancel context.CancelFunc, feeds *sync.WaitGroup) {
	x.mu.Lock()
	x.ending = r
	pub := x.pub
	x.pub, x.current, x.trials = nil, nil, nil
	x.mu.Unlock()
	cancel()
	x.pass()
	if pub != nil {
		pub.End(time.Now())
	}
	x.o.note(Event{Stream: x.stream.Name(), Kind: Stopped, Reason: r.String(), search: pub == nil})
	feeds.Wait()
	x.o.remove(x, r)
	x.o.opt.Hub.Forget(x.stream)
}

// end has run end the session.
func (x *Session) end(r session.Reason) {
	x.ending = r
	x.rouse()
}

// rouse has run look what is new.
func (x *Session) rouse() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}
