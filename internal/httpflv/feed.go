package httpflv

import (
	"math"
	"sync/atomic"
	"time"

	"millrace/internal/flv"
	"millrace/internal/stream"
)

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// feed is one stream as a shard sees it: its viewers there, and the rhythm in which
// they are flushed.
type feed struct {
	// Fixed at construction.
	stream *stream.Stream
	shard  *shard

	// Owned by the shard.
	viewers  []*viewer // nil where one left during a visit
	cur      stream.Cursor
	pace     pace
	arrived  uint64        // how often there was something new
	due      time.Duration // when a viewer's patience ends; never: for none
	oldest   time.Duration // no viewer that is not blocked had all later than this
	waiting  int           // viewers without anything to play yet
	video    time.Duration // when the last video frame was seen
	joined   uint32        // how many ever joined, for their phases
	unsent   int           // bound of the unsent bytes of its viewers' sockets
	at       int           // index in shard.feeds
	visiting bool
	holes    bool

	// Safe from any goroutine.
	dirty   atomic.Bool // the stream has something that the shard has not looked at
	picture atomic.Bool // nothing is sent between two pictures
}

// Wake implements [stream.Waiter].
func (f *feed) Wake() {
	if f.dirty.Load() {
		return // the shard has yet to look, and will
	}
	f.dirty.Store(true)
	f.shard.wake()
}

// AwaitsPicture implements [stream.PictureWaiter].
func (f *feed) AwaitsPicture() bool { return f.picture.Load() }

// soundOnly is how long there must be no video for audio frames to be the beat.
const soundOnly = time.Second

// observe reads the stream's new tags, for their rhythm only.
func (f *feed) observe(now, interval time.Duration, tags []flv.Tag) {
	var beats, sounds uint64
	for {
		n := f.cur.Peek(tags)
		for i := range n {
			switch t := &tags[i]; {
			case !t.Is(flv.Frame):
			case t.Kind == flv.Video:
				beats++
			case t.Kind == flv.Audio:
				sounds++
			}
		}
		f.cur.Advance(n)
		if n < len(tags) {
			break
		}
	}
	switch {
	case beats > 0:
		f.video = now
	case sounds > 0 && now-f.video > soundOnly:
		beats = sounds
	}
	f.pace.arrive(now, beats)
	f.pace.plan(interval)
	f.picture.Store(f.pace.spans(interval) && now-f.video <= soundOnly)
}

// nothingYet reports that what is new is nobody's turn, and that nobody has waited
// enough: the common case between two frames, and then the viewers are not even
// looked at.
func (f *feed) nothingYet(now time.Duration) bool {
	if f.pace.fresh > 0 || f.waiting > 0 || f.stream.State() == stream.Idle {
		return false
	}
	f.due = min(f.due, f.oldest+f.pace.hold)
	return now < f.due
}

// add takes in a viewer.
func (f *feed) add(v *viewer) {
	v.feed, v.at, v.phase = f, len(f.viewers), phaseOf(f.joined)
	f.joined++
	f.viewers = append(f.viewers, v)
	if !v.begun {
		f.waiting++
	}
}

// remove lets a viewer go. During a visit the others keep their places.
func (f *feed) remove(v *viewer) {
	if !v.begun {
		f.waiting--
	}
	if f.visiting {
		f.viewers[v.at] = nil
		f.holes = true
		return
	}
	last := len(f.viewers) - 1
	f.viewers[v.at] = f.viewers[last]
	f.viewers[v.at].at = v.at
	f.viewers[last] = nil
	f.viewers = f.viewers[:last]
}

// compact closes the holes that a visit left.
func (f *feed) compact() {
	f.visiting = false
	if !f.holes {
		return
	}
	f.holes = false
	kept := f.viewers[:0]
	for _, v := range f.viewers {
		if v != nil {
			v.at = len(kept)
			kept = append(kept, v)
		}
	}
	clear(f.viewers[len(kept):])
	f.viewers = kept
}
