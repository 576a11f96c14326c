package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"millrace/tools/cluster"
	"millrace/tools/frames"
)

// rig is one run of a case. Its methods are for one goroutine.
type rig struct {
	Case
	opt    Options
	rnd    *rand.Rand
	top    cluster.Topology
	c      *cluster.Cluster
	ctx    context.Context // of the run, which the rig is
	cancel context.CancelFunc
	began  time.Time
	out    Result

	closers []io.Closer
	sources []*source
	viewers []*viewer
	ids     map[string]uint32 // of streams
	events  []cluster.Event
	dead    string // address of the port that nobody listens on
}

// patience is how long something may take that must happen at all.
const patience = 15 * time.Second

// open starts the nodes.
func (r *rig) open() (err error) {
	if r.top, err = r.topology(r); err != nil {
		return err
	}
	r.top.Seed = r.out.Seed
	if n := len(r.top.Nodes); n != r.Nodes {
		return fmt.Errorf("%d nodes, but the case says %d", n, r.Nodes)
	}
	r.c, err = cluster.Start(r.ctx, r.top, cluster.Options{Program: r.opt.Program, Logs: r.opt.Logs})
	return err
}

// close ends viewers and publishers, then the nodes, then what else was opened.
func (r *rig) close() error {
	r.cancel()
	for _, v := range r.viewers {
		<-v.done
	}
	for _, s := range r.sources {
		<-s.done
	}
	var errs []error
	if r.c != nil {
		errs = append(errs, r.c.Close())
	}
	for _, c := range r.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// broke notes that a promise was not kept.
func (r *rig) broke(format string, args ...any) {
	r.out.Broken = append(r.out.Broken, fmt.Sprintf(format, args...))
}

// limit returns how long something may take that is promised within d.
func (r *rig) limit(d time.Duration) time.Duration { return d * time.Duration(max(r.opt.Slack, 1)) }

// figure notes a figure of the case; of several with one name the greatest counts.
func (r *rig) figure(name string, value float64) {
	if old, ok := r.out.Figures[name]; !ok || value > old {
		r.out.Figures[name] = value
	}
}

// wait lets time pass.
func (r *rig) wait(d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// between draws a time.
func (r *rig) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(r.rnd.Int64N(int64(hi-lo)))
}

// id returns the number of a stream.
func (r *rig) id(stream string) uint32 {
	if _, ok := r.ids[stream]; !ok {
		r.ids[stream] = uint32(len(r.ids))
	}
	return r.ids[stream]
}

// publish publishes a stream at a node, at the given pace.
func (r *rig) publish(node, stream string, p pace) (*source, error) {
	cfg := frames.DefaultConfig()
	cfg.VideoKbps = videoKbps
	return r.publishAs(node, stream, cfg, p)
}

func (r *rig) publishAs(node, stream string, cfg frames.Config, p pace) (*source, error) {
	cfg.Stream = r.id(stream)
	s, err := publish(r.ctx, r.c.Ports(node).RTMP, stream, cfg, p)
	if err == nil {
		r.sources = append(r.sources, s)
	}
	return s, err
}

// view starts a viewer.
func (r *rig) view(node, stream string) *viewer {
	v := play(r.ctx, r.c.Ports(node).HTTP, node, stream, r.id(stream))
	r.viewers = append(r.viewers, v)
	return v
}

// playing waits until all of some viewers have their first frame.
func (r *rig) playing(viewers []*viewer) error {
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	for _, v := range viewers {
		if err := v.playing(ctx); err != nil {
			return err
		}
	}
	return nil
}

// do carries out a command of the cluster.
func (r *rig) do(format string, args ...any) error {
	cmd, err := r.top.Parse(fmt.Sprintf(format, args...))
	if err != nil {
		return err
	}
	return r.c.Do(r.ctx, cmd)
}

// observe asks the nodes, and keeps their events.
func (r *rig) observe() cluster.Snapshot {
	s := r.c.Observe(r.ctx)
	for _, e := range s.Events {
		switch {
		case e.Kind == "switched" && e.From != "" || e.Kind == "switched" && e.Reason == "upstream_lost":
			r.out.Switches++
		case e.Kind == "tried" && e.Reason != "no_upstream":
			r.out.Trials++
		}
	}
	r.events = append(r.events, s.Events...)
	return s
}

// until observes again and again until ready holds.
func (r *rig) until(what string, ready func(cluster.Snapshot) bool) (cluster.Snapshot, error) {
	end := time.Now().Add(patience)
	for {
		s := r.observe()
		if ready(s) {
			return s, nil
		}
		if time.Now().After(end) {
			return s, fmt.Errorf("%s: not after %v; %s", what, patience, from(s))
		}
		if err := r.wait(50 * time.Millisecond); err != nil {
			return s, err
		}
	}
}

// from says where each node has its streams from.
func from(s cluster.Snapshot) string {
	var out []string
	for _, n := range s.Nodes {
		for _, x := range n.Streams {
			out = append(out, fmt.Sprintf("%s has %s from %q", n.ID, x.Name, x.From))
		}
	}
	return fmt.Sprint(out)
}

// source returns where a node has a stream from, "" if it has not.
func sourceOf(s cluster.Snapshot, node, stream string) string {
	for _, n := range s.Nodes {
		if n.ID != node {
			continue
		}
		for _, x := range n.Streams {
			if x.Name == stream {
				return x.From
			}
		}
	}
	return ""
}

// outside returns the nodes that have a stream from the given one.
func outside(s cluster.Snapshot, from, stream string) (out []string) {
	for _, n := range s.Nodes {
		if sourceOf(s, n.ID, stream) == from {
			out = append(out, n.ID)
		}
	}
	return out
}

// happened returns the events of a kind at a node since a time, of one stream or of all
// if that is empty.
func (r *rig) happened(kind, node, stream string, since time.Time) (out []cluster.Event) {
	for _, e := range r.events {
		if e.Kind == kind && e.Node == node && !e.At.Before(since) && (stream == "" || e.Stream == stream) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b cluster.Event) int { return a.At.Compare(b.At) })
	return out
}

// sum takes in what a viewer saw since a fault, and holds it against what is promised
// whenever another upstream has the frames: each of them once, in order, none missing,
// and nobody is sent away.
func (r *rig) sum(v *viewer, fault time.Time) View {
	x := r.sumGaps(v, fault)
	if x.Missing > 0 {
		r.broke("viewer of %s at %s: %d frames missing: %s", x.Stream, x.Node, x.Missing, holes(v.frames, fault))
	}
	return x
}

// sumGaps is sum where frames may be missing.
func (r *rig) sumGaps(v *viewer, fault time.Time) View {
	x := v.view(fault, r.limit(buffer))
	r.out.Views = append(r.out.Views, x)
	who := fmt.Sprintf("viewer of %s at %s", x.Stream, x.Node)
	if x.Frames == 0 {
		r.broke("%s: no frame; %s", who, x.Error)
		return x
	}
	if !v.meta {
		r.broke("%s: no metadata before the first frame", who)
	}
	for _, f := range []struct {
		n    uint64
		what string
	}{{x.Repeated, "repeated"}, {x.Clock, "with a wrong time"}, {x.Other, "with other faults"}} {
		if f.n > 0 {
			r.broke("%s: %d frames %s: %v", who, f.n, f.what, v.check.Faults.Words())
		}
	}
	if x.Error != "" {
		r.broke("%s: %s", who, x.Error)
	}
	if r.Stalls && x.Stalls > 0 {
		r.broke("%s: stood %d times, %.0f ms", who, x.Stalls, x.Stalled)
	}
	return x
}
