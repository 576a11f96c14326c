package main

import (
	"maps"
	"slices"
	"strconv"

	"millrace/internal/admin"
	"millrace/internal/session"
)

// figures are the metrics of the adapters, read at each scrape.
func (n *node) figures() []admin.Figure {
	var out []admin.Figure
	gauge := func(name, help string, v float64, labels ...string) {
		out = append(out, admin.Figure{Name: name, Help: help, Value: v, Labels: labels})
	}
	counter := func(name, help string, v uint64, labels ...string) {
		out = append(out, admin.Figure{Name: name, Help: help, Value: float64(v), Labels: labels, Counter: true})
	}
	byReason := func(name, help string, counts map[session.Reason]uint64) {
		for _, r := range slices.Sorted(maps.Keys(counts)) {
			counter(name, help, counts[r], "reason", r.String())
		}
	}

	fan := n.fanout.Stats()
	gauge("millrace_httpflv_viewers", "Viewers over HTTP, those that wait for a stream too.", float64(fan.Viewers))
	gauge("millrace_httpflv_waiting", "Of these, waiting for something to play.", float64(fan.Waiting))
	counter("millrace_httpflv_writes_total", "Calls of writev for viewers.", fan.Writes)
	counter("millrace_httpflv_partial_writes_total", "Of these, those that the socket did not take wholly.", fan.Partial)
	counter("millrace_httpflv_sent_bytes_total", "Bytes given to viewers' sockets by writev.", fan.Bytes)
	for i, s := range fan.Shards {
		shard := strconv.Itoa(i)
		gauge("millrace_httpflv_merge_interval_seconds", "Time between two writes to a viewer, by shard.", s.Interval.Seconds(), "shard", shard)
		gauge("millrace_httpflv_busy_ratio", "Share of the time that a shard works.", s.Busy, "shard", shard)
		counter("millrace_httpflv_passes_total", "Passes over the viewers of a shard.", s.Passes, "shard", shard)
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
	gauge("millrace_rtmp_connections", "Open RTMP connections.", connections)
	counter("millrace_rtmp_accepted_total", "RTMP connections ever.", uint64(accepted))
	counter("millrace_rtmp_handshakes_total", "RTMP handshakes completed.", uint64(handshakes))
	byReason("millrace_rtmp_ended_total", "RTMP connections that ended.", ended)
	byReason("millrace_rtmp_dropped_messages_total", "Media messages that were not passed on.", dropped)
	byReason("millrace_rtmp_refused_commands_total", "Commands refused on connections that lived on.", refused)
	n.listenFigures(gauge, counter)
	return out
}

func (n *node) listenFigures(gauge func(string, string, float64, ...string), counter func(string, string, uint64, ...string)) {
	i := 0
	for _, o := range n.opened {
		if o.scheme == "admin" {
			continue
		}
		st := n.listens[i].Stats()
		i++
		gauge("millrace_listen_connections", "Open connections by listener.", float64(st.Open), "listener", o.scheme)
		counter("millrace_listen_accepted_total", "Connections handed to a server.", st.Accepted, "listener", o.scheme)
		counter("millrace_listen_accept_errors_total", "Times that the system refused to accept.", st.AcceptErrors, "listener", o.scheme)
		for _, r := range slices.Sorted(maps.Keys(st.Refused)) {
			counter("millrace_listen_refused_total", "Connections closed before a server saw them.", st.Refused[r], "listener", o.scheme, "reason", r.String())
		}
	}
}

func addCounts(to, from map[session.Reason]uint64) {
	for r, c := range from {
		to[r] += c
	}
}
