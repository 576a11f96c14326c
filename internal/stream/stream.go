// Package stream is the core of a node: the hub of its live streams.
//
// A [Stream] has one publisher slot and one bounded [Log] of immutable tags.
// Whoever feeds it holds a [Publisher]; whoever reads it holds a [Cursor], which
// is a place in the log and nothing else. There is no queue per reader: a reader
// that is slow falls behind in the log, and when it is too far behind its cursor
// jumps to the newest [StartPoint] and says so.
//
//	encoder ─▶ Publisher.Write ─▶ clock ─▶ Log ─▶ Cursor.Peek ─▶ player
//	                                        │ ├──▶ Cursor.Peek ─▶ player
//	                                        │ └──▶ …
//	                                        └ StartPoint: newest keyframe and the
//	                                          headers that are valid there
//
// The clock of a stream is continuous over restarts of its publisher, jumps and
// wraps. The life of a stream:
//
//	        publish             unpublish            grace time over
//	Idle ─────────────▶ Live ─────────────▶ Grace ─────────────────▶ Idle
//	                      ▲      publish      │
//	                      └───────────────────┘
//
// Readers stay attached in Grace and in Idle; those that were there when the
// grace time ended find their cursor [Cursor.Ended]. A reader that joins in Grace
// or Idle gets nothing old: it begins with the next publish.
//
// The package does no I/O, reads no clock (now is an argument) and starts
// nothing. Locks: Hub.mu → Stream.mu, never the other way round. Readers take
// neither.
package stream

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/flv"
	"millrace/internal/session"
)

// State is where a stream is in its life.
type State uint8

// The states of a stream.
const (
	Idle  State = iota // nobody publishes it
	Live               // somebody does
	Grace              // its publisher has gone and may come back
)

// String returns the word used in the API.
func (s State) String() string { return [...]string{"idle", "live", "grace"}[s] }

// Waiter is told that a stream has something new. Wake is called for every
// published tag and every change of state, by whoever caused it, and must return
// at once.
type Waiter interface{ Wake() }

// Stream is one live programme. Its readers use it through a Cursor.
type Stream struct {
	// Fixed at construction.
	name Name
	log  *Log

	// Safe from any goroutine.
	state   atomic.Uint32
	start   atomic.Pointer[StartPoint] // newest of the current publish
	ends    atomic.Uint64              // how often the grace time ended
	waiters atomic.Pointer[[]Waiter]
	rate    atomic.Int64 // bytes/s
	limits  atomic.Pointer[Config]
	seen    atomic.Uint32 // flv tracks seen in this publish: 1 audio, 2 video
	frame   atomic.Int64  // length of a frame in ms

	// Guarded by mu.
	mu         sync.Mutex
	owner      string     // of the newest publish
	pub        *Publisher // nil when not Live
	epoch      uint64
	graceUntil time.Time
	clock      clock
	headers    *HeaderSet
	keyed      bool         // this publish has shown a keyframe
	lastVideo  int64        // time of its newest picture
	codecs     [2]flv.Codec // of its newest audio and video tag
	stats      meter

	// Guarded by Hub.mu.
	readers int
}

const (
	seenAudio = 1 << iota
	seenVideo
)

func newStream(name Name, cfg *Config) *Stream {
	s := &Stream{name: name, log: newLog(), headers: &HeaderSet{}}
	s.limits.Store(cfg)
	s.waiters.Store(&[]Waiter{})
	s.frame.Store(defaultFrame)
	return s
}

// Name returns the name of the stream.
func (s *Stream) Name() Name { return s.name }

// State returns where the stream is in its life.
func (s *Stream) State() State { return State(s.state.Load()) }

// Head returns the sequence number that the next tag will have: as long as it
// does not change there is nothing new to read.
func (s *Stream) Head() uint64 { return s.log.next.Load() }

// Bitrate returns the measured rate in bytes per second, 0 until it is known.
func (s *Stream) Bitrate() int64 { return s.rate.Load() }

// Tracks returns which tracks the current publish has shown so far.
func (s *Stream) Tracks() (audio, video bool) {
	seen := s.seen.Load()
	return seen&seenAudio != 0, seen&seenVideo != 0
}

// Watch has w woken from now on, until Unwatch. The same w may be added once.
func (s *Stream) Watch(w Waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := append(slices.Clone(*s.waiters.Load()), w)
	s.waiters.Store(&next)
}

// Unwatch takes w off. A Wake that is under way may still reach it.
func (s *Stream) Unwatch(w Waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := slices.DeleteFunc(slices.Clone(*s.waiters.Load()), func(x Waiter) bool { return x == w })
	s.waiters.Store(&next)
}

func (s *Stream) wake() {
	for _, w := range *s.waiters.Load() {
		w.Wake()
	}
}

// begin gives the slot to a new publisher. An old one with the same owner loses it.
func (s *Stream) begin(now time.Time, owner string, by *session.Session) (*Publisher, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pub != nil {
		if s.owner != owner {
			return nil, ErrBusy
		}
		s.pub.lose(session.Displaced)
	}
	s.epoch++
	p := &Publisher{s: s, by: by, epoch: s.epoch, done: make(chan struct{})}
	s.pub, s.owner = p, owner
	s.headers = &HeaderSet{}
	s.start.Store(nil)
	s.seen.Store(0)
	s.keyed, s.lastVideo, s.codecs = false, -1, [2]flv.Codec{}
	s.clock.restart()
	s.stats.restart(now)
	s.state.Store(uint32(Live))
	return p, nil
}

// unpublish starts the grace time when p still has the slot.
func (s *Stream) unpublish(now time.Time, p *Publisher) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pub != p {
		return false
	}
	s.pub = nil
	s.start.Store(nil)
	s.graceUntil = now.Add(s.limits.Load().Grace)
	s.state.Store(uint32(Grace))
	s.rate.Store(0)
	return true
}

// endGrace ends the stream when its grace time is over and reports whether it did.
func (s *Stream) endGrace(now time.Time) bool {
	if s.State() != Grace {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.State() != Grace || now.Before(s.graceUntil) {
		return false
	}
	s.state.Store(uint32(Idle))
	s.ends.Add(1)
	s.owner = ""
	s.headers = &HeaderSet{}
	s.seen.Store(0)
	s.log.clear()
	return true
}

// publish puts one tag into the log. Only p, while it has the slot, gets through.
func (s *Stream) publish(now time.Time, p *Publisher, t flv.Tag) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pub != p {
		return p.lost()
	}
	s.stats.came(now, t, &s.rate)
	if r := s.refuse(t); r != session.None {
		s.stats.drops[r]++
		return nil
	}
	dts, repaired := s.clock.stamp(t)
	if repaired != session.None {
		s.stats.drops[repaired]++
	}
	s.frame.Store(s.clock.step())
	t.DTS = dts
	flv.SetTime(t.Wire, dts)
	s.noteTrack(t)
	if t.Is(flv.Header) || t.Is(flv.Metadata) {
		s.headers = s.headers.with(t)
	}
	if s.startsAt(t) {
		// Before the tag is readable, or a waiting cursor could pass it by.
		s.start.Store(&StartPoint{Seq: s.log.next.Load(), DTS: dts, Headers: s.headers})
	}

	keep := s.log.next.Load()
	if sp := s.start.Load(); sp != nil {
		keep = sp.Seq
	}
	cfg := s.limits.Load()
	s.log.append(t, s.headers, keep, dts-cfg.LogDuration.Milliseconds(), cfg.LogBytes)
	return nil
}

// refuse returns why a tag cannot go into the log.
func (s *Stream) refuse(t flv.Tag) session.Reason {
	switch {
	case t.Kind != flv.Script && len(t.Payload()) == 0:
		return session.BadTag
	case t.Kind == flv.Video && t.Is(flv.Frame) && !t.Is(flv.Keyframe) && !s.keyed:
		return session.BeforeKeyframe
	}
	return session.None
}

func (s *Stream) noteTrack(t flv.Tag) {
	if !t.Is(flv.Frame) && !t.Is(flv.Header) {
		return
	}
	bit, codec := uint32(seenVideo), &s.codecs[1]
	if t.Kind == flv.Audio {
		bit, codec = seenAudio, &s.codecs[0]
	}
	*codec = t.Codec
	if seen := s.seen.Load(); seen&bit == 0 {
		s.seen.Store(seen | bit)
	}
}

// audioStart is how far apart the start points of a stream without video are, in
// ms: a joiner gets up to that much sound to begin with.
const audioStart = 500

// startsAt reports whether a reader may begin at t: at a keyframe, and in a
// publish that has shown no video so far at an audio frame now and then. Several
// tags of one picture make one start point.
func (s *Stream) startsAt(t flv.Tag) bool {
	if !t.Is(flv.Frame) {
		return false
	}
	sp := s.start.Load()
	if t.Kind == flv.Audio {
		return s.seen.Load()&seenVideo == 0 && (sp == nil || t.DTS-sp.DTS >= audioStart)
	}
	samePicture := s.lastVideo == t.DTS
	s.lastVideo = t.DTS
	key := t.Is(flv.Keyframe)
	if !samePicture {
		s.stats.picture(t.DTS, key)
	}
	s.keyed = s.keyed || key
	return key && !(samePicture && sp != nil && sp.DTS == t.DTS)
}
