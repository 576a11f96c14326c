package sched

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"millrace/internal/stream"
)

// State is what is known of the nodes at a moment. It is made each second, by a
// [Board] or by another scheduler, and not changed after.
type State struct {
	At    time.Time   `json:"at"`
	Nodes []NodeState `json:"nodes"`
}

// MaxStreams bounds the streams that are known of one node.
const MaxStreams = 10_000

// NodeState is what is known of one node.
type NodeState struct {
	ID          string        `json:"id"`
	Load        int64         `json:"load"` // bytes/s
	Viewers     int           `json:"viewers"`
	Refused     float64       `json:"refused"`                // connections per second
	Draining    bool          `json:"draining,omitempty"`     // it says so itself
	UnderAttack bool          `json:"under_attack,omitempty"` // its figures say so
	V4          Health        `json:"v4,omitzero"`
	V6          Health        `json:"v6,omitzero"`
	Streams     []stream.Name `json:"streams,omitempty"` // that it carries

	// hashes are those of Streams, made once where they are known to be the same for
	// several states; nil: not made yet.
	hashes []uint64
}

// Health is what is known of a node over one address family.
type Health struct {
	Status Status    `json:"status"`
	At     time.Time `json:"at,omitzero"` // of the newest observation
	Up     time.Time `json:"up,omitzero"` // when it was last seen up
}

// lastUp returns when it was last seen up, zero if never.
func (h *Health) lastUp() time.Time {
	if h.Up.IsZero() && h.Status == Up {
		return h.At
	}
	return h.Up
}

// Status is whether something is up.
type Status uint8

// The values of Status.
const (
	Unknown Status = iota // nobody has looked lately
	Up
	Down
	statuses
)

var statusWords = []string{"unknown", "up", "down"}

// String returns the word of s.
func (s Status) String() string {
	if s >= statuses {
		return fmt.Sprintf("status(%d)", uint8(s))
	}
	return statusWords[s]
}

// MarshalText returns the word of s.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word of a Status.
func (s *Status) UnmarshalText(b []byte) error {
	i := slices.Index(statusWords, string(b))
	if i < 0 {
		return fmt.Errorf("%q is not a status: use %s", b, strings.Join(statusWords, ", "))
	}
	*s = Status(i)
	return nil
}
