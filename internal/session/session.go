// Package session keeps the record of every connection that publishes or plays
// on this node: who it is, what it moved, and why it ended.
//
// There is one [Table] per node. An adapter opens a [Session] when a peer has
// said what it wants, counts into it, and closes it with one [Reason]. Metrics,
// the admin API and the log line of the end all read the same record, so they
// cannot disagree, and gauges are computed from the sessions that are open.
//
// The package does no I/O and reads no clock.
package session

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Protocol is how a peer speaks to the node.
type Protocol uint8

// The protocols of the node.
const (
	RTMP Protocol = iota
	HTTPFLV
	WSFLV
	protocols // how many there are
)

// String returns the word used in logs, metrics and the API.
func (p Protocol) String() string {
	return [...]string{"rtmp", "http-flv", "ws-flv"}[p]
}

// MarshalText returns the word of p, for JSON.
func (p Protocol) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Action is what a peer does with a stream.
type Action uint8

// The two actions.
const (
	Publish Action = iota
	Play
	actions // how many there are
)

// String returns the word used in logs, metrics and the API.
func (a Action) String() string {
	return [...]string{"publish", "play"}[a]
}

// MarshalText returns the word of a, for JSON.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Info is what is known of a session when it opens.
type Info struct {
	Protocol Protocol
	Action   Action
	Stream   string         // normal form, "app/name"
	Peer     netip.AddrPort // the peer's own address, behind trusted proxies
	TLS      bool
	Agent    string // User-Agent or flashVer, cut to 128 bytes
	Node     string // id of the node that this is; empty for encoders and players
	Started  time.Time
}

// Session is one open connection that publishes or plays. The counters may be
// raised from any goroutine.
type Session struct {
	// Fixed at construction.
	ID   uint64
	Info Info
	kick func(Reason)
	tbl  *Table

	// Safe from any goroutine.
	Bytes   atomic.Uint64 // media bytes taken in or given to the socket
	Tags    atomic.Uint64 // tags taken in or wholly given to the socket
	Skipped atomic.Uint64 // tags that a slow player did not get
	closed  atomic.Bool
}

// Snapshot is a copy of a session's record.
type Snapshot struct {
	ID      uint64
	Info    Info
	Bytes   uint64
	Tags    uint64
	Skipped uint64
}

// Table holds the open sessions of a node and counts the ended ones.
type Table struct {
	// Safe from any goroutine.
	nextID  atomic.Uint64
	opened  [protocols][actions]atomic.Uint64
	ended   [protocols][actions][reasons]atomic.Uint64
	bytes   [protocols][actions]atomic.Uint64 // of ended sessions
	skipped [reasons]atomic.Uint64
	refused [protocols][reasons]atomic.Uint64

	// Guarded by mu.
	mu   sync.RWMutex
	open map[uint64]*Session
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{open: make(map[uint64]*Session)}
}

// Open adds a session. kick is called, at most once per call of Kick and from
// another goroutine than the session's own, to ask the adapter to end it with
// the given reason; it must not block.
func (t *Table) Open(info Info, kick func(Reason)) *Session {
	if len(info.Agent) > 128 {
		info.Agent = info.Agent[:128]
	}
	s := &Session{ID: t.nextID.Add(1), Info: info, kick: kick, tbl: t}
	t.opened[info.Protocol][info.Action].Add(1)
	t.mu.Lock()
	t.open[s.ID] = s
	t.mu.Unlock()
	return s
}

// Close removes the session and counts its end. Only the first call counts; it
// reports whether this was the first.
func (s *Session) Close(r Reason) bool {
	if s.closed.Swap(true) {
		return false
	}
	t := s.tbl
	t.mu.Lock()
	delete(t.open, s.ID)
	t.mu.Unlock()
	t.ended[s.Info.Protocol][s.Info.Action][r].Add(1)
	t.bytes[s.Info.Protocol][s.Info.Action].Add(s.Bytes.Load())
	return true
}

// Skip counts n tags that a slow player did not get, and why.
func (s *Session) Skip(n uint64, r Reason) {
	s.Skipped.Add(n)
	s.tbl.skipped[r].Add(n)
}

// Kick asks the adapter to end the session.
func (s *Session) Kick(r Reason) { s.kick(r) }

// Refuse counts a peer that was turned away before it had a session.
func (t *Table) Refuse(p Protocol, r Reason) { t.refused[p][r].Add(1) }

// Kick asks for the end of session id and reports whether it is open.
func (t *Table) Kick(id uint64, r Reason) bool {
	t.mu.RLock()
	s := t.open[id]
	t.mu.RUnlock()
	if s == nil {
		return false
	}
	s.kick(r)
	return true
}

// Get returns the open session id.
func (t *Table) Get(id uint64) (Snapshot, bool) {
	t.mu.RLock()
	s := t.open[id]
	t.mu.RUnlock()
	if s == nil {
		return Snapshot{}, false
	}
	return s.snapshot(), true
}

// List returns the open sessions, oldest first.
func (t *Table) List() []Snapshot {
	t.mu.RLock()
	out := make([]Snapshot, 0, len(t.open))
	for _, s := range t.open {
		out = append(out, s.snapshot())
	}
	t.mu.RUnlock()
	slices.SortFunc(out, func(a, b Snapshot) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// NodesPlaying returns how many of those who play are other nodes, by stream.
func (t *Table) NodesPlaying() map[string]int {
	out := make(map[string]int)
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, s := range t.open {
		if s.Info.Node != "" && s.Info.Action == Play {
			out[s.Info.Stream]++
		}
	}
	return out
}

// Len returns how many sessions are open.
func (t *Table) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.open)
}

func (s *Session) snapshot() Snapshot {
	return Snapshot{
		ID: s.ID, Info: s.Info,
		Bytes: s.Bytes.Load(), Tags: s.Tags.Load(), Skipped: s.Skipped.Load(),
	}
}

// Count is one figure of [Table.Counts].
type Count struct {
	Protocol Protocol
	Action   Action
	Open     uint64
	Opened   uint64
	Bytes    uint64 // of open and ended sessions
	Ended    map[Reason]uint64
}

// Counts returns the figures per protocol and action.
func (t *Table) Counts() []Count {
	out := make([]Count, 0, int(protocols)*int(actions))
	for p := range protocols {
		for a := range actions {
			c := Count{
				Protocol: p, Action: a, Opened: t.opened[p][a].Load(),
				Bytes: t.bytes[p][a].Load(), Ended: nonzero(&t.ended[p][a]),
			}
			out = append(out, c)
		}
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, s := range t.open {
		c := &out[int(s.Info.Protocol)*int(actions)+int(s.Info.Action)]
		c.Open++
		c.Bytes += s.Bytes.Load()
	}
	return out
}

// Skips returns how many tags slow players did not get, by reason.
func (t *Table) Skips() map[Reason]uint64 { return nonzero(&t.skipped) }

// Refusals returns how many peers were turned away, by protocol and reason.
func (t *Table) Refusals() map[Protocol]map[Reason]uint64 {
	out := make(map[Protocol]map[Reason]uint64, protocols)
	for p := range protocols {
		out[p] = nonzero(&t.refused[p])
	}
	return out
}

func nonzero(counts *[reasons]atomic.Uint64) map[Reason]uint64 {
	out := make(map[Reason]uint64)
	for r := range counts {
		if n := counts[r].Load(); n > 0 {
			out[Reason(r)] = n
		}
	}
	return out
}
