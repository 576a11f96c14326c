package console

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"millrace/internal/fleet"
	"millrace/internal/plan"
	"millrace/internal/store"
	"millrace/internal/stream"
)

// fake is a Fleet over a world.
type fake struct {
	*world

	// Guarded by mu.
	mu        sync.Mutex
	map_      *fleet.Network
	changed   chan struct{}
	documents map[string][]fleet.Document // the oldest first
	away      error                       // of the store
	hold      chan struct{}               // DryRun waits for it, if there is one
}

func newFake() *fake {
	f := &fake{world: newWorld(), changed: make(chan struct{}), documents: map[string][]fleet.Document{}}
	for i, body := range []string{`{}`, `{"frozen":{}}`, `{"weights":[{"from":"relay-1","to":"edge-2","weight":0.5}]}`} {
		f.documents[fleet.KeyEdits] = append(f.documents[fleet.KeyEdits], fleet.Document{
			Key: fleet.KeyEdits, Version: uint64(i + 1), At: start.Add(time.Duration(i-3) * time.Hour), Author: "ana",
			Comment: []string{"first", "no moves during the match", "the way over the sea is paid for"}[i], Body: body, Size: len(body),
		})
	}
	f.tick(0)
	return f
}

// tick makes a new map, of a time after the start.
func (f *fake) tick(after time.Duration) {
	w := f.world
	n := &fleet.Network{At: start.Add(after), Router: "router-1", Plan: w.plan.Version, Store: true, Domains: 1, Links: w.links()}
	dcs := map[string]*fleet.Datacenter{}
	for i := range w.network.Nodes {
		r := w.row(&w.network.Nodes[i])
		n.Nodes = append(n.Nodes, r)
		d := dcs[r.Datacenter]
		if d == nil {
			d = &fleet.Datacenter{Name: r.Datacenter, Region: r.Region}
			dcs[r.Datacenter] = d
		}
		d.Nodes++
		d.Viewers += r.Viewers
		d.Load += r.Load
		d.Capacity += r.Capacity
		n.Totals.Nodes++
		if r.State != fleet.NodeDown {
			d.Up++
			n.Totals.Up++
		}
		n.Totals.Viewers += r.Viewers
		n.Totals.Load += r.Load
		n.Totals.Backhaul += r.Pulled
	}
	n.Totals.Streams, n.Totals.Crossing = len(w.streams), 312_500
	n.Datacenters = []fleet.Datacenter{*dcs["east-1"], *dcs["west-1"]}
	for _, r := range w.network.Regions {
		n.Regions = append(n.Regions, fleet.RegionRow{Name: r.Name, Lat: r.Lat, Lon: r.Lon})
	}
	n.Routers = []fleet.RouterRow{
		{ID: "router-1", Leader: true, Self: true, Up: true, Seen: n.At, Started: start.Add(-24 * time.Hour), Nodes: 6, Plan: 42, Program: "0.5.0", URL: "http://192.0.2.10:8090"},
		{ID: "router-2", Up: true, Seen: n.At, Started: start.Add(-3 * time.Hour), Nodes: 1, Plan: 42, Program: "0.5.0", URL: "http://192.0.2.11:8090"},
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.map_ = n
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) Network() *fleet.Network {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.map_
}

func (f *fake) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

func (f *fake) newest(key string) fleet.Document {
	if all := f.documents[key]; len(all) > 0 {
		return all[len(all)-1]
	}
	return fleet.Document{Key: key}
}

func (f *fake) Edits() fleet.Edits {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.newest(fleet.KeyEdits)
	return fleet.Edits{Version: d.Version, At: d.At, Author: d.Author, Comment: d.Comment, Edits: f.network.Edits}
}

func (f *fake) DryRun(edits plan.Edits) (plan.Diff, error) {
	if f.hold != nil {
		<-f.hold
	}
	return plan.DryRun(start, &f.network, f.plan, edits, &f.cfg), f.away
}

func (f *fake) ExplainPath(node string, s stream.Name) plan.PathExplanation {
	return f.view.ExplainPath(node, s)
}

func (f *fake) Events(filter fleet.EventFilter, after uint64, limit int) *fleet.Events {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &fleet.Events{Events: []fleet.Event{}, Next: after, Total: len(f.events)}
	for _, e := range f.events {
		if out.Next = max(out.Next, e.Number); !slices.Contains(out.Kinds, e.Kind) {
			out.Kinds = append(out.Kinds, e.Kind)
		}
		if e.Number <= after || len(out.Events) == limit || filter.Kind != "" && e.Kind != filter.Kind ||
			filter.Node != "" && e.Node != filter.Node && e.From != filter.Node && e.To != filter.Node ||
			filter.Stream != "" && e.Stream != filter.Stream || filter.Reason != "" && e.Reason != filter.Reason {
			continue
		}
		out.Events = append(out.Events, e)
	}
	slices.Sort(out.Kinds)
	return out
}

// happen makes an event that is newer than all.
func (f *fake) happen(kind string) fleet.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := fleet.Event{Number: f.events[0].Number + 1, ID: "router-1/" + kind, At: start, Kind: kind}
	f.events = append([]fleet.Event{e}, f.events...)
	return e
}

func (f *fake) Document(_ context.Context, key string, version uint64) (fleet.Document, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if version == 0 || f.away != nil {
		return f.newest(key), f.away
	}
	for _, d := range f.documents[key] {
		if d.Version == version {
			return d, nil
		}
	}
	return fleet.Document{}, store.ErrNotFound
}

func (f *fake) History(_ context.Context, key string, limit int) ([]fleet.Document, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []fleet.Document
	for _, d := range slices.Backward(f.documents[key]) {
		if d.Body, d.Size = "", 0; len(out) < limit {
			out = append(out, d)
		}
	}
	return out, f.away
}

func (f *fake) Check(_ context.Context, key string, body []byte) error {
	if key == fleet.KeyEdits {
		if _, err := plan.ParseEdits(body); err != nil {
			return &fleet.InvalidError{Key: key, Err: err}
		}
	}
	if strings.Contains(string(body), "bad") {
		return &fleet.InvalidError{Key: key, Err: errors.New("line 1: bad is no setting: look at configs")}
	}
	return f.away
}

func (f *fake) Edit(ctx context.Context, key string, based uint64, body []byte, author, comment string) (fleet.Document, error) {
	if err := f.Check(ctx, key, body); err != nil {
		return fleet.Document{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.newest(key)
	if now.Version != based {
		return now, &store.ConflictError{Based: based, Current: store.Document{
			Key: key, Version: now.Version, At: now.At, Author: store.Author{Name: now.Author, Comment: now.Comment},
		}}
	}
	d := fleet.Document{Key: key, Version: based + 1, At: start, Author: author, Comment: comment, Body: string(body), Size: len(body)}
	f.documents[key] = append(f.documents[key], d)
	d.Body, d.Size = "", 0
	return d, nil
}

func (f *fake) Rollback(ctx context.Context, key string, version, based uint64, author, comment string) (fleet.Document, error) {
	d, err := f.Document(ctx, key, version)
	if err != nil {
		return d, err
	}
	return f.Edit(ctx, key, based, []byte(d.Body), author, comment)
}
