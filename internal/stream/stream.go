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
// grace time ended find their cursor [Cursor.Ended] when they have read the rest. A
// reader that joins in Grace or Idle gets nothing old: it begins with the next publish.
//
// What comes from other nodes comes by one way and then by another. [Hub.Continue] gives
// the slot to who brings the same publish again, with what readers have had of it, and
// refuses one that is older.
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

// PictureWaiter is a [Waiter] that may have no use for sound alone.
type PictureWaiter interface {
	Waiter
	// AwaitsPicture reports whether w does nothing with a frame of sound before the
	// next picture comes. It is called from any goroutine, and must return at once.
	AwaitsPicture() bool
}

// Stream is one live programme. Its readers use it through a Cursor.
type Stream struct {
	// Fixed at construction.
	name Name
	log  *Log
	sum  *tally // of all streams of the hub

	// Safe from any goroutine.
	state   atomic.Uint32
	start   atomic.Pointer[StartPoint] // newest of the current publish
	ends    atomic.Uint64              // how often the grace time ended
	since   atomic.Uint64              // the first sequence number since then, or of the newest publish or clock
	waiters atomic.Pointer[[]Waiter]
	rate    atomic.Int64 // bytes/s
	limits  atomic.Pointer[Config]
	clockID atomic.Pointer[string]
	epoch   atomic.Int64  // when the newest publish began at its origin, Unix ms
	failure atomic.Uint32 // why it did not come, a session.Reason
	seen    atomic.Uint32 // flv tracks seen in this publish: 1 audio, 2 video
	frame   atomic.Int64  // length of a frame in ms
	readers atomic.Int32  // changed with Hub.mu held

	// Guarded by mu.
	mu         sync.Mutex
	owner      string     // of the newest publish
	pub        *Publisher // nil when not Live
	publishes  uint64     // how many there were
	graceUntil time.Time
	restUntil  time.Time // when Idle: how long readers may read what is left
	clock      clock
	headers    *HeaderSet
	keyed      bool         // this publish has shown a keyframe
	lastVideo  int64        // time of its newest picture
	codecs     [2]flv.Codec // of its newest audio and video tag
	stats      meter
	counted    int64     // of the log, in sum
	born       time.Time // when the first tag came
}

const (
	seenAudio = 1 << iota
	seenVideo
)

func newStream(name Name, cfg *Config, sum *tally) *Stream {
	s := &Stream{name: name, log: newLog(), sum: sum, headers: &HeaderSet{}}
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

// Epoch returns when the newest publish began at its origin, in Unix milliseconds.
// Of two publishes of one name the one with the higher epoch is the newer.
func (s *Stream) Epoch() int64 { return s.epoch.Load() }

// Clock names the clock that the times of the stream are on; empty if it has no name.
// Two nodes whose streams have the same clock give a frame the same time.
func (s *Stream) Clock() string {
	if id := s.clockID.Load(); id != nil {
		return *id
	}
	return ""
}

// Newest returns the time of the newest tag, and whether there is one.
func (s *Stream) Newest() (int64, bool) {
	e := s.log.window.Load().last()
	if e == nil {
		return 0, false
	}
	return e.tag.DTS, true
}

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

// AwaitsPicture reports whether none of the readers does anything with a frame of sound
// before the next picture comes. Who feeds the stream may hold sound back as long.
func (s *Stream) AwaitsPicture() bool {
	for _, w := range *s.waiters.Load() {
		if p, ok := w.(PictureWaiter); !ok || !p.AwaitsPicture() {
			return false
		}
	}
	return true
}

// begin gives the slot to a new publisher. An old one with the same owner loses it.
// epoch is [newEpoch] for a publish that begins here.
func (s *Stream) begin(now time.Time, owner string, epoch int64, by *session.Session) (*Publisher, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := s.epoch.Load()
	switch {
	case s.pub != nil && s.owner != owner && s.owner != PullOwner:
		return nil, ErrBusy
	case epoch > 0 && epoch < newest && s.State() != Idle:
		return nil, ErrOlder
	case s.pub != nil:
		s.pub.last.Store(s.log.next.Load() + 1)
		s.pub.lose(session.Displaced)
	}
	resumed := epoch > 0 && epoch == newest && s.State() != Idle && s.since.Load() < s.log.next.Load() &&
		s.log.window.Load().last() != nil
	p := &Publisher{s: s, by: by, resumed: resumed, done: make(chan struct{})}
	s.pub, s.owner = p, owner
	if resumed {
		s.clock.resume()
	} else {
		if epoch == newEpoch {
			epoch = max(now.UnixMilli(), newest+1)
		}
		s.publishes++
		s.clearLocked(epoch)
		s.clock.restart()
		s.stats.restart(now)
	}
	s.failure.Store(uint32(session.None))
	if s.State() == Idle {
		s.sum.taken.Add(1)
	}
	s.state.Store(uint32(Live))
	return p, nil
}

// clearLocked forgets what belonged to the publish before.
func (s *Stream) clearLocked(epoch int64) {
	s.epoch.Store(epoch)
	s.since.Store(s.log.next.Load())
	s.headers = &HeaderSet{Epoch: epoch}
	s.start.Store(nil)
	s.seen.Store(0)
	s.keyed, s.lastVideo, s.codecs = false, -1, [2]flv.Codec{}
}

func (s *Stream) setClock(p *Publisher, name, mapped string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.pub != p:
		return
	case s.clock.maps():
		name = mapped
	}
	s.clockID.Store(&name)
}

func (s *Stream) setEpoch(p *Publisher, epoch int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pub == p && s.epoch.Load() != epoch {
		s.epoch.Store(epoch)
		next := *s.headers
		next.Epoch = epoch
		s.headers = &next
	}
}

// renew is [Publisher.Renew].
func (s *Stream) renew(p *Publisher, epoch int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pub == p {
		s.clearLocked(epoch)
		s.clock.renew()
	}
}

// pause is [Publisher.Pause].
func (s *Stream) pause(p *Publisher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pub == p {
		s.start.Store(nil)
	}
}

// Past returns what the log has of the newest publish: first the headers that are valid
// at its end, then its tags, the oldest first.
func (s *Stream) Past() []flv.Tag {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []flv.Tag
	for i := 0; ; i++ {
		t, ok := s.headers.missing(nil, i)
		if !ok {
			break
		}
		out = append(out, t)
	}
	w := s.log.window.Load()
	for seq := max(w.first, s.since.Load()); seq < s.log.next.Load(); seq++ {
		if e := w.at(seq); e != nil {
			out = append(out, e.tag)
		}
	}
	return out
}

// Quiet returns for how long nothing has come, ok false if the log has nothing.
func (s *Stream) Quiet(now time.Time) (d time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.stats.newest), s.log.window.Load().last() != nil
}

// unpublish starts the grace time when p still has the slot.
func (s *Stream) unpublish(now time.Time, p *Publisher) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pub != p {
		return false
	}
	p.last.Store(s.log.next.Load() + 1)
	s.pub = nil
	s.start.Store(nil)
	s.graceUntil = now.Add(s.limits.Load().Grace)
	s.state.Store(uint32(Grace))
	s.rate.Store(0)
	if s.readers.Load() == 0 {
		s.forgetLocked()
	}
	return true
}

// settle does what is due by time and reports whether that was something: it ends the
// stream when its grace time is over, and then what its readers have left unread.
func (s *Stream) settle(now time.Time) bool {
	if s.State() == Live {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.State() {
	case Grace:
		if now.Before(s.graceUntil) {
			return false
		}
		s.endLocked(now)
	case Idle:
		if now.Before(s.restUntil) || s.log.cost() == 0 {
			return false
		}
		s.forgetLocked()
	}
	return true
}

// end ends the stream if nobody has it.
func (s *Stream) end(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pub == nil && s.State() == Grace {
		s.endLocked(now)
	}
}

// endLocked ends the stream. Its readers may be some tags behind, and up to the delay
// that they are allowed.
func (s *Stream) endLocked(now time.Time) {
	s.since.Store(s.log.next.Load())
	s.ends.Add(1)
	s.state.Store(uint32(Idle))
	s.sum.taken.Add(-1)
	s.owner = ""
	s.seen.Store(0)
	s.restUntil = now.Add(s.limits.Load().ViewerDelay)
	if s.readers.Load() == 0 {
		s.forgetLocked()
	}
}

// forget lets go of what is left of a stream that is over.
func (s *Stream) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.State() == Idle {
		s.forgetLocked()
	}
}

// forgetLocked lets go of all tags.
func (s *Stream) forgetLocked() {
	s.headers = &HeaderSet{}
	s.sum.cleared.Add(s.log.cost())
	s.log.clear()
	s.countLocked()
}

// trim holds the log to what it may have by now. Tags that come do that too, but a
// stream that shows nothing has none.
func (s *Stream) trim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.trim(s.sum.share(s.limits.Load()))
	s.countLocked()
}

// countStep is by how much a log grows before that is added to the sum of all.
const countStep = 64 << 10

// countLocked keeps the sum of all logs up to date.
func (s *Stream) countLocked() {
	cost := s.log.cost()
	if d := cost - s.counted; d < 0 || d >= countStep || cost == 0 {
		s.sum.bytes.Add(d)
		s.counted = cost
	}
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
	if repaired == session.ClockJump && s.clockID.Swap(nil) != nil {
		// It is another clock now, that has no name. Who was elsewhere on the old one would
		// take what comes behind the hole for what it has, if it began before the hole.
		s.since.Store(s.log.next.Load())
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
	if s.born.IsZero() {
		s.born = now
	}
	came, age := now.Sub(s.born).Milliseconds(), cfg.LogDuration.Milliseconds()
	s.log.append(t, s.headers, came, bounds{keep: keep, minDTS: dts - age, minCame: came - age, bytes: s.sum.share(cfg)})
	s.countLocked()
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
