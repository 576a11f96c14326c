package main

import (
	"slices"
	"strings"
	"time"

	"millrace/internal/config"
	"millrace/internal/control"
	"millrace/internal/plan"
	"millrace/internal/run"
	"millrace/internal/session"
	"millrace/internal/stream"
	"millrace/internal/upstream"
)

// gatherer finds what a node tells routers. One goroutine asks it, about once a second.
type gatherer struct {
	node *node
	cfg  config.Node // as it was at the start: what is told of it needs a restart to change
}

// Identity is what the node is, and where it is reached.
func (g *gatherer) Identity() control.Identity {
	n, cfg := g.node, g.cfg.Router
	local := n.routing.where.addr()
	i := control.Identity{
		ID: n.self.ID, Role: g.cfg.Role.String(), Datacenter: g.cfg.Datacenter, Region: cfg.Region, ISPs: cfg.ISPs,
		Domain: cfg.Domain, Groups: cfg.Groups, Addresses: slices.Clone(cfg.Addresses), URL: cfg.URL, Push: cfg.Push,
		Capacity: g.cfg.Scheduling.Capacity, Weight: cfg.Weight, Price: cfg.Price, Program: run.VersionLine(version),
	}
	if b, ok := n.boundOf("http"); ok {
		i.HTTPPort = b.port
		if len(i.Addresses) == 0 && b.addr.IsValid() {
			i.Addresses = append(i.Addresses, b.addr)
		}
	}
	if b, ok := n.boundOf("https"); ok {
		i.HTTPSPort, i.Host = b.port, n.doors.Certificate().Name()
		if len(i.Addresses) == 0 && b.addr.IsValid() {
			i.Addresses = append(i.Addresses, b.addr)
		}
	}
	pull, _ := n.boundOf(pullSchemes...)
	host := pull.hostOf(cfg.Addresses, local)
	if i.URL == "" && host != "" {
		scheme := "http"
		if pull.scheme == "https" {
			scheme = "https"
		}
		i.URL = scheme + "://" + pull.at(host)
	}
	if b, ok := n.boundOf("rtmp", "rtmps"); ok && i.Push == "" && i.Role == "center" {
		if host := b.hostOf(cfg.Addresses, local); host != "" {
			i.Push = b.scheme + "://" + b.at(host)
		}
	}
	if b, ok := n.boundOf("probe"); ok {
		if at := b.hostOf(cfg.Addresses, local); at != "" {
			i.Probe = b.at(at)
		}
	}
	return i
}

// Figures are how the node does.
func (g *gatherer) Figures(time.Time) control.Figures {
	n := g.node
	f, nodes := n.http[0].Figures(false), 0
	for _, count := range n.table.NodesPlaying() {
		nodes += count
	}
	out := control.Figures{
		Load: f.Load, Viewers: max(0, n.viewers()-nodes), Refused: f.Refused, Draining: n.draining.Load(), Full: f.Full, Orders: n.routing.follower.Token(),
	}
	for name, a := range n.origin.Arrivals() {
		if s, ok := n.hub.Lookup(name); ok && a.From != "" && !a.Pushed {
			out.Pulled += s.Bitrate()
		}
	}
	return out
}

// Streams are what the node has, and where it has them from.
func (g *gatherer) Streams() []control.Carried {
	n := g.node
	arrivals, nodes := n.origin.Arrivals(), n.table.NodesPlaying()
	all := n.hub.Streams()
	out := make([]control.Carried, 0, min(len(all), control.MaxCarried))
	for _, s := range all {
		if s.State() == stream.Idle || len(out) == control.MaxCarried {
			continue
		}
		a, comes := arrivals[s.Name()]
		out = append(out, control.Carried{
			Name: s.Name(), Source: !comes || a.Source(), Epoch: s.Epoch(), From: a.From, Bitrate: s.Bitrate(),
			Viewers: max(0, n.hub.Readers(s)-nodes[string(s.Name())]),
			Delay:   milliseconds(a.Delay),
		})
	}
	return out
}

// Samples are what was measured of the ways to this node.
func (g *gatherer) Samples(limit int) []plan.Sample {
	return g.node.routing.collector.Samples(time.Now(), limit)
}

// Players are how players fared.
func (g *gatherer) Players(limit int) []control.Players {
	groups := g.node.quality.Take(limit)
	out := make([]control.Players, 0, len(groups))
	for _, q := range groups {
		p := control.Players{
			Region: q.Region, ISP: q.ISP, Started: q.Started, FirstByte: milliseconds(q.FirstByte), Skips: q.Skips,
			Reports: q.Reports, FirstFrames: q.First.Of, FirstFrame: milliseconds(q.First.Sum),
			Stalls: q.Stalls, Stalled: milliseconds(q.Stalled), Played: q.Played.Seconds(),
			Delays: q.Delay.Of, Delay: milliseconds(q.Delay.Sum), Closes: closesOf(q.Closes),
		}
		out = append(out, p)
	}
	return out
}

func closesOf(by map[session.Reason]int) map[string]int {
	if len(by) == 0 {
		return nil
	}
	out := make(map[string]int, len(by))
	for r, count := range by {
		out[r.String()] = count
	}
	return out
}

// Rechecks are what came of looking at players again.
func (g *gatherer) Rechecks() []control.Rechecked {
	if g.node.placing.recheck == nil {
		return nil
	}
	var out []control.Rechecked
	for _, c := range g.node.placing.recheck.Stats() {
		out = append(out, control.Rechecked{Region: c.Region, ISP: c.ISP, Way: c.Way.String(), Outcome: c.Outcome.String(), Count: c.Count})
	}
	return out
}

// Events are what happened to streams on their way here.
func (g *gatherer) Events(after uint64, limit int) []control.Event {
	events := g.node.origin.EventsAfter(after, limit)
	out := make([]control.Event, 0, len(events))
	for _, e := range events {
		out = append(out, eventOf(e))
	}
	return out
}

func eventOf(e upstream.Event) control.Event {
	return control.Event{
		Number: e.Number, At: e.At.UTC(), Kind: e.Kind.String(), Stream: e.Stream, From: e.From, To: e.To,
		Reason: wordOf(e.Reason), Detail: e.Detail, Figures: e.Fig,
	}
}

// wordOf makes a word of a reason: that of a center's refusal is a code of RTMP, such as
// NetStream.Publish.BadName.
func wordOf(reason string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '_'
	}, reason[:min(len(reason), 64)])
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
