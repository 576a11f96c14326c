package console

import (
	"cmp"
	"slices"
	"time"

	"millrace/internal/fleet"
	"millrace/internal/geo"
	"millrace/internal/sched"
)

// Scheduling is where clients are sent, and how they fare there.
type Scheduling struct {
	At       time.Time          `json:"at"`
	Version  uint64             `json:"version"`           // of the snapshot
	StateAt  time.Time          `json:"state_at,omitzero"` // of load and health; none: nothing is known yet
	Domain   string             `json:"domain"`            // that rows are for; empty: there is none
	Domains  []string           `json:"domains"`           // that there are
	Rows     []Placed           `json:"rows"`              // by region and ISP
	RowsLeft int                `json:"rows_left"`         // that were left out, because there are so many
	Rechecks []fleet.RecheckRow `json:"rechecks"`
	Quality  []fleet.QualityRow `json:"quality"`
}

// Placed is where clients of a region and ISP are sent. They are spread over candidates
// that cost about the same; the order is that of one of them.
type Placed struct {
	Region     string        `json:"region"` // empty: of an unknown place
	ISP        string        `json:"isp"`
	Reason     sched.Reason  `json:"reason"`
	TTL        float64       `json:"ttl"`  // s
	Near       int           `json:"near"` // the first of the candidates, which share the clients
	Candidates []Destination `json:"candidates"`
}

// Destination is an edge that clients are sent to. Its figures are in ms; the cost is
// the sum of the others.
type Destination struct {
	Node       string       `json:"node"`
	Datacenter string       `json:"datacenter"`
	Region     string       `json:"region"`
	Cost       float32      `json:"cost"`
	Coverage   float32      `json:"coverage"`
	Quality    float32      `json:"quality"`
	Stream     float32      `json:"stream"`
	Load       float32      `json:"load"`
	Health     float32      `json:"health"`
	Weight     uint16       `json:"weight"` // 1…100
	Reason     sched.Reason `json:"reason"`
}

// maxPlaces bounds the rows of one answer: each is a decision.
const maxPlaces = 2000

func (c *Console) getScheduling(a *call) (any, error) {
	out := Scheduling{
		At: a.now, Domains: []string{}, Rows: []Placed{},
		Rechecks: orEmpty(c.fleet.Rechecks()), Quality: orEmpty(c.fleet.Quality()),
	}
	if c.program.Scheduler == nil {
		return &out, nil
	}
	v := c.program.Scheduler.View()
	out.Version, out.StateAt = v.Plan.Version, v.State.At
	for i := range v.Plan.Domains {
		out.Domains = append(out.Domains, v.Plan.Domains[i].Name)
	}
	slices.Sort(out.Domains)
	if out.Domain = a.text("domain"); out.Domain == "" && len(out.Domains) > 0 {
		out.Domain = out.Domains[0]
	}
	if out.Domain == "" {
		return &out, nil
	}
	if !slices.Contains(out.Domains, out.Domain) {
		return nil, refuse(NotFound, "no domain %.80q is served: domains lists those that are", out.Domain)
	}
	pairs := places(v, out.Quality)
	out.RowsLeft = max(0, len(pairs)-maxPlaces)
	for _, p := range pairs[:len(pairs)-out.RowsLeft] {
		out.Rows = append(out.Rows, place(v, a.now, out.Domain, p))
	}
	return &out, nil
}

// places are the regions and ISPs that clients are known to be of: those of the geo
// table, of edges and of players that told how they fare.
func places(v *sched.View, players []fleet.QualityRow) []geo.Pair {
	all := map[geo.Pair]struct{}{{}: {}}
	if v.Geo != nil {
		for _, p := range v.Geo.Pairs() {
			all[p] = struct{}{}
		}
	}
	for i := range v.Plan.Nodes {
		n := &v.Plan.Nodes[i]
		for _, isp := range n.ISPs {
			if isp != "*" {
				all[geo.Pair{Region: n.Region, ISP: isp}] = struct{}{}
			}
		}
	}
	for i := range players {
		all[geo.Pair{Region: players[i].Region, ISP: players[i].ISP}] = struct{}{}
	}
	out := make([]geo.Pair, 0, len(all))
	for p := range all {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b geo.Pair) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.ISP, b.ISP))
	})
	return out
}

// place decides for a client somewhere in p.
func place(v *sched.View, now time.Time, domain string, p geo.Pair) Placed {
	var a sched.Answer
	v.Decide(now, &sched.Query{Domain: domain, Region: p.Region, ISP: p.ISP}, &a)
	row := Placed{
		Region: p.Region, ISP: p.ISP, Reason: a.Reason, TTL: a.TTL.Seconds(), Near: a.Near,
		Candidates: make([]Destination, 0, a.N),
	}
	for i := range a.N {
		k := &a.Candidates[i]
		row.Candidates = append(row.Candidates, Destination{
			Node: k.Node.ID, Datacenter: k.Node.Datacenter, Region: k.Node.Region, Cost: k.Cost, Coverage: k.Coverage,
			Quality: k.Quality, Stream: k.Stream, Load: k.Load, Health: k.Health, Weight: k.Weight, Reason: k.Reason,
		})
	}
	return row
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (c *Console) getExplain(a *call) (any, error) {
	if c.program.Explain == nil {
		return nil, refuse(Unavailable, "this router sends no clients anywhere")
	}
	c.program.Explain(a.RequestCtx)
	return nil, nil
}
