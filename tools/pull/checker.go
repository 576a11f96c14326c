package pull

import (
	"errors"

	"millrace/internal/flv"
	"millrace/tools/frames"
)

// Fault is what can be wrong with the frames of a viewer.
type Fault uint8

// The faults that a [Checker] finds.
const (
	Repeated     Fault = iota // a frame came twice
	Reordered                 // a frame came after a later one
	Missing                   // frames were left out, and what followed was no keyframe
	ClockBack                 // a tag's time was before that of the tag ahead of it
	ClockShifted              // a frame's time moved against the publisher's, and not at a skip
	NoHeader                  // a frame came before its track's sequence header
	NoKeyframe                // the first frame was no keyframe
	Damaged                   // a checksum or a size is wrong
	Unstamped                 // a frame without a stamp
	WrongStream               // a frame of another stream
	OldEpoch                  // a frame of an earlier publish
	faults                    // how many there are
)

// String returns the word used in reports.
func (f Fault) String() string {
	return [faults]string{
		"repeated", "reordered", "missing", "clock_back", "clock_shifted", "no_header",
		"no_keyframe_first", "damaged", "unstamped", "wrong_stream", "old_epoch",
	}[f]
}

// Faults counts by [Fault].
type Faults [faults]uint64

// Total returns how many faults there were.
func (f *Faults) Total() (n uint64) {
	for _, c := range f {
		n += c
	}
	return n
}

// Words returns the counts that are not zero.
func (f *Faults) Words() map[string]uint64 {
	out := map[string]uint64{}
	for i, c := range f {
		if c > 0 {
			out[Fault(i).String()] = c
		}
	}
	return out
}

// AnyStream lets a [Checker] take the stream of the first frame.
const AnyStream = -1

// Checker holds one viewer's tags against what a viewer was promised: every frame
// once, in order, clock never back, headers before frames, a keyframe first, and
// frames left out only up to a keyframe.
type Checker struct {
	Faults  Faults
	Skips   uint64 // times that the server went on at a later keyframe
	Skipped uint64 // frames left out so
	Frames  uint64
	Epochs  uint64 // times that the publisher began anew

	stream  int64 // expected, or AnyStream
	verify  bool
	video   bool // the stream has a video track, as far as is known
	started bool
	headerA bool
	headerV bool
	epoch   int64
	next    int64  // sequence expected
	seen    uint64 // bit i: the frame next-1-i came
	shift   uint32 // wire time less media time, modulo 2^32

	timed bool
	clock uint32 // time of the last tag, modulo 2^32 ms
}

// NewChecker returns a checker that wants frames of the given stream, or of one
// stream if that is AnyStream. verify says that the parser computes checksums.
func NewChecker(stream int64, verify bool) Checker {
	return Checker{stream: stream, verify: verify}
}

// Tag checks the next tag. ok says that it is a frame with a good stamp; key, that
// it is a keyframe or, without video, that a player can start with it.
func (c *Checker) Tag(t *Tag) (s frames.Stamp, key, ok bool) {
	_, flags := flv.Classify(t.Kind, t.Prefix)
	c.checkClock(t)
	switch {
	case t.Kind == flv.Script:
		return s, false, false
	case flags&flv.Header != 0:
		if t.Kind == flv.Video {
			c.headerV, c.video = true, true
		} else {
			c.headerA = true
		}
		return s, false, false
	case flags&flv.Frame == 0:
		return s, false, false
	}
	c.Frames++
	if t.Kind == flv.Video && !c.headerV || t.Kind == flv.Audio && !c.headerA {
		c.Faults[NoHeader]++
	}
	if t.Stamp < 0 {
		c.Faults[Unstamped]++
		return s, false, false
	}
	s, err := frames.Parse(t.Prefix[min(t.Stamp, len(t.Prefix)):])
	if errors.Is(err, frames.ErrNoStamp) {
		c.Faults[Unstamped]++
		return s, false, false
	}
	if err != nil || s.Size != t.Size || c.verify && s.Body != t.Sum {
		c.Faults[Damaged]++
		return s, false, false
	}
	if c.stream == AnyStream {
		c.stream = int64(s.Stream)
	}
	if c.stream != int64(s.Stream) {
		c.Faults[WrongStream]++
		return s, false, false
	}
	c.video = c.video || t.Kind == flv.Video
	key = flags&flv.Keyframe != 0 || !c.video
	c.checkOrder(s, t.Time-uint32(s.Media), key)
	return s, key, true
}

// checkClock wants times that never go back over all tags but scripts, since the
// generator sends them in order.
func (c *Checker) checkClock(t *Tag) {
	if t.Kind == flv.Script {
		return
	}
	if c.timed && int32(t.Time-c.clock) < 0 {
		c.Faults[ClockBack]++
	}
	c.clock, c.timed = t.Time, true
}

func (c *Checker) checkOrder(s frames.Stamp, shift uint32, key bool) {
	switch {
	case !c.started || s.Epoch > c.epoch:
		if c.started {
			c.Epochs++
		}
		if !key {
			c.Faults[NoKeyframe]++
		}
		c.started, c.epoch, c.shift = true, s.Epoch, shift
		c.next, c.seen = s.Seq+1, 1
		return
	case s.Epoch < c.epoch:
		c.Faults[OldEpoch]++
		return
	}
	if shift != c.shift && !(key && s.Seq > c.next) { // at a skip the clock may close up
		c.Faults[ClockShifted]++
	}
	c.shift = shift
	if behind := c.next - 1 - s.Seq; behind >= 0 {
		if behind >= 64 || c.seen>>behind&1 == 1 {
			c.Faults[Repeated]++
			return
		}
		c.seen |= 1 << behind
		c.Faults[Reordered]++
		return
	}
	gap := s.Seq - c.next
	switch {
	case gap > 0 && key:
		c.Skips++
		c.Skipped += uint64(gap)
	case gap > 0:
		c.Faults[Missing]++
	}
	c.seen = c.seen<<min(uint64(gap)+1, 64) | 1
	c.next = s.Seq + 1
}
