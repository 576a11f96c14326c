package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"millrace/internal/control"
	"millrace/internal/plan"
	"millrace/internal/sched"
	"millrace/internal/store"
)

// bundleWire is what schedulers and edges place from, as it is published. Every router
// makes the same bundle of it.
type bundleWire struct {
	Snapshot json.RawMessage `json:"snapshot"`
	Geo      json.RawMessage `json:"geo"`
	Coverage uint64          `json:"coverage,omitempty"` // version of the document; 0: none
	MMDB     []string        `json:"mmdb,omitempty"`     // sums
}

// bundleOf stands for what a bundle was made of. Edits run out and players report without
// a sign here, so that it is made anyway now and then.
type bundleOf struct {
	docs       *documents
	identities uint64
	anyway     time.Time
}

// publishBundle publishes what schedulers place from, if that has changed. Edges that are
// silent stay in it until they are forgotten: schedulers see for themselves, and a router
// that is cut off empties no zone.
func (f *Fleet) publishBundle(ctx context.Context, now time.Time, l *leadership, fr *frame) error {
	p := &f.planner
	if now.Sub(p.bundleAt) < bundleEvery {
		return nil
	}
	p.bundleAt = now
	of := bundleOf{fr.docs, fr.identities, now.Truncate(bundleAnyway)}
	if of == p.bundleOf {
		return nil
	}
	s, err := f.snapshot(now, fr)
	if err != nil {
		return fmt.Errorf("snapshot for schedulers: %w", err)
	}
	if len(s.Nodes) == 0 {
		return nil // whoever follows goes on with what it has
	}
	w := bundleWire{}
	if w.Snapshot, err = json.Marshal(s); err != nil {
		return err
	}
	if w.Geo, err = json.Marshal(fr.docs.contents.Geo); err != nil {
		return err
	}
	if fr.docs.contents.Coverage != nil {
		w.Coverage = fr.docs.coverage
	}
	for _, b := range f.cfg.MMDB {
		w.MMDB = append(w.MMDB, b.Sum)
	}
	plain, err := json.Marshal(w)
	if err != nil {
		return err
	}
	if in := f.bundles.in.Load(); in != nil && bytes.Equal(in.plain, plain) {
		p.bundleOf = of
		return nil
	}
	body, err := f.packer.pack(w)
	if err != nil {
		return err
	}
	out, err := f.store.Publish(ctx, l.fence, kindBundle, body)
	if err != nil {
		return err
	}
	return f.adoptBundle(ctx, now, &out)
}

// snapshot is what schedulers place from, by what is known now.
func (f *Fleet) snapshot(now time.Time, fr *frame) (*sched.Snapshot, error) {
	s := *fr.docs.contents.Snapshot
	s.Regions = slices.Clone(s.Regions)
	declared := map[string]bool{}
	for i := range s.Regions {
		declared[s.Regions[i].Name] = true
	}
	marks := newMarks(now, &fr.docs.edits.Edits)
	s.Nodes = []sched.Node{}
	known := map[string]bool{}
	for i := range fr.nodes {
		of := fr.nodes[i].identity
		if of.Role != plan.Edge || len(s.Nodes) == sched.MaxNodes {
			continue
		}
		if why := fr.nodes[i].leftOut; why != "" {
			f.leaveOut(now, of.ID, why)
			continue
		}
		if !declared[of.Region] {
			declared[of.Region] = true
			s.Regions = append(s.Regions, sched.Region{Name: of.Region})
		}
		n := f.edge(of)
		n.Capacity, n.Drain, _ = marks.of(of, n.Capacity)
		n.Capacity = max(n.Capacity, 1)
		s.Nodes = append(s.Nodes, n)
		known[n.ID], known["dc:"+n.Datacenter] = true, true
	}
	maps.DeleteFunc(f.planner.leftOut, func(id, why string) bool { n := fr.node(id); return n == nil || n.leftOut != why })
	s.Overrides = existing(s.Overrides, known)
	s.Quality = append(slices.Clone(s.Quality), f.planner.quality.rows(now, f, known, s.Quality)...)
	return &s, s.Validate()
}

// edge is a node as schedulers take it, without edits.
func (f *Fleet) edge(of *control.Identity) sched.Node {
	n := edgeOf(of)
	if n.Capacity <= 0 {
		n.Capacity = f.cfg.Capacity
	}
	return n
}

// leaveOut tells of an edge that cannot be offered to players, once for each reason.
func (f *Fleet) leaveOut(now time.Time, id, why string) {
	if f.planner.leftOut[id] == why {
		return
	}
	f.planner.leftOut[id] = why
	f.log.Warn("players are not sent to a node", "node", id, "reason", control.LeftOut, "err", why)
	f.events.add(now, Event{
		ID: "left_out/" + id + "/" + strconv.FormatUint(xxhash.Sum64String(why), 36), Kind: KindLeftOut, Node: id,
		Reason: control.LeftOut.String(), Detail: why,
	})
}

// existing returns overrides without nodes and datacenters that are not there; those that
// then do nothing are left out.
func existing(list []sched.Override, known map[string]bool) []sched.Override {
	var out []sched.Override
	only := func(names []string) (there []string) {
		for _, name := range names {
			if known[name] {
				there = append(there, name)
			}
		}
		return there
	}
	for _, o := range list {
		o.Pin, o.Ban = only(o.Pin), only(o.Ban)
		if len(o.Pin)+len(o.Ban) > 0 {
			out = append(out, o)
		}
	}
	return out
}

// adoptBundle puts a bundle that was published in force, unless it is known or older.
func (f *Fleet) adoptBundle(ctx context.Context, now time.Time, p *store.Published) error {
	b := &f.bundles
	b.adopting.Lock()
	defer b.adopting.Unlock()
	old := b.in.Load()
	if old != nil && (p.Fence < old.fence || p.Fence == old.fence && p.Number <= old.number) {
		return nil
	}
	in := &bundleIn{number: p.Number, fence: p.Fence}
	var w bundleWire
	if err := f.packer.unpack(p.Body, &w); err != nil {
		return fmt.Errorf("snapshot %d: %w", p.Number, err)
	}
	contents, err := f.contents(ctx, &w)
	if err != nil {
		return fmt.Errorf("snapshot %d: %w", p.Number, err)
	}
	if in.plain, err = json.Marshal(w); err != nil {
		return err
	}
	if in.bundle, err = control.NewBundle(f.origin(), p.Number, p.At, contents); err != nil {
		return fmt.Errorf("snapshot %d: %w", p.Number, err)
	}
	b.in.Store(in)
	b.news.Broadcast()
	f.log.Info("a new snapshot for schedulers", "version", in.bundle.Version, "nodes", len(contents.Snapshot.Nodes))
	f.events.add(now, Event{
		ID: "bundle/" + in.bundle.Version.String(), At: p.At.UTC(), Kind: KindBundle, Detail: in.bundle.Version.String(),
		Figures: map[string]any{"nodes": len(contents.Snapshot.Nodes), "domains": len(contents.Snapshot.Domains)},
	})
	return nil
}

// contents is what a bundle is made of.
func (f *Fleet) contents(ctx context.Context, w *bundleWire) (control.Contents, error) {
	out := control.Contents{Snapshot: &sched.Snapshot{}}
	if err := json.Unmarshal(w.Snapshot, out.Snapshot); err != nil {
		return out, err
	}
	if err := json.Unmarshal(w.Geo, &out.Geo); err != nil {
		return out, err
	}
	if w.Coverage > 0 {
		d, err := f.store.Version(ctx, KeyCoverage, w.Coverage)
		if err != nil {
			return out, fmt.Errorf("coverage: %w", err)
		}
		out.Coverage = control.NewBlob(d.Body)
	}
	for _, sum := range w.MMDB {
		at := slices.IndexFunc(f.cfg.MMDB, func(b *control.Blob) bool { return b.Sum == sum })
		if at < 0 {
			f.log.Error("the router that plans has an mmdb file that this one has not: give all routers the same", "sum", sum)
			continue
		}
		out.MMDB = append(out.MMDB, f.cfg.MMDB[at])
	}
	return out, nil
}
