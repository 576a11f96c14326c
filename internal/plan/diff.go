package plan

import (
	"slices"
	"time"
)

// Diff is what edits would change.
type Diff struct {
	Changes []Change `json:"changes"` // by node
	Before  Stats    `json:"before"`  // of a plan made now with the edits that hold
	After   Stats    `json:"after"`   // of one made now with the edits that are tried
	Moved   int64    `json:"moved"`   // bytes/s whose first choice would be another one
	// Empty are nodes that would be left without an upstream.
	Empty []string `json:"empty"`
	// Over are nodes whose upstream would have no room for them.
	Over []string `json:"over"`
}

// Change is a pool that would be another one.
type Change struct {
	Node       string   `json:"node"`
	Before     []Choice `json:"before"`
	After      []Choice `json:"after"`
	CostBefore float64  `json:"cost_before"` // ms, of the first choices
	CostAfter  float64  `json:"cost_after"`
	Moved      int64    `json:"moved"` // bytes/s
}

// DryRun tells what would change if edits took the place of those of n. It compares two
// plans made now from old, so that it shows what the edits do and not what time has done.
func DryRun(now time.Time, n *Network, old *Plan, edits Edits, cfg *Config) Diff {
	tried := *n
	tried.Edits = edits
	return Compare(n, Make(now, n, old, cfg), Make(now, &tried, old, cfg), cfg)
}

// Compare tells what nodes that follow before would have to change to follow after.
func Compare(n *Network, before, after *Plan, cfg *Config) Diff {
	d := Diff{Changes: []Change{}, Before: before.Stats, After: after.Stats, Empty: []string{}, Over: []string{}}
	for _, id := range sortedIDs(before.Pools, after.Pools) {
		was, is := before.Pools[id], after.Pools[id]
		if _, alive := after.Pools[id]; alive && len(is) == 0 {
			d.Empty = append(d.Empty, id)
		}
		if len(is) > 0 && is[0].Reason == OverCapacity {
			d.Over = append(d.Over, id)
		}
		if sameUpstreams(was, is) {
			continue
		}
		c := Change{Node: id, Before: was, After: is}
		if len(was) > 0 {
			c.CostBefore = was[0].Cost
		}
		if len(is) > 0 {
			c.CostAfter = is[0].Cost
		}
		if len(was) == 0 || len(is) == 0 || was[0].Upstream != is[0].Upstream {
			c.Moved = cfg.Demand
			if v, ok := n.Demand[id]; ok {
				c.Moved = max(v, 0)
			}
			d.Moved += c.Moved
		}
		d.Changes = append(d.Changes, c)
	}
	return d
}

func sortedIDs(a, b map[string][]Choice) []string {
	ids := make([]string, 0, len(b))
	for id := range b {
		ids = append(ids, id)
	}
	for id := range a {
		if _, ok := b[id]; !ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
