package auth

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"millrace/internal/address"
	"millrace/internal/session"
)

// stormTable remembers which addresses were refused lately, and how often.
//
//	refusal   1 .. Free   Free+1       Free+2  ...            after Calm
//	delay     0           FirstDelay   twice as long, up to   0 again
//	                                   MaxDelay
//
// Refusals that wait are counted by the time they were told to wait until; if Held
// of one address wait, the next is turned away at once with reason Storm: it costs
// the node no connection that hangs about.
type stormTable struct {
	// Guarded by mu.
	mu      sync.Mutex
	entries map[netip.Addr]*list.Element
	order   *list.List // of *offender, latest refusal at the front
}

type offender struct {
	addr     netip.Addr
	last     time.Time // when the latest refusal was, or will be, told
	refusals int
	held     []time.Time // when each waiting refusal is told
}

// over reports whether o has been calm for long enough to be forgotten.
func (o *offender) over(now time.Time, cfg StormConfig) bool { return now.Sub(o.last) >= cfg.Calm }

func (t *stormTable) init() {
	t.entries = make(map[netip.Addr]*list.Element)
	t.order = list.New()
}

// slow counts the refusal d against the address and returns it with its delay, or
// another in its place.
func (t *stormTable) slow(now time.Time, peer netip.Addr, cfg StormConfig, d *Denied) *Denied {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(now, cfg)
	o := t.get(now, address.Source(peer), cfg)
	if now.After(o.last) {
		o.last = now
	}
	o.refusals = min(o.refusals+1, 1<<20)

	n := o.refusals - cfg.Free
	if n <= 0 || cfg.FirstDelay == 0 {
		return d
	}
	kept := o.held[:0]
	for _, until := range o.held {
		if until.After(now) {
			kept = append(kept, until)
		}
	}
	o.held = kept
	if len(o.held) >= cfg.Held {
		return deny(session.Storm, "too many refused attempts from this address: correct the key or URL, and wait a minute")
	}
	delay := cfg.MaxDelay
	if n < 16 { // 2^15 times any FirstDelay is over any MaxDelay that matters
		delay = min(cfg.FirstDelay<<(n-1), cfg.MaxDelay)
	}
	d.Delay = delay
	told := now.Add(delay)
	o.held = append(o.held, told)
	if told.After(o.last) {
		o.last = told
	}
	return d
}

// forget drops what is over its time. Entries are in order of their latest refusal,
// so that the old ones are at the back; one may stay longer by the delay of another.
func (t *stormTable) forget(now time.Time, cfg StormConfig) {
	for e := t.order.Back(); e != nil; e = t.order.Back() {
		if !e.Value.(*offender).over(now, cfg) {
			return
		}
		t.remove(e)
	}
}

// get returns the entry of a, at the front of the order, and makes room for a new one.
func (t *stormTable) get(now time.Time, a netip.Addr, cfg StormConfig) *offender {
	if e, ok := t.entries[a]; ok {
		t.order.MoveToFront(e)
		o := e.Value.(*offender)
		if o.over(now, cfg) {
			*o = offender{addr: a}
		}
		return o
	}
	for t.order.Len() >= cfg.Addresses {
		t.remove(t.order.Back())
	}
	o := &offender{addr: a}
	t.entries[a] = t.order.PushFront(o)
	return o
}

func (t *stormTable) remove(e *list.Element) {
	t.order.Remove(e)
	delete(t.entries, e.Value.(*offender).addr)
}
