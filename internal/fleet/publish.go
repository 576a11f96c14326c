package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"millrace/internal/plan"
	"millrace/internal/store"
)

// published is a plan that was published. It is not changed.
type published struct {
	plan    *plan.Plan
	measure map[string][]string // what nodes measure beyond their pools
	by      string              // the router that planned
	number  uint64
	fence   store.Fence
}

// planWire is a plan as it is published. The nodes that share streams stand once.
type planWire struct {
	Version uint64                   `json:"version"`
	At      time.Time                `json:"at"`
	By      string                   `json:"by"`
	Frozen  bool                     `json:"frozen,omitempty"`
	Pools   map[string][]plan.Choice `json:"pools"`
	Members [][]plan.Peer            `json:"members"`
	Centers []string                 `json:"centers"`
	Stats   plan.Stats               `json:"stats"`
	Measure map[string][]string      `json:"measure"`
}

// measured is how many upstreams beyond its pool a node measures.
const measured = 4

// planWireOf writes a plan down. Costs are rounded to what people read of them.
func planWireOf(p *plan.Plan, by string, v *plan.View) *planWire {
	w := &planWire{
		Version: p.Version, At: p.At.UTC(), By: by, Frozen: p.Frozen, Pools: make(map[string][]plan.Choice, len(p.Pools)), Members: [][]plan.Peer{},
		Centers: p.Centers, Stats: p.Stats, Measure: map[string][]string{},
	}
	for id, pool := range p.Pools {
		rounded := make([]plan.Choice, len(pool))
		for i, c := range pool {
			b := &c.Parts
			for _, v := range []*float64{&c.Cost, &b.Delay, &b.Loss, &b.Stall, &b.FirstFrame, &b.Failure, &b.Money, &b.Load, &b.Tier, &b.Behind, &b.Weight} {
				*v = math.Round(*v*1000) / 1000
			}
			rounded[i] = c
		}
		w.Pools[id] = rounded
		if list := v.Measure(id, measured); len(list) > 0 {
			w.Measure[id] = list
		}
	}
	seen := map[*plan.Peer]bool{}
	for _, id := range slices.Sorted(maps.Keys(p.Members)) {
		if list := p.Members[id]; !seen[&list[0]] {
			seen[&list[0]] = true
			w.Members = append(w.Members, list)
		}
	}
	return w
}

// plan returns the plan that was written down.
func (w *planWire) plan() *plan.Plan {
	p := &plan.Plan{
		Version: w.Version, At: w.At, Frozen: w.Frozen, Pools: w.Pools, Members: map[string][]plan.Peer{}, Centers: w.Centers, Stats: w.Stats,
	}
	if p.Pools == nil {
		p.Pools = map[string][]plan.Choice{}
	}
	for _, list := range w.Members {
		for i := range list {
			p.Members[list[i].ID] = list
		}
	}
	return p
}

// adoptPlan puts a plan that was published in force, unless it is known or older.
func (f *Fleet) adoptPlan(now time.Time, p *store.Published) error {
	f.adopting.Lock()
	defer f.adopting.Unlock()
	old := f.published.Load()
	if old != nil && (p.Fence < old.fence || p.Fence == old.fence && p.Number <= old.number) {
		return nil
	}
	var w planWire
	if err := f.packer.unpack(p.Body, &w); err != nil {
		return fmt.Errorf("plan %d: %w", p.Number, err)
	}
	in := &published{plan: w.plan(), measure: w.Measure, by: w.By, number: p.Number, fence: p.Fence}
	f.published.Store(in)
	if old == nil || old.plan.Version != in.plan.Version || !maps.EqualFunc(old.measure, in.measure, slices.Equal[[]string]) {
		f.ordersDue.Store(true)
	}
	if old == nil || old.plan.Version != in.plan.Version {
		what := "a new plan is in force"
		if old == nil && in.plan.At.Before(f.began) {
			what = "the plan that was published last, before this router began, is in force"
		}
		f.log.Info(what, "version", in.plan.Version, "by", in.by, "moved", in.plan.Stats.Moved)
		f.events.add(now, Event{
			ID: "plan/" + f.origin() + "/" + strconv.FormatUint(in.plan.Version, 10), At: in.plan.At, Kind: KindPlan, From: in.by,
			Detail: fmt.Sprintf("version %d: %s", in.plan.Version, movedText(in.plan.Stats.Moved)),
			Figures: map[string]any{
				"moved": in.plan.Stats.Moved, "placed": in.plan.Stats.Placed, "unplaced": in.plan.Stats.Unplaced,
				"over_capacity": in.plan.Stats.OverCapacity, "cost": math.Round(in.plan.Stats.Cost),
			},
		})
		f.wake()
	}
	return nil
}

// movedText says how much a plan moves.
func movedText(nodes int) string {
	switch nodes {
	case 0:
		return "no node has another first upstream"
	case 1:
		return "1 node has another first upstream"
	}
	return strconv.Itoa(nodes) + " nodes have another first upstream"
}

// readPublished takes up what was published last: the nodes at the start alone, the plan and
// the bundle always.
func (f *Fleet) readPublished(ctx context.Context, now time.Time, kinds ...string) error {
	var errs []error
	for _, kind := range kinds {
		p, err := f.store.Published(ctx, kind)
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case err != nil:
		case kind == kindPlan:
			err = f.adoptPlan(now, &p)
		case kind == kindBundle:
			err = f.adoptBundle(ctx, now, &p)
		case kind == kindRoster:
			var list []rosterNode
			if err = f.packer.unpack(p.Body, &list); err == nil {
				f.nodes.seedFrom(now, list)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", kind, err))
		}
	}
	return errors.Join(errs...)
}
