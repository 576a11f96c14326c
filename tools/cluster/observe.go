package cluster

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Snapshot is what is going on in a cluster.
type Snapshot struct {
	At         time.Time      `json:"at"`
	Running    time.Duration  `json:"running_ns"` // since the start
	Nodes      []NodeState    `json:"nodes"`      // in the order of the topology, then the scheduler and the routers
	Links      []LinkState    `json:"links"`      // sorted by name
	Publishers []PublishState `json:"publishers"` // in the order of the topology
	Copies     []Copies       `json:"copies"`     // sorted by stream and datacenter
	Events     []Event        `json:"events"`     // since the Snapshot before, the oldest first
}

// NodeState is one node.
type NodeState struct {
	ID         string        `json:"id"`
	Role       string        `json:"role"` // of a scheduler: scheduler, of a router: router
	Datacenter string        `json:"datacenter,omitempty"`
	State      State         `json:"state"`
	PID        int           `json:"pid,omitempty"`
	Ports      Ports         `json:"ports"`
	Streams    []StreamState `json:"streams"`  // sorted by name
	Switches   int           `json:"switches"` // of upstreams, all streams, since the start
	Silent     bool          `json:"silent"`   // it runs and does not answer
}

// StreamState is a stream on one node.
type StreamState struct {
	Name    string        `json:"name"`
	State   string        `json:"state"`
	From    string        `json:"from"`             // the node before this, Encoder, or "" when there is none
	Beside  []string      `json:"beside,omitempty"` // nodes on trial, which send it too
	Path    []string      `json:"path,omitempty"`   // nodes, the nearest first
	Delay   time.Duration `json:"delay_ns"`         // that the path adds
	Viewers int           `json:"viewers"`
	Nodes   int           `json:"nodes"` // that pull it from here
	Kbps    int64         `json:"kbps"`
	Head    time.Duration `json:"head_ns"` // newest media time
}

// Encoder stands for a publisher where a stream comes from.
const Encoder = "encoder"

// LinkState is a link.
type LinkState struct {
	Pair    Pair   `json:"link"`
	Trouble string `json:"trouble,omitempty"` // that a command made
	Open    int    `json:"open"`              // connections
	Kbps    int64  `json:"kbps"`              // both ways together, since the Snapshot before
}

// PublishState is a feed.
type PublishState struct {
	Stream string `json:"stream"`
	At     string `json:"at,omitempty"`    // node; "" while it is not published
	Error  string `json:"error,omitempty"` // of the last attempt
}

// Copies says how often a stream enters a datacenter: once, when all is well.
type Copies struct {
	Stream     string `json:"stream"`
	Datacenter string `json:"datacenter"`
	Copies     int    `json:"copies"` // connections on which it comes from outside
	Nodes      int    `json:"nodes"`  // nodes that have it
}

// memory is what Observe keeps of a node from call to call.
type memory struct {
	newest   time.Time // event that was counted last
	switches int
}

// Observe asks every node that runs. It takes no longer than the slowest may.
func (c *Cluster) Observe(ctx context.Context) Snapshot {
	now := time.Now()
	members := c.members()
	out := Snapshot{At: now, Running: now.Sub(c.began), Nodes: make([]NodeState, len(members)), Events: []Event{}}
	said := make([]answers, len(members))
	var asking sync.WaitGroup
	for i, n := range members {
		state, pid := c.nodes[n.ID].now()
		out.Nodes[i] = NodeState{
			ID: n.ID, Role: n.Role, Datacenter: n.Datacenter, State: state, PID: pid, Ports: c.ports[n.ID], Streams: []StreamState{},
		}
		if state == Running {
			asking.Go(func() {
				var err error
				if n.Role == SchedulerID || n.Role == router {
					err = askHealth(ctx, c.ports[n.ID].Admin)
				} else {
					said[i], err = ask(ctx, c.ports[n.ID].Admin)
				}
				out.Nodes[i].Silent = err != nil
			})
		}
	}
	asking.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range out.Nodes {
		n := &out.Nodes[i]
		for _, s := range said[i].streams {
			n.Streams = append(n.Streams, c.streamState(n.ID, s, said[i].paths[s.Name]))
		}
		fresh := c.memory[n.ID].take(said[i].events)
		n.Switches = c.memory[n.ID].switches
		for _, e := range fresh {
			e.Node, e.From, e.To = n.ID, c.plain(n.ID, e.From), c.plain(n.ID, e.To)
			out.Events = append(out.Events, e)
		}
	}
	slices.SortStableFunc(out.Events, func(a, b Event) int { return a.At.Compare(b.At) })
	out.Links = c.linkStates(now)
	out.Copies = copies(out.Nodes)
	out.Publishers = []PublishState{}
	for _, p := range c.feeds {
		out.Publishers = append(out.Publishers, p.state())
	}
	return out
}

func (c *Cluster) streamState(node string, s adminStream, path adminPath) StreamState {
	out := StreamState{
		Name: s.Name, State: s.State, Viewers: s.Viewers, Nodes: s.Nodes, Kbps: s.Bitrate / 1000,
		Head: time.Duration(s.DTSms) * time.Millisecond,
	}
	for _, h := range path.Hops {
		out.Path = append(out.Path, h.Node)
		out.Delay += h.Delay
	}
	for _, f := range path.Feeds {
		if !f.Current && f.Tags > 0 {
			out.Beside = append(out.Beside, cmp.Or(f.Node, c.plain(node, f.Upstream)))
		}
	}
	switch {
	case len(path.Hops) > 0:
		out.From = path.Hops[0].Node
	case s.Publisher != nil:
		out.From = Encoder
	}
	return out
}

// take returns the events that were not there before, and counts the switches
// among them: each splice but a stream's first is one.
func (m *memory) take(events []Event) (fresh []Event) {
	last := m.newest
	for _, e := range events {
		if !e.At.After(last) {
			continue
		}
		fresh = append(fresh, e)
		if e.Kind == "spliced" && e.Reason != "first" {
			m.switches++
		}
		if e.At.After(m.newest) {
			m.newest = e.At
		}
	}
	return fresh
}

// plain returns the node behind the URL of a link, as a node that has it from its
// command line writes it.
func (c *Cluster) plain(from, url string) string {
	for _, p := range c.pairs {
		if p.From != from {
			continue
		}
		for scheme, r := range c.links[p].relay {
			if url == scheme+"://"+r.Addr() {
				return p.To
			}
		}
	}
	return url
}

func (c *Cluster) linkStates(now time.Time) (out []LinkState) {
	took := now.Sub(c.looked).Seconds()
	first := c.looked.IsZero()
	c.looked = now
	for _, p := range c.pairs {
		l := c.links[p]
		trouble, bytes, open := l.state()
		s := LinkState{Pair: p, Trouble: trouble, Open: open}
		if !first && took > 0 {
			s.Kbps = int64(float64(bytes-l.bytes) / 125 / took)
		}
		l.bytes = bytes
		out = append(out, s)
	}
	return out
}

// copies counts, for each stream and datacenter, how often the stream comes in from
// outside, on trial too.
func copies(nodes []NodeState) []Copies {
	dc := map[string]string{}
	for _, n := range nodes {
		dc[n.ID] = n.Datacenter
	}
	type key struct{ stream, dc string }
	sum := map[key]*Copies{}
	for _, n := range nodes {
		for _, s := range n.Streams {
			if n.Datacenter == "" || s.From == "" {
				continue
			}
			k := key{s.Name, n.Datacenter}
			if sum[k] == nil {
				sum[k] = &Copies{Stream: s.Name, Datacenter: n.Datacenter}
			}
			sum[k].Nodes++
			for _, from := range append([]string{s.From}, s.Beside...) {
				if dc[from] != n.Datacenter {
					sum[k].Copies++
				}
			}
		}
	}
	out := []Copies{}
	for _, c := range sum {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Copies) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Datacenter, b.Datacenter))
	})
	return out
}

// state returns where the feed is published.
func (p *publisher) state() PublishState {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := PublishState{Stream: p.feed.Name, At: p.at}
	if p.err != nil {
		s.Error = p.err.Error()
	}
	return s
}
