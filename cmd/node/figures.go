package main

import (
	"strconv"

	"millrace/internal/admin"
	"millrace/internal/session"
)

// figures are the metrics of the adapters, read at each scrape.
func (n *node) figures() []admin.Figure {
	f := &admin.Figures{}
	fan := n.fanout.Stats()
	f.Gauge("millrace_httpflv_viewers", "Viewers over HTTP, those that wait for a stream too.", float64(fan.Viewers))
	f.Gauge("millrace_httpflv_waiting", "Of these, waiting for something to play.", float64(fan.Waiting))
	f.Counter("millrace_httpflv_writes_total", "Calls of writev for viewers.", fan.Writes)
	f.Counter("millrace_httpflv_partial_writes_total", "Of these, those that the socket did not take wholly.", fan.Partial)
	f.Counter("millrace_httpflv_sent_bytes_total", "Bytes given to viewers' sockets by writev.", fan.Bytes)
	f.Gauge("millrace_httpflv_trunks", "TCP connections on which other nodes pull several streams from here.", float64(fan.Trunks.Trunks))
	f.Gauge("millrace_httpflv_trunk_streams", "Streams that they pull on them.", float64(fan.Trunks.Streams))
	f.Counter("millrace_httpflv_relayed_bytes_total", "Bytes given to nodes, and to viewers over TLS or WebSocket.", fan.Relayed)
	f.Gauge("millrace_httpflv_load_bytes_per_second", "What both come to, averaged over five seconds: the load that schedulers see.", fan.Load)
	for i, s := range fan.Shards {
		shard := strconv.Itoa(i)
		f.Gauge("millrace_httpflv_merge_interval_seconds", "Time between two writes to a viewer, by shard.", s.Interval.Seconds(), "shard", shard)
		f.Gauge("millrace_httpflv_busy_ratio", "Share of the time that a shard works.", s.Busy, "shard", shard)
		f.Counter("millrace_httpflv_passes_total", "Passes over the viewers of a shard.", s.Passes, "shard", shard)
	}

	ended, dropped, refused := map[session.Reason]uint64{}, map[session.Reason]uint64{}, map[session.Reason]uint64{}
	var connections, accepted, handshakes float64
	for _, s := range n.rtmp {
		st := s.Stats()
		connections += float64(st.Connections)
		accepted += float64(st.Accepted)
		handshakes += float64(st.Handshakes)
		addCounts(ended, st.Ended)
		addCounts(dropped, st.Dropped)
		addCounts(refused, st.Refused)
	}
	f.Gauge("millrace_rtmp_connections", "Open RTMP connections.", connections)
	f.Counter("millrace_rtmp_accepted_total", "RTMP connections ever.", uint64(accepted))
	f.Counter("millrace_rtmp_handshakes_total", "RTMP handshakes completed.", uint64(handshakes))
	admin.ByReason(f, "millrace_rtmp_ended_total", "RTMP connections that ended.", ended)
	admin.ByReason(f, "millrace_rtmp_dropped_messages_total", "Media messages that were not passed on.", dropped)
	admin.ByReason(f, "millrace_rtmp_refused_commands_total", "Commands refused on connections that lived on.", refused)
	n.placing.figures(f)
	n.routing.figures(f)
	qualityFigures(f, n.quality.Stats())
	for _, l := range n.doors.Stats() {
		f.Listener(l.Scheme, l.Stats)
	}
	return *f
}

// closedEarly returns how many connections the listeners closed before a server saw
// them. A peer that left of itself is not among them: load balancers do that to see
// whether the port is open.
func (n *node) closedEarly() (total uint64) {
	for _, l := range n.doors.Stats() {
		for r, count := range l.Refused {
			if r != session.PeerClosed {
				total += count
			}
		}
	}
	return total
}

func addCounts(to, from map[session.Reason]uint64) {
	for r, c := range from {
		to[r] += c
	}
}
