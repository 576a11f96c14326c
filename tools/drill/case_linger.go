package drill

import (
	"fmt"
	"sync"
	"time"

	"millrace/tools/cluster"
)

// lingerTree has an edge with the linger time of the defaults, or a shorter one when
// time is short.
func lingerTree(r *rig) (cluster.Topology, error) {
	edge := cluster.Node{ID: "edge", Role: "edge", Upstreams: []string{"center"}}
	if r.opt.Short {
		edge.Settings = map[string]string{"upstream.linger": "2s"}
	}
	return cluster.Topology{ClusterKey: key, Nodes: []cluster.Node{{ID: "center", Role: "center"}, edge}}, nil
}

// The steps of the linger case, and how long a viewer may wait for its first frame
// when it is back.
const (
	lingerStep = 50 * time.Millisecond
	lingerEnd  = 12 * time.Second
	lingerBack = time.Second
)

// linger has a thin stream for each step.
func linger(r *rig) error {
	end := lingerEnd
	if r.opt.Short {
		end /= 4
	}
	cfg := thin()
	var streams []string
	for d := time.Duration(0); d <= end; d += lingerStep {
		s := fmt.Sprintf("live/after-%dms", d.Milliseconds())
		if _, err := r.publishAs("center", s, cfg, steady); err != nil {
			return err
		}
		streams = append(streams, s)
	}
	if err := r.wait(time.Second); err != nil {
		return err
	}
	var first []*viewer
	for _, s := range streams {
		first = append(first, r.view("edge", s))
	}
	if err := r.playing(first); err != nil {
		return err
	}
	again := make([]*viewer, len(streams))
	errs := make([]error, len(streams))
	var returns sync.WaitGroup
	for i, v := range first {
		off := r.between(0, time.Second) // not all at one moment of the node's clocks
		returns.Go(func() {
			errs[i] = r.wait(off)
			v.leave()
			if errs[i] == nil {
				errs[i] = r.wait(time.Duration(i) * lingerStep)
			}
			again[i] = play(r.ctx, r.c.Ports("edge").HTTP, "edge", streams[i], r.ids[streams[i]])
		})
	}
	returns.Wait()
	r.viewers = append(r.viewers, again...)
	if err := r.wait(r.limit(lingerBack)); err != nil {
		return err
	}
	for i, v := range again {
		if errs[i] != nil {
			return errs[i]
		}
		v.leave()
		if x := r.sum(v, time.Time{}); x.First > ms(r.limit(lingerBack)) {
			r.broke("%s: first frame after %.0f ms", x.Stream, x.First)
		}
	}
	return nil
}
