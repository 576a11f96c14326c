package drill

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"millrace/tools/churn"
	"millrace/tools/cluster"
	"millrace/tools/frames"
)

// The figures of chaos. Times of the nodes are shorter than they are by default, so
// that what is left over shows soon.
const (
	chaosSteps   = 10_000
	chaosNames   = 5
	chaosViewers = 30 // at once
	chaosBroken  = 3  // links and nodes, at once
	chaosPause   = 40 * time.Millisecond
	chaosQuiet   = time.Second
	chaosFirst   = 5 * time.Second // a fresh publish must be seen on every node within
	chaosRest    = 15 * time.Second
	chaosMore    = 12 // goroutines and descriptors that a node may have more than before
)

// chaosTree has two centers that know each other, two relays in one datacenter and two edges in another.
func chaosTree(*rig) (cluster.Topology, error) {
	t := cluster.Topology{ClusterKey: key}
	add := func(role, dc string, upstreams, centers []string, ids ...string) {
		for _, id := range ids {
			t.Nodes = append(t.Nodes, cluster.Node{
				ID: id, Role: role, Datacenter: dc, Upstreams: upstreams, Centers: centers,
				Settings: map[string]string{"upstream.linger": "1s", "stream.grace": "2s"},
			})
		}
	}
	centers, relays := []string{"center-1", "center-2"}, []string{"relay-1", "relay-2"}
	add("center", "", centers[1:], nil, centers[0])
	add("center", "", centers[:1], nil, centers[1])
	add("relay", "hub", centers, centers, relays...)
	add("edge", "city", relays, centers, "edge-1", "edge-2")
	return t, nil
}

// mess is what is going on in the chaos.
type mess struct {
	*rig
	cfg     frames.Config
	pubs    []*pub
	viewers []*viewer
	links   []string // that are broken
	nodes   []string
	frames  uint64
	refused uint64 // viewers without a frame
	going   sync.WaitGroup
}

// pub is a publisher that is coming, there, or refused. A name has one at a time: what
// two encoders make of one name is not what this is about.
type pub struct {
	stream string
	cancel context.CancelFunc
	done   chan struct{} // closed at the end
}

// chaos does thousands of things at random, and then wants all to be well.
func chaos(r *rig) error {
	steps := chaosSteps
	if r.opt.Short {
		steps = chaosSteps / 20
	}
	m := &mess{rig: r, cfg: thin()}
	if err := m.fresh("before"); err != nil { // connections, buffers and pools that stay are there
		return err
	}
	before, err := m.rest(nil)
	if err != nil {
		return err
	}
	for range steps {
		if err := m.step(); err != nil {
			return err
		}
		if err := r.wait(r.between(0, chaosPause)); err != nil {
			return err
		}
	}
	if err := m.calm(); err != nil {
		return err
	}
	r.figure("steps", float64(steps))
	r.figure("frames seen", float64(m.frames))
	r.figure("viewers that saw none", float64(m.refused))
	if err := r.wait(chaosQuiet); err != nil {
		return err
	}
	if err := m.fresh("after"); err != nil {
		return err
	}
	_, err = m.rest(before)
	return err
}

// thin is a stream that costs little.
func thin() frames.Config {
	cfg := frames.DefaultConfig()
	cfg.VideoKbps, cfg.FPS, cfg.GOP, cfg.NoAudio = 20, 10, time.Second, true
	cfg.Width, cfg.Height = 160, 90
	return cfg
}

func (m *mess) node() string { return m.top.Nodes[m.rnd.IntN(len(m.top.Nodes))].ID }
func (m *mess) name() string { return name(m.rnd.IntN(chaosNames)) }

// step does one thing.
func (m *mess) step() error {
	switch x := m.rnd.IntN(100); {
	case x < 20:
		m.begin(m.node(), m.name())
	case x < 30:
		m.end()
	case x < 62:
		if len(m.viewers) < chaosViewers {
			node, stream := m.node(), m.name()
			m.viewers = append(m.viewers, play(m.ctx, m.c.Ports(node).HTTP, node, stream, m.id(stream)))
		}
	case x < 86:
		m.leave()
	case x < 92:
		return m.breakOne()
	default:
		return m.healOne()
	}
	return nil
}

// begin has a publisher come.
func (m *mess) begin(node, stream string) {
	m.pubs = slices.DeleteFunc(m.pubs, func(p *pub) bool {
		select {
		case <-p.done:
			return true
		default:
			return false
		}
	})
	if slices.ContainsFunc(m.pubs, func(p *pub) bool { return p.stream == stream }) {
		return
	}
	ctx, cancel := context.WithCancel(m.ctx)
	p := &pub{stream: stream, cancel: cancel, done: make(chan struct{})}
	m.pubs = append(m.pubs, p)
	cfg, addr := m.cfg, m.c.Ports(node).RTMP
	cfg.Stream = m.id(stream)
	m.going.Go(func() {
		defer close(p.done)
		s, err := publish(ctx, addr, stream, cfg, steady)
		if err != nil {
			return // refused, or the node is not there
		}
		<-s.done
	})
}

// end has a publisher go.
func (m *mess) end() {
	if len(m.pubs) == 0 {
		return
	}
	m.pubs[m.rnd.IntN(len(m.pubs))].cancel()
}

// leave has a viewer go.
func (m *mess) leave() {
	if len(m.viewers) == 0 {
		return
	}
	i := m.rnd.IntN(len(m.viewers))
	v := m.viewers[i]
	m.viewers = slices.Delete(m.viewers, i, i+1)
	v.leave()
	if v.check.Faults.Total() > 0 {
		m.broke("viewer of %s at %s, who came at %s: %d frames, %v: %s", v.stream, v.node, v.asked.Format("05.000"), len(v.frames), v.check.Faults.Words(), runs(v.frames))
	}
	m.frames += v.check.Frames
	if v.check.Frames == 0 {
		m.refused++
	}
}

// breakOne breaks a link, or now and then a node.
func (m *mess) breakOne() error {
	if len(m.links)+len(m.nodes) >= chaosBroken {
		return nil
	}
	if m.rnd.IntN(4) == 0 {
		node := m.node()
		if slices.Contains(m.nodes, node) {
			return nil
		}
		m.nodes = append(m.nodes, node)
		return m.do("%s %s", []cluster.Verb{cluster.Kill, cluster.Freeze}[m.rnd.IntN(2)], node)
	}
	pairs := m.top.Pairs()
	link := pairs[m.rnd.IntN(len(pairs))].String()
	if !slices.Contains(m.links, link) {
		m.links = append(m.links, link)
	}
	verbs := []string{"kill %s", "freeze %s", "half-open %s", "slow %s 100"}
	return m.do(verbs[m.rnd.IntN(len(verbs))], link)
}

// healOne mends what was broken first.
func (m *mess) healOne() error {
	if len(m.nodes) > 0 && (len(m.links) == 0 || m.rnd.IntN(2) == 0) {
		node := m.nodes[0]
		m.nodes = m.nodes[1:]
		if m.c.PID(node) == 0 {
			return m.do("restart %s", node)
		}
		return m.do("heal %s", node)
	}
	if len(m.links) > 0 {
		link := m.links[0]
		m.links = m.links[1:]
		return m.do("heal %s", link)
	}
	return nil
}

// calm ends everything and mends everything.
func (m *mess) calm() error {
	for len(m.links)+len(m.nodes) > 0 {
		if err := m.healOne(); err != nil {
			return err
		}
	}
	for _, n := range m.top.Nodes {
		if m.c.PID(n.ID) == 0 {
			m.broke("%s has ended by itself", n.ID)
			if err := m.do("restart %s", n.ID); err != nil {
				return err
			}
		}
	}
	for len(m.viewers) > 0 {
		m.leave()
	}
	for _, p := range m.pubs {
		p.cancel()
	}
	m.going.Wait()
	return nil
}

// fresh publishes every name somewhere, and wants it on every node. Viewers who are
// told that it is not there ask again, as players do: the way from the node that took
// the publish to the others takes its time.
func (m *mess) fresh(when string) error {
	for i := range chaosNames {
		stream, at := name(i), m.node()
		s, err := m.publishAs(at, stream, m.cfg, steady)
		if err != nil {
			m.broke("%s: %s does not take %s: %v", when, at, stream, err)
			continue
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(m.ctx, m.limit(chaosFirst))
		for _, n := range m.top.Nodes {
			v := m.insist(ctx, n.ID, stream)
			v.leave()
			if v.check.Frames == 0 {
				m.broke("%s: no frame of %s, published at %s, on %s: %v", when, stream, at, n.ID, v.err)
				continue
			}
			m.sumGaps(v, time.Time{})
			m.figure("ms until a fresh publish is seen, "+when, ms(time.Since(began)))
		}
		cancel()
		s.stop()
		if m.ctx.Err() != nil {
			return m.ctx.Err()
		}
	}
	return nil
}

// again is how long a player waits before it asks again.
const again = 100 * time.Millisecond

// insist asks for a stream until it comes or ctx ends.
func (r *rig) insist(ctx context.Context, node, stream string) *viewer {
	for {
		v := r.view(node, stream)
		if v.playing(ctx) == nil || ctx.Err() != nil || r.wait(again) != nil {
			return v
		}
		v.leave()
	}
}

// rest waits until the nodes have let go of everything, and measures what they hold.
// It wants that to be no more than before.
func (m *mess) rest(before map[string]churn.Holdings) (map[string]churn.Holdings, error) {
	after := map[string]churn.Holdings{}
	for _, n := range m.top.Nodes {
		p := m.c.Ports(n.ID)
		node := churn.Node{PID: m.c.PID(n.ID), RTMP: p.RTMP, HTTP: p.HTTP, Admin: p.Admin}
		good := func(h churn.Holdings) bool {
			b := before[n.ID]
			return before != nil && h.Goroutines <= b.Goroutines+chaosMore && h.Descriptors <= b.Descriptors+chaosMore
		}
		wait := m.limit(chaosRest)
		if before == nil {
			wait = 5 * time.Second / time.Duration(len(m.top.Nodes))
			if len(after) == 0 {
				wait = 5 * time.Second // linger, grace and the end's grace are over
			}
		}
		h, err := node.Rest(m.ctx, wait, good)
		if err != nil {
			return nil, fmt.Errorf("%s at rest: %w", n.ID, err)
		}
		after[n.ID] = h
		if before != nil && !good(h) {
			m.broke("%s holds %v, before it was %v", n.ID, h, before[n.ID])
		}
	}
	left := ""
	for end := time.Now().Add(m.limit(chaosRest)); ; {
		if left = carried(m.observe()); left == "" || time.Now().After(end) {
			break
		}
		if err := m.wait(again); err != nil {
			return nil, err
		}
	}
	if left != "" {
		m.broke("streams are left: %s", left)
	}
	return after, nil
}

// carried says which streams are on the nodes, "" if none is.
func carried(s cluster.Snapshot) string {
	var out []string
	for _, n := range s.Nodes {
		for _, x := range n.Streams {
			out = append(out, fmt.Sprintf("%s on %s, %s from %q with %d viewers and %d nodes", x.Name, n.ID, x.State, x.From, x.Viewers, x.Nodes))
		}
	}
	return strings.Join(out, ", ")
}
