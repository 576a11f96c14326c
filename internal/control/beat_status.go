package control

import (
	"maps"
	"time"
)

// BeatStatus is how telling the routers goes, for the admin port.
type BeatStatus struct {
	Server   string            `json:"server"`             // that is told
	Router   string            `json:"router,omitempty"`   // as it calls itself
	Boot     string            `json:"boot"`               // of this program
	Sequence uint64            `json:"sequence"`           // of the last heartbeat that was taken
	At       time.Time         `json:"at,omitzero"`        // when that was
	Took     time.Duration     `json:"took_ns"`            // to be answered
	Interval time.Duration     `json:"interval_ns"`        // wanted by the router
	Orders   string            `json:"orders,omitempty"`   // token of the newest that the router has for this node
	Snapshot string            `json:"snapshot,omitempty"` // token of the newest that the router has
	LeftOut  string            `json:"left_out,omitempty"` // why players are not sent to this node, as the router says
	Error    string            `json:"error,omitempty"`    // why the last heartbeat was not taken; "" when it was
	Sent     uint64            `json:"sent"`               // heartbeats, since the start
	Taken    uint64            `json:"taken"`              // of them
	Bytes    uint64            `json:"bytes"`              // of bodies, as sent
	Resent   uint64            `json:"resent"`             // heartbeats that a router wanted in full
	Refused  map[string]uint64 `json:"refused_samples"`    // since the start, by reason
	First    []string          `json:"first,omitempty"`    // of the refused samples of the last heartbeat that had some
	Lost     uint64            `json:"lost_samples"`       // that waited too long, and were too many
}

// took notes that h was taken.
func (s *BeatStatus) took(server string, h *Heartbeat, ack *Ack, interval time.Duration, now time.Time, took time.Duration) {
	s.Server, s.Router, s.Sequence, s.At, s.Took, s.Error = server, ack.Router, h.Sequence, now, took, ""
	s.Interval, s.Orders, s.Snapshot, s.LeftOut = interval, ack.Orders, ack.Snapshot, ack.LeftOut
	s.Taken++
	if ack.Resend {
		s.Resent++
	}
	if len(ack.Refused) > 0 {
		s.Refused, s.First = maps.Clone(s.Refused), ack.First
		if s.Refused == nil {
			s.Refused = map[string]uint64{}
		}
		for reason, n := range ack.Refused {
			s.Refused[reason] += uint64(n)
		}
	}
}

// Status says how it goes.
func (b *Beat) Status() BeatStatus { return *b.status.Load() }

// Counts returns how often each outcome was met, by its word.
func (b *Beat) Counts() map[string]uint64 {
	out := make(map[string]uint64, outcomes)
	for i := range b.counts {
		out[Outcome(i).String()] = b.counts[i].Load()
	}
	return out
}
