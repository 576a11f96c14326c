package upstream

import (
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"
)

// calm is how slowly sessions follow a plan whose upstreams are well: a plan that changes
// shall be noticed by no viewer and move no crowd at once.
type calm struct {
	// stand is how long a choice of the plan, and the upstream in use, must have stood
	// before a session moves; spread is by how much that differs between sessions, so
	// that those of many nodes do not move together.
	stand, spread time.Duration
	// every is how often one session of the node moves, and burst how many at once.
	every time.Duration
	burst int
	// home is the same, every and at once, for moves to the owner in the datacenter, which
	// cost less: they come when one drains or is back.
	home      time.Duration
	homeBurst int
	// after is how long an upstream is no aim that a stream was taken from because it was
	// bad; again is how long a session waits when a move came to nothing, at first: it
	// doubles up to most.
	after, again, most time.Duration
	// ask is how often a router is asked again about a stream that comes from outside, and
	// fresh how old its word may be when a session moves. When the orders change it is asked
	// again within spread.
	ask, fresh time.Duration
}

// defaultCalm moves four sessions a second, and twenty inside the datacenter.
var defaultCalm = calm{
	stand: 3 * time.Second, spread: 3 * time.Second, every: 250 * time.Millisecond, burst: 4,
	home: 50 * time.Millisecond, homeBurst: 20,
	after: 30 * time.Second, again: 10 * time.Second, most: 5 * time.Minute,
	ask: 5 * time.Minute, fresh: 2 * time.Second,
}

// leave reports whether l has leave for one more to move, and takes it if take.
func leave(l *rate.Limiter, now time.Time, take bool) bool {
	if take {
		return l.AllowN(now, 1)
	}
	return l.TokensAt(now) >= 1
}

// mayMove reports whether one more session may move to the upstream at url because of
// the plan. If take it has then begun to.
func (o *Origin) mayMove(now time.Time, url string, take bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.opt.calm
	return o.free(now, url) && now.Sub(o.places.left[url]) >= c.after && leave(o.moves, now, take)
}

// mayGoHome is mayMove for the owner in the datacenter.
func (o *Origin) mayGoHome(now time.Time, take bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return leave(o.homeMoves, now, take)
}

// goal is where a stream ought to come from.
type goal struct {
	to      target
	planned bool // by the plan, not by the ring of the datacenter
}

// plan is what a session knows of what the plan wants.
type plan struct {
	to      target        // where the stream ought to come from, by the newest word
	since   time.Time     // for how long it has been so
	stand   time.Duration // how long it must be so
	waitFor time.Time     // no move before
	fruit   int           // moves in a row that came to nothing
}

// goal returns where the stream ought to come from, ok false when it does not matter. mu
// is held.
func (x *Session) goal(now time.Time) (g goal, ok bool) {
	if home, has := x.home(now); has {
		x.plan.to = target{} // a choice of the plan must stand anew
		return goal{to: home}, true
	}
	if to, has := x.takesBack(now); has {
		return goal{to: to}, true
	}
	if to, has := x.choice(now); has {
		return goal{to, true}, true
	}
	return goal{}, false
}

// home returns the peer that the stream belongs to, ok false if there is none.
func (x *Session) home(now time.Time) (target, bool) {
	if !x.peers(now) {
		return target{}, false
	}
	return x.o.home(now, x.stream.Name(), &x.word)
}

// takesBack returns where a stream is to be fetched from that this node owns and has
// passed on to where it comes from, ok false unless it is to fetch it itself again.
func (x *Session) takesBack(now time.Time) (target, bool) {
	c := x.current
	if c == nil || !c.to.peer() || x.o.members.lent(x.stream.Name()) != c.to.node {
		return target{}, false
	}
	for _, f := range x.trials {
		if f.move && !f.to.peer() {
			return f.to, true
		}
	}
	to, err := x.o.nextOutside(now, x.search(now))
	return to, err == nil
}

// choice returns what the plan wants, if it has wanted it for long enough.
func (x *Session) choice(now time.Time) (target, bool) {
	var to target
	if len(x.route.to) > 0 {
		to = x.route.to[0]
	} else {
		x.o.mu.Lock()
		to = x.o.places.first
		x.o.mu.Unlock()
	}
	p := &x.plan
	if to.url != p.to.url {
		p.since, p.stand = now, x.o.opt.calm.stand+rand.N(x.o.opt.calm.spread+1)
		p.waitFor, p.fruit = time.Time{}, 0
	}
	p.to = to
	return to, to.url != "" && now.Sub(p.since) >= p.stand
}

// prefers reports whether the session ought to move to g, and may do so now.
func (x *Session) prefers(now time.Time, g goal) bool {
	c := x.current
	switch {
	case c == nil || c.to.url == g.to.url || x.busy(now)(g.to.url):
		return false
	case !g.planned:
		return x.o.mayGoHome(now, false)
	case now.Before(x.plan.waitFor) || now.Sub(c.since) < x.plan.stand || !x.o.mayMove(now, g.to.url, false):
		return false
	case len(x.route.to) > 0 && now.Sub(x.route.at) >= x.o.opt.calm.fresh:
		x.ask(now)
		return false
	}
	return true
}

// moves takes leave to move to g.
func (x *Session) moves(now time.Time, g goal) bool {
	if !g.planned {
		return x.o.mayGoHome(now, true)
	}
	if !x.o.mayMove(now, g.to.url, true) {
		return false // another session was quicker
	}
	c := x.o.opt.calm
	x.plan.waitFor = now.Add(min(c.again<<min(x.plan.fruit, 16), c.most))
	x.plan.fruit++
	return true
}
