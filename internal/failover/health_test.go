package failover

import (
	"testing"
	"time"

	"millrace/internal/flv"
)

// watch feeds a Health with a stream of 25 pictures and 43 sounds a second. arrives
// says when what has the time dts comes, in ms; a negative time is never.
func watch(h *Health, from, to int, arrives func(dts int) int, verdict func(ms int)) {
	type event struct{ at, dts, track int }
	var events []event
	for dts := from; dts < to; dts++ {
		switch at := arrives(dts); {
		case at < 0:
		case dts%40 == 0:
			events = append(events, event{at, dts, video})
		case dts%23 == 0:
			events = append(events, event{at, dts, audio})
		}
	}
	for ms := from; ms < to; ms += 10 {
		for len(events) > 0 && events[0].at <= ms {
			e := events[0]
			events = events[1:]
			t := flv.Tag{Kind: flv.Video, DTS: int64(e.dts), Flags: flv.Frame}
			if e.track == audio {
				t.Kind = flv.Audio
			}
			h.Came(at(e.at), t)
		}
		verdict(ms)
	}
}

func TestVerdicts(t *testing.T) {
	live := func(dts int) int { return dts }
	for _, c := range []struct {
		name    string
		arrives func(dts int) int
		link    int             // ms between link tags; 0: none
		silent  int             // when link tags end; 0: never
		idle    func(int) bool  // what they say
		want    map[int]Verdict // from when on which verdict holds, at the least until the next
		by      int             // ms by which it may be late in noticing
	}{
		{name: "live", arrives: live, want: map[int]Verdict{0: Good}},
		{name: "a burst, then live", arrives: func(dts int) int { return max(dts, 4000) }, want: map[int]Verdict{0: Silent, 4000: Good}, by: 1010},
		{
			name: "at 0.6 from 5 s on", arrives: func(dts int) int {
				if dts < 5000 {
					return dts
				}
				return 5000 + (dts-5000)*10/6
			}, want: map[int]Verdict{0: Good, 5000: Slow}, by: 800,
		},
		{
			name: "the same, and the link says that the source is", arrives: func(dts int) int {
				if dts < 5000 {
					return dts
				}
				return 5000 + (dts-5000)*10/6
			}, link: 250, idle: func(int) bool { return true }, want: map[int]Verdict{0: Good, 5000: SourceIdle}, by: 800,
		},
		{
			name: "silence of a foreign server", arrives: func(dts int) int {
				if dts >= 5000 {
					return -1
				}
				return dts
			}, want: map[int]Verdict{0: Good, 5250: Slow, 6000: Silent}, by: 60,
		},
		{
			name: "silence of a link", arrives: func(dts int) int {
				if dts >= 5000 {
					return -1
				}
				return dts
			}, link: 250, silent: 5001, idle: func(int) bool { return false },
			want: map[int]Verdict{0: Good, 5250: Slow, 5600: Silent}, by: 60,
		},
		{
			name: "silence of the source", arrives: func(dts int) int {
				if dts >= 5000 {
					return -1
				}
				return dts
			}, link: 250, idle: func(ms int) bool { return ms >= 5000 }, want: map[int]Verdict{0: Good, 5250: SourceIdle}, by: 60,
		},
		{
			name: "behind for ever is forgotten", arrives: func(dts int) int {
				if dts < 3000 {
					return dts
				}
				return dts + 800
			}, want: map[int]Verdict{0: Good, 3240: Slow, 12_000: Good}, by: 60,
		},
		{
			name: "pictures are missing", arrives: func(dts int) int {
				if dts >= 10_000 && dts%40 == 0 && dts%120 != 0 {
					return -1
				}
				return dts
			}, want: map[int]Verdict{0: Good, 10_000: Thin}, by: 3100,
		},
		{
			name: "the clock jumps", arrives: live, want: map[int]Verdict{0: Good},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := DefaultConfig()
			h := NewHealth(&cfg, at(0))
			if v := h.Verdict(at(0)); v != Starting {
				t.Fatalf("at first: %v", v)
			}
			want, since := Good, 0
			watch(h, 0, 20_000, c.arrives, func(ms int) {
				if c.link > 0 && ms%c.link == 0 && (c.silent == 0 || ms < c.silent) {
					h.Alive(at(ms), c.idle(ms))
				}
				if w, ok := c.want[ms]; ok {
					want, since = w, ms
				}
				if v := h.Verdict(at(ms)); v != want && ms > since+c.by && ms > 100 {
					t.Fatalf("at %d ms: %v, want %v since %d: %+v", ms, v, want, since, h.Figures(at(ms)))
				}
			})
		})
	}
}

// TestUsualGaps: after some bursts, the pause between them is neither slow nor silent.
func TestUsualGaps(t *testing.T) {
	cfg := DefaultConfig()
	h := NewHealth(&cfg, at(0))
	bad := 0
	watch(h, 0, 60_000, func(dts int) int { return burst(int64(dts)) }, func(ms int) {
		if v := h.Verdict(at(ms)); ms > 15_000 && v != Good {
			bad++
		}
	})
	if bad > 0 {
		t.Errorf("not good for %d ms: %+v", bad*10, h.Figures(at(60_000)))
	}
	if v := h.Verdict(at(66_000)); v != Silent {
		t.Errorf("after twice the usual pause: %v", v)
	}
}

// TestClockJump: a connection whose clock restarts is measured anew.
func TestClockJump(t *testing.T) {
	cfg := DefaultConfig()
	h := NewHealth(&cfg, at(0))
	watch(h, 0, 5000, func(dts int) int { return dts }, func(int) {})
	for ms := 5000; ms < 15_000; ms += 40 {
		h.Came(at(ms), flv.Tag{Kind: flv.Video, DTS: int64(ms) - 1_000_000, Flags: flv.Frame})
		if v := h.Verdict(at(ms)); v != Good {
			t.Fatalf("at %d ms: %v %+v", ms, v, h.Figures(at(ms)))
		}
	}
	if f := h.Figures(at(15_000)); f.Short < 0.95 || f.Short > 1.05 || f.FPS < 24 || f.FPS > 26 {
		t.Errorf("%+v", f)
	}
}

// TestLinkTransit: an upstream that has sent all, into a buffer, is not idle.
func TestLinkTransit(t *testing.T) {
	cfg := DefaultConfig()
	h := NewHealth(&cfg, at(0))
	skew := 7 * time.Hour
	live := func(dts int) int { return dts }
	watch(h, 0, 5000, live, func(ms int) {
		if ms%250 == 0 {
			h.Link(at(ms), at(ms).Add(skew), true)
		}
	})
	h.Link(at(5600), at(5250).Add(skew), true)
	if v := h.Verdict(at(5600)); v != Slow {
		t.Errorf("%v with a link tag that took 350 ms longer than others, want slow", v)
	}
	h.Link(at(5610), at(5600).Add(skew), true)
	if v := h.Verdict(at(5610)); v != SourceIdle {
		t.Errorf("%v with a quick link tag, want source_idle", v)
	}
}

func TestFigures(t *testing.T) {
	cfg := DefaultConfig()
	h := NewHealth(&cfg, at(0))
	if f := h.Figures(at(100)); f != (Figures{Silence: 100 * time.Millisecond}) {
		t.Errorf("of nothing: %+v", f)
	}
	watch(h, 0, 10_000, func(dts int) int {
		if dts < 8000 {
			return dts
		}
		return 8000 + (dts-8000)*2
	}, func(int) {})
	f := h.Figures(at(10_000))
	near := func(name string, got, want, by float64) {
		t.Helper()
		if got < want-by || got > want+by {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	near("recent", f.Recent, 0.5, 0.1)
	near("short", f.Short, 0.5, 0.05)
	near("long", f.Long, 0.8, 0.05)
	near("fps", f.FPS, 25, 1.5)
	near("late", f.Late.Seconds(), 1, 0.06)
	near("flowing", f.Flowing.Seconds(), 10, 0.1)
}
