package main

import "time"

// trial is what became of one try to watch.
type trial struct {
	at        time.Duration
	kind      kind
	region    int
	again     bool // the try before found no edge
	byDNS     bool // the edge that DNS led to is right
	served    bool
	right     bool // the edge that serves is right
	exact     bool // and is the very one that the policy names first
	truly     bool // right, too, by what is true of all edges and nobody can know yet
	redirects int
	longest   int // most redirects in a row
	dead      int // edges that did not answer
	refused   int // edges that had no room
}

// counts are sums over tries.
type counts struct {
	first, byDNS                int // first tries, and those of them that DNS led to a right edge
	served, right, exact, truly int // tries that an edge served
	redirects, dead, refused    int
}

func (c *counts) add(t *trial) {
	if !t.again {
		c.first++
		if t.byDNS {
			c.byDNS++
		}
	}
	c.redirects += t.redirects
	c.dead += t.dead
	c.refused += t.refused
	if t.served {
		c.served++
	}
	if t.right {
		c.right++
	}
	if t.exact {
		c.exact++
	}
	if t.truly {
		c.truly++
	}
}

// share is part of whole in percent.
func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// bin is a stretch of the run.
type bin struct {
	counts
	seconds int
	// Sums over its seconds: viewers, the use of the fullest edge, and the fullest over
	// the mean, of all edges and inside datacenters.
	viewers, fullest, imbalance, inside float64
}

// tally gathers what happens in a simulation.
type tally struct {
	width    time.Duration // of a bin
	bins     []bin
	trouble  []trouble
	edges    []*edge
	all      counts
	byKind   [kinds]counts
	byRegion []counts
	chains   [8]int // tries by their most redirects in a row
	queries  int    // that resolvers asked the scheduler
	broken   int    // plays whose edge went away
	waits    int    // plays that no edge served at the first try
	waitSum  time.Duration
	waitMost time.Duration
}

const maxBins = 120

func (t *tally) begin(duration time.Duration, troubles []trouble, edges []*edge) {
	t.width = max((duration / maxBins).Truncate(time.Second), time.Second)
	t.bins = make([]bin, (duration+t.width-1)/t.width)
	t.trouble, t.edges = troubles, edges
	t.byRegion = make([]counts, len(regions))
}

func (t *tally) bin(at time.Duration) *bin { return &t.bins[at/t.width] }

func (t *tally) add(tr trial) {
	t.all.add(&tr)
	t.byKind[tr.kind].add(&tr)
	t.byRegion[tr.region].add(&tr)
	t.bin(tr.at).add(&tr)
	t.chains[min(tr.longest, len(t.chains)-1)]++
}

// waited notes a play that was served so much later than its player wanted.
func (t *tally) waited(d time.Duration) {
	t.waits++
	t.waitSum += d
	t.waitMost = max(t.waitMost, d)
}

// sample notes how full the edges are at the end of a second.
func (t *tally) sample(at time.Duration) {
	b := t.bin(at)
	b.seconds++
	var all spread
	places := map[string]*spread{}
	for _, e := range t.edges {
		b.viewers += float64(len(e.viewers))
		if !e.up || e.draining {
			continue
		}
		use := float64(e.load) / float64(e.node.Capacity)
		all.add(use, float64(e.load))
		p := places[e.node.Datacenter]
		if p == nil {
			p = &spread{}
			places[e.node.Datacenter] = p
		}
		p.add(use, float64(e.load))
	}
	b.fullest += all.most
	b.imbalance += all.ratio()
	// Of each datacenter with several edges, weighted by what it carries; in the order
	// of edges, so that sums are rounded the same each time.
	sum, weight := 0.0, 0.0
	for _, e := range t.edges {
		if p := places[e.node.Datacenter]; p != nil && p.n > 1 {
			sum += p.ratio() * p.load
			weight += p.load
			delete(places, e.node.Datacenter)
		}
	}
	if weight > 0 {
		b.inside += sum / weight
	}
}

// spread is how evenly some edges are filled.
type spread struct {
	n               int
	sum, most, load float64
}

func (s *spread) add(use, load float64) {
	s.n++
	s.sum += use
	s.load += load
	s.most = max(s.most, use)
}

// ratio is the fullest over the mean, 1 for nothing.
func (s *spread) ratio() float64 {
	if s.sum == 0 {
		return 1
	}
	return s.most * float64(s.n) / s.sum
}
