package stream

import (
	"time"

	"millrace/internal/session"
)

// Source brings streams that are wanted on this node and published on another. Its
// methods are called with the hub locked: they must return at once and not call the
// hub.
type Source interface {
	// Want is told that a reader has attached to s, which may be live or not, and again
	// and again while s has readers and no publisher.
	Want(s *Stream, d Demand)
	// Unwant is told that the last reader of s has left.
	Unwant(s *Stream)
	// Brings reports whether the source works on s: the hub keeps it then, also before
	// it is published and when nobody reads it, until the source calls Forget.
	Brings(s *Stream) bool
	// Outlook says what is to be expected of a stream.
	Outlook(n Name) Outlook
}

// Outlook is what a source says of a stream.
type Outlook struct {
	Wait time.Duration  // how long it is worth waiting if it is not here; 0: it will not come
	Path []Hop          // through whom it comes, or is looked for; the nearest node first
	Why  session.Reason // it will not come
}

// Demand says on whose behalf a reader wants a stream. The zero value is a player's.
type Demand struct {
	// Via are the nodes that the request has passed, the first one first.
	Via []string
	// Peer: it comes from a node of the same datacenter, which has chosen this one to
	// go to the origin. Handed on inside the datacenter it could go round for ever.
	Peer bool
	// Back is how far behind the newest tag the reader wants to begin, as in
	// [CursorOptions]: where the stream is fetched from must go back so far too.
	Back time.Duration
}

// Hop is one step of the way that a stream takes.
type Hop struct {
	Node  string        `json:"node"`
	Delay time.Duration `json:"delay_ns"` // that the step from it added
}

// PullOwner is the owner of publishes that come from another node: a publisher of
// this node takes the stream over from it.
const PullOwner = "\x00pull"

// SetSource makes src bring what is missing. It is called before the hub is used.
func (h *Hub) SetSource(src Source) { h.source = src }

// Outlook returns what the source says of n. Without a source nothing will come.
func (h *Hub) Outlook(n Name) Outlook {
	if h.source == nil {
		return Outlook{Why: session.NotFound}
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.source.Outlook(n)
}

// EndUnread ends the publish p of s, which may be nil, unless s has readers, and
// reports whether it has none. A reader that attaches later finds s without p.
func (h *Hub) EndUnread(now time.Time, s *Stream, p *Publisher) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.readers.Load() > 0 {
		return false
	}
	if p != nil {
		p.End(now)
	}
	return true
}

// Fail tells the readers that wait for s, which nobody publishes, that it will not
// come: their cursors have ended, and Failure says why. It does nothing to a stream
// that is live or in its grace time.
func (s *Stream) Fail(r session.Reason) {
	s.mu.Lock()
	idle := s.State() == Idle
	if idle {
		s.failure.Store(uint32(r))
		s.ends.Add(1)
	}
	s.mu.Unlock()
	if idle {
		s.wake()
	}
}

// Failure returns why the stream did not come: NoKeyframe for one that is live, else
// NotFound unless Fail gave another reason since the newest publish.
func (s *Stream) Failure() session.Reason {
	if s.State() == Live {
		return session.NoKeyframe
	}
	if r := session.Reason(s.failure.Load()); r != session.None {
		return r
	}
	return session.NotFound
}
