package drill

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"millrace/tools/cluster"
)

// The way of the cold case: delays are one way, and a request makes two round trips
// on each link, one for the connection and one for the answer.
const (
	edgeDelay, relayDelay = 5 * time.Millisecond, 10 * time.Millisecond
	coldFirst             = 100*time.Millisecond + 2*2*(edgeDelay+relayDelay)
)

func coldTree(*rig) (cluster.Topology, error) {
	return cluster.Topology{
		ClusterKey: key,
		Nodes: []cluster.Node{
			{ID: "center", Role: "center"},
			{ID: "relay", Role: "relay", Upstreams: []string{"center"}},
			{ID: "edge-1", Role: "edge", Upstreams: []string{"relay"}},
			{ID: "edge-2", Role: "edge", Upstreams: []string{"relay"}},
		},
		Links: []cluster.Rule{
			{From: "edge-*", To: "relay", Delay: edgeDelay},
			{From: "relay", To: "center", Delay: relayDelay},
		},
	}, nil
}

// cold asks an edge for streams that neither it nor the relay has, and then once more.
func cold(r *rig) error {
	const all = 6
	for i := range all {
		if _, err := r.publish("center", name(i), steady); err != nil {
			return err
		}
	}
	if err := r.wait(r.between(500*time.Millisecond, 2500*time.Millisecond)); err != nil {
		return err
	}
	for i := range all {
		for _, second := range []bool{false, true} {
			v := r.view(edge(i%2), name(i))
			if err := r.playing([]*viewer{v}); err != nil {
				return err
			}
			if err := r.wait(r.between(100*time.Millisecond, 400*time.Millisecond)); err != nil {
				return err
			}
			v.leave()
			x := r.sum(v, time.Time{})
			limit := r.limit(coldFirst)
			if second {
				limit = r.limit(100 * time.Millisecond)
				r.figure("ms until the first frame of later viewers", x.First)
			}
			if x.First > ms(limit) {
				r.broke("%s at %s: first frame after %.0f ms, want %v", x.Stream, x.Node, x.First, limit)
			}
		}
	}
	return nil
}

// loopTrees are three trees that lead nowhere.
func loopTrees(*rig) (cluster.Topology, error) {
	return cluster.Topology{
		ClusterKey: key,
		Nodes: []cluster.Node{
			{ID: "pair-1", Role: "edge", Upstreams: []string{"pair-2"}},
			{ID: "pair-2", Role: "edge", Upstreams: []string{"pair-1"}},
			{ID: "self", Role: "edge", Upstreams: []string{"self", "center"}},
			{ID: "center", Role: "center"},
			{ID: "ring-1", Role: "edge", Upstreams: []string{"ring-2"}},
			{ID: "ring-2", Role: "edge", Upstreams: []string{"ring-3"}},
			{ID: "ring-3", Role: "edge", Upstreams: []string{"ring-1"}},
		},
	}, nil
}

// atOnce is how soon a request that goes round must be refused.
const atOnce = 500 * time.Millisecond

// loops asks for what is nowhere, alone and of all nodes of a circle at once, and then
// for what is there all the same.
func loops(r *rig) error {
	circles := [][]string{{"pair-1", "pair-2"}, {"self"}, {"ring-1", "ring-2", "ring-3"}}
	began := time.Now()
	for round, circle := range slices.Concat(circles, circles) {
		all := circle
		if round < len(circles) {
			all = circle[r.rnd.IntN(len(circle)):][:1]
		}
		stream := fmt.Sprintf("live/none%d", round)
		type answer struct {
			node   string
			status int
			took   time.Duration
			err    error
		}
		answers := make(chan answer, len(all))
		for _, n := range all {
			if err := r.wait(r.between(0, 20*time.Millisecond)); err != nil {
				return err
			}
			url := "http://" + r.c.Ports(n).HTTP + "/" + stream + ".flv"
			go func() {
				status, took, err := askFor(r.ctx, url)
				answers <- answer{n, status, took, err}
			}()
		}
		for range all {
			a := <-answers
			if a.err != nil {
				return a.err
			}
			r.figure("ms until the refusal", ms(a.took))
			if a.status < 400 || a.took > r.limit(atOnce) {
				r.broke("%s answered %d for %s after %v, want a refusal within %v", a.node, a.status, stream, a.took.Round(time.Millisecond), atOnce)
			}
		}
		r.observe()
		if !slices.ContainsFunc(circle, func(node string) bool {
			return slices.ContainsFunc(r.happened("gave_up", node, stream, began), func(e cluster.Event) bool { return e.Reason == "loop" })
		}) {
			r.broke("no node of %s gave the reason loop for %s", strings.Join(circle, ", "), stream)
		}
	}
	var viewers []*viewer
	for i, p := range []struct{ at, view string }{{"pair-1", "pair-2"}, {"center", "self"}, {"ring-1", "ring-2"}, {"ring-2", "ring-1"}, {"ring-3", "ring-2"}} {
		if _, err := r.publish(p.at, name(i), steady); err != nil {
			return err
		}
		viewers = append(viewers, r.view(p.view, name(i)))
	}
	if err := r.playing(viewers); err != nil {
		r.broke("%v", err)
	}
	for _, v := range viewers {
		v.leave()
		r.sum(v, time.Time{})
	}
	return nil
}

// askFor asks for a stream and returns the status of the answer and how long it took.
func askFor(ctx context.Context, url string) (int, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, 0, err
	}
	req.Close = true
	began := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, 0, err
	}
	io.CopyN(io.Discard, res.Body, 1<<10)
	res.Body.Close()
	return res.StatusCode, time.Since(began), nil
}

func readersTree(*rig) (cluster.Topology, error) {
	t := cluster.Topology{ClusterKey: key, Nodes: []cluster.Node{
		{ID: "center", Role: "center"},
		{ID: "relay", Role: "relay", Upstreams: []string{"center"}},
	}}
	for i := range readers {
		t.Nodes = append(t.Nodes, cluster.Node{ID: edge(i), Role: "edge", Upstreams: []string{"relay"}})
	}
	return t, nil
}

const readers = 5

// slowReader throttles the link of one edge.
func slowReader(r *rig) error {
	const stream = "live/s"
	if _, err := r.publish("center", stream, steady); err != nil {
		return err
	}
	var viewers []*viewer
	for i := range readers {
		viewers = append(viewers, r.view(edge(i), stream))
	}
	if err := r.playing(viewers); err != nil {
		return err
	}
	if err := r.wait(r.between(calibration, calibration+2*time.Second)); err != nil {
		return err
	}
	fault := time.Now()
	if err := r.do("slow %s>relay %d", edge(0), max(1, totalKbps/100)); err != nil {
		return err
	}
	if err := r.wait(6 * time.Second); err != nil {
		return err
	}
	for i, v := range viewers {
		v.leave()
		if i > 0 {
			r.sum(v, fault)
		}
	}
	return nil
}
