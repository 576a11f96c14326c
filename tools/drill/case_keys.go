package drill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"millrace/tools/cluster"
)

// keysTree has everything that nodes sign: pulls from a center, between peers and from a
// pool, and a push. The edges have two ways each.
func keysTree(*rig) (cluster.Topology, error) {
	relays := []string{"relay-1", "relay-2"}
	return cluster.Topology{
		ClusterKey: key,
		Nodes: []cluster.Node{
			{ID: "center", Role: "center"},
			{ID: relays[0], Role: "relay", Datacenter: "hub", Upstreams: []string{"center"}},
			{ID: relays[1], Role: "relay", Datacenter: "hub", Upstreams: []string{"center"}},
			{ID: "edge-1", Role: "edge", Upstreams: relays},
			{ID: "edge-2", Role: "edge", Upstreams: []string{relays[1], relays[0]}},
			{ID: "in", Role: "edge", Upstreams: relays, Centers: []string{"center"}},
		},
	}, nil
}

// newKey is what key is exchanged for.
const newKey = "another-drill-another-drill"

// keys rotates the key of the cluster in the three steps that the documentation names,
// one node after another, while connections break and must be made anew with whatever
// keys the two ends have by then.
func keys(r *rig) error {
	var viewers []*viewer
	for i, node := range []string{"in", "center"} {
		if _, err := r.publish(node, name(i), steady); err != nil {
			return err
		}
		for k := range 2 {
			viewers = append(viewers, r.view(edge(k), name(i)))
		}
	}
	if err := r.playing(viewers); err != nil {
		return err
	}
	if err := r.wait(r.between(calibration, calibration+time.Second)); err != nil {
		return err
	}
	began, fresh := time.Now(), 0
	for _, step := range [][]string{{key, newKey}, {newKey, key}, {newKey}} {
		for _, i := range r.rnd.Perm(len(r.top.Nodes)) {
			if err := r.c.SetKeys(r.ctx, r.top.Nodes[i].ID, step...); err != nil {
				return err
			}
			fresh++
			if err := r.meanwhile(fresh); err != nil {
				return err
			}
		}
	}
	for _, v := range viewers {
		v.leave()
		r.sum(v, began)
	}
	r.observe()
	for _, n := range r.top.Nodes {
		for _, kind := range []string{"gave_up", "lost", "refused"} {
			for _, e := range r.happened(kind, n.ID, "", began) {
				if e.Reason == "refused" || kind == "refused" {
					r.broke("%s was refused by %s: %s", n.ID, e.To, e.Detail)
				}
			}
		}
	}
	return r.oldKey()
}

// resetPause is how long an upstream is left alone whose connection was reset, by all
// streams, and a little more.
const resetPause = 700 * time.Millisecond

// meanwhile asks for a stream that no node has yet, between two nodes that read their
// keys, and now and then resets a link before.
func (r *rig) meanwhile(n int) error {
	if n%3 == 0 {
		link := []string{"edge-1>relay-1", "edge-2>relay-2", "in>center", "relay-1>center", "relay-2>center"}[n/3%5]
		if err := errors.Join(r.do("restart %s", link), r.wait(resetPause)); err != nil {
			return err
		}
	}
	stream := fmt.Sprintf("live/new%d", n)
	cfg := thin()
	s, err := r.publishAs([]string{"center", "in"}[n%2], stream, cfg, steady)
	if err != nil {
		r.broke("%s is not taken: %v", stream, err)
		return nil
	}
	defer s.stop()
	v := r.view(edge(r.rnd.IntN(2)), stream)
	if err := r.playing([]*viewer{v}); err != nil {
		r.broke("%v", err)
	}
	v.leave()
	r.figure("ms until a fresh stream is seen", ms(time.Since(s.began)))
	return r.wait(r.between(0, 200*time.Millisecond))
}

// oldKey wants a node that has the old key alone to be refused, and to be let in again
// with the new one: that is how it is seen that anything was signed at all.
func (r *rig) oldKey() error {
	const stream = "live/late"
	if _, err := r.publishAs("center", stream, thin(), steady); err != nil {
		return err
	}
	if err := r.c.SetKeys(r.ctx, "edge-1", key); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	refused := map[string]bool{}
	for since := time.Now(); len(refused) < 2; { // both relays: one may rest after a reset, and is asked later
		v := r.view("edge-1", stream)
		err := v.playing(ctx)
		v.leave()
		if err == nil || len(v.frames) > 0 {
			r.broke("a node with the old key was let in")
			break
		}
		r.observe()
		for _, e := range r.happened("gave_up", "edge-1", stream, since) {
			refused[e.To] = true
		}
		if err := cmp.Or(ctx.Err(), r.wait(again)); err != nil {
			return fmt.Errorf("a node with the old key is refused by %v alone: %w", slices.Collect(maps.Keys(refused)), err)
		}
	}
	if err := r.c.SetKeys(r.ctx, "edge-1", newKey); err != nil {
		return err
	}
	ctx, cancel = context.WithTimeout(r.ctx, patience)
	defer cancel()
	v := r.insist(ctx, "edge-1", stream)
	v.leave()
	if len(v.frames) == 0 {
		r.broke("a node that has the new key again is not let in: %v", v.err)
	}
	return nil
}

// chain is one node longer than a request may go.
const chain = 7

// chainTree is a center and nodes behind it, each behind the one before.
func chainTree(*rig) (cluster.Topology, error) {
	t := cluster.Topology{ClusterKey: key, Nodes: []cluster.Node{{ID: "center", Role: "center"}}}
	for i := range chain {
		n := cluster.Node{ID: edge(i), Role: "relay", Upstreams: []string{"center"}}
		if i > 0 {
			n.Upstreams[0] = edge(i - 1)
		}
		t.Nodes = append(t.Nodes, n)
	}
	return t, nil
}

// hops asks the last node of a chain that is too long, then the last but one.
func hops(r *rig) error {
	const stream = "live/s"
	if _, err := r.publish("center", stream, steady); err != nil {
		return err
	}
	if err := r.wait(r.between(500*time.Millisecond, 1500*time.Millisecond)); err != nil {
		return err
	}
	began := time.Now()
	status, took, err := askFor(r.ctx, "http://"+r.c.Ports(edge(chain-1)).HTTP+"/"+stream+".flv")
	if err != nil {
		return err
	}
	r.figure("ms until the refusal", ms(took))
	if status < 400 || took > r.limit(atOnce) {
		r.broke("%d nodes: answer %d after %v, want a refusal within %v", chain+1, status, took.Round(time.Millisecond), atOnce)
	}
	r.observe()
	if told := r.happened("gave_up", edge(0), stream, began); len(told) == 0 || told[0].Reason != "loop" {
		r.broke("the node that asked the center was not told why: %v", told)
	}
	if err := r.wait(2 * time.Second); err != nil { // what is remembered of the refusal is over
		return err
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.limit(atOnce)+time.Second)
	defer cancel()
	v := r.insist(ctx, edge(chain-2), stream)
	if err := r.wait(calibration); err != nil {
		return err
	}
	v.leave()
	r.sum(v, time.Time{})
	return nil
}
