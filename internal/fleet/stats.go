package fleet

import (
	"maps"
	"time"
)

// Stats are figures of the router for metrics.
type Stats struct {
	Nodes       int               `json:"nodes"`
	Up          int               `json:"up"`
	Streams     int               `json:"streams"`
	Carried     int               `json:"carried"` // streams times nodes
	Links       int               `json:"links"`   // that were measured
	Heartbeats  uint64            `json:"heartbeats"`
	Refused     map[string]uint64 `json:"refused"`  // heartbeats, by reason
	Samples     map[string]uint64 `json:"samples"`  // by reason, taken among them
	Resends     uint64            `json:"resends"`  // that were asked for
	Paths       uint64            `json:"paths"`    // that were asked
	Leader      bool              `json:"leader"`   // this router plans
	Plan        uint64            `json:"plan"`     // the version in force
	PlanAge     time.Duration     `json:"plan_age"` // since it was made
	PlanTook    time.Duration     `json:"plan_took"`
	Plans       uint64            `json:"plans"` // made here
	Routers     int               `json:"routers"`
	Store       bool              `json:"store"` // it can be reached
	StoreErrors uint64            `json:"store_errors"`
	Events      uint64            `json:"events"` // ever
}

// Stats returns the figures.
func (f *Fleet) Stats() Stats {
	now := time.Now()
	s := Stats{
		Heartbeats: f.counts.beats.Load(), Resends: f.counts.resends.Load(), Paths: f.counts.paths.Load(), Leader: f.leads(now),
		PlanTook: time.Duration(f.counts.took.Load()), Plans: f.counts.plans.Load(), Store: f.reached.Load(),
		StoreErrors: f.counts.storeErrors.Load(),
	}
	s.Links, s.Samples = f.scores.stats()
	f.counts.mu.Lock()
	s.Refused = maps.Clone(f.counts.refused)
	f.counts.mu.Unlock()
	if s.Refused == nil {
		s.Refused = map[string]uint64{}
	}
	s.Events = f.events.total()
	if in := f.published.Load(); in != nil {
		s.Plan, s.PlanAge = in.plan.Version, now.Sub(in.plan.At)
	}
	if fr := f.frame.Load(); fr != nil {
		s.Nodes, s.Streams, s.Routers = len(fr.nodes), fr.streams, len(fr.routers)
		for i := range fr.nodes {
			s.Carried += fr.nodes[i].streams
			if !fr.nodes[i].down {
				s.Up++
			}
		}
	}
	return s
}
