package failover

import "testing"

// joint is one switch: the first upstream is seen up to cut, the second from begin
// on; head of its tags come as a backlog, burst more at once.
type joint struct {
	name   string
	c      content
	a, b   upstream
	cut    int64 // the first upstream ends here
	begin  int64 // the second begins with the keyframe before
	head   int64 // up to here its tags are there when it joins; 0: nothing is
	burst  int64 // up to here its tags come at once
	same   bool
	kind   Kind
	lost   int // frames missing
	report int // what the report says about that
}

func (j joint) run(t *testing.T) (*viewer, *Splicer) {
	t.Helper()
	src := j.c.make()
	s, v := NewSplicer(), &viewer{s: src}
	first := src.from(j.a, 0)
	out, now := play(s, epoch, first[:until(first, j.a, j.cut)], 0)
	check(t, v.see(out))
	if r, ok := s.Report(); !ok || r.Kind != First || !r.Settled {
		t.Fatalf("first connection: %+v %v", r, ok)
	}

	second := src.from(j.b, j.begin)
	head := until(second, j.b, j.head)
	if j.head == 0 {
		head = 0
	}
	out = s.Join(now, second[:head], j.same, nil)
	rest := second[head:]
	more, _ := play(s, now, rest, until(rest, j.b, max(j.burst, j.head)))
	check(t, v.see(append(out, more...)))
	r, ok := s.Report()
	if !ok || r.Kind != j.kind || v.missing != j.lost || r.Missing != j.report {
		t.Errorf("lost %d frames, want %d; report (%v) %+v, want %v and %d missing",
			v.missing, j.lost, ok, r, j.kind, j.report)
	}
	for track := range script {
		all := 0
		for _, f := range src.frames {
			if trackOf(f.Kind) == track {
				all++
			}
		}
		if v.next[track] != all {
			t.Errorf("track %d: %d of %d frames", track, v.next[track], all)
		}
	}
	return v, s
}

func TestJoints(t *testing.T) {
	always := func(int) bool { return true }
	std := content{ms: 20_000, fps: 25, audio: 43.07, gop: 50}
	with := func(f func(*content)) content { c := std; f(&c); return c }
	silent := with(func(c *content) { c.silent = always })
	for _, j := range []joint{
		{name: "same clock, behind, nothing yet", c: std, cut: 9000, begin: 8500, burst: 9000, same: true},
		{name: "same clock, ahead, with backlog", c: std, cut: 9000, begin: 8500, head: 9700, same: true},
		{name: "same clock, far behind for long", c: std, cut: 9000, begin: 4100, head: 5000, same: true},
		{name: "same values, not known to be", c: std, cut: 9000, begin: 8500, burst: 9000},
		{name: "shifted clock, behind", c: std, b: upstream{shift: 123_457}, cut: 9000, begin: 6500, burst: 8800},
		{name: "shifted clock, ahead", c: std, b: upstream{shift: -77}, cut: 9000, begin: 8500, head: 9900},
		{name: "restarted clock", c: std, a: upstream{shift: 9_000_000}, b: upstream{shift: -8000}, cut: 9000, begin: 8500, burst: 9000},
		{name: "one clock wrapped", c: std, a: upstream{shift: 1<<32 - 3000}, b: upstream{shift: -3000}, cut: 9000, begin: 8500, burst: 9000, same: true},
		{name: "audio earlier in the other", c: std, b: upstream{lag: -400}, cut: 9000, begin: 6500, burst: 9000, same: true},
		{name: "audio later in the other", c: std, a: upstream{lag: 300}, b: upstream{lag: 100, shift: 5}, cut: 9000, begin: 6500, burst: 9000},
		{name: "silent audio, same clock", c: silent, cut: 9000, begin: 8500, burst: 9000, same: true},
		{name: "silent audio, shifted clock", c: silent, b: upstream{shift: 4711}, cut: 9000, begin: 8500, burst: 9000},
		{name: "silent audio, shifted clock, ahead", c: silent, b: upstream{shift: 4711}, cut: 9000, begin: 8500, head: 9500},
		{name: "all the same, same clock", c: with(func(c *content) { c.silent, c.static = always, always }), cut: 9000, begin: 6500, burst: 9000, same: true},
		{name: "all the same, same values", c: with(func(c *content) { c.silent, c.static = always, always }), cut: 9000, begin: 8500, burst: 9000},
		{name: "a static picture at the end, shifted clock", c: with(func(c *content) {
			c.static = func(ms int) bool { return ms > 7500 && ms < 9500 }
			c.silent = c.static
		}), b: upstream{shift: 31}, cut: 9000, begin: 7000, burst: 9000},
		{name: "four messages a picture", c: with(func(c *content) { c.parts = 4 }), b: upstream{shift: 31}, cut: 9000, begin: 8500, burst: 9000},
		{name: "four equal messages a picture", c: with(func(c *content) { c.parts = 4; c.static = always }), cut: 9000, begin: 8500, burst: 9000, same: true},
		{name: "a loop, same values", c: with(func(c *content) { c.loop = 100 }), cut: 9000, begin: 8500, burst: 9000},
		{name: "a loop, shifted clock", c: with(func(c *content) { c.loop = 100 }), b: upstream{shift: 977}, cut: 13000, begin: 11000, burst: 13000},
		{name: "no audio", c: with(func(c *content) { c.audio = 0 }), b: upstream{shift: 977}, cut: 9000, begin: 8500, burst: 9000},
		{name: "no video", c: with(func(c *content) { c.fps = 0 }), b: upstream{shift: 977}, cut: 9000, begin: 8500, burst: 9000},
		{name: "no video, silent, same clock", c: with(func(c *content) { c.fps = 0; c.silent = always }), cut: 9000, begin: 8500, burst: 9000, same: true},
		{name: "one frame in common", c: with(func(c *content) { c.audio = 0 }), cut: 8001, begin: 8000, burst: 8001, same: true},
		{name: "one frame in common, shifted clock", c: with(func(c *content) { c.audio = 0 }), b: upstream{shift: 977}, cut: 8001, begin: 8000, burst: 8001},
		{name: "other metadata", c: std, b: upstream{meta: "another server"}, cut: 9000, begin: 8500, burst: 9000, same: true},
		{
			name: "no overlap, same clock", c: std, cut: 9000, begin: 10_000, burst: 10_000, same: true,
			kind: Keyframe, lost: 25 + 43, report: 25 + 43,
		},
		{
			name: "no overlap, shifted clock", c: std, b: upstream{shift: 100_000}, cut: 9000, begin: 10_000, burst: 10_000,
			kind: Keyframe, lost: 25 + 43, report: -1,
		},
		{
			name: "no overlap, shifted clock, silent", c: silent, b: upstream{shift: 100_000}, cut: 9000, begin: 10_000, burst: 10_000,
			kind: Keyframe, lost: 25 + 43, report: -1,
		},
		{
			name: "no overlap, backlog of two keyframes", c: std, b: upstream{shift: 100_000}, cut: 9000, begin: 10_000, head: 12_500,
			kind: Keyframe, lost: 25 + 43, report: -1,
		},
	} {
		if j.kind == First {
			j.kind = Overlap
		}
		t.Run(j.name, func(t *testing.T) { j.run(t) })
	}
}
