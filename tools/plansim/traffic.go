package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"millrace/internal/plan"
	"millrace/internal/stream"
)

// bitrate is what a stream takes, in bytes/s: 2 Mbit/s.
const bitrate = 250_000

// show is a stream, and the edges that have viewers of it in the order in which they came.
type show struct {
	name   stream.Name
	source string
	edges  []string
}

// zipf draws streams that viewers of all edges watch, the first by far the most.
func (w *world) zipf(r *rand.Rand, streams, viewers int) []show {
	shows := make([]show, streams)
	sums := make([]float64, streams)
	sum := 0.0
	for i := range shows {
		shows[i] = show{name: stream.Name(fmt.Sprintf("live/%04d", i)), source: w.edges[r.IntN(len(w.edges))]}
		sum += 1 / math.Pow(float64(i+1), 0.9)
		sums[i] = sum
	}
	seen := map[[2]int]bool{}
	for range viewers {
		i, _ := slices.BinarySearch(sums, r.Float64()*sum)
		e := r.IntN(len(w.edges))
		if at := [2]int{i, e}; !seen[at] {
			seen[at] = true
			shows[i].edges = append(shows[i].edges, w.edges[e])
		}
	}
	return shows
}

// colds draws streams that have viewers on 20 edges each, of all regions and ISPs alike.
func (w *world) colds(r *rand.Rand, streams int) []show {
	shows := make([]show, streams)
	for i := range shows {
		shows[i] = show{name: stream.Name(fmt.Sprintf("cold/%04d", i)), source: w.edges[r.IntN(len(w.edges))]}
		for _, e := range r.Perm(len(w.edges))[:20] {
			shows[i].edges = append(shows[i].edges, w.edges[e])
		}
	}
	return shows
}

// flow is how streams spread in one way of planning.
type flow struct {
	w       *world
	flat    bool
	plan    *plan.Plan
	view    *plan.View
	streams plan.StreamMap
	load    map[string]int64
	since   int // pulls since the last view
	answer  plan.PathAnswer
}

// pullsPerView is how many streams begin to be pulled between two views of the router.
const pullsPerView = 200

func (w *world) flow(p *plan.Plan, flat bool) *flow {
	f := &flow{w: w, flat: flat, plan: p, streams: plan.StreamMap{}, load: map[string]int64{}}
	f.look()
	return f
}

// look makes the router's view anew, by what nodes send now.
func (f *flow) look() {
	n := *f.w.net
	n.Nodes = slices.Clone(n.Nodes)
	for i := range n.Nodes {
		n.Nodes[i].Load = f.load[n.Nodes[i].ID]
	}
	n.Streams = f.streams
	f.view = plan.NewView(start, &n, f.plan, f.w.cfg)
	f.since = 0
}

// spread brings shows to their edges.
func (f *flow) spread(shows []show) error {
	for i := range shows {
		s := &shows[i]
		f.streams[s.name] = &plan.Stream{Source: s.source, Epoch: 1, Bitrate: bitrate, Carriers: map[string]string{s.source: ""}}
	}
	// Viewers of all streams come mixed.
	for round, more := 0, true; more; round++ {
		more = false
		for i := range shows {
			if s := &shows[i]; round < len(s.edges) {
				more = true
				if err := f.pull(s, s.edges[round], 0); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// pull makes a node carry a stream.
func (f *flow) pull(s *show, node string, depth int) error {
	at := f.streams[s.name]
	if _, ok := at.Carriers[node]; ok {
		return nil
	}
	if depth > 6 {
		return fmt.Errorf("%s at %s goes round", s.name, node)
	}
	ups := f.choices(s, node)
	if len(ups) == 0 {
		return fmt.Errorf("%s finds no way to %s", s.name, node)
	}
	up := ups[0]
	if err := f.pull(s, up, depth+1); err != nil {
		return err
	}
	at.Carriers[node] = up
	f.load[up] += bitrate
	if f.since++; f.since == pullsPerView {
		f.look()
	}
	return nil
}

// choices are where a node would pull a stream from, the best first.
func (f *flow) choices(s *show, node string) (ups []string) {
	if f.flat {
		f.view.Path(node, s.name, &f.answer)
		for _, c := range f.answer.Choices {
			ups = append(ups, c.Upstream)
		}
		return ups
	}
	if f.w.node(node).Role == plan.Center {
		// A stream is pushed up to the center that is nearest to its publisher; other
		// centers have it from there.
		if home := f.home(s); home != node {
			return []string{home}
		}
		return []string{s.source}
	}
	for _, c := range f.plan.Pools[node] {
		ups = append(ups, c.Upstream)
	}
	return ups
}

// home is the center of a stream.
func (f *flow) home(s *show) (best string) {
	least := math.Inf(1)
	for _, c := range f.plan.Centers {
		if d := f.w.delay(s.source, c); f.w.node(c).Alive && d < least {
			best, least = c, d
		}
	}
	return best
}
