package admin

import (
	"time"

	"millrace/internal/control"
)

// FollowingFigures adds how a program follows others: what came of its questions for a
// newer snapshot, and since when each of its peers has told what it sees.
func FollowingFigures(f *Figures, now time.Time, questions map[string]uint64, peers []control.PeerStatus) {
	ByWord(f, "millrace_control_questions_total", "Questions for a newer snapshot, by what came of them.", "outcome", questions)
	for _, peer := range peers {
		f.Gauge("millrace_control_peer_alive", "1 while the peer tells what it sees.", boolFloat(peer.Error == "" && !peer.At.IsZero()), "peer", peer.Server)
		if !peer.At.IsZero() {
			f.Gauge("millrace_control_report_age_seconds", "Time since the peer told what it sees.", now.Sub(peer.At).Seconds(), "peer", peer.Server)
		}
	}
}
