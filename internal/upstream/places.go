package upstream

import (
	"errors"
	"time"

	"millrace/internal/failover"
	"millrace/internal/stream"
)

const (
	// keepWay is how long it is remembered how an upstream failed that is in no pool.
	keepWay = time.Minute
	// maxWays bounds of how many of them that is remembered.
	maxWays = 1024
)

// places are the upstreams outside of the datacenter: the pool of the orders, that of
// the settings behind it, and those that a router has named for one stream. All of it is
// guarded by Origin.mu.
type places struct {
	first  target            // of the orders; the zero target without
	nodes  map[string]string // ids of the ordered, by URL
	listed map[string]bool   // URLs in the pool
	ways   map[string]*way   // those not in the pool that have failed, by URL
	left   map[string]time.Time
}

// way is what is remembered of an upstream that is in no pool.
type way struct {
	pool *failover.Pool // of it alone
	at   time.Time      // when it failed last
}

func newPlaces() places {
	return places{ways: make(map[string]*way), left: make(map[string]time.Time)}
}

// set returns the URLs of the pool, in order.
func (p *places) set(ordered []target, configured []string) (urls []string) {
	p.first, p.nodes, p.listed = target{}, make(map[string]string), make(map[string]bool)
	add := func(url string) {
		if !p.listed[url] {
			urls = append(urls, url)
		}
		p.listed[url] = true
	}
	for i, t := range ordered {
		if i == 0 {
			p.first = t
		}
		p.nodes[t.url] = t.node
		add(t.url)
	}
	for _, u := range configured {
		add(u)
	}
	return urls
}

// failed notes that the upstream at url failed, if it is in no pool.
func (p *places) failed(now time.Time, url string, why failover.Failure) {
	w := p.ways[url]
	if w == nil {
		if p.listed[url] || len(p.ways) >= maxWays {
			return
		}
		w = &way{pool: failover.NewPool([]string{url}, chance())}
		p.ways[url] = w
	}
	w.at = now
	w.pool.Failed(now, url, why)
}

// leave notes that a stream was taken elsewhere because of the upstream at url.
func (p *places) leave(now time.Time, url string) {
	if _, known := p.left[url]; known || len(p.left) < maxWays {
		p.left[url] = now
	}
}

// sweep forgets what is long ago.
func (p *places) sweep(now time.Time) {
	for url, w := range p.ways {
		if now.Sub(w.at) >= keepWay {
			delete(p.ways, url)
		}
	}
	for url, at := range p.left {
		if now.Sub(at) >= keepWay {
			delete(p.left, url)
		}
	}
}

// search is where a stream may be looked for.
type search struct {
	name   stream.Name
	peers  bool              // inside the datacenter too
	word   *word             // what its owner has said of it
	routed []target          // what a router has named for it
	busy   func(string) bool // the upstream at a URL is in use, or does not have the stream
}

// errNoUpstream is returned by next when there is no candidate now.
var errNoUpstream = errors.New("no upstream is left to try")

// next returns where to look for a stream next: the first of the places that is not
// busy and not known to be bad now.
func (o *Origin) next(now time.Time, s search) (target, error) {
	if t, ok := o.nextPeer(now, s); ok {
		return t, nil
	}
	return o.nextOutside(now, s)
}

// nextOutside is next for places outside of the datacenter.
func (o *Origin) nextOutside(now time.Time, s search) (target, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range s.routed {
		if !s.busy(t.url) && o.free(now, t.url) {
			return t, nil
		}
	}
	if u, ok := o.pool.Next(now, s.busy); ok {
		return target{url: u, node: o.places.nodes[u]}, nil
	}
	return target{}, errNoUpstream
}

// nextPeer returns where to look for a stream in the datacenter, ok false if nowhere.
func (o *Origin) nextPeer(now time.Time, s search) (target, bool) {
	if s.peers {
		for _, t := range o.members.owners(now, s.name, s.word) {
			if !s.busy(t.url) {
				return t, true
			}
		}
	}
	return target{}, false
}

// left returns how many places next could return one after another.
func (o *Origin) left(now time.Time, s search) int {
	count := 0
	if s.peers {
		for _, t := range o.members.owners(now, s.name, s.word) {
			if !s.busy(t.url) {
				count++
			}
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range s.routed {
		if !o.places.listed[t.url] && !s.busy(t.url) && o.free(now, t.url) {
			count++
		}
	}
	return count + o.pool.Left(now, s.busy)
}

// free reports whether the upstream at url is not known to be bad now. mu is held.
func (o *Origin) free(now time.Time, url string) bool {
	switch w := o.places.ways[url]; {
	case o.places.listed[url]:
		return o.pool.Left(now, func(u string) bool { return u != url }) > 0
	case w != nil:
		return w.pool.Left(now, nil) > 0
	}
	return true
}

// nowhere reports whether there is no upstream at all outside of the datacenter.
func (o *Origin) nowhere() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.places.listed) == 0
}

// home returns the peer that a stream belongs to, of which its owner has said w, ok false
// if it is this node's own task to fetch it from the pool.
func (o *Origin) home(now time.Time, n stream.Name, w *word) (target, bool) {
	owners := o.members.owners(now, n, w)
	if len(owners) == 0 {
		return target{}, false
	}
	return owners[0], true
}

// good notes that an upstream delivers, bad that it failed.
func (o *Origin) good(now time.Time, t target) {
	if t.peer() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pool.Good(now, t.url)
	delete(o.places.ways, t.url)
}

func (o *Origin) bad(now time.Time, t target, f failover.Failure) {
	if t.peer() {
		if gone(f) {
			o.members.failed(t.node, now)
		}
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pool.Failed(now, t.url, f)
	o.places.failed(now, t.url, f)
}
