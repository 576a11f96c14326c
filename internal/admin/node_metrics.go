package admin

import (
	"cmp"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"millrace/internal/session"
	"millrace/internal/stream"
)

// Figures reads the live objects of the node.
func (n *Node) Figures(f *Figures) {
	n.sessionFigures(f)
	n.streamFigures(f)
	n.originFigures(f)
}

func (n *Node) sessionFigures(f *Figures) {
	t := n.table
	for _, c := range t.Counts() {
		if c.Action == session.Publish && c.Protocol != session.RTMP {
			continue // nobody can
		}
		l := []string{"protocol", c.Protocol.String(), "action", c.Action.String()}
		f.Gauge("millrace_session_open", "Connections that publish or play now.", float64(c.Open), l...)
		f.Counter("millrace_session_opened_total", "Connections that began to publish or play.", c.Opened, l...)
		f.Counter("millrace_session_media_bytes_total", "Media bytes taken in or given to sockets.", c.Bytes, l...)
		for r, v := range c.Ended {
			f.Counter("millrace_session_ended_total", "Connections that ended, by reason.", v, append(l, "reason", r.String())...)
		}
	}
	for p, reasons := range t.Refusals() {
		for r, v := range reasons {
			f.Counter("millrace_session_refused_total", "Peers turned away before they published or played, by reason.", v,
				"protocol", p.String(), "reason", r.String())
		}
	}
	for r, v := range t.Skips() {
		f.Counter("millrace_session_skipped_tags_total", "Tags that slow players did not get, by reason.", v, "reason", r.String())
	}
}

// row is one stream with the figures that it is ranked by.
type row struct {
	stats   stream.Stats
	viewers int
}

func (n *Node) streamFigures(f *Figures) {
	now := time.Now()
	all := n.hub.Streams()
	plays, _ := audiences(n.table.List())
	states := map[stream.State]int{stream.Idle: 0, stream.Live: 0, stream.Grace: 0}
	rows := make([]row, len(all))
	for i, st := range all {
		rows[i] = row{n.hub.Stats(st, now), plays[string(st.Name())].viewers}
		states[rows[i].stats.State]++
	}
	for st, count := range states {
		f.Gauge("millrace_stream_streams", "Streams that the node has, by state.", float64(count), "state", st.String())
	}
	limit := int(n.metricStreams.Load())
	f.Gauge("millrace_stream_unlisted_streams", "Streams without metrics of their own: those beyond admin.metric_streams.", float64(max(0, len(rows)-limit)))
	seen := map[string]bool{}
	for _, r := range top(rows, limit) {
		label := labelValue(string(r.stats.Name))
		if seen[label] {
			continue
		}
		seen[label] = true
		l := []string{"stream", label}
		f.Gauge("millrace_stream_viewers", "Players of the stream now.", float64(r.viewers), l...)
		f.Gauge("millrace_stream_live", "1 while somebody publishes the stream.", boolFloat(r.stats.State == stream.Live), l...)
		f.Gauge("millrace_stream_bitrate_bits_per_second", "What the publisher sends.", float64(r.stats.Bitrate), l...)
		f.Gauge("millrace_stream_frame_rate_hertz", "Pictures per second of media time over the newest whole GOP.", r.stats.FPS, l...)
		f.Gauge("millrace_stream_gop_seconds", "Length of the newest whole GOP.", r.stats.GOP.Seconds(), l...)
		f.Gauge("millrace_stream_silent_seconds", "Time since the publisher's newest tag.", r.stats.Silent.Seconds(), l...)
		f.Gauge("millrace_stream_log_bytes", "What the log of the stream holds.", float64(r.stats.LogBytes), l...)
		f.Counter("millrace_stream_in_bytes_total", "Taken in; begins anew with each publish.", r.stats.BytesIn, l...)
		for reason, count := range r.stats.Drops {
			f.Counter("millrace_stream_dropped_tags_total", "Tags of publishers that were dropped or repaired, by reason.", count, append(l, "reason", reason.String())...)
		}
	}
}

// top returns the limit rows with the most viewers, then the highest bitrate.
func top(rows []row, limit int) []row {
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.viewers, a.viewers), cmp.Compare(b.stats.Bitrate, a.stats.Bitrate), cmp.Compare(a.stats.Name, b.stats.Name))
	})
	return rows[:min(limit, len(rows))]
}

// labelValue makes a name fit to be a label: Prometheus refuses the whole scrape
// for a label that is not UTF-8.
func labelValue(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strconv.QuoteToASCII(s)
}

// originFigures reads the figures of the upstream side.
func (n *Node) originFigures(f *Figures) {
	st := n.origin.Stats()
	f.Gauge("millrace_upstream_sessions", "Streams that are brought from upstreams.", float64(st.Sessions))
	f.Gauge("millrace_upstream_connections", "Connections to upstreams, candidates included. Those on trunks count too.", float64(st.Feeds))
	f.Gauge("millrace_upstream_trunks", "TCP connections on which several streams are pulled.", float64(st.Trunks.Trunks))
	f.Gauge("millrace_upstream_trunk_streams", "Streams that are pulled on them.", float64(st.Trunks.Streams))
	for k, count := range st.Events {
		f.Counter("millrace_upstream_events_total", "Decisions about where streams come from, by kind and reason.", count,
			"event", k.Kind.String(), "reason", k.Reason)
	}
	for _, m := range n.origin.Members() {
		f.Gauge("millrace_upstream_member_alive", "1 while the node of the datacenter answers.", boolFloat(m.Alive), "member", m.ID)
		f.Gauge("millrace_upstream_member_load_bytes_per_second", "What the node of the datacenter says that it sends.", float64(m.Load), "member", m.ID)
		f.Gauge("millrace_upstream_member_over_bound", "1 while it says that it sends more than its share.", boolFloat(m.OverSince != nil), "member", m.ID)
	}
	at := n.origin.Standing()
	f.Gauge("millrace_upstream_bound_bytes_per_second", "What this node should send beside its datacenter; 0 without a bound.", float64(at.Bound))
	f.Gauge("millrace_upstream_over_bound", "1 while it sends more than that, and has others bring in what it owns.", boolFloat(at.OverSince != nil))
	f.Gauge("millrace_upstream_passed_on_streams", "Streams that it owns and others bring in meanwhile.", float64(at.PassedOn))
}
