package upstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	// routeTime is how long a session waits for a router before it goes to the pool. An
	// answer that comes later still counts, for what comes next.
	routeTime = 50 * time.Millisecond
	// routeLimit is how long a router has to answer.
	routeLimit = time.Second
	// maxRouted bounds how many upstreams it may name for a stream.
	maxRouted = 16
)

// route is what a router has said about where a session should pull its stream from.
type route struct {
	to     []target
	at     time.Time // of the answer
	next   time.Time // when it is asked again; zero: it was never asked
	until  time.Time // so long the first answer is waited for
	asking bool
	orders uint64 // changes of the orders that were seen
}

// awaitRoute reports whether the session has to wait for what a router says: nobody in the
// datacenter is left to be asked, nobody else is being asked, and it was never asked
// before. mu is held.
func (x *Session) awaitRoute(now time.Time) bool {
	if x.o.opt.Route == nil || x.current != nil || len(x.trials) > 0 || !x.route.next.IsZero() && !x.route.asking {
		return false
	}
	if _, ok := x.o.nextPeer(now, x.search(now)); ok {
		return false
	}
	if x.route.next.IsZero() {
		x.ask(now)
		x.route.until = now.Add(routeTime)
	}
	return now.Before(x.route.until)
}

// keepRoute asks again now and then while the stream comes from outside, and soon when
// the orders have changed. mu is held.
func (x *Session) keepRoute(now time.Time) {
	if n := x.o.changes.Load(); n != x.route.orders {
		x.route.orders = n
		if soon := now.Add(rand.N(x.o.opt.calm.spread + 1)); soon.Before(x.route.next) {
			x.route.next = soon
		}
	}
	if c := x.current; c != nil && !c.to.peer() && !now.Before(x.route.next) {
		x.ask(now)
	}
}

// ask asks a router, unless it is being asked. mu is held.
func (x *Session) ask(now time.Time) {
	if x.o.opt.Route == nil || x.route.asking {
		return
	}
	every := x.o.opt.calm.ask
	x.route.asking, x.route.next = true, now.Add(every/2+rand.N(every/2+1))
	x.spawn(func(ctx context.Context) {
		ctx, cancel := context.WithTimeoutCause(ctx, routeLimit, errRouteLimit)
		defer cancel()
		late := time.AfterFunc(routeTime, x.rouse)
		defer late.Stop()
		found, err := x.o.opt.Route(ctx, x.stream.Name())
		x.routed(time.Now(), found, err)
	})
}

var errRouteLimit = errors.New("no router has answered in time")

// routed takes in what a router has said. Without an answer the last one stays.
func (x *Session) routed(now time.Time, found []Upstream, err error) {
	defer x.rouse()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.route.asking = false
	if err != nil {
		// Who wants to move would ask again at once.
		if later := now.Add(x.o.opt.calm.fresh); x.plan.waitFor.Before(later) {
			x.plan.waitFor = later
		}
		return
	}
	x.route.to, x.route.at = nil, now
	for _, u := range found {
		// What a router says of the datacenter itself is older than what its nodes know.
		if u.Node == x.o.opt.Self || x.o.members.has(u.Node) || u.check("http", "https", "rtmp", "rtmps") != nil {
			continue
		}
		if len(x.route.to) < maxRouted {
			x.route.to = append(x.route.to, target{url: u.URL, node: u.Node})
		}
	}
}

// search is where the session may look for its stream. mu is held.
func (x *Session) search(now time.Time) search {
	return search{name: x.stream.Name(), peers: x.peers(now), word: &x.word, routed: x.route.to, busy: x.busy(now)}
}
