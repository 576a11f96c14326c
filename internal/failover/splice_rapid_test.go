package failover

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"millrace/internal/flv"
)

// draw is a programme of 20 s and whether unknown clocks can be told by it:
// pictures that repeat for long cannot.
func drawContent(t *rapid.T) (c content, telling bool) {
	c = content{
		ms:    20_000,
		fps:   rapid.SampledFrom([]float64{0, 10, 25, 29.97, 60}).Draw(t, "fps"),
		audio: rapid.SampledFrom([]float64{0, 21.5, 43.07, 46.875, 100}).Draw(t, "audio"),
		parts: rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(t, "parts"),
	}
	if c.fps == 0 && c.audio == 0 {
		c.fps = 25
	}
	c.gop = max(1, int(c.fps*rapid.SampledFrom([]float64{0.1, 1, 2, 4}).Draw(t, "gop")))
	c.audioLag = rapid.Int64Range(0, 300).Draw(t, "audioLag")
	still := rapid.IntRange(0, 4000).Draw(t, "still") // of each 8 s
	quiet := rapid.IntRange(0, 8000).Draw(t, "quiet")
	c.static = func(ms int) bool { return ms%8000 < still }
	c.silent = func(ms int) bool { return (ms+3000)%8000 < quiet }
	return c, c.fps > 0 && still == 0
}

// TestAnyJoints switches between upstreams at random: with an overlap each frame
// comes once, in order, at its own time, and none is missing.
func TestAnyJoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, telling := drawContent(t)
		src := c.make()
		s, v := NewSplicer(), &viewer{s: src}
		same := !telling || rapid.Bool().Draw(t, "same")
		draw := func() upstream {
			u := upstream{lag: rapid.Int64Range(-400, 400).Draw(t, "lag")}
			if same {
				u.shift = 0
			} else {
				u.shift = rapid.OneOf(rapid.Int64Range(-100, 100), rapid.Int64Range(-30_000, 1<<33)).Draw(t, "shift")
			}
			u.meta = rapid.SampledFrom([]string{"", "x"}).Draw(t, "meta")
			return u
		}
		u := draw()
		cut := rapid.Int64Range(3000, 8000).Draw(t, "cut")
		start := rapid.Int64Range(0, 2000).Draw(t, "start")
		tags := src.from(u, start)
		now := epoch
		var out []flv.Tag
		out, now = play(s, now, tags[:until(tags, u, cut)], 0)
		if err := v.see(out); err != nil {
			t.Fatal(err)
		}
		for n := rapid.IntRange(1, 4).Draw(t, "joints"); n > 0; n-- {
			u = draw()
			// Both tracks of the new connection must begin before the end of the old one.
			begin := max(0, cut-900-rapid.Int64Range(0, 6000).Draw(t, "back"))
			if !same { // with another clock, it cannot be told that all is older than the window
				begin = max(begin, start)
			}
			tags := src.from(u, begin)
			end := min(20_000, max(cut-1000, begin)+rapid.Int64Range(0, 6000).Draw(t, "for"))
			tags = tags[:until(tags, u, end)]
			head := until(tags, u, begin+rapid.Int64Range(0, 8000).Draw(t, "head"))
			if rapid.Bool().Draw(t, "cold") {
				head = 0
			}
			out = s.Join(now, tags[:head], same, nil)
			if rapid.IntRange(0, 3).Draw(t, "dies") == 0 { // at once, perhaps undecided
				if err := v.see(out); err != nil {
					t.Fatal(err)
				}
				cut = max(cut, lastTime(src, out))
				continue
			}
			var more []flv.Tag
			more, now = play(s, now, tags[head:], until(tags[head:], u, rapid.Int64Range(begin, max(begin, 20_000)).Draw(t, "burst")))
			if err := v.see(append(out, more...)); err != nil {
				t.Fatal(err)
			}
			cut = max(cut, end)
			if r, ok := s.Report(); ok && r.Kind == Keyframe && s.passing {
				t.Fatalf("no overlap found: %+v", r)
			}
		}
		if v.missing > 0 {
			t.Fatalf("%d frames are missing", v.missing)
		}
	})
}

// TestRoughJoints is the same with upstreams that round times, skip, and lie about
// their clocks: no frame comes again or late, and if nobody skipped none is missing.
func TestRoughJoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _ := drawContent(t)
		c.static, c.fps = never, max(c.fps, 10)
		c.gop = max(c.gop, 2)
		src := c.make()
		s, v := NewSplicer(), &viewer{s: src}
		skipped := false
		draw := func() (u upstream) {
			u.shift = rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(-30_000, 1<<33)).Draw(t, "shift")
			u.jitter = rapid.Int64Range(0, 2).Draw(t, "jitter")
			if rapid.IntRange(0, 2).Draw(t, "skips") == 0 {
				gop := int64(float64(c.gop) * 1000 / c.fps)
				from := rapid.Int64Range(0, 16_000/gop).Draw(t, "hole") * gop
				u.hole = [2]int64{from + 1, from + gop*rapid.Int64Range(1, max(1, 3000/gop)).Draw(t, "long")}
				skipped = true
			}
			return u
		}
		u := draw()
		cut := rapid.Int64Range(4000, 8000).Draw(t, "cut")
		if u.hole[1] > cut-2500 && u.hole[0] < cut {
			t.Skip("the two have too little in common")
		}
		tags := src.from(u, 0)
		out, now := play(s, epoch, tags[:until(tags, u, cut)], 0)
		if err := v.see(out); err != nil {
			t.Fatal(err)
		}
		for n := rapid.IntRange(1, 3).Draw(t, "joints"); n > 0; n-- {
			before := u
			u = draw()
			begin := max(0, cut-2000-rapid.Int64Range(0, 4000).Draw(t, "back"))
			tags := src.from(u, begin)
			end := cut + rapid.Int64Range(500, 4000).Draw(t, "for")
			tags = tags[:until(tags, u, end)]
			head := until(tags, u, begin+rapid.Int64Range(0, 8000).Draw(t, "head"))
			if u.hole[1] > begin-2000 && u.hole[0] < end {
				t.Skip("the two have too little in common")
			}
			same := rapid.Bool().Draw(t, "same") && u.shift == before.shift
			out = s.Join(now, tags[:head], same, nil)
			var more []flv.Tag
			more, now = play(s, now, tags[head:], until(tags[head:], u, cut))
			if err := v.see(append(out, more...)); err != nil {
				t.Fatal(err)
			}
			cut = end
		}
		if !skipped && v.missing > 0 {
			t.Fatalf("%d frames are missing", v.missing)
		}
	})
}

// lastTime returns the highest time in the source of the frames in tags.
func lastTime(src *source, tags []flv.Tag) (last int64) {
	for _, t := range tags {
		if i := slices.IndexFunc(src.frames, func(f flv.Tag) bool { return &f.Wire[0] == &t.Wire[0] }); i >= 0 {
			last = max(last, src.frames[i].DTS)
		}
	}
	return last
}
