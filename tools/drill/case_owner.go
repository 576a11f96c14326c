package drill

import (
	"fmt"
	"time"

	"millrace/internal/ring"
	"millrace/internal/stream"
	"millrace/tools/cluster"
)

// town is a datacenter that carries one stream, with a viewer on every node.
type town struct {
	stream      string
	owner, next string // and runner-up
	viewers     map[string]*viewer
	killed      map[string]bool
}

// openTown publishes a stream whose name the seed decides, and so its owner. It
// returns when all nodes have it through the owner, at a moment in a GOP that the
// seed decides.
func (r *rig) openTown() (*town, error) {
	t := &town{stream: fmt.Sprintf("live/x%d", r.rnd.Uint32()), viewers: map[string]*viewer{}, killed: map[string]bool{}}
	var members []ring.Member
	for i := range citizens {
		members = append(members, ring.Member{ID: edge(i), Weight: 1})
	}
	t.owner, t.next = ring.Owners(stream.Name(t.stream), members)
	if _, err := r.publish("center", t.stream, steady); err != nil {
		return nil, err
	}
	if err := r.wait(r.between(0, 500*time.Millisecond)); err != nil {
		return nil, err
	}
	var all []*viewer
	for i := range citizens {
		v := r.view(edge(i), t.stream)
		t.viewers[edge(i)], all = v, append(all, v)
	}
	if err := r.playing(all); err != nil {
		return nil, err
	}
	if err := r.through(t, t.owner); err != nil {
		return nil, err
	}
	return t, r.wait(r.between(calibration, calibration+2*time.Second))
}

// through waits until the stream comes in through owner alone.
func (r *rig) through(t *town, owner string) error {
	_, err := r.until("the stream comes in through "+owner, func(s cluster.Snapshot) bool {
		out := outside(s, "center", t.stream)
		return len(out) == 1 && out[0] == owner && len(outside(s, owner, t.stream)) == citizens-1-len(t.killed)
	})
	return err
}

func (r *rig) kill(t *town, node string) error {
	t.killed[node] = true
	return r.do("kill %s", node)
}

// survivors takes in what the viewers saw on nodes that live.
func (r *rig) survivors(t *town, fault time.Time) {
	for i := range citizens {
		v := t.viewers[edge(i)]
		v.leave()
		if !t.killed[edge(i)] {
			r.sum(v, fault)
		}
	}
}

// pulls wants the stream to be pulled from outside once.
func (r *rig) pulls(t *town) {
	s := r.observe()
	n := len(outside(s, "center", t.stream))
	r.figure("pulls from outside", float64(n))
	if n != 1 {
		r.broke("%d pulls from outside, want 1: %s", n, from(s))
	}
}

// ownerKill: the node that fetches the stream dies.
func ownerKill(r *rig) error {
	t, err := r.openTown()
	if err != nil {
		return err
	}
	r.pulls(t)
	fault := time.Now()
	if err := r.kill(t, t.owner); err != nil {
		return err
	}
	if err := r.wait(settle); err != nil {
		return err
	}
	r.pulls(t)
	r.survivors(t, fault)
	return nil
}

// ownersKill: its runner-up dies with it.
func ownersKill(r *rig) error {
	t, err := r.openTown()
	if err != nil {
		return err
	}
	fault := time.Now()
	if err := r.kill(t, t.owner); err != nil {
		return err
	}
	if err := r.wait(r.between(0, 100*time.Millisecond)); err != nil {
		return err
	}
	if err := r.kill(t, t.next); err != nil {
		return err
	}
	if err := r.wait(settle + time.Second); err != nil {
		return err
	}
	r.pulls(t)
	r.survivors(t, fault)
	return nil
}

// ownerReturns: it comes back, and the stream goes back to it.
func ownerReturns(r *rig) error {
	t, err := r.openTown()
	if err != nil {
		return err
	}
	if err := r.kill(t, t.owner); err != nil {
		return err
	}
	if err := r.wait(r.between(settle, settle+time.Second)); err != nil {
		return err
	}
	fault := time.Now()
	if err := r.do("restart %s", t.owner); err != nil {
		return err
	}
	if err := r.through(&town{stream: t.stream, killed: nil}, t.owner); err != nil {
		r.broke("the stream did not move back: %v", err)
	}
	r.figure("ms until moved back", ms(time.Since(fault)))
	if err := r.wait(time.Second); err != nil {
		return err
	}
	r.pulls(t)
	r.survivors(t, fault)
	return nil
}
