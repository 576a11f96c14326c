package control

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// gate bounds how many heartbeats are worked on at the same time, and tells how busy
// they keep the program.
type gate struct {
	// Fixed at construction.
	places  chan struct{} // one for each that is worked on
	waiters int64         // how many may wait for a place

	// Safe from any goroutine.
	waiting atomic.Int64

	// Guarded by mu.
	mu     sync.Mutex
	second int64 // the one that now is of
	now    work  // in this second
	before work  // in the last
}

// work is what a second brought.
type work struct {
	spent           time.Duration // on heartbeats
	taken, rejected int           // heartbeats
}

const (
	// waitersEach is how many heartbeats may wait for each that is worked on: a second's
	// work.
	waitersEach = 500
	// placeTime is how long a heartbeat waits for its turn at most. Its node gives up
	// soon after, and then it would be read for nothing.
	placeTime = 800 * time.Millisecond
)

func newGate(places int) *gate {
	return &gate{places: make(chan struct{}, places), waiters: int64(places * waitersEach)}
}

// enter waits for a place and reports whether there is one.
func (g *gate) enter() bool {
	select {
	case g.places <- struct{}{}:
		return true
	default:
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > g.waiters {
		return false
	}
	timer := time.NewTimer(placeTime)
	defer timer.Stop()
	select {
	case g.places <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

// full reports whether so many wait for a place that one more would be refused. Who is
// not known yet is told so before anything is computed for it.
func (g *gate) full() bool { return g.waiting.Load() >= g.waiters }

// leave frees a place that was taken at begun.
func (g *gate) leave(begun, now time.Time) {
	<-g.places
	g.mu.Lock()
	g.turnLocked(now)
	g.now.spent += now.Sub(begun)
	g.now.taken++
	g.mu.Unlock()
}

const (
	// shortRest is for how many seconds a node is sent away at most, when few are.
	shortRest = 3
	// longRest is likewise, when a crowd comes: what is refused costs something, too, and
	// must not leave too little for those who have their turn.
	longRest = 20
)

// reject notes that a heartbeat was refused for want of a place, and returns for how
// many seconds its node should stay away: the more are sent away for each that is
// taken, the longer.
func (g *gate) reject(now time.Time) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turnLocked(now)
	g.now.rejected++
	crowd := max(g.now.rejected, g.before.rejected) / max(g.now.taken, g.before.taken, 1)
	return 1 + rand.IntN(min(max(2*crowd, shortRest), longRest))
}

// turnLocked begins a new second when it is time.
func (g *gate) turnLocked(now time.Time) {
	switch second := now.Unix(); {
	case second == g.second+1:
		g.second, g.before, g.now = second, g.now, work{}
	case second != g.second:
		g.second, g.before, g.now = second, work{}, work{}
	}
}

// mostStretch is by how much the pause between heartbeats is stretched at most: a node
// must not seem dead.
const mostStretch = 2

// stretch returns by how much nodes should speak less often, 1 to mostStretch: more than
// half of the machine is not for heartbeats.
func (g *gate) stretch(now time.Time) float64 {
	g.mu.Lock()
	g.turnLocked(now)
	spent := max(g.before.spent, g.now.spent)
	g.mu.Unlock()
	half := time.Duration(min(runtime.GOMAXPROCS(0), cap(g.places))) * time.Second / 2
	return min(max(float64(spent)/float64(half), 1), mostStretch)
}
