package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"millrace/internal/plan"
	"millrace/internal/stream"
)

// pair is a figure by tree and by flat paths.
type pair struct{ tree, flat *tally }

// result is all that is reported.
type result struct {
	options
	nodes   int
	cold    pair // of the network of four regions and two ISPs
	classes []class
	outages [][2]outage
	churn   churn
	plan    plan.Stats
}

// class are the streams of the large network with so many edges.
type class struct {
	name string
	pair
}

// churn is how many choices changed, second by second.
type churn struct {
	pools, paths []int
	nodes, asked int
}

func simulate(o options) (*result, error) {
	r := &result{options: o}
	w := newWorld(o.seed, 4, 2, o.edges, []int{0, 2})
	tree, flat, err := w.both(w.colds(rand.New(rand.NewPCG(o.seed, 2)), o.cold))
	if err != nil {
		return nil, err
	}
	everything := func(*show) bool { return true }
	r.cold = pair{tree.tally(tree.shows, everything), flat.tally(flat.shows, everything)}

	w = newWorld(o.seed, len(places), 3, o.edges, []int{0, 1, 2})
	r.nodes = len(w.net.Nodes)
	tree, flat, err = w.both(w.zipf(rand.New(rand.NewPCG(o.seed, 3)), o.streams, o.viewers))
	if err != nil {
		return nil, err
	}
	r.plan = tree.plan.Stats
	most := len(w.edges)
	for _, c := range [][2]int{{1, 5}, {6, 20}, {21, 60}, {61, most}} {
		in := func(s *show) bool { return len(s.edges) >= c[0] && len(s.edges) <= c[1] }
		if t := (pair{tree.tally(tree.shows, in), flat.tally(flat.shows, in)}); t.tree.pulls > 0 {
			r.classes = append(r.classes, class{fmt.Sprintf("%d to %d", c[0], c[1]), t})
		}
	}
	r.classes = append(r.classes, class{"all", pair{tree.tally(tree.shows, everything), flat.tally(flat.shows, everything)}})
	r.kill(w, tree, flat)
	r.shake(w, tree, flat)
	return r, nil
}

// spreading is a flow and what it spread.
type spreading struct {
	*flow
	shows []show
}

// both spreads shows in both ways, by plans that know what the first try needed.
func (w *world) both(shows []show) (tree, flat *spreading, err error) {
	links := w.measured()
	for i := range 10 {
		w.sample(start.Add(time.Duration(i-10)*time.Second), links)
	}
	var p *plan.Plan
	var f *flow
	for range 2 {
		p = plan.Make(start, w.net, p, w.cfg)
		f = w.flow(p, false)
		if err := f.spread(shows); err != nil {
			return nil, nil, err
		}
		for i := range w.net.Nodes {
			n := &w.net.Nodes[i]
			n.Load = f.load[n.ID]
			pulled := int64(0)
			for _, s := range f.streams {
				if up := s.Carriers[n.ID]; up != "" {
					pulled += bitrate
				}
			}
			w.net.Demand[n.ID] = pulled
		}
	}
	g := w.flow(p, true)
	if err := g.spread(shows); err != nil {
		return nil, nil, err
	}
	return &spreading{f, shows}, &spreading{g, shows}, nil
}

// kill kills the busiest relay, and the datacenter of the busiest relay that is no other's, in both flows.
func (r *result) kill(w *world, tree, flat *spreading) {
	busiest := func(f *flow, but string) (best string) {
		for i := range w.net.Nodes {
			if n := &w.net.Nodes[i]; n.Role == plan.Relay && n.ID != but && (best == "" || f.load[n.ID] > f.load[best]) {
				best = n.ID
			}
		}
		return best
	}
	kill := func(name string, of func(f *flow) func(string) bool) {
		r.outages = append(r.outages, [2]outage{
			tree.kill(name, tree.shows, of(tree.flow)), flat.kill(name, flat.shows, of(flat.flow)),
		})
	}
	kill("the busiest relay", func(f *flow) func(string) bool {
		relay := busiest(f, "")
		return func(id string) bool { return id == relay }
	})
	kill("its datacenter", func(f *flow) func(string) bool {
		dc := w.node(busiest(f, "")).Datacenter
		return func(id string) bool { return w.node(id).Datacenter == dc }
	})
	kill("a center and its datacenter", func(*flow) func(string) bool {
		dc := w.node(places[0].name + "-center").Datacenter
		return func(id string) bool { return w.node(id).Datacenter == dc }
	})
}

const (
	shakes   = 120 // seconds
	slowFrom = 30
	slowTo   = 60
)

// shake lets two minutes pass with noise, and one link that is slow for half a minute.
func (r *result) shake(w *world, tree, flat *spreading) {
	links := w.measured()
	relay := plan.Relay
	var slow [2]string
	for _, id := range w.edges {
		if pool := tree.plan.Pools[id]; w.node(pool[0].Upstream).Role == relay {
			slow = [2]string{pool[0].Upstream, id}
			break
		}
	}
	type question struct {
		node string
		name stream.Name
	}
	var asked []question
	rnd := rand.New(rand.NewPCG(r.seed, 4))
	for range 500 {
		s := &flat.shows[rnd.IntN(len(flat.shows))]
		if node := w.edges[rnd.IntN(len(w.edges))]; node != s.source {
			asked = append(asked, question{node, s.name})
		}
	}
	r.churn.nodes, r.churn.asked = len(tree.plan.Pools), len(asked)
	p := tree.plan
	before := make([]string, len(asked))
	net := *w.net
	net.Nodes = slices.Clone(net.Nodes)
	net.Streams = flat.streams
	for second := range shakes {
		switch second {
		case slowFrom:
			w.slow[slow] = 150
		case slowTo:
			delete(w.slow, slow)
		}
		now := start.Add(time.Duration(second+1) * time.Second)
		w.sample(now, links)
		for i := range net.Nodes { // loads go up and down by a tenth
			net.Nodes[i].Load = int64(float64(w.net.Nodes[i].Load) * (0.9 + 0.2*w.rand.Float64()))
		}
		next := plan.Make(now, &net, p, w.cfg)
		r.churn.pools = append(r.churn.pools, next.Stats.Moved)
		p = next
		view := plan.NewView(now, &net, p, w.cfg)
		changed := 0
		var a plan.PathAnswer
		for i, q := range asked {
			view.Path(q.node, q.name, &a)
			up := ""
			if len(a.Choices) > 0 {
				up = a.Choices[0].Upstream
			}
			if second > 0 && up != before[i] {
				changed++
			}
			before[i] = up
		}
		r.churn.paths = append(r.churn.paths, changed)
	}
}
