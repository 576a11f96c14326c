package listen

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"millrace/internal/address"
)

// Budget bounds the connections of several listeners together: each takes a
// descriptor, and the process has a number of them.
type Budget struct {
	most int64
	open atomic.Int64
}

// NewBudget returns a budget of most connections.
func NewBudget(most int) *Budget { return &Budget{most: int64(most)} }

// Open returns how many connections are open now.
func (b *Budget) Open() int { return int(b.open.Load()) }

// enter counts one connection unless there are most already. Without a budget there
// is no bound.
func (b *Budget) enter() bool {
	if b == nil {
		return true
	}
	if b.open.Add(1) <= b.most {
		return true
	}
	b.open.Add(-1)
	return false
}

func (b *Budget) leave() {
	if b != nil {
		b.open.Add(-1)
	}
}

// limits counts the open connections of a listener. An address without a
// connection has no entry, so that the map is bounded by the total.
type limits struct {
	// Fixed before the first Accept.
	shared *Budget // nil without one

	// Guarded by mu.
	mu         sync.Mutex
	total      int
	perAddress map[netip.Addr]int // by source; what is no IP is one, without a limit
}

// enter counts one connection unless there are most already.
func (l *limits) enter(most int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= most || !l.shared.enter() {
		return false
	}
	l.total++
	return true
}

// leave undoes enter.
func (l *limits) leave() {
	l.shared.leave()
	l.mu.Lock()
	l.total--
	l.mu.Unlock()
}

// enterAddress counts one connection of a unless it has most already; 0 is no
// limit. It is counted without a limit too: a reload may set one.
func (l *limits) enterAddress(a netip.Addr, most int) bool {
	a = address.Source(a)
	l.mu.Lock()
	defer l.mu.Unlock()
	if most > 0 && l.perAddress[a] >= most && a.IsValid() {
		return false
	}
	l.perAddress[a]++
	return true
}

// leaveBoth undoes enter and enterAddress.
func (l *limits) leaveBoth(a netip.Addr) {
	l.shared.leave()
	a = address.Source(a)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.perAddress[a]--; l.perAddress[a] <= 0 {
		delete(l.perAddress, a)
	}
}

func (l *limits) count() (open, addresses int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total, len(l.perAddress)
}
