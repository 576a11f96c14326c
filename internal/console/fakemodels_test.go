package console

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"millrace/internal/fleet"
	"millrace/internal/stream"
)

func (f *fake) Node(id string) (*fleet.Node, bool) {
	n := f.node(id)
	if n == nil {
		return nil, false
	}
	out := &fleet.Node{
		NodeRow: f.row(n), Domain: n.Datacenter, Groups: []string{}, Addresses: []netip.Addr{netip.MustParseAddr("198.18.0.6")}, HTTPPort: 80,
		URL: "http://198.18.0.6", Push: "rtmp://198.18.0.6", Probe: "198.18.0.6:1985", Weight: 1, Started: start.Add(-26 * time.Hour),
		Samples: map[string]int{}, Why: f.view.ExplainNode(id), Quality: []fleet.QualityRow{}, Events: []fleet.Event{},
		In: []fleet.LinkRow{}, Out: []fleet.LinkRow{}, Carried: []fleet.CarriedRow{},
	}
	for _, l := range f.links() {
		if l.To == id {
			out.In = append(out.In, l)
		}
		if l.From == id {
			out.Out = append(out.Out, l)
		}
	}
	for name, s := range f.streams {
		if from, ok := s.Carriers[id]; ok {
			out.Carried = append(out.Carried, fleet.CarriedRow{Name: name, Source: from == "", From: from, Bitrate: s.Bitrate, Viewers: f.viewers(id), Delay: 4.5})
		}
	}
	slices.SortFunc(out.Carried, func(a, b fleet.CarriedRow) int { return cmp.Compare(a.Name, b.Name) })
	out.CarriedAll = len(out.Carried)
	for _, q := range f.Quality() {
		if q.Node == id {
			out.Quality = append(out.Quality, q)
		}
	}
	out.Events = f.Events(fleet.EventFilter{Node: id}, 0, 20).Events
	for i := range 3 {
		out.Trend = append(out.Trend, fleet.NodePoint{
			At: start.Add(time.Duration(i-3) * time.Second), Load: n.Load + int64(i)*1_000_000, Pulled: f.network.Demand[id], Viewers: f.viewers(id) + i,
		})
	}
	return out, true
}

func (f *fake) Link(from, to string) (*fleet.Link, bool) {
	if f.node(from) == nil || f.node(to) == nil {
		return nil, false
	}
	l := &fleet.Link{LinkRow: f.link(from, to), Why: f.view.ExplainLink(from, to), Carried: []fleet.CarriedRow{}, Events: []fleet.Event{}}
	for name, s := range f.streams {
		if up, ok := s.Carriers[to]; ok && up == from {
			l.Carried = append(l.Carried, fleet.CarriedRow{Name: name, From: from, Bitrate: s.Bitrate, Viewers: f.viewers(to), Delay: 4.5})
		}
	}
	for _, e := range f.events {
		if (e.From == from || e.To == from) && (e.Node == to || e.To == to) {
			l.Events = append(l.Events, e)
		}
	}
	for i := range 3 {
		l.Trend = append(l.Trend, fleet.LinkPoint{At: start.Add(time.Duration(i-3) * time.Second), Cost: l.Cost + float64(i), RTT: l.RTT, Loss: l.Loss, Rate: l.Rate})
	}
	return l, true
}

func (f *fake) Plan() *fleet.Plan {
	p := &fleet.Plan{
		Version: f.plan.Version, Origin: "5GZQ6M7T", Leader: "router-1", At: f.plan.At, Stats: f.plan.Stats, Centers: f.plan.Centers, Edits: f.Edits(), Took: 0.4,
	}
	for i := range f.network.Nodes {
		n := &f.network.Nodes[i]
		pool, ok := f.plan.Pools[n.ID]
		if !ok {
			continue
		}
		row := f.row(n)
		r := fleet.PoolRow{
			Node: n.ID, Role: n.Role, Datacenter: n.Datacenter, Region: n.Region, State: row.State, Demand: f.network.Demand[n.ID],
			Follows: true, Pool: pool, Edited: row.Edited,
		}
		for _, other := range f.plan.Pools {
			if len(other) > 0 && other[0].Upstream == n.ID {
				r.Downstream++
			}
		}
		p.Pools = append(p.Pools, r)
	}
	return p
}

func (f *fake) summary(name stream.Name) fleet.StreamRow {
	s := f.streams[name]
	r := fleet.StreamRow{Name: name, Source: s.Source, Epoch: int64(s.Epoch), Since: time.UnixMicro(int64(s.Epoch)).UTC(), Bitrate: s.Bitrate, Nodes: len(s.Carriers)}
	for id, up := range s.Carriers {
		if r.Viewers += f.viewers(id); up != "" {
			r.Copies++
		}
	}
	return r
}

func (f *fake) Streams(query string, limit int) *fleet.Streams {
	out := &fleet.Streams{Total: len(f.streams), Streams: []fleet.StreamRow{}}
	for name := range f.streams {
		if strings.Contains(strings.ToLower(string(name)), strings.ToLower(query)) {
			out.Matched++
			out.Streams = append(out.Streams, f.summary(name))
		}
	}
	slices.SortFunc(out.Streams, func(a, b fleet.StreamRow) int { return cmp.Compare(b.Viewers, a.Viewers) })
	out.Streams = out.Streams[:min(limit, len(out.Streams))]
	return out
}

func (f *fake) Stream(name stream.Name) *fleet.Stream {
	x := f.view.ExplainStream(name)
	if !x.Known {
		return &fleet.Stream{StreamRow: fleet.StreamRow{Name: name}}
	}
	out := &fleet.Stream{StreamRow: f.summary(name), Known: true, Crosses: x.Crosses, Deepest: x.Deepest, Events: f.Events(fleet.EventFilter{Stream: name}, 0, 20).Events}
	for _, t := range x.Nodes {
		n := f.node(t.Node)
		r := fleet.StreamNode{
			Node: t.Node, Role: n.Role, Datacenter: n.Datacenter, Region: n.Region, State: f.row(n).State, Upstream: t.Upstream, Source: t.Hops == 0,
			Hops: t.Hops, HopDelay: 4.5 * float64(min(t.Hops, 1)), Delay: 4.5 * float64(t.Hops), Viewers: f.viewers(t.Node), Bitrate: out.Bitrate,
			Cost: t.Cost, Crosses: t.Crosses, Grade: fleet.GradeUnknown,
		}
		if t.Upstream != "" {
			r.Grade = f.link(t.Upstream, t.Node).Grade
		}
		if n.Role == "edge" {
			r.Play = "http://198.18.0.6/" + string(name) + ".flv"
		}
		for _, up := range f.streams[name].Carriers {
			if up == t.Node {
				r.Downstream++
			}
		}
		out.Tree = append(out.Tree, r)
	}
	return out
}

func (f *fake) Quality() []fleet.QualityRow {
	return []fleet.QualityRow{
		{
			Region: "east", ISP: "telecom", Node: "edge-1", Datacenter: "east-1", At: start, Started: 640, FirstByte: 12.5, Reports: 310,
			FirstFrame: 240, Stalls: 0.4, Stalled: 0.001, Played: 91_000, Delay: 1350, Skips: 2, Closes: map[string]int{"peer_closed": 590, "slow": 2},
		},
		{
			Region: "west", ISP: "unicom", Node: "edge-2", Datacenter: "west-1", At: start, Started: 1100, FirstByte: 18, Reports: 480,
			FirstFrame: 410, Stalls: 3.2, Stalled: 0.012, Played: 120_000, Delay: 2100, Skips: 31, Closes: map[string]int{"peer_closed": 900, "slow": 31},
		},
	}
}

func (f *fake) Rechecks() []fleet.RecheckRow {
	return []fleet.RecheckRow{
		{Region: "east", ISP: "telecom", Way: "name", Outcome: "here", Count: 620},
		{Region: "east", ISP: "telecom", Way: "name", Outcome: "sent_on", Count: 20},
		{Region: "west", ISP: "unicom", Way: "name", Outcome: "near", Count: 1090},
	}
}
