package control

import (
	"math/rand/v2"
	"sync"
	"time"
)

// bulletin is the newest payload of one kind and those who wait for a newer one. A
// waiter costs the channel it listens on, which all share, and a timer.
type bulletin struct {
	rate int // how many waiters a second are let go when there is something new

	// Guarded by mu.
	mu      sync.Mutex
	current *payload
	changed chan struct{} // closed when current is replaced; never nil
	waiting int
	spread  time.Duration // over how long those who waited for current are let go
}

func newBulletin(rate int) *bulletin { return &bulletin{rate: rate, changed: make(chan struct{})} }

// publish replaces the payload and wakes who waits.
func (b *bulletin) publish(p *payload) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current != nil && b.current.token == p.token {
		return
	}
	b.current = p
	b.spread = time.Duration(b.waiting) * time.Second / time.Duration(b.rate)
	close(b.changed)
	b.changed = make(chan struct{})
}

// look returns the payload, nil when there is none, and how to hear of the next one.
func (b *bulletin) look() (*payload, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.current, b.changed
}

// next waits until there is a payload with a token other than have, at most for wait
// or until ended is closed. It returns the newest payload, which may be the same one or
// nil, and false when limit others wait already.
//
// Whoever is woken comes back in its turn: a new snapshot for ten thousand followers
// is otherwise a burst of all of them in one instant.
func (b *bulletin) next(have string, wait time.Duration, limit int, ended <-chan struct{}) (p *payload, ok bool) {
	p, changed := b.look()
	if wait <= 0 || p != nil && p.token != have {
		return p, true
	}
	if !b.enter(limit) {
		return p, false
	}
	defer b.leave()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
		return p, true
	case <-ended:
		return p, true
	}
	timer.Reset(b.turn())
	select {
	case <-timer.C:
	case <-ended:
	}
	p, _ = b.look()
	return p, true
}

func (b *bulletin) enter(limit int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting >= limit {
		return false
	}
	b.waiting++
	return true
}

func (b *bulletin) leave() {
	b.mu.Lock()
	b.waiting--
	b.mu.Unlock()
}

// turn returns how long one of those who were woken holds back.
func (b *bulletin) turn() time.Duration {
	b.mu.Lock()
	spread := b.spread
	b.mu.Unlock()
	return rand.N(spread + 1)
}

// waiters returns how many wait.
func (b *bulletin) waiters() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting
}
