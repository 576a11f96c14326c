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
	// media time; the newest GOP is kept besides. At least ViewerDelay.
	LogDuration time.Duration
	// LogBytes bounds the log of one stream whatever its duration. A GOP that is
	// bigger has no start point until it is over.
	LogBytes int64
	// Grace is how long a stream lives on without its publisher.
	Grace time.Duration
	// MaxStreams bounds how many streams the node has.
	MaxStreams int
	// ViewerDelay is how far behind in media time a reader may be before it skips.
	ViewerDelay time.Duration
	// ViewerBytes is how far behind in bytes a reader may be before it skips.
	ViewerBytes int64
}

// DefaultConfig returns the settings of a node without a configuration.
func DefaultConfig() Config {
	return Config{
		LogDuration: 5 * time.Second,
		LogBytes:    32 << 20,
		Grace:       15 * time.Second,
		MaxStreams:  10_000,
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
	case c.ViewerBytes < 64<<10 || c.ViewerBytes > c.LogBytes:
		return fmt.Errorf("viewer_bytes is %d: use 64 KiB to log_bytes (%d)", c.ViewerBytes, c.LogBytes)
	case c.Grace < 0 || c.Grace > 10*time.Minute:
		return fmt.Errorf("grace is %v: use 0s to 10m", c.Grace)
	case c.MaxStreams < 1 || c.MaxStreams > 1_000_000:
		return fmt.Errorf("max_streams is %d: use 1 to 1000000", c.MaxStreams)
	}
	return nil
}

// Hub has the streams of a node. All methods may be called from any goroutine.
type Hub struct {
	// Safe from any goroutine.
	cfg      atomic.Pointer[Config]
	draining atomic.Bool

	// Guarded by mu.
	mu      sync.RWMutex
	streams map[Name]*Stream
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
	if h.draining.Load() {
		return nil, ErrDraining
	}
	h.mu.Lock()
	s, err := h.openLocked(n)
	if err != nil {
		h.mu.Unlock()
		return nil, err
	}
	p, err := s.begin(now, owner, by)
	h.mu.Unlock()
	if err != nil {
		return nil, err
	}
	s.wake()
	return p, nil
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
// publishes is made, for a reader that is willing to wait. Each Attach needs one
// Detach.
func (h *Hub) Attach(n Name) (*Stream, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.openLocked(n)
	if err != nil {
		return nil, err
	}
	s.readers++
	return s, nil
}

// Detach takes a reader off s.
func (h *Hub) Detach(s *Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.readers--
	if s.readers == 0 && s.State() == Idle {
		delete(h.streams, s.name)
	}
}

func (h *Hub) openLocked(n Name) (*Stream, error) {
	if s := h.streams[n]; s != nil {
		return s, nil
	}
	cfg := h.cfg.Load()
	if len(h.streams) >= cfg.MaxStreams {
		return nil, ErrTooManyStreams
	}
	s := newStream(n, cfg)
	h.streams[n] = s
	return s, nil
}

// Sweep ends the streams whose grace time is over. It is to be called several
// times a second.
func (h *Hub) Sweep(now time.Time) {
	for _, s := range h.Streams() {
		if !s.endGrace(now) {
			continue
		}
		s.wake()
		h.mu.Lock()
		if s.readers == 0 && s.State() == Idle {
			delete(h.streams, s.name)
		}
		h.mu.Unlock()
	}
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
func (h *Hub) Readers(s *Stream) int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return s.readers
}

// Drain refuses all publishers from now on.
func (h *Hub) Drain() { h.draining.Store(true) }
