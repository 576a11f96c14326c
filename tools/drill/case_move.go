package drill

import (
	"context"
	"fmt"
	"time"

	"millrace/tools/cluster"
)

// movesTree has edges that see the centers themselves, in either order, and one that
// sees them through a relay.
func movesTree(*rig) (cluster.Topology, error) {
	both := []string{"center-1", "center-2"}
	return cluster.Topology{
		ClusterKey: key,
		Nodes: []cluster.Node{
			{ID: "center-1", Role: "center"},
			{ID: "center-2", Role: "center"},
			{ID: "relay", Role: "relay", Upstreams: both},
			{ID: "edge-1", Role: "edge", Upstreams: both},
			{ID: "edge-2", Role: "edge", Upstreams: []string{"center-2", "center-1"}},
			{ID: "edge-3", Role: "edge", Upstreams: []string{"relay"}},
		},
	}, nil
}

// renewed is how soon viewers must have frames of the new publish.
const renewed = 3 * time.Second

// publisherMoves: it begins at center 2 up to half a second before it has ended at
// center 1, or up to a second after.
func publisherMoves(r *rig) error {
	const stream = "live/s"
	old, err := r.publish("center-1", stream, steady)
	if err != nil {
		return err
	}
	var viewers []*viewer
	for i := range 3 {
		viewers = append(viewers, r.view(edge(i), stream))
	}
	if err := r.playing(viewers); err != nil {
		return err
	}
	if err := r.wait(r.between(calibration, calibration+2*time.Second)); err != nil {
		return err
	}
	fault := time.Now()
	var next *source
	overlap := r.between(-time.Second, 500*time.Millisecond)
	if overlap > 0 {
		if next, err = r.publish("center-2", stream, steady); err != nil {
			return err
		}
		if err := r.wait(overlap); err != nil {
			return err
		}
		old.stop()
	} else {
		old.stop()
		if err := r.wait(-overlap); err != nil {
			return err
		}
		if next, err = r.publish("center-2", stream, steady); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithDeadline(r.ctx, next.began.Add(r.limit(renewed)+time.Second))
	defer cancel()
	for _, v := range viewers { // who does not see it is told of below
		_ = v.await(ctx, func() bool { return len(v.frames) > 0 && v.frames[len(v.frames)-1].epoch == next.began.UnixMilli() })
	}
	var late []*viewer // they get the headers of the new publish, and nothing old
	for i := range 3 {
		late = append(late, r.view(edge(i), stream))
	}
	if err := r.playing(late); err != nil {
		r.broke("after the move: %v", err)
	}
	if err := r.wait(time.Second); err != nil { // nothing old may come behind it
		return err
	}
	for _, v := range late {
		v.leave()
		r.sum(v, time.Time{})
	}
	for _, v := range viewers {
		v.leave()
		x := r.sum(v, fault)
		at, ok := v.firstOf(next.began.UnixMilli())
		who := fmt.Sprintf("%s, moved %v before the end", x.Node, overlap.Round(time.Millisecond))
		if !ok {
			r.broke("%s: no frame of the new publish", who)
			continue
		}
		r.figure("ms until the new publish is seen", ms(at.Sub(next.began)))
		if d := at.Sub(next.began); d > r.limit(renewed) {
			r.broke("%s: the new publish after %v", who, d.Round(time.Millisecond))
		}
	}
	return nil
}

// firstOf returns when the first frame of an epoch came.
func (v *viewer) firstOf(epoch int64) (time.Time, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, f := range v.frames {
		if f.epoch == epoch {
			return f.at, true
		}
	}
	return time.Time{}, false
}
