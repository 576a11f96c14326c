package fleet

import (
	"sync"
	"time"
)

const (
	// trendStep is how far the points of a trend are apart.
	trendStep = 2 * time.Second
	// trendPoints is how many there are: ten minutes.
	trendPoints = 300
	// maxTrends bounds the links, and the nodes, that have one: 6 KB each.
	maxTrends = 10_000
)

// trends remember how links and nodes were lately.
type trends struct {
	mu    sync.Mutex
	at    [trendPoints]time.Time
	tick  int // of the newest point; its place is tick % trendPoints
	links map[link]*linkTrend
	nodes map[string]*nodeTrend
}

type link struct{ from, to string }

// linkTrend is the points of a link in use.
type linkTrend struct {
	first, last int // ticks
	points      [trendPoints]struct{ cost, rtt, loss, rate float32 }
}

// nodeTrend is the points of a node.
type nodeTrend struct {
	first, last int
	points      [trendPoints]struct{ load, pulled, viewers float32 }
}

func newTrends() *trends {
	return &trends{links: map[link]*linkTrend{}, nodes: map[string]*nodeTrend{}}
}

// add takes a frame, unless there was one just now.
func (t *trends) add(fr *frame) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if fr.at.Sub(t.at[t.tick%trendPoints]) < trendStep-frameEarly {
		return
	}
	t.tick++
	at := t.tick % trendPoints
	t.at[at] = fr.at
	for i := range fr.links {
		row := &fr.links[i]
		if row.Streams == 0 && row.Place != 1 {
			continue
		}
		key := link{row.From, row.To}
		of := t.links[key]
		if of == nil {
			if len(t.links) >= maxTrends {
				continue
			}
			of = &linkTrend{first: t.tick}
			t.links[key] = of
		}
		if of.last != t.tick-1 {
			of.first = t.tick // what was before a pause is dropped
		}
		of.last = t.tick
		p := &of.points[at]
		p.cost, p.rtt, p.loss, p.rate = float32(row.Cost), float32(row.RTT), float32(row.Loss), float32(row.Rate)
	}
	for i := range fr.nodes {
		n := &fr.nodes[i]
		of := t.nodes[n.identity.ID]
		if of == nil {
			if len(t.nodes) >= maxTrends {
				continue
			}
			of = &nodeTrend{first: t.tick}
			t.nodes[n.identity.ID] = of
		}
		if of.last != t.tick-1 {
			of.first = t.tick
		}
		of.last = t.tick
		p := &of.points[at]
		p.load, p.pulled, p.viewers = float32(n.load), float32(n.pulled), float32(n.viewers)
	}
	if t.tick%trendPoints == 0 {
		t.prune()
	}
}

// prune forgets what has no point left.
func (t *trends) prune() {
	for key, of := range t.links {
		if t.tick-of.last >= trendPoints {
			delete(t.links, key)
		}
	}
	for key, of := range t.nodes {
		if t.tick-of.last >= trendPoints {
			delete(t.nodes, key)
		}
	}
}

// each calls f with the places of the points from first to last that are still there, and
// when they were by the clock as it is now: it may have been set since.
func (t *trends) each(now time.Time, first, last int, f func(at int, when time.Time)) {
	for tick := max(first, t.tick-trendPoints+1); tick <= last; tick++ {
		at := tick % trendPoints
		f(at, now.Add(-now.Sub(t.at[at])).UTC())
	}
}

// link returns the trend of a link.
func (t *trends) link(from, to string) []LinkPoint {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []LinkPoint{}
	if of := t.links[link{from, to}]; of != nil {
		t.each(time.Now(), of.first, of.last, func(at int, when time.Time) {
			p := &of.points[at]
			out = append(out, LinkPoint{when, float64(p.cost), float64(p.rtt), float64(p.loss), int64(p.rate)})
		})
	}
	return out
}

// node returns the trend of a node.
func (t *trends) node(id string) []NodePoint {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []NodePoint{}
	if of := t.nodes[id]; of != nil {
		t.each(time.Now(), of.first, of.last, func(at int, when time.Time) {
			p := &of.points[at]
			out = append(out, NodePoint{when, int64(p.load), int64(p.pulled), int(p.viewers)})
		})
	}
	return out
}
