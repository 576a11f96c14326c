package main

import (
	"time"

	"millrace/internal/admin"
	"millrace/internal/measure"
	"millrace/internal/quality"
)

// figures are the metrics of the work with routers, read at each scrape.
func (r *routing) figures(f *admin.Figures) {
	if r.beat == nil {
		return
	}
	now, beat := time.Now(), r.beat.Status()
	alive := 0.0
	if beat.Error == "" && !beat.At.IsZero() {
		alive = 1
	}
	f.Gauge("millrace_routing_alive", "1 while a router takes the heartbeats of this node.", alive)
	if !beat.At.IsZero() {
		f.Gauge("millrace_routing_heartbeat_age_seconds", "Time since a router took a heartbeat.", now.Sub(beat.At).Seconds())
		f.Gauge("millrace_routing_answer_seconds", "What the last answer took.", beat.Took.Seconds())
	}
	f.Counter("millrace_routing_heartbeats_total", "Heartbeats sent.", beat.Sent)
	f.Counter("millrace_routing_taken_heartbeats_total", "Of these, taken by a router.", beat.Taken)
	f.Counter("millrace_routing_heartbeat_bytes_total", "Bytes of heartbeats.", beat.Bytes)
	admin.ByWord(f, "millrace_routing_refused_samples_total", "Samples that routers did not take, by reason.", "reason", beat.Refused)
	f.Counter("millrace_routing_lost_samples_total", "Samples that were dropped because no router took heartbeats.", beat.Lost)

	if o := r.orders.Load(); o != nil {
		f.Gauge("millrace_routing_orders_version", "Version of the plan that the orders in force are of.", float64(o.Version))
		f.Gauge("millrace_routing_orders_pool", "Upstreams of the orders in force.", float64(len(o.Pool)))
	}
	admin.ByWord(f, "millrace_routing_orders_questions_total", "Questions for newer orders, by what came of them.", "outcome", r.follower.Counts())
	paths := r.finder.Status()
	admin.ByWord(f, "millrace_routing_path_questions_total", "Questions where to pull a stream from, by what came of them.", "outcome", paths.Counts)
	admin.ByWord(f, "millrace_routing_path_readers_total", "Streams that were to be fetched, by what became of the question: kept answers, spared and late ones had none.", "outcome",
		map[string]uint64{"asked": paths.Asked, "kept": paths.Kept, "spared": paths.Spared, "late": paths.Late})
	r.probeFigures(f)
}

// probeFigures are those of what measures the ways to other nodes.
func (r *routing) probeFigures(f *admin.Figures) {
	probes := r.prober.Stats()
	f.Counter("millrace_routing_probes_sent_total", "Packets sent to measure the ways to other nodes.", probes.Sent)
	f.Counter("millrace_routing_probes_lost_total", "Of these, without an answer.", probes.Lost)
	f.Gauge("millrace_routing_probe_targets", "Nodes that the way is measured to.", float64(len(probes.Targets)))
	if r.responder == nil {
		return
	}
	answers := r.responder.Stats()
	f.Counter("millrace_routing_probes_answered_total", "Packets of other nodes that were answered.", answers.Answered)
	for _, why := range measure.Refusals() {
		f.Counter("millrace_routing_probes_refused_total", "Packets that were not, by reason.", answers.Refused[why], "reason", why.String())
	}
}

// qualityFigures are what players reported.
func qualityFigures(f *admin.Figures, st quality.Stats) {
	for _, r := range quality.Reasons() {
		f.Counter("millrace_quality_reports_total", "Reports of players, by what came of them.", st.Reports[r], "outcome", r.String())
	}
	f.Counter("millrace_quality_first_frames_total", "Players that reported their first frame.", uint64(st.First.Of))
	f.Sum("millrace_quality_first_frame_seconds_total", "What those took until it.", st.First.Sum.Seconds())
	f.Counter("millrace_quality_stalls_total", "Times that the picture of a player stood still.", st.Stalls)
	f.Sum("millrace_quality_stalled_seconds_total", "For how long.", st.Stalled.Seconds())
	f.Sum("millrace_quality_played_seconds_total", "For how long it moved.", st.Played.Seconds())
}
