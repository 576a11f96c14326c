package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"millrace/internal/ring"
	"millrace/internal/stream"
	"millrace/tools/cluster"
)

const (
	// neighbours are the nodes of the datacenter of busyTown, the first of which can send
	// busyStreams times the stream.
	neighbours  = 4
	busyStreams = 3
	// busyViewers are what brings it over that.
	busyViewers = 6
	// busyTime is how long it is watched that nothing moves, more than the time after which
	// a node that was asked by its neighbours asks the owner itself.
	busyTime = 5 * time.Second
)

// busyTown is a center and a datacenter whose first node can send little.
func busyTown(*rig) (cluster.Topology, error) {
	t := cluster.Topology{ClusterKey: key, Nodes: []cluster.Node{{ID: "center", Role: "center"}}}
	for i := range neighbours {
		n := cluster.Node{ID: edge(i), Role: "edge", Datacenter: "town", Upstreams: []string{"center"}}
		if i == 0 {
			n.Settings = map[string]string{"scheduling.capacity": fmt.Sprintf("%dB", busyStreams*totalKbps*125)}
		}
		t.Nodes = append(t.Nodes, n)
	}
	return t, nil
}

// owned draws a stream that a node owns, and returns who is the runner-up.
func (r *rig) owned(node string) (name, next string) {
	var members []ring.Member
	for i := range neighbours {
		members = append(members, ring.Member{ID: edge(i), Weight: 1})
	}
	for {
		name = fmt.Sprintf("live/x%d", r.rnd.Uint32())
		if owner, next := ring.Owners(stream.Name(name), members); owner == node {
			return name, next
		}
	}
}

// judged waits until a node has judged its load since a time.
func (r *rig) judged(node, reason string, since time.Time) error {
	_, err := r.until(node+" is "+reason, func(cluster.Snapshot) bool {
		return slices.ContainsFunc(r.happened("member", node, "", since), func(e cluster.Event) bool { return e.To == node && e.Reason == reason })
	})
	return err
}

// ownerBusy: the owner of a stream sends as much as it can when the stream is asked for.
func ownerBusy(r *rig) error {
	owner, began := edge(0), time.Now()
	other, _ := r.owned(owner)
	name, next := r.owned(owner)
	for _, s := range []string{other, name} {
		if _, err := r.publish("center", s, steady); err != nil {
			return err
		}
	}
	var crowd, all []*viewer
	for range busyViewers {
		crowd = append(crowd, r.view(owner, other))
	}
	if err := r.playing(crowd); err != nil {
		return err
	}
	if err := r.judged(owner, "over_bound", began); err != nil {
		return err
	}
	for i := range neighbours { // the owner is the last one
		v := r.view(edge((i+1)%neighbours), name)
		all = append(all, v)
		if err := r.playing([]*viewer{v}); err != nil {
			return err
		}
		r.once(name, next)
	}
	if err := r.bringsIn(name, next); err != nil {
		return err
	}
	for end := time.Now().Add(busyTime); time.Now().Before(end); {
		r.once(name, next)
		if err := r.wait(100 * time.Millisecond); err != nil {
			return err
		}
	}
	if err := r.tells(next, owner); err != nil {
		r.broke("the members as %s knows them: %v", next, err)
	}
	fault := time.Now()
	for _, v := range crowd {
		v.leave()
		r.sum(v, time.Time{})
	}
	if err := r.judged(owner, "below_bound", fault); err != nil {
		return err
	}
	judged := time.Now()
	if err := r.bringsIn(name, owner); err != nil {
		r.broke("the stream did not come home: %v", err)
	}
	r.figure("ms until home", ms(time.Since(judged)))
	if err := r.wait(busyTime); err != nil {
		return err
	}
	if err := r.bringsIn(name, owner); err != nil {
		r.broke("it did not stay there: %v", err)
	}
	for i := range neighbours {
		if n := len(r.happened("switched", edge(i), name, fault)); n != 1 {
			r.broke("%s has moved %d times, want 1", edge(i), n)
		}
	}
	if n := len(r.happened("passed_on", owner, name, began)); n != 1 {
		r.broke("the owner has passed it on %d times, want 1", n)
	}
	for _, v := range all {
		v.leave()
		r.sum(v, fault)
	}
	return nil
}

// bringsIn waits until a stream comes in through a node alone, to all others from there,
// and nobody tries another way: on a busy machine they do now and then.
func (r *rig) bringsIn(name, node string) error {
	_, err := r.until("the stream comes in through "+node, func(s cluster.Snapshot) bool {
		once := slices.ContainsFunc(s.Copies, func(c cluster.Copies) bool {
			return c.Stream == name && c.Datacenter == "town" && c.Copies == 1 && c.Nodes == neighbours
		})
		return once && slices.Equal(outside(s, "center", name), []string{node}) && len(outside(s, node, name)) == neighbours-1
	})
	return err
}

// once wants a stream to come in through a node alone.
func (r *rig) once(name, node string) {
	if in := outside(r.observe(), "center", name); !slices.Equal(in, []string{node}) {
		r.broke("the stream comes in through %v, want %s alone", in, node)
	}
}

// tells wants a node to tell what another one of its datacenter sends, and that this is
// too much.
func (r *rig) tells(node, about string) error {
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.c.Ports(node).Admin+"/v1/members", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var said struct {
		Members []struct {
			ID        string     `json:"id"`
			Load      int64      `json:"load"`
			OverSince *time.Time `json:"over_since"`
		} `json:"members"`
	}
	if err := json.NewDecoder(res.Body).Decode(&said); err != nil {
		return err
	}
	for _, m := range said.Members {
		switch {
		case m.ID == about && (m.Load < busyStreams*totalKbps*125 || m.OverSince == nil):
			return fmt.Errorf("%s sends %d bytes/s, over its bound since %v", m.ID, m.Load, m.OverSince)
		case m.ID != about && m.OverSince != nil:
			return fmt.Errorf("%s is over its bound since %v", m.ID, m.OverSince)
		case m.ID == about:
			return nil
		}
	}
	return fmt.Errorf("%s is not among them", about)
}
