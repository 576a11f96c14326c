package stream

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/session"
)

// Config bounds the streams of a node.
type Config struct {
	// LogDuration is how much of a stream is kept for readers that are behind, in
	// media time, and for how long at least; the newest GOP is kept besides. At least
	// ViewerDelay.
	LogDuration time.Duration
	// LogBytes bounds the log of one stream whatever its duration. A GOP that is
	// bigger has no start point until it is over.
	LogBytes int64
	// TotalBytes bounds the logs of all streams together. Beyond it each of them is
	// held to an equal share.
	TotalBytes int64
	// Grace is how long a stream lives on without its publisher.
	Grace time.Duration
	// MaxStreams bounds how many streams the node has, in their grace time too.
	MaxStreams int
	// MaxWaited bounds how many more streams readers may wait for that nobody publishes.
	MaxWaited int
	// ViewerDelay is how far behind a reader may be before it skips: in media time, and
	// for so long.
	ViewerDelay time.Duration
	// ViewerBytes is how far behind in bytes a reader may be before it skips.
	ViewerBytes int64
}

// DefaultConfig returns the settings of a node without a configuration.
func DefaultConfig() Config {
	return Config{
		LogDuration: 5 * time.Second,
		LogBytes:    32 << 20,
		TotalBytes:  4 << 30,
		Grace:       15 * time.Second,
		MaxStreams:  10_000,
		MaxWaited:   10_000,
		ViewerDelay: 5 * time.Second,
		ViewerBytes: 8 << 20,
	}
}

// Validate reports the first setting that is out of its range.
func (c Config) Validate() error {
	switch {
	case c.ViewerDelay < 500*time.Millisecond || c.ViewerDelay > time.Minute:
		return fmt.Errorf("viewer_delay is %v: use 500ms to 1m", c.ViewerDelay)
	case c.LogDuration < c.ViewerDelay || c.LogDuration > 2*time.Minute:
		return fmt.Errorf("log_duration is %v: use viewer_delay (%v) to 2m", c.LogDuration, c.ViewerDelay)
	case c.LogBytes < 1<<20 || c.LogBytes > 1<<30:
		return fmt.Errorf("log_bytes is %d: use 1 MiB to 1 GiB", c.LogBytes)
	case c.TotalBytes < c.LogBytes || c.TotalBytes > 1<<40:
		return fmt.Errorf("total_bytes is %d: use log_bytes (%d) to 1 TiB", c.TotalBytes, c.LogBytes)
	case c.ViewerBytes < 64<<10 || c.ViewerBytes > c.LogBytes:
		return fmt.Errorf("viewer_bytes is %d: use 64 KiB to log_bytes (%d)", c.ViewerBytes, c.LogBytes)
	case c.Grace < 0 || c.Grace > 10*time.Minute:
		return fmt.Errorf("grace is %v: use 0s to 10m", c.Grace)
	case c.MaxStreams < 1 || c.MaxStreams > 1_000_000:
		return fmt.Errorf("max_streams is %d: use 1 to 1000000", c.MaxStreams)
	case c.MaxWaited < 1 || c.MaxWaited > 1_000_000:
		return fmt.Errorf("max_waited is %d: use 1 to 1000000", c.MaxWaited)
	}
	return nil
}

// Hub has the streams of a node. All methods may be called from any goroutine.
type Hub struct {
	// Fixed before use.
	source Source // nil on a node that brings nothing

	// Safe from any goroutine.
	cfg      atomic.Pointer[Config]
	draining atomic.Bool
	sum      tally

	// Guarded by mu.
	mu      sync.RWMutex
	streams map[Name]*Stream
}

// tally is what the streams of a hub have together.
type tally struct {
	taken   atomic.Int64 // how many are live or in their grace time
	bytes   atomic.Int64 // what their logs hold
	cleared atomic.Int64 // what logs have held that were cleared, ever
}

// share returns what the log of one stream may hold.
func (t *tally) share(cfg *Config) int64 {
	if t.bytes.Load() <= cfg.TotalBytes {
		return cfg.LogBytes
	}
	return min(cfg.LogBytes, cfg.TotalBytes/max(1, t.taken.Load()))
}

// NewHub returns a hub without streams.
func NewHub(cfg Config) (*Hub, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	h := &Hub{streams: make(map[Name]*Stream)}
	h.cfg.Store(&cfg)
	return h, nil
}

// SetConfig changes the limits of the hub and of the streams that it has. cfg must
// be valid.
func (h *Hub) SetConfig(cfg Config) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cfg.Store(&cfg)
	for _, s := range h.streams {
		s.limits.Store(&cfg)
	}
}

// Publish gives the stream n to a publisher. The same owner takes it over at once
// from a publisher it had before; for another owner the error is ErrBusy. Other
// errors are ErrTooManyStreams and ErrDraining. by may be nil.
func (h *Hub) Publish(now time.Time, n Name, owner string, by *session.Session) (*Publisher, error) {
	return h.publish(now, n, owner, newEpoch, by)
}

// newEpoch stands for an epoch that is yet to be given.
const newEpoch = -1

// Continue is Publish for what comes from another node: a publish that began at its
// origin at the given epoch, 0 if that is not known. If it is the one that the stream
// has, or had until just now, it goes on: headers and clock stay, and the times that
// are written must be on the stream's own clock, see [Publisher.Resumed] and
// [Stream.Past]. One that is older than what the readers have had is refused with
// ErrOlder until they are gone.
func (h *Hub) Continue(now time.Time, n Name, owner string, epoch int64, by *session.Session) (*Publisher, error) {
	return h.publish(now, n, owner, epoch, by)
}

func (h *Hub) publish(now time.Time, n Name, owner string, epoch int64, by *session.Session) (*Publisher, error) {
	if h.draining.Load() {
		return nil, ErrDraining
	}
	p, err := h.take(now, n, owner, epoch, by)
	if err != nil {
		return nil, err
	}
	p.s.wake()
	return p, nil
}

func (h *Hub) take(now time.Time, n Name, owner string, epoch int64, by *session.Session) (*Publisher, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.streams[n]
	if (s == nil || s.State() == Idle) && h.sum.taken.Load() >= int64(h.cfg.Load().MaxStreams) {
		return nil, ErrTooManyStreams
	}
	return h.openLocked(n).begin(now, owner, epoch, by)
}

// Lookup returns the stream n when it is live or in its grace time.
func (h *Hub) Lookup(n Name) (*Stream, bool) {
	h.mu.RLock()
	s := h.streams[n]
	h.mu.RUnlock()
	if s == nil || s.State() == Idle {
		return nil, false
	}
	return s, true
}

// Attach adds a reader to the stream n and returns it. A stream that nobody
// publishes is made, for a reader that is willing to wait, and the source is told on
// whose behalf it is wanted. The error is ErrTooManyWaited. Each Attach needs one
// Detach.
func (h *Hub) Attach(n Name, d Demand) (*Stream, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	waited := int64(len(h.streams)) - h.sum.taken.Load()
	if h.streams[n] == nil && waited >= int64(h.cfg.Load().MaxWaited) {
		return nil, ErrTooManyWaited
	}
	s := h.openLocked(n)
	s.readers.Add(1)
	if h.source != nil {
		h.source.Want(s, d)
	}
	return s, nil
}

// Detach takes a reader off s.
func (h *Hub) Detach(s *Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.readers.Add(-1) > 0 {
		return
	}
	if h.source != nil {
		h.source.Unwant(s)
	}
	h.forgetLocked(s)
}

// forgetLocked lets go of a stream that nobody publishes, reads or brings.
func (h *Hub) forgetLocked(s *Stream) {
	if s.readers.Load() > 0 || s.State() != Idle || h.streams[s.name] != s || h.source != nil && h.source.Brings(s) {
		return
	}
	delete(h.streams, s.name)
	s.forget()
}

func (h *Hub) openLocked(n Name) *Stream {
	s := h.streams[n]
	if s == nil {
		s = newStream(n, h.cfg.Load(), &h.sum)
		h.streams[n] = s
	}
	return s
}

// Sweep ends the streams whose grace time is over, and holds the logs to what they may
// have together. It is to be called several times a second.
func (h *Hub) Sweep(now time.Time) {
	over := h.sum.bytes.Load() > h.cfg.Load().TotalBytes
	for _, s := range h.Streams() {
		if over {
			s.trim()
		}
		if !s.settle(now) {
			h.seek(s)
			continue
		}
		s.wake()
		h.Forget(s)
	}
}

// seek asks the source for a stream whose publisher has gone while readers are there:
// it may have come back on another node.
func (h *Hub) seek(s *Stream) {
	if h.source == nil || s.State() != Grace {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.readers.Load() > 0 {
		h.source.Want(s, Demand{})
	}
}

// Cleared returns how many bytes the logs have held that were cleared because their
// streams were over: who sees it grow by much may give memory back.
func (h *Hub) Cleared() int64 { return h.sum.cleared.Load() }

// Forget lets go of s if nobody publishes or reads it.
func (h *Hub) Forget(s *Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgetLocked(s)
}

// Streams returns all streams, those that are only waited for too, by name.
func (h *Hub) Streams() []*Stream {
	h.mu.RLock()
	out := make([]*Stream, 0, len(h.streams))
	for _, s := range h.streams {
		out = append(out, s)
	}
	h.mu.RUnlock()
	slices.SortFunc(out, func(a, b *Stream) int { return cmp.Compare(a.name, b.name) })
	return out
}

// Readers returns how many readers s has.
func (h *Hub) Readers(s *Stream) int { return int(s.readers.Load()) }

// Drain refuses all publishers from now on.
func (h *Hub) Drain() { h.draining.Store(true) }
