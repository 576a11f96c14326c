package stream

import (
	"millrace/internal/flv"
	"millrace/internal/session"
)

// Bounds of what counts as the same clock. A step further than that, in either
// direction, is a jump: the publisher's clock restarted, or lost its high bits.
const (
	maxStepAhead = 10_000 // ms
	maxStepBack  = 1_000  // ms
	defaultFrame = 33     // ms, until a frame's length is known
)

// clock maps the times that publishers send to the one clock of a stream, which
// never goes back within a track and never restarts:
//
//	publisher 1   0 ─────────▶ 9000        publisher 2   500000 ─────▶
//	                              │ gap of one frame │
//	stream        0 ─────────▶ 9000 ───▶ 9033 ───────────────────────▶
//
// Audio and video share one offset, so that they stay together, but each track
// finds a jump in its own times: the other track's tags before and after the jump
// may stand in between.
type clock struct {
	tracks [2]track
	offset int64 // the newest offset; a track that jumps looks here first
	newest int64 // the highest time given out
	frame  int64 // length of a frame
	begun  bool  // a tag was mapped, ever
}

type track struct {
	raw     int64 // last time the publisher sent, unwrapped over 32 bits
	out     int64 // last time given out
	offset  int64 // out - raw
	begun   bool  // a tag was mapped since the publish began
	everOut bool  // out is valid
	renewed bool  // a publish began, on the same clock, and no tag of it was mapped yet
}

// restart is called when a new publish begins.
func (c *clock) restart() {
	for i := range c.tracks {
		c.tracks[i].begun = false
	}
}

// resume is called when the publish goes on, with times that are on this clock.
func (c *clock) resume() {
	for i := range c.tracks {
		if t := &c.tracks[i]; t.everOut {
			t.raw, t.offset, t.begun = t.out, 0, true
		}
	}
	c.offset = 0
}

// maps reports whether the publisher's times are changed, or will be: a publish that
// has just begun goes on behind the one before.
func (c *clock) maps() bool {
	return c.begun && (c.offset != 0 || !c.tracks[0].begun && !c.tracks[1].begun)
}

// renew is called when a new publish begins that goes on on the same clock: its headers
// come behind all there was, like those of any other.
func (c *clock) renew() {
	for i := range c.tracks {
		c.tracks[i].renewed = true
	}
}

// fits reports whether out can follow the last time of the track.
func (t *track) fits(out int64) bool {
	return !t.everOut || out >= t.out-maxStepBack && out <= t.out+maxStepAhead
}

// stamp maps the raw time of a tag. The reason is None when the time was as
// expected, ClockRepaired when a small step back was held, and ClockJump when the
// publisher's clock jumped. Only frames move the clock: metadata and sequence
// headers often carry a time of 0, also in mid-stream, and get the newest time of
// their track, or of all when they begin it.
func (c *clock) stamp(tag flv.Tag) (int64, session.Reason) {
	t := &c.tracks[0]
	if tag.Kind == flv.Audio {
		t = &c.tracks[1]
	}
	if !tag.Is(flv.Frame) {
		if tag.Kind != flv.Script && t.begun && !t.renewed {
			return t.out, session.None
		}
		return c.newest, session.None
	}
	raw := tag.DTS
	if t.begun {
		raw = t.raw + int64(int32(uint32(raw)-uint32(t.raw)))
	} else if o := c.other(t); o.begun {
		raw = o.raw + int64(int32(uint32(raw)-uint32(o.raw)))
	}

	reason := session.None
	switch {
	case t.begun && t.fits(raw+t.offset) && !c.joinsOther(t, raw):
	case c.followsOther(t, raw):
		t.offset = c.offset
	case !c.begun:
		c.offset = 0 // the first publish keeps its own clock
		t.offset = 0
	default:
		if t.begun {
			reason = session.ClockJump
		}
		c.offset = c.newest + c.step() - raw
		t.offset = c.offset
	}
	out := raw + t.offset
	if t.everOut && out < t.out {
		out = t.out
		if reason == session.None {
			reason = session.ClockRepaired
		}
	}
	if t == &c.tracks[0] || !c.tracks[0].everOut {
		if d := out - t.out; t.everOut && d > 0 && d <= 200 && t.begun {
			c.frame = d
		}
	}
	t.raw, t.out, t.begun, t.everOut, t.renewed = raw, out, true, true, false
	c.newest = max(c.newest, out)
	c.begun = true
	return out, reason
}

func (c *clock) other(t *track) *track {
	if t == &c.tracks[0] {
		return &c.tracks[1]
	}
	return &c.tracks[0]
}

// followsOther reports whether the other track has found the offset that fits this
// one: it began first, or jumped first.
func (c *clock) followsOther(t *track, raw int64) bool {
	o := c.other(t)
	if !o.begun || o.offset != c.offset {
		return false
	}
	out := raw + c.offset
	return t.fits(out) && out >= o.out-maxStepAhead && out <= o.out+maxStepAhead
}

// joinsOther reports whether the other track has jumped, and this one is behind the same
// jump although it would be none for it alone: a hole of about maxStepAhead. A tag from
// before the jump is nearer to the other track as it is.
func (c *clock) joinsOther(t *track, raw int64) bool {
	if t.offset == c.offset || !c.followsOther(t, raw) {
		return false
	}
	at := c.other(t).out
	return max(raw+c.offset-at, at-raw-c.offset) < max(raw+t.offset-at, at-raw-t.offset)
}

// step is how far the clock moves over a gap.
func (c *clock) step() int64 {
	if c.frame == 0 {
		return defaultFrame
	}
	return c.frame
}
