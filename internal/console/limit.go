package console

import (
	"container/list"
	"net/netip"
	"sync"
	"time"
)

// recent holds values of the keys that were used last, up to size of them.
type recent[V any] struct {
	size    int
	entries map[string]*list.Element
	order   *list.List // of *used[V], the latest at the front
}

type used[V any] struct {
	key   string
	value V
}

func newRecent[V any](size int) recent[V] {
	return recent[V]{size, map[string]*list.Element{}, list.New()}
}

// get returns the value of a key, which is zero for a new one, for changing.
func (r *recent[V]) get(key string) *V {
	if e, ok := r.entries[key]; ok {
		r.order.MoveToFront(e)
		return &e.Value.(*used[V]).value
	}
	if r.order.Len() >= r.size {
		last := r.order.Back()
		r.order.Remove(last)
		delete(r.entries, last.Value.(*used[V]).key)
	}
	u := &used[V]{key: key}
	r.entries[key] = r.order.PushFront(u)
	return &u.value
}

func (r *recent[V]) has(key string) bool { return r.entries[key] != nil }

// limiter bounds how often something is tried: a key may try burst times at once, and
// then once in each interval.
//
// It remembers so many keys. Who uses more than that makes it forget those that were
// not used for longest, and is then bounded by what log-ins take of the machine.
type limiter struct {
	// Fixed at construction.
	burst    int
	interval time.Duration

	// Guarded by mu. The value of a key is when its attempts will all be forgotten: each
	// moves it on by one interval.
	mu   sync.Mutex
	keys recent[time.Time]
}

func newLimiter(burst int, interval time.Duration, size int) *limiter {
	return &limiter{burst: burst, interval: interval, keys: newRecent[time.Time](size)}
}

// take counts an attempt, or returns after how long there may be one.
func (l *limiter) take(now time.Time, key string) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := l.keys.get(key)
	next := free.Add(l.interval)
	if free.Before(now) {
		next = now.Add(l.interval)
	}
	if wait = next.Sub(now) - time.Duration(l.burst)*l.interval; wait > 0 {
		return wait
	}
	*free = next
	return 0
}

// giveBack takes back an attempt that was none.
func (l *limiter) giveBack(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := l.keys.get(key)
	*free = free.Add(-l.interval)
}

// block is whom an attempt is counted against: an IPv4 address, or the /64 that one
// IPv6 customer has to itself.
func block(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil { // it always is in range
			return p.String()
		}
	}
	return a.String()
}

const (
	// maxLines is how many lines of the log refusals make in linesWindow: a stranger can
	// be refused some thousand times a second.
	maxLines    = 20
	linesWindow = 10 * time.Second
)

// lines bounds what refusals write into the log. Those beyond are counted.
type lines struct {
	mu       sync.Mutex
	since    time.Time
	taken    int
	unlogged uint64 // since the last line
}

// take reports whether there is a line, and how many there were none of since the last.
func (l *lines) take(now time.Time) (unlogged uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.since) >= linesWindow {
		l.since, l.taken = now, 0
	}
	if l.taken >= maxLines {
		l.unlogged++
		return 0, false
	}
	l.taken++
	unlogged, l.unlogged = l.unlogged, 0
	return unlogged, true
}
