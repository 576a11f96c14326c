package upstream

import (
	"strings"
	"time"

	"millrace/internal/failover"
	"millrace/internal/stream"
)

// Path is how a stream comes to this node, and what else is tried.
type Path struct {
	Stream   stream.Name  `json:"stream"`
	Node     string       `json:"node"` // this one
	Hops     []stream.Hop `json:"hops"` // the nearest first
	Switches uint64       `json:"switches"`
	Feeds    []Feed       `json:"feeds"`  // the current one first
	Events   []Event      `json:"events"` // of the stream, the newest first
}

// Feed is a copy of what is known of a connection to an upstream.
type Feed struct {
	Upstream string           `json:"upstream"` // as configured, or the id of a peer
	Node     string           `json:"node,omitempty"`
	Current  bool             `json:"current"`
	Purpose  string           `json:"purpose"`
	State    string           `json:"state"` // of the stream at the upstream
	Age      time.Duration    `json:"age_ns"`
	Tags     uint64           `json:"tags"`
	Bytes    uint64           `json:"bytes"`
	Epoch    int64            `json:"epoch,omitempty"`
	Delay    time.Duration    `json:"delay_ns"`
	Verdict  failover.Verdict `json:"verdict"`
	Figures  failover.Figures `json:"figures"`
}

// describe copies the state of a session.
func (x *Session) describe() Path {
	now := time.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	p := Path{Stream: x.stream.Name(), Hops: x.path(), Switches: x.switches, Feeds: []Feed{}}
	if x.current != nil {
		p.Feeds = append(p.Feeds, x.current.describe(now, true))
	}
	for _, f := range x.trials {
		p.Feeds = append(p.Feeds, f.describe(now, false))
	}
	return p
}

func (f *feed) describe(now time.Time, current bool) Feed {
	d := Feed{
		Upstream: f.to.String(), Current: current, Purpose: f.purpose.String(), State: f.link.State,
		Age: now.Sub(f.began), Tags: f.tags, Bytes: f.bytes, Epoch: f.link.Epoch, Delay: f.hop.mean,
		Verdict: f.health.Verdict(now), Figures: f.health.Figures(now),
	}
	switch {
	case f.state == dialing:
		d.State = "dialing"
	case d.State == "":
		d.State = "open"
	}
	if f.linked {
		d.Node = f.link.Node
	}
	return d
}

// feeds returns how many connections the session has.
func (x *Session) feeds() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := len(x.trials)
	if x.current != nil {
		n++
	}
	return n
}

// showPath publishes through whom the stream comes, or, while there is no current
// feed, through whom it is looked for: the oldest that is asked. mu is held.
func (x *Session) showPath() {
	f := x.current
	if f == nil && len(x.trials) > 0 {
		f = x.trials[0]
	}
	if f == nil {
		x.hops.Store(&[]stream.Hop{})
		return
	}
	var hops []stream.Hop
	switch {
	case f.linked:
		hops = append(hops, stream.Hop{Node: f.link.Node, Delay: f.hop.mean})
		hops = append(hops, f.link.Path...)
	case len(f.via) > 0:
		for _, n := range f.via {
			hops = append(hops, stream.Hop{Node: n})
		}
	default:
		hops = append(hops, stream.Hop{Node: f.name()})
	}
	x.hops.Store(&hops)
}

// name is an id for an upstream that has not told its own.
func (f *feed) name() string {
	if f.to.node != "" {
		return f.to.node
	}
	_, host, _ := strings.Cut(f.to.url, "://")
	id := []byte(host[:min(len(host), 64)])
	for i, c := range id {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.':
		default:
			id[i] = '-'
		}
	}
	return string(id)
}
