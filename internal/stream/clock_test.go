package stream

import (
	"fmt"
	"testing"

	"millrace/internal/flv"
	"millrace/internal/session"
)

type stamped struct {
	kind flv.Kind
	raw  uint32
	want int64
	why  session.Reason
}

func frameAt(kind flv.Kind, raw uint32) flv.Tag {
	tag := flv.Tag{Kind: kind, DTS: int64(raw)}
	if kind != flv.Script {
		tag.Flags = flv.Frame
	}
	return tag
}

func runClock(t *testing.T, c *clock, in []stamped) {
	t.Helper()
	for i, x := range in {
		got, why := c.stamp(frameAt(x.kind, x.raw))
		if got != x.want || why != x.why {
			t.Errorf("tag %d (%v at %d): got %d, %v; want %d, %v", i, x.kind, x.raw, got, why, x.want, x.why)
		}
	}
}

func TestClockWithinAPublish(t *testing.T) {
	const v, a = flv.Video, flv.Audio
	ok, held, jump := session.None, session.ClockRepaired, session.ClockJump
	tests := map[string][]stamped{
		"audio ahead of video stays ahead": {
			{a, 500, 500, ok}, {v, 0, 0, ok}, {a, 523, 523, ok}, {v, 40, 40, ok}, {v, 80, 80, ok},
		},
		"equal times are legal": {{v, 0, 0, ok}, {v, 0, 0, ok}, {v, 40, 40, ok}, {v, 40, 40, ok}},
		"a small step back is held": {
			{v, 100, 100, ok}, {v, 60, 100, held}, {v, 140, 140, ok},
		},
		"low 24 bits only": {
			{v, 1<<24 - 40, 1<<24 - 40, ok},
			{a, 1<<24 - 20, 1<<24 - 20, ok},
			{v, 0, 1<<24 + 13, jump},
			{a, 3, 1<<24 + 16, ok},
			{v, 40, 1<<24 + 53, ok},
		},
		"restart in the middle, tracks interleaved": {
			{v, 9000, 9000, ok},
			{a, 9010, 9010, ok},
			{v, 9040, 9040, ok},
			{a, 10, 9080, jump},
			{v, 9080, 9080, ok},
			{v, 40, 9110, ok},
			{a, 33, 9103, ok},
		},
		"an hour ahead": {
			{v, 0, 0, ok}, {v, 40, 40, ok}, {v, 3_600_000, 80, jump}, {v, 3_600_040, 120, ok},
		},
		"a hole that is a jump for one track only": {
			{v, 0, 0, ok},
			{a, 20, 20, ok},
			{v, 10_030, 53, jump},
			{a, 30, 30, ok},
			{a, 10_015, 38, ok},
			{v, 10_070, 93, ok},
			{a, 10_060, 83, ok},
		},
		"script data without a time": {
			{flv.Script, 0, 0, ok}, {v, 5000, 5000, ok}, {flv.Script, 0, 5000, ok}, {v, 5040, 5040, ok},
		},
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			var c clock
			c.restart()
			runClock(t, &c, in)
		})
	}
}

func TestHeadersDoNotMoveTheClock(t *testing.T) {
	var c clock
	c.restart()
	header := flv.Tag{Kind: flv.Video, Flags: flv.Header}
	runClock(t, &c, []stamped{{flv.Video, 9000, 9000, 0}, {flv.Audio, 9500, 9500, 0}})
	if got, why := c.stamp(header); got != 9000 || why != session.None {
		t.Errorf("a header at 0 in mid-stream: %d, %v; want 9000", got, why)
	}
	runClock(t, &c, []stamped{{flv.Video, 9040, 9040, 0}})

	c.restart() // a new publish: its headers come after all that was before
	if got, why := c.stamp(header); got != 9500 || why != session.None {
		t.Errorf("the header of a new publish: %d, %v; want 9500", got, why)
	}
}

// TestClockFromAwkwardStarts runs the same ten seconds from every start at which a
// counter of some width wraps.
func TestClockFromAwkwardStarts(t *testing.T) {
	for _, start := range []uint32{0, 1, 1<<24 - 100, 1<<24 - 1, 1 << 24, 1<<31 - 40, 1 << 31, 1<<32 - 1000, 1<<32 - 40, 1<<32 - 1} {
		t.Run(fmt.Sprint(start), func(t *testing.T) {
			var c clock
			c.restart()
			for i := range uint32(250) {
				at := start + 40*i
				if got, why := c.stamp(frameAt(flv.Video, at)); got != int64(start)+40*int64(i) || why != session.None {
					t.Fatalf("video %d: got %d, %v", i, got, why)
				}
				if got, why := c.stamp(frameAt(flv.Audio, at+7)); got != int64(start)+40*int64(i)+7 || why != session.None {
					t.Fatalf("audio %d: got %d, %v", i, got, why)
				}
			}
		})
	}
}

func TestClockOverRestartsOfThePublisher(t *testing.T) {
	const v, a = flv.Video, flv.Audio
	for _, again := range []uint32{0, 500_000, 1<<24 - 20, 1<<32 - 20} {
		t.Run(fmt.Sprint(again), func(t *testing.T) {
			var c clock
			c.restart()
			runClock(t, &c, []stamped{{v, 0, 0, 0}, {a, 5, 5, 0}, {v, 40, 40, 0}, {a, 28, 28, 0}, {v, 80, 80, 0}})
			c.restart()
			runClock(t, &c, []stamped{
				{a, again, 120, 0}, {v, again + 15, 135, 0}, {a, again + 23, 143, 0}, {v, again + 55, 175, 0},
			})
			c.restart()
			runClock(t, &c, []stamped{{v, 7, 215, 0}, {a, 7, 215, 0}})
		})
	}
}
