package control

import (
	"math/rand/v2"
	"sync"
	"time"
)

// board wakes nodes that wait for orders, each for its own. A node that waits costs a
// channel and a timer.
type board struct {
	// Fixed at construction.
	rate int // how many waiters a second are let go when there is something new

	// Guarded by mu.
	mu      sync.Mutex
	desks   map[string]*desk // by node; of those that somebody waits at
	waiting int
}

// desk is where those wait that ask on behalf of one node: one as a rule, and the ends
// of connections that broke.
type desk struct {
	changed chan struct{} // closed when there is news; never nil
	waiting int
	spread  time.Duration // over how long those who were woken with it are let go
}

func newBoard(rate int) *board { return &board{rate: rate, desks: map[string]*desk{}} }

// enter takes a seat for a node, unless limit are taken.
func (b *board) enter(node string, limit int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting >= limit {
		return false
	}
	d := b.desks[node]
	if d == nil {
		d = &desk{changed: make(chan struct{})}
		b.desks[node] = d
	}
	d.waiting++
	b.waiting++
	return true
}

// leave gives the seat up.
func (b *board) leave(node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting--
	d := b.desks[node]
	if d.waiting--; d.waiting == 0 {
		delete(b.desks, node)
	}
}

// news returns what is closed with the next news for a node that has a seat.
func (b *board) news(node string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.desks[node].changed
}

// turn returns how long a node that was woken holds back, so that news for ten thousand
// nodes is not a burst of all of them in one instant.
func (b *board) turn(node string) time.Duration {
	b.mu.Lock()
	spread := b.desks[node].spread
	b.mu.Unlock()
	return rand.N(spread + 1)
}

// wake tells those of the nodes that wait.
func (b *board) wake(nodes []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var woken []*desk
	for _, node := range nodes {
		if d := b.desks[node]; d != nil {
			woken = append(woken, d)
		}
	}
	spread := time.Duration(len(woken)) * time.Second / time.Duration(b.rate)
	for _, d := range woken {
		d.spread = spread
		close(d.changed)
		d.changed = make(chan struct{})
	}
}

// waiters returns how many wait.
func (b *board) waiters() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting
}

// await returns the orders of a node as soon as they have a token other than have, or
// what there is after wait or when ended is closed, which may be nil. It returns false
// when limit others wait already.
func (b *board) await(f Backend, node, have string, wait time.Duration, limit int, ended <-chan struct{}) (*OrdersPaper, bool) {
	fresh := func(p *OrdersPaper) bool { return p != nil && p.Token() != have }
	p := f.Orders(node)
	if wait <= 0 || fresh(p) {
		return p, true
	}
	if !b.enter(node, limit) {
		return p, false
	}
	defer b.leave(node)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		// Whoever looks at the orders after this has not missed anything.
		news := b.news(node)
		if p = f.Orders(node); fresh(p) {
			return p, true
		}
		select {
		case <-timer.C:
			return p, true
		case <-ended:
			return p, true
		case <-news:
		}
		turn := time.NewTimer(b.turn(node))
		select {
		case <-turn.C:
		case <-ended:
		}
		turn.Stop()
	}
}
