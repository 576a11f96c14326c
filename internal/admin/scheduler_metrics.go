package admin

import (
	"time"

	"millrace/internal/control"
	"millrace/internal/sched"
)

// Figures reads what the scheduler works from.
func (s *Scheduler) Figures(f *Figures) {
	v, keeper, now := s.of.View(), s.of.Keeper(), time.Now()
	state := stateOf(v, now)

	f.Gauge("millrace_sched_snapshot_info", "The snapshot in use; always 1.", 1, "origin", keeper.Version.Origin, "token", keeper.Version.Token)
	f.Gauge("millrace_sched_snapshot_version", "Version of the snapshot in use; it rises with every change.", float64(v.Plan.Version))
	if !keeper.Made.IsZero() {
		f.Gauge("millrace_sched_snapshot_age_seconds", "Time since the snapshot in use was made.", now.Sub(keeper.Made).Seconds())
	}
	f.Gauge("millrace_sched_snapshot_refused", "1 while a newer snapshot is refused; the log says why.", boolFloat(keeper.Source.Error != ""))
	if !v.State.At.IsZero() {
		f.Gauge("millrace_sched_state_age_seconds", "Age of what is known of load and health.", now.Sub(v.State.At).Seconds())
	}
	f.Gauge("millrace_sched_view_build_seconds", "What it took to make the newest view.", keeper.Took.Seconds())
	f.Counter("millrace_sched_observations_total", "Observations of edges that were taken in.", keeper.Observations)
	f.Counter("millrace_sched_dropped_observations_total", "Of these, dropped because too many waited.", keeper.Dropped)
	f.Gauge("millrace_sched_domains", "Domains that are served.", float64(len(v.Plan.Domains)))
	f.Gauge("millrace_sched_edges", "Edges that the snapshot has.", float64(state.Edges))
	for _, family := range []struct {
		word  string
		edges map[string]int
	}{{"v4", state.V4}, {"v6", state.V6}} {
		// All words that can be, so that a gauge does not stay where it was when it should be 0.
		for _, w := range nodeWords() {
			f.Gauge("millrace_sched_edges_by_reason", "Edges by why they are not offered over an address family; offered are those that are.",
				float64(family.edges[w]), "family", family.word, "reason", w)
		}
	}
	f.Gauge("millrace_sched_edges_load_bytes_per_second", "What all edges send, as they say.", float64(state.Load))
	f.Gauge("millrace_sched_edges_capacity_bytes_per_second", "What all edges can send.", float64(state.Capacity))
	f.Gauge("millrace_sched_edges_viewers", "Viewers at all edges, as they say.", float64(state.Viewers))
	g := keeper.Geo
	f.Gauge("millrace_geo_coverage_entries", "CIDRs of the coverage file.", float64(g.Coverage))
	f.Gauge("millrace_geo_ranges", "Ranges of addresses with a place of their own.", float64(g.Ranges4), "family", "v4")
	f.Gauge("millrace_geo_ranges", "Ranges of addresses with a place of their own.", float64(g.Ranges6), "family", "v6")
	s.probeFigures(f)
	var questions map[string]uint64
	if s.of.Questions != nil {
		questions = s.of.Questions()
	}
	var peers []control.PeerStatus
	if s.of.Peers != nil {
		peers = s.of.Peers()
	}
	FollowingFigures(f, now, questions, peers)
	if s.of.Server != nil {
		serverFigures(f, s.of.Server())
	}
}

// serverFigures are those of a server that nodes, schedulers and edges ask.
func serverFigures(f *Figures, st control.ServerStats) {
	f.Gauge("millrace_control_waiting", "Questions of followers that wait for news.", float64(st.Waiting))
	f.Gauge("millrace_control_transfers", "Files that are being sent to followers.", float64(st.Transfers))
	f.Counter("millrace_control_answered_total", "Questions of followers that were answered.", st.Answered)
	f.Gauge("millrace_control_heartbeats_waiting", "Heartbeats that wait for their turn.", float64(st.Queued))
	f.Gauge("millrace_control_heartbeat_stretch", "By how much nodes are asked to speak less often, 1 to 2; 1: not.", st.Stretch)
	ByWord(f, "millrace_control_refused_total", "Questions of followers and nodes that were refused.", "reason", st.Refused)
}

// nodeWords are the words for why a node is offered or not that do not depend on a
// query.
func nodeWords() []string {
	out := []string{offered}
	for _, r := range []sched.Reason{
		sched.Family, sched.Unhealthy, sched.UnknownHealth, sched.StaleHealth, sched.Draining, sched.UnderAttack, sched.Full, sched.Held,
	} {
		out = append(out, r.String())
	}
	return out
}

func (s *Scheduler) probeFigures(f *Figures) {
	st := s.of.Probes()
	f.Gauge("millrace_probe_targets", "Edges that are probed, once for each address family.", float64(st.Targets))
	f.Gauge("millrace_probe_underway", "Probes under way.", float64(st.Underway))
	f.Counter("millrace_probe_late_total", "Probes that began more than an interval late: raise probe.concurrency.", st.Late)
	ByWord(f, "millrace_probe_probes_total", "Probes by their outcome.", "outcome", st.Outcomes)
}
