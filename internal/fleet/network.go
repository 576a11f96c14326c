package fleet

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"millrace/internal/plan"
)

// Network returns the map as of the last second. It is the same value until there is a
// new one, and not to be changed.
func (f *Fleet) Network() *Network {
	fr := f.frame.Load()
	if fr == nil {
		return &Network{
			Router: f.cfg.Router, Nodes: []NodeRow{}, Links: []LinkRow{}, Datacenters: []Datacenter{}, Regions: []RegionRow{}, Routers: []RouterRow{},
		}
	}
	fr.once.Do(func() { fr.model = f.networkOf(fr) })
	return fr.model
}

func (f *Fleet) networkOf(fr *frame) *Network {
	out := &Network{
		At: fr.at.UTC(), Router: f.cfg.Router, Store: fr.store, Nodes: make([]NodeRow, len(fr.nodes)), Links: fr.links,
		Datacenters: []Datacenter{}, Regions: []RegionRow{}, Routers: fr.routers, Domains: len(fr.docs.contents.Snapshot.Domains),
	}
	if fr.published != nil {
		out.Plan = fr.published.plan.Version
	}
	if out.Links == nil {
		out.Links = []LinkRow{}
	}
	if more := len(out.Links) - maxLinkRows; more > 0 {
		heaviest := slices.Clone(out.Links)
		slices.SortStableFunc(heaviest, func(a, b LinkRow) int { return cmp.Compare(b.Rate, a.Rate) })
		out.Links, out.LinksLeft = heaviest[:maxLinkRows], more
	}
	centers := map[string]*Datacenter{}
	t := &out.Totals
	t.Nodes, t.Streams = len(fr.nodes), fr.streams
	for i := range fr.nodes {
		n := &fr.nodes[i]
		out.Nodes[i] = f.nodeRow(fr, n)
		row := &out.Nodes[i]
		dc := centers[row.Datacenter]
		if dc == nil {
			dc = &Datacenter{Name: row.Datacenter, Region: row.Region}
			centers[row.Datacenter] = dc
		}
		dc.Nodes++
		dc.Capacity += row.Capacity
		dc.Viewers += row.Viewers
		dc.Load += row.Load
		t.Viewers += row.Viewers
		t.Load += row.Load
		t.Backhaul += row.Pulled
		if !n.down {
			dc.Up++
			t.Up++
		}
	}
	for i := range fr.links {
		if fr.links[i].Crosses {
			t.Crossing += fr.links[i].Rate
		}
	}
	for _, name := range slices.Sorted(maps.Keys(centers)) {
		out.Datacenters = append(out.Datacenters, *centers[name])
	}
	for _, r := range fr.docs.regions() {
		out.Regions = append(out.Regions, RegionRow{r.Name, r.Lat, r.Lon})
	}
	return out
}

// nodeRow is a node on the map.
func (f *Fleet) nodeRow(fr *frame, n *nodeFrame) NodeRow {
	of := n.identity
	row := NodeRow{
		ID: of.ID, Role: of.Role, Datacenter: of.Datacenter, Region: of.Region, ISPs: orEmpty(of.ISPs), State: n.state, Router: n.router,
		Load: n.load, Capacity: n.capacity, Pulled: n.pulled, Viewers: n.viewers, Streams: n.streams, Sources: n.sources, Edited: n.edited,
		Program: of.Program, LeftOut: n.leftOut, Denied: fr.denied[of.ID],
	}
	if !n.seed {
		row.Heard, row.Silent = n.heard.UTC(), fr.at.Sub(n.heard).Round(100*time.Millisecond).Seconds()
	}
	if n.down {
		row.Streams, row.Sources = 0, 0
	}
	if n.capacity > 0 {
		row.Use = float64(n.load) / float64(n.capacity)
	}
	if fr.published != nil {
		if pool := fr.published.plan.Pools[of.ID]; len(pool) > 0 {
			row.Upstream = pool[0].Upstream
		}
	}
	return row
}

// orEmpty returns list, and an empty one for none, so that JSON has a list.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// routerRows are the routers, this one first.
func (f *Fleet) routerRows(fr *frame, now time.Time) []RouterRow {
	self := RouterRow{
		ID: f.cfg.Router, Leader: f.leads(now), Self: true, Up: true, Seen: now.UTC(), Started: f.began.UTC(), Program: f.cfg.Program, URL: f.cfg.URL,
	}
	if fr.published != nil {
		self.Plan = fr.published.plan.Version
	}
	for i := range fr.nodes {
		if n := &fr.nodes[i]; n.router == f.cfg.Router && !n.down {
			self.Nodes++
		}
	}
	others := slices.Clone(f.share.rows())
	slices.SortFunc(others, func(a, b RouterRow) int { return cmp.Compare(a.ID, b.ID) })
	return append([]RouterRow{self}, others...)
}

const (
	// someCarried is how many streams of a node or link are shown, and someEvents how many events.
	someCarried = 100
	someEvents  = 50
)

// Node returns what is known of a node, and whether there is one.
func (f *Fleet) Node(id string) (*Node, bool) {
	fr := f.frame.Load()
	if fr == nil || fr.node(id) == nil {
		return nil, false
	}
	n := fr.node(id)
	of := n.identity
	out := &Node{
		NodeRow: f.nodeRow(fr, n), Domain: of.Domain, Groups: orEmpty(of.Groups), Addresses: orEmpty(of.Addresses), HTTPPort: of.HTTPPort,
		HTTPSPort: of.HTTPSPort, Host: of.Host, URL: of.URL, Push: of.Push, Probe: of.Probe, Price: of.Price, Weight: of.Weight,
		Started: n.started.UTC(), Refused: n.refused, OrdersDue: f.ordersDueAt(n), Why: explained(fr.view.ExplainNode(id)),
		In: []LinkRow{}, Out: []LinkRow{},
		Quality: f.quality(fr, func(g *group) bool { return g.node == id }),
		Events:  f.events.newest(someEvents, (&EventFilter{Node: id}).takes), Trend: f.trends.node(id),
	}
	for i := range fr.links {
		if fr.links[i].To == id {
			out.In = append(out.In, fr.links[i])
		}
		if fr.links[i].From == id {
			out.Out = append(out.Out, fr.links[i])
		}
	}
	out.Carried, out.CarriedAll, out.Samples = f.nodes.carriedAt(id, func(*item) bool { return true })
	return out, true
}

// explained has lists where there is nothing.
func explained(e plan.NodeExplanation) plan.NodeExplanation {
	e.Pool, e.Candidates, e.Downstream, e.Edits = orEmpty(e.Pool), orEmpty(e.Candidates), orEmpty(e.Downstream), orEmpty(e.Edits)
	return e
}

// ordersDueAt reports whether a node does not yet follow the newest orders.
func (f *Fleet) ordersDueAt(n *nodeFrame) bool {
	p := f.Orders(n.identity.ID)
	return p != nil && p.Token() != n.orders
}

// carriedAt returns the most viewed streams of a node that takes chooses, how many there
// are, and what samples it was refused.
func (r *registry) carriedAt(id string, takes func(*item) bool) (rows []CarriedRow, all int, samples map[string]int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	rows, samples = []CarriedRow{}, map[string]int{}
	m := r.nodes[id]
	if m == nil {
		return rows, 0, samples
	}
	maps.Copy(samples, m.samples)
	for name, it := range m.carried {
		if takes(it) && !m.down {
			rows = append(rows, CarriedRow{name, it.source, it.from, it.bitrate, it.viewers, it.delay})
		}
	}
	all = len(rows)
	slices.SortFunc(rows, func(a, b CarriedRow) int {
		return cmp.Or(cmp.Compare(b.Viewers, a.Viewers), cmp.Compare(a.Name, b.Name))
	})
	return rows[:min(all, someCarried)], all, samples
}

// Link returns what is known of a link, and whether there are the two nodes.
func (f *Fleet) Link(from, to string) (*Link, bool) {
	fr := f.frame.Load()
	if fr == nil || fr.node(from) == nil || fr.node(to) == nil {
		return nil, false
	}
	f.scores.mu.Lock()
	row, _ := f.linkRow(fr, fr.at, from, to)
	why := fr.view.ExplainLink(from, to)
	f.scores.mu.Unlock()
	if u, ok := fr.node(to).uses[from]; ok && !fr.node(to).down {
		row.Streams, row.Rate = u.streams, u.rate
	}
	why.Edits = orEmpty(why.Edits)
	out := &Link{LinkRow: row, Why: why, Trend: f.trends.link(from, to)}
	out.Carried, _, _ = f.nodes.carriedAt(to, func(it *item) bool { return it.from == from })
	out.Events = f.events.newest(someEvents, func(e *Event) bool {
		return (e.Node == to || e.To == to) && (e.From == from || e.To == from) || e.Node == from && e.To == to
	})
	return out, true
}
