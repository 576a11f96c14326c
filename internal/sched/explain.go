package sched

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"millrace/internal/geo"
	"millrace/internal/stream"
)

// Explanation tells how a query is answered, rule by rule.
type Explanation struct {
	Now        time.Time        `json:"now"`
	Version    uint64           `json:"version"`           // of the snapshot
	StateAt    time.Time        `json:"state_at,omitzero"` // of load and health
	Client     netip.Prefix     `json:"client,omitzero"`
	Domain     string           `json:"domain"` // that serves the query; empty: none does
	Stream     stream.Name      `json:"stream,omitempty"`
	Access     Access           `json:"access"`
	Place      geo.Place        `json:"place"`
	Rules      []Rule           `json:"rules"` // in the order in which they apply
	Candidates []CandidateTrace `json:"candidates"`
	Reason     Reason           `json:"reason"`
	TTL        Duration         `json:"ttl"`
	Bits       int              `json:"bits"` // of the client that were used
	Self       *SelfTrace       `json:"self,omitempty"`
}

// Rule is what one rule did.
type Rule struct {
	Name    string    `json:"name"`
	Did     string    `json:"did"`
	Dropped []Dropped `json:"dropped,omitempty"`
}

// Dropped are the nodes that a rule left out for one reason.
type Dropped struct {
	Reason Reason   `json:"reason"`
	Count  int      `json:"count"`
	Nodes  []string `json:"nodes"` // the first of them, by id
}

// maxDropped is how many nodes are named for one reason.
const maxDropped = 20

// CandidateTrace is a Candidate for people and programs to read.
type CandidateTrace struct {
	Node     string     `json:"node"`
	Addr4    netip.Addr `json:"addr4,omitzero"`
	Addr6    netip.Addr `json:"addr6,omitzero"`
	Cost     float32    `json:"cost"` // ms, the sum of the next five
	Coverage float32    `json:"coverage"`
	Quality  float32    `json:"quality"`
	Stream   float32    `json:"stream"`
	Load     float32    `json:"load"`
	Health   float32    `json:"health"`
	Weight   uint16     `json:"weight"`
	Reason   Reason     `json:"reason"`
}

// SelfTrace is how the edge that asked stands.
type SelfTrace struct {
	Node string  `json:"node"`
	OK   bool    `json:"ok"` // it may be in the answer
	Cost float32 `json:"cost"`
}

// Explain tells how q is answered: it decides as Decide does, and then says what each
// rule did. It is for people; it allocates, and looks at every node.
func (v *View) Explain(now time.Time, q *Query) Explanation {
	var a Answer
	d := decision{v: v, q: *q, now: now}
	d.decide(&a)
	e := Explanation{
		Now: now, Version: v.Plan.Version, StateAt: v.State.At, Client: q.Client, Stream: q.Stream, Access: q.Access,
		Place: a.Place, Reason: a.Reason, TTL: Duration(a.TTL), Bits: a.Bits, Candidates: []CandidateTrace{},
	}
	if a.Domain == nil {
		e.Rules = []Rule{{Name: "domain", Did: fmt.Sprintf("no domain serves %q", q.Domain)}}
		return e
	}
	e.Domain = a.Domain.Name
	e.Rules = []Rule{
		d.explainOverrides(), d.explainEligibility(a.Domain), d.explainCoverage(&a), d.explainQuality(),
		d.explainStream(), d.explainLoad(), d.explainSpreading(),
	}
	for i := range a.N {
		e.Candidates = append(e.Candidates, a.Candidates[i].trace())
	}
	if q.Self != "" {
		e.Self = &SelfTrace{q.Self, a.SelfOK, a.SelfCost}
	}
	return e
}

func (c *Candidate) trace() CandidateTrace {
	return CandidateTrace{
		Node: c.Node.ID, Addr4: c.Addr4, Addr6: c.Addr6, Cost: c.Cost, Coverage: c.Coverage, Quality: c.Quality,
		Stream: c.Stream, Load: c.Load, Health: c.Health, Weight: c.Weight, Reason: c.Reason,
	}
}

// verdict returns what the overrides say, and which ones do.
func (d *decision) verdict() (v verdict, names []string) {
	m, _ := d.matching()
	for o := m.next(d.v.Plan.overrides); o != nil; o = m.next(d.v.Plan.overrides) {
		v.apply(o)
		names = append(names, o.ID)
	}
	return v, names
}

func (d *decision) explainOverrides() Rule {
	r := Rule{Name: "override", Did: "no override is for this query"}
	v, names := d.verdict()
	if len(names) == 0 {
		return r
	}
	var pinned []string
	for i := range d.plan.Nodes {
		n := int32(i)
		if v.pinned.has(n) {
			pinned = append(pinned, d.plan.Nodes[i].ID)
		}
		if v.banned.has(n) && d.plan.cellOf[i] >= 0 {
			r.drop(Banned, d.plan.Nodes[i].ID)
		}
	}
	r.Did = "the most specific first: " + strings.Join(names, ", ")
	switch {
	case d.pinned:
		r.Did += fmt.Sprintf("; pinned to %d nodes: %s", len(pinned), some(pinned))
	case v.pins:
		r.Did += "; no pinned node is eligible, so the others are asked: " + some(pinned)
	}
	if d.despite {
		r.Did += "; all that could serve are banned, so bans are passed over"
	}
	return r
}

// drop notes a node that was left out.
func (r *Rule) drop(why Reason, id string) {
	for i := range r.Dropped {
		if d := &r.Dropped[i]; d.Reason == why {
			if d.Count++; len(d.Nodes) < maxDropped {
				d.Nodes = append(d.Nodes, id)
			}
			return
		}
	}
	r.Dropped = append(r.Dropped, Dropped{why, 1, []string{id}})
}

// some returns the first of a list of names as text.
func some(names []string) string {
	if len(names) > maxDropped {
		return strings.Join(names[:maxDropped], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
