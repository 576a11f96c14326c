package fleet

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/internal/plan"
	"millrace/internal/stream"
)

// maxFoundStreams is how many streams are returned at once at most.
const maxFoundStreams = 1000

// Streams returns at most limit of the streams whose name or source contains the query,
// in any case; an empty one matches all.
func (f *Fleet) Streams(query string, limit int) *Streams {
	if limit <= 0 {
		limit = 100
	}
	query = strings.ToLower(strings.TrimSpace(query))
	out := &Streams{Streams: f.nodes.streams.search(query)}
	out.Total, out.Matched = f.nodes.streams.len(), len(out.Streams)
	slices.SortFunc(out.Streams, func(a, b StreamRow) int {
		return cmp.Or(cmp.Compare(b.Viewers, a.Viewers), cmp.Compare(a.Name, b.Name))
	})
	out.Streams = out.Streams[:min(len(out.Streams), limit, maxFoundStreams)]
	return out
}

func (s *streams) len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.table)
}

// search returns the streams that match.
func (s *streams) search(query string) []StreamRow {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := []StreamRow{}
	for name, c := range s.table {
		source := c.source()
		if has(string(name), query) || source != nil && (has(source.m.id, query) || has(c.ingest(source), query)) {
			out = append(out, c.row(name, source))
		}
	}
	return out
}

func has(s, query string) bool { return strings.Contains(strings.ToLower(s), query) }

// ingest is the node that pushes a stream to its source, from its encoder; empty if that is
// at the source. The lock is held for reading at least.
func (c *copies) ingest(source *item) string {
	if source.from == "" {
		return ""
	}
	return c.find().Ingest()
}

// row sums up a stream. The lock is held for reading at least.
func (c *copies) row(name stream.Name, source *item) StreamRow {
	r := StreamRow{Name: name, Nodes: len(c.list)}
	if source != nil {
		r.Source, r.Ingest, r.Epoch, r.Bitrate = source.m.id, c.ingest(source), source.epoch, source.bitrate
		r.Since = sinceOf(source.epoch)
	}
	most := int64(0)
	for _, it := range c.list {
		r.Viewers += it.viewers
		if it.from != "" {
			r.Copies++
		}
		most = max(most, it.bitrate)
	}
	if r.Bitrate == 0 {
		r.Bitrate = most
	}
	return r
}

// Stream returns the tree of a stream. Known says whether anybody carries it.
func (f *Fleet) Stream(name stream.Name) *Stream {
	out := &Stream{StreamRow: StreamRow{Name: name}, Tree: []StreamNode{}, Events: f.events.newest(someEvents, (&EventFilter{Stream: name}).takes)}
	fr := f.frame.Load()
	if fr == nil {
		return out
	}
	items := f.nodes.streams.items(name, &out.StreamRow)
	if len(items) == 0 {
		return out
	}
	e := fr.view.ExplainStream(name)
	out.Known, out.Crosses, out.Deepest = true, e.Crosses, e.Deepest
	planned := map[string]*plan.TreeNode{}
	for i := range e.Nodes {
		planned[e.Nodes[i].Node] = &e.Nodes[i]
	}
	below := map[string]int{}
	for _, it := range items {
		if it.from != "" {
			below[it.from]++
		}
	}
	for id, it := range items {
		n := fr.node(id)
		if n == nil {
			continue // of this very second
		}
		of := n.identity
		row := StreamNode{
			Node: id, Role: of.Role, Datacenter: of.Datacenter, Region: of.Region, State: n.state, Upstream: it.from, Source: id == out.Source,
			Ingest: id == out.Ingest, Hops: -1, HopDelay: it.delay, Viewers: it.viewers, Downstream: below[id], Bitrate: it.bitrate, Grade: GradeUnknown, Play: playURL(n, name),
		}
		if t := planned[id]; t != nil {
			row.Hops, row.Cost, row.Crosses = t.Hops, t.Cost, t.Crosses
		}
		if row.Upstream != "" {
			if hop, ok := fr.view.Hop(row.Upstream, id); ok {
				row.Cost, row.Crosses, row.Grade = hop.Cost, hop.Crosses, gradeOf(hop.Cost, hop.Promised, hop.Measured)
			}
		}
		row.Delay = delayOf(items, id)
		out.Tree = append(out.Tree, row)
	}
	slices.SortFunc(out.Tree, func(a, b StreamNode) int {
		return cmp.Or(cmp.Compare(uint(a.Hops), uint(b.Hops)), cmp.Compare(a.Node, b.Node))
	})
	return out
}

// items returns who carries a stream, and sums it up.
func (s *streams) items(name stream.Name, row *StreamRow) map[string]carried {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.table[name]
	if c == nil {
		return nil
	}
	*row = c.row(name, c.source())
	out := make(map[string]carried, len(c.list))
	for _, it := range c.list {
		out[it.m.id] = it.carried
	}
	return out
}

// deepest is how many hops are followed at most.
const deepest = 16

// delayOf adds up the delays of the hops to a node.
func delayOf(items map[string]carried, id string) (ms float64) {
	for range deepest {
		it, ok := items[id]
		if !ok {
			return ms
		}
		ms += it.delay
		id = it.from
	}
	return ms
}

// playURL is where players reach a stream on an edge.
func playURL(n *nodeFrame, name stream.Name) string {
	of := n.identity
	if of.Role != plan.Edge || n.down || of.HTTPPort == 0 && of.HTTPSPort == 0 {
		return ""
	}
	host := of.Host
	if len(of.Addresses) > 0 && (host == "" || of.HTTPSPort == 0) {
		host = of.Addresses[0].String()
	}
	if host == "" {
		return ""
	}
	if of.HTTPSPort != 0 && of.Host != "" {
		return "https://" + net.JoinHostPort(of.Host, strconv.Itoa(int(of.HTTPSPort))) + "/" + string(name) + ".flv"
	}
	if of.HTTPPort == 0 {
		return ""
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(int(of.HTTPPort))) + "/" + string(name) + ".flv"
}

// sinceOf is when a publish began by its epoch, Unix milliseconds; zero if that is no time
// of ours.
func sinceOf(epoch int64) time.Time {
	if t := time.UnixMilli(epoch).UTC(); t.Year() >= 2000 && t.Year() < 3000 {
		return t
	}
	return time.Time{}
}
