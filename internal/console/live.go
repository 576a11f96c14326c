package console

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/klauspost/compress/flate"

	"millrace/internal/fleet"
)

// live tells pages what is new, as server-sent events. All listeners are sent the same
// bytes, which are made once.
//
//	event: network    data: the map
//	event: plan       data: planNews
//	event: events     data: fleet.Events, id: the number to go on after
//
// Compression is shared too: the body is one gzip stream, of which each frame is a part
// that refers to nothing before it, so that who joins late can read on from there.
type live struct {
	// Fixed at construction.
	console *Console
	joined  chan struct{} // capacity 1, never closed: there is a listener

	// Guarded by mu.
	mu        sync.Mutex
	listeners map[*listener]struct{}

	// Owned by run.
	next   uint64 // number of the next event
	seen   *fleet.Network
	plan   planNews
	buffer bytes.Buffer
	pack   *flate.Writer
}

// planNews tells that there is another plan, or another version of its edits.
type planNews struct {
	Version uint64 `json:"version"`
	Frozen  bool   `json:"frozen"`
	Leader  string `json:"leader"` // the router that plans; empty: none now
	Edits   uint64 `json:"edits"`  // version of the document
}

func planNewsOf(n *fleet.Network, e *fleet.Edits) planNews {
	news := planNews{Version: n.Plan, Frozen: e.Edits.Frozen != nil, Edits: e.Version}
	for i := range n.Routers {
		if r := &n.Routers[i]; r.Leader && r.Up {
			news.Leader = r.ID
		}
	}
	return news
}

// Times of listeners.
const (
	liveGap  = 250 * time.Millisecond // between two frames at least
	liveMost = 5 * time.Second        // and at most, if there is something new
	// liveBeat is how long nothing may be said: proxies and pages then believe that the
	// connection is dead.
	liveBeat  = 10 * time.Second
	liveWrite = 5 * time.Second // that a frame may take
	// liveFor is how long one connection lasts. The page connects anew by itself, which
	// renews its session.
	liveFor   = 10 * time.Minute
	liveRetry = time.Second
	maxBehind = 4 // frames
	// maxMissed is how many events a page that comes back is told of.
	maxMissed = 500
)

func newLive(c *Console) *live {
	pack, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is one that there is
	}
	return &live{console: c, joined: make(chan struct{}, 1), listeners: map[*listener]struct{}{}, pack: pack}
}

func (l *live) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.listeners)
}

// join adds a listener, unless there are too many.
func (l *live) join(li *listener) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.listeners) >= l.console.settings.Load().cfg.Listeners {
		return false
	}
	l.listeners[li] = struct{}{}
	select {
	case l.joined <- struct{}{}:
	default: // run will look anyway
	}
	return true
}

func (l *live) leave(li *listener, why leaving) {
	l.mu.Lock()
	delete(l.listeners, li)
	l.mu.Unlock()
	l.console.counts.left[why].Add(1)
}

// run makes frames while anybody listens, until ctx ends.
func (l *live) run(ctx context.Context) {
	for {
		if l.count() == 0 {
			select {
			case <-ctx.Done():
				return
			case <-l.joined:
			}
		}
		changed := l.console.fleet.Changed()
		begun := time.Now()
		l.tell()
		gap := time.NewTimer(pause(time.Since(begun)))
		select {
		case <-ctx.Done():
			return
		case <-gap.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-l.joined:
		case <-changed:
		}
	}
}

// pause is how long there is no new frame after one that took so long to make: pages get
// no more than a tenth of a core, be the network as large as it may.
func pause(took time.Duration) time.Duration { return min(max(liveGap, 10*took), liveMost) }

// tell sends what is new to all, and to those who have just come all that they need.
func (l *live) tell() {
	var old, fresh []*listener
	l.mu.Lock()
	for li := range l.listeners {
		if li.fresh {
			li.fresh = false
			fresh = append(fresh, li)
		} else {
			old = append(old, li)
		}
	}
	l.mu.Unlock()

	f := l.console.fleet
	network, edits := f.Network(), f.Edits()
	news := planNewsOf(network, &edits)
	events := f.Events(fleet.EventFilter{}, l.next, maxMissed)
	if len(old) > 0 {
		l.begin()
		if network != l.seen {
			l.event("network", 0, network)
		}
		if news != l.plan {
			l.event("plan", 0, news)
		}
		if len(events.Events) > 0 {
			l.event("events", events.Next, events)
		}
		l.send(l.end(), old)
	}
	l.seen, l.plan, l.next = network, news, events.Next

	var whole *frame
	for _, li := range fresh {
		if li.resumed {
			l.begin()
			l.event("network", 0, network)
			l.event("plan", 0, news)
			l.event("events", events.Next, f.Events(fleet.EventFilter{}, li.after, maxMissed))
			l.send(l.end(), []*listener{li})
			continue
		}
		if whole == nil {
			l.begin()
			l.event("network", 0, network)
			l.event("plan", 0, news)
			l.event("events", events.Next, &fleet.Events{Events: []fleet.Event{}, Next: events.Next, Total: events.Total, Kinds: events.Kinds})
			whole = l.end()
		}
		l.send(whole, []*listener{li})
	}
}

// send gives a frame to listeners. Who has too many already is let go.
func (l *live) send(f *frame, to []*listener) {
	if f == nil {
		return
	}
	for _, li := range to {
		select {
		case li.frames <- f:
		default:
			l.mu.Lock()
			if _, there := l.listeners[li]; there {
				delete(l.listeners, li)
				close(li.slow)
			}
			l.mu.Unlock()
		}
	}
}
