package fleet

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"millrace/internal/control"
)

// shared is how much later than its own router another one may hear of a node: one
// second until it is announced, one until that is read.
const shared = 2 * time.Second

// routers tells which routers are at work.
type routers struct {
	alone bool            // there was no other one for a while
	up    map[string]bool // the others that are there
	away  bool            // the store is: nobody knows of the others
}

// alive reports whether a node is to be counted on. One that talked to a router that has
// gone, or that this one cannot hear of, has time to find another.
func (r *registry) alive(m *member, now time.Time, others *routers) bool {
	silent := now.Sub(m.heard)
	switch {
	case silent <= r.cfg.Alive:
		return true
	case m.router == r.cfg.Router:
		return !others.alone && silent <= r.cfg.Alive+shared // another one may hear it by now
	case others.away && !m.seed:
		return true
	case m.seed || !others.up[m.router]:
		return silent <= max(r.cfg.Grace, r.cfg.Alive+shared)
	}
	return silent <= r.cfg.Alive+shared
}

// fate is a node that fell silent or was forgotten.
type fate struct {
	id, boot  string
	sequence  uint64
	heard     time.Time
	mine      bool // this router heard it, or nobody does now
	forgotten bool
}

// sweep finds out who is down, and forgets those who have been for long. A router that
// hears nobody forgets nobody: it is more likely to be cut off itself.
func (r *registry) sweep(now time.Time, others *routers) []fate {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []fate
	var silent []*member
	heard := false
	for _, m := range r.nodes {
		if r.alive(m, now, others) {
			heard = heard || !m.seed
			continue
		}
		silent = append(silent, m)
	}
	for _, m := range silent {
		of := fate{id: m.id, boot: m.boot, sequence: m.sequence, heard: m.heard, mine: m.router == r.cfg.Router || !others.up[m.router]}
		if heard && now.Sub(m.heard) > r.cfg.Forget {
			of.forgotten = true
			r.remove(m)
			out = append(out, of)
			continue
		}
		if !m.down {
			m.down = true
			m.demand, m.load, m.pulled, m.viewers = 0, 0, 0, 0
			r.streams.hide(m)
			out = append(out, of)
		}
	}
	slices.SortFunc(out, func(a, b fate) int { return strings.Compare(a.id, b.id) })
	return out
}

// settled reports whether a router that has just begun has heard of all that it can
// expect to: before that it knows too little to plan.
func (r *registry) settled(now time.Time) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	passed := now.Sub(r.began)
	if passed >= r.cfg.Grace {
		return true
	}
	if passed < r.cfg.Interval {
		return false
	}
	for _, m := range r.nodes {
		if m.seed {
			return false
		}
	}
	return true
}

// seedFrom takes nodes that were known before this router began.
func (r *registry) seedFrom(now time.Time, list []rosterNode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began = now // they have their time from now on
	for i := range list {
		n := &list[i]
		if r.nodes[n.Identity.ID] != nil || len(r.nodes) >= r.cfg.MaxNodes {
			continue
		}
		m := r.add(n.Identity.ID)
		m.identify(&n.Identity)
		m.boot, m.started, m.heard, m.seed = n.Boot, n.Started, r.began, true
	}
}

// roster returns all nodes, for routers that begin later.
func (r *registry) roster() (list []rosterNode, identities uint64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, m := range r.nodes {
		list = append(list, rosterNode{*m.identity, m.boot, m.started.UTC()})
	}
	slices.SortFunc(list, func(a, b rosterNode) int { return strings.Compare(a.Identity.ID, b.Identity.ID) })
	return list, r.identities
}

// rosterNode is a node as it is remembered across restarts of routers.
type rosterNode struct {
	Identity control.Identity `json:"identity"`
	Boot     string           `json:"boot"`
	Started  time.Time        `json:"started"`
}

// sameIdentity reports whether a node says the same of itself.
func sameIdentity(a, b *control.Identity) bool {
	x, y := *a, *b
	x.ISPs, x.Groups, x.Addresses = nil, nil, nil
	y.ISPs, y.Groups, y.Addresses = nil, nil, nil
	return slices.Equal(a.ISPs, b.ISPs) && slices.Equal(a.Groups, b.Groups) && slices.Equal(a.Addresses, b.Addresses) &&
		reflect.DeepEqual(x, y)
}
