package upstream

import (
	"sync"
	"time"

	"millrace/internal/stream"
)

// EventKind is what happened to a stream on its way here.
type EventKind uint8

// The kinds of event.
const (
	Started  EventKind = iota // somebody wants the stream
	Tried                     // an upstream is dialled beside the current one, or as the first
	Switched                  // an upstream became the current one
	Spliced                   // and this is how it was joined
	GaveUp                    // a candidate was not better, or refused
	Lost                      // the current upstream is gone
	Stopped                   // nobody wants the stream, or nobody has it
	Pushed                    // a publish of this node goes to a center
	Refused                   // a center does not want a publish
	Member                    // a node of the datacenter came or went, or this one is over its bound or no more
	PassedOn                  // this node is over its bound, and another one brings a stream in that it owns
	eventKinds
)

var eventWords = [eventKinds]string{"started", "tried", "switched", "spliced", "gave_up", "lost", "stopped", "pushed", "refused", "member", "passed_on"}

// String returns the word used in logs, metrics and the API.
func (k EventKind) String() string { return eventWords[k] }

// MarshalText returns the word of k, for JSON.
func (k EventKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Event is one decision about where a stream comes from, with the figures that it
// was made by.
type Event struct {
	Number uint64         `json:"number"` // rises while the program runs
	At     time.Time      `json:"at"`
	Stream stream.Name    `json:"stream,omitempty"`
	Kind   EventKind      `json:"kind"`
	From   string         `json:"from,omitempty"`
	To     string         `json:"to,omitempty"`
	Reason string         `json:"reason,omitempty"`
	Detail string         `json:"detail,omitempty"`
	Fig    map[string]any `json:"figures,omitempty"`

	// search: of a stream that nobody here has had, or of a publish that nobody has let in.
	search bool
}

// freeSearches is how many events of a kind a second are kept and logged for streams
// that are looked for. More are counted: whoever asks for thousands of names that are
// nowhere shall neither fill the log nor push out what happened to streams that are there.
const freeSearches = 20

// keepEvents is how many events a node remembers.
const keepEvents = 1024

// journal has the newest events of a node, and counts all.
type journal struct {
	// Guarded by mu.
	mu     sync.Mutex
	ring   []Event
	next   int
	number uint64 // of the newest
	counts map[Count]uint64
	second time.Time       // when some began to count
	some   [eventKinds]int // events of searches
}

// Count is what events are counted by.
type Count struct {
	Kind   EventKind
	Reason string
}

// add takes in an event, and reports whether it is kept.
func (j *journal) add(e Event) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.counts == nil {
		j.counts = make(map[Count]uint64)
	}
	j.counts[Count{e.Kind, e.Reason}]++
	if e.search {
		if j.some[e.Kind]++; j.some[e.Kind] > freeSearches {
			return false
		}
	}
	j.number++
	e.Number = j.number
	if len(j.ring) < keepEvents {
		j.ring = append(j.ring, e)
		return true
	}
	j.ring[j.next] = e
	j.next = (j.next + 1) % keepEvents
	return true
}

// left returns, once a second, how many events of searches were not kept in it.
func (j *journal) left(now time.Time) (some [eventKinds]int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if now.Sub(j.second) < time.Second {
		return some
	}
	for k, n := range j.some {
		some[k] = max(0, n-freeSearches)
	}
	j.second, j.some = now, [eventKinds]int{}
	return some
}

// after returns what is remembered with a number above n, the oldest first, at most
// limit.
func (j *journal) after(n uint64, limit int) []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	newer := min(len(j.ring), int(j.number-min(n, j.number)))
	out := make([]Event, 0, min(newer, limit))
	for i := len(j.ring) - newer; i < len(j.ring) && len(out) < limit; i++ {
		out = append(out, j.ring[(j.next+i)%len(j.ring)])
	}
	return out
}

// events returns what is remembered, the oldest first.
func (j *journal) events() []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]Event, 0, len(j.ring))
	return append(append(out, j.ring[j.next:]...), j.ring[:j.next]...)
}

// totals returns how many events there were.
func (j *journal) totals() map[Count]uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make(map[Count]uint64, len(j.counts))
	for k, n := range j.counts {
		out[k] = n
	}
	return out
}
