package failover

import (
	"testing"

	"millrace/internal/flv"
)

// times returns the times of what was forwarded of pictures.
func times(out []flv.Tag) (ms []int64) {
	for _, t := range out {
		if t.Is(flv.Frame) {
			ms = append(ms, t.DTS)
		}
	}
	return ms
}

// forwarded is what a Splicer was seeded with in these tests: a second of pictures.
func forwarded() []flv.Tag { return append([]flv.Tag{metadata("a"), header(1)}, pictures(0, 25, 0)...) }

// rising reports whether times never go back, and by how much they rise at most.
func rising(ms []int64) (most int64, ok bool) {
	for i := 1; i < len(ms); i++ {
		d := ms[i] - ms[i-1]
		if most = max(most, d); d <= 0 {
			return most, false
		}
	}
	return most, true
}

// TestSeed: a Splicer that was told what was forwarded leaves that out, and goes on with
// the next picture on the same clock, whatever clock the connection has. Headers that
// are known are not sent again.
func TestSeed(t *testing.T) {
	for _, shift := range []int64{0, 7000, -300, 1 << 31} {
		for _, same := range []bool{false, true} {
			if same && shift != 0 {
				continue
			}
			s := NewSplicer()
			s.Seed(forwarded())
			out := s.Join(epoch, nil, same, nil)
			out = append(out, feedAll(s, append([]flv.Tag{metadata("a"), header(1)}, pictures(10, 30, shift)...)...)...)
			expect(t, out, "video", "video", "video", "video", "video")
			if ms := times(out); len(ms) != 5 || ms[0] != 1000 || ms[4] != 1160 {
				t.Errorf("shift %d: times %v, want 1000 to 1160", shift, ms)
			}
		}
	}
}

// TestSeedAllKnown: of a connection that has nothing new nothing is forwarded, and what
// follows is.
func TestSeedAllKnown(t *testing.T) {
	s := NewSplicer()
	s.Seed(forwarded())
	out := s.Join(epoch, pictures(20, 25, 0), true, nil)
	out = s.Poll(at(3000), out)
	expect(t, out)
	expect(t, feedAll(s, picture(1000, 25)), "video")
}

// TestRenewOnTheConnection: another publish begins on the connection. It stands behind
// all there was, also if the clock of the connection does not; its pictures are its own
// although they look like those of before, and it begins with a keyframe.
func TestRenewOnTheConnection(t *testing.T) {
	for _, at := range []int64{1000, 1033, 900, 0, 1 << 20} {
		s := NewSplicer()
		out := feedAll(s, forwarded()...)
		s.Renew()
		out = append(out, feedAll(s, append([]flv.Tag{metadata("a"), header(1), picture(at-40, 9)}, pictures(0, 25, at)...)...)...)
		ms := times(out)
		if most, ok := rising(ms); len(ms) != 50 || !ok || most > 73 {
			t.Errorf("from %d: %d pictures, times %v", at, len(ms), ms)
		}
		if ms := times(out[27:]); ms[24]-ms[0] != 960 {
			t.Errorf("from %d: it is stretched to %d ms", at, ms[24]-ms[0])
		}
		expect(t, out[27:31], "metadata", "video header", "keyframe", "video")
	}
}

// TestRenewBesides: the new publish comes on another connection, beside which that of
// before is held or not.
func TestRenewBesides(t *testing.T) {
	for _, held := range []bool{false, true} {
		s := NewSplicer()
		out := feedAll(s, forwarded()...)
		if held {
			out = s.Join(epoch, []flv.Tag{picture(50_000, 1234)}, false, out)
		}
		s.Renew()
		out = s.Join(epoch, append([]flv.Tag{header(1)}, pictures(0, 25, 0)...), false, out)
		ms := times(out)
		if most, ok := rising(ms); len(ms) != 50 || !ok || most > 40 {
			t.Errorf("held %v: %d pictures, times %v", held, len(ms), ms)
		}
		expect(t, out[27:30], "video header", "keyframe", "video")
	}
}

// TestRenewWithoutKeyframe: sound that comes first does not place the pictures, but is
// not waited for for ever.
func TestRenewWithoutKeyframe(t *testing.T) {
	s := NewSplicer()
	feedAll(s, forwarded()...)
	s.Renew()
	sound := func(ms int64) flv.Tag { return flv.New(flv.Audio, ms, audioPayload(int(ms), false)) }
	expect(t, feedAll(s, sound(0), sound(20)))
	expect(t, s.Poll(at(600), nil), "audio", "audio")

	s = NewSplicer()
	feedAll(s, forwarded()...)
	s.Renew()
	if ms := times(feedAll(s, sound(0), sound(20), picture(15, 0), sound(40), picture(55, 1))); len(ms) != 3 || ms[1] < ms[0] {
		t.Errorf("times %v", ms)
	}
}

// TestTrialRestart: a candidate on which another publish begins has nothing to show of
// the one before.
func TestTrialRestart(t *testing.T) {
	cfg := DefaultConfig()
	tr := NewTrial(&cfg, at(0))
	for i, tag := range pictures(0, 10, 0) {
		tr.Take(at(40*i), tag)
	}
	tr.Restart()
	if n := len(tr.Backlog()); n > 0 {
		t.Errorf("%d tags are left", n)
	}
	w := NewWindow()
	for _, tag := range pictures(0, 10, 0) {
		w.Add(tag)
	}
	if _, aligned := tr.Lead(w, true); aligned {
		t.Error("it is aligned with nothing")
	}
	tr.Take(at(400), picture(400, 0))
	if n := len(tr.Backlog()); n != 1 {
		t.Errorf("%d tags, want 1", n)
	}
}
