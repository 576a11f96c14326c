package upstream

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"millrace/internal/auth"
	"millrace/internal/httpflv"
	"millrace/internal/ring"
	"millrace/internal/stream"
)

const (
	// deadAfter is how many checks in a row a member may miss.
	deadAfter = 2
	// aliveAfter is how many checks in a row a member that was dead must answer: one
	// that comes and goes must not move streams each time.
	aliveAfter = 3
	// skipTime is how long a member is passed over with which a pull has failed.
	skipTime = 2 * time.Second
)

// members are the nodes of the datacenter, this one included.
type members struct {
	// Fixed at construction.
	self     string
	capacity float64 // of this node where the orders do not say

	// Guarded by mu.
	mu     sync.Mutex
	peers  map[string]*peer
	own    share                   // of this node
	load   float64                 // what it sends, bytes/s
	bound  float64                 // what it should, bytes/s
	over   time.Time               // since when it is over its bound; zero: it is not
	passed map[stream.Name]*passed // what it has decided as the owner of streams, at most maxPassed
}

// share is how much of the streams a node can have.
type share struct {
	weight   float64 // 0: none
	capacity float64 // bytes/s; 0: not known
}

func (s share) member(id string) ring.Member {
	return ring.Member{ID: id, Weight: s.weight, Capacity: s.capacity}
}

// peer is another node of the datacenter. It is believed to live until it has missed
// checks: a node that starts must not fetch everything itself.
type peer struct {
	url    string
	share  share
	dead   bool
	missed int
	hits   int
	skip   time.Time // passed over until then
	told   bool      // it has said what follows
	says   httpflv.Figures
}

func newMembers(self string, capacity int64) *members {
	m := &members{self: self, capacity: float64(capacity), peers: make(map[string]*peer), passed: make(map[stream.Name]*passed)}
	m.own = share{1, m.capacity}
	return m
}

// set replaces the list by the peers of the orders and those of the settings that the
// orders do not name. What is known of those that stay is kept.
func (m *members) set(urls map[string]string, r *Orders) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := make(map[string]*peer, len(urls))
	put := func(id, url string, s share) {
		if id == m.self {
			return // the same list may be given to all
		}
		next[id] = &peer{url: url}
		if old := m.peers[id]; old != nil && old.url == url {
			next[id] = old
		}
		next[id].share = s
	}
	m.own = share{1, m.capacity}
	for id, u := range urls {
		put(id, u, share{weight: 1})
	}
	if r != nil {
		m.own = share{r.Weight, cmp.Or(float64(r.Capacity), m.capacity)}
		for _, u := range r.Peers {
			put(u.Node, u.URL, share{u.Weight, float64(u.Capacity)})
		}
	}
	m.peers = next
}

// has reports whether id is another node of the datacenter.
func (m *members) has(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peers[id] != nil
}

// len returns how many other nodes there are.
func (m *members) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.peers)
}

// owners returns where a stream is to be looked for inside the datacenter: at its
// owner and its runner-up, as far as that is not this node and they answer; or, where the
// owner has passed it on, at who has it and at the best of the others. w is what the owner
// has said. It is empty if this node is to fetch the stream from outside.
func (m *members) owners(now time.Time, n stream.Name, w *word) []target {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.peers) == 0 {
		return nil
	}
	live := m.live(now)
	owner, next := ring.Owners(n, live)
	switch {
	case owner == m.self:
		owner, next = m.elsewhere(n, live), m.self
	case w.by == owner && m.stands(now, w, live):
		owner, next = m.instead(n, w, live)
	}
	var out []target
	for _, id := range []string{owner, next} {
		if id == m.self {
			break // from here on it is this node's turn
		}
		if p := m.peers[id]; p != nil {
			out = append(out, target{url: p.url, node: id, member: true})
		}
	}
	return out
}

// live returns this node and the others that answer. mu is held.
func (m *members) live(now time.Time) []ring.Member {
	live := append(make([]ring.Member, 0, len(m.peers)+1), m.own.member(m.self))
	for id, p := range m.peers {
		if !p.dead && !now.Before(p.skip) {
			live = append(live, p.share.member(id))
		}
	}
	return live
}

// failed passes a member over for a while.
func (m *members) failed(id string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.peers[id]; p != nil {
		p.skip = now.Add(skipTime)
	}
}

// checked takes in the result of a check and reports whether the member came (1) or
// went (-1).
func (m *members) checked(id string, ok bool) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.peers[id]
	if p == nil {
		return 0
	}
	if ok {
		p.missed, p.hits = 0, p.hits+1
		if p.dead && p.hits >= aliveAfter {
			p.dead, p.skip = false, time.Time{}
			return 1
		}
		return 0
	}
	p.hits, p.missed = 0, p.missed+1
	if !p.dead && p.missed >= deadAfter {
		p.dead = true
		return -1
	}
	return 0
}

// urls returns where the members are.
func (m *members) urls() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[string]string, len(m.peers))
	for id, p := range m.peers {
		out[id] = p.url
	}
	return out
}

// MemberState is what this node believes of another one of its datacenter.
type MemberState struct {
	ID       string  `json:"id"`
	URL      string  `json:"url"`
	Weight   float64 `json:"weight"` // its share of the streams; 0: none
	Alive    bool    `json:"alive"`
	Capacity int64   `json:"capacity,omitempty"` // bytes/s that it can send; 0: not known
	// What it has said of itself when it was checked last. Without a key of the cluster
	// nodes say nothing.
	Load      int64      `json:"load"`                 // bytes/s that it sends
	OverSince *time.Time `json:"over_since,omitempty"` // since when it is over its bound
}

// Members returns the other nodes of the datacenter, by id.
func (o *Origin) Members() []MemberState {
	m := o.members
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]MemberState, 0, len(m.peers))
	for _, id := range slices.Sorted(maps.Keys(m.peers)) {
		p := m.peers[id]
		s := MemberState{ID: id, URL: p.url, Weight: p.share.weight, Alive: !p.dead, Load: p.says.Load}
		s.Capacity = cmp.Or(int64(p.share.capacity), p.says.Capacity)
		if p.says.Over != 0 {
			s.OverSince = new(time.UnixMilli(p.says.Over))
		}
		out = append(out, s)
	}
	return out
}

// watchMembers asks the members again and again whether they live.
func (o *Origin) watchMembers(ctx context.Context) {
	for ctx.Err() == nil {
		every := o.cfg.Load().CheckEvery
		o.weigh(time.Now())
		var checks sync.WaitGroup
		for id, url := range o.members.urls() {
			checks.Go(func() { o.check(ctx, id, url, max(every, 500*time.Millisecond)) })
		}
		t := time.NewTimer(every)
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
		checks.Wait()
	}
}

var errOtherNode = errors.New("another node is there")

// check asks one member.
func (o *Origin) check(ctx context.Context, id, url string, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m := auth.Mark{Node: o.opt.Self, Via: []string{o.opt.Self}, Purpose: auth.Probe}
	said, err := o.prober.Ask(ctx, url, m, o.opt.Cluster.Sign(time.Now(), m))
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return // it is this node that ends
	}
	detail := ""
	switch {
	case err != nil:
		detail = err.Error()
	case said.Node != id:
		detail = "the node there says that it is " + said.Node
		err = errOtherNode
	case o.opt.Cluster.Enabled(): // else it says no more than its name
		o.members.told(id, said)
	}
	switch o.members.checked(id, err == nil) {
	case 1:
		o.note(Event{Kind: Member, To: id, Reason: "alive"})
	case -1:
		o.note(Event{Kind: Member, From: id, Reason: "dead", Detail: detail})
	}
}
