package failover

import (
	"slices"
	"testing"

	"millrace/internal/flv"
)

// kinds returns the tags in a form that is easy to compare.
func shapes(tags []flv.Tag) (out []string) {
	for _, t := range tags {
		s := t.Kind.String()
		switch {
		case t.Is(flv.Header):
			s += " header"
		case t.Is(flv.Metadata):
			s = "metadata"
		case t.Is(flv.Keyframe):
			s = "keyframe"
		}
		out = append(out, s)
	}
	return out
}

func picture(dts int64, n int) flv.Tag {
	return flv.New(flv.Video, dts, videoPayload(n%10 == 0, n, false))
}

// pictures returns pictures from, from+1, ... of a stream with 25 a second.
func pictures(from, to int, shift int64) (out []flv.Tag) {
	for n := from; n < to; n++ {
		out = append(out, picture(int64(n)*40+shift, n))
	}
	return out
}

func header(b byte) flv.Tag { return flv.New(flv.Video, 0, append(videoHeader[:7:7], b)) }

func feedAll(s *Splicer, tags ...flv.Tag) (out []flv.Tag) {
	for _, t := range tags {
		out = s.Take(epoch, t, out)
	}
	return out
}

func expect(t *testing.T, got []flv.Tag, want ...string) {
	t.Helper()
	if s := shapes(got); !slices.Equal(s, want) {
		t.Errorf("got %q, want %q", s, want)
	}
}

func TestHeadersAndMetadata(t *testing.T) {
	s := NewSplicer()
	expect(t, feedAll(s, metadata("a"), header(1), picture(0, 0), header(1), metadata("a"), picture(40, 1), header(2), picture(80, 2)),
		"metadata", "video header", "keyframe", "video", "video header", "video")

	// The header before the overlap is out of date, the one within it is in force.
	tags := append([]flv.Tag{metadata("b"), header(1)}, pictures(0, 2, 0)...)
	tags = append(tags, header(2), picture(80, 2), picture(120, 3))
	expect(t, s.Join(epoch, tags, true, nil), "metadata", "video")
	if r, ok := s.Report(); !ok || r.Kind != Overlap || r.Duplicates != 3 || r.HeadersChanged {
		t.Errorf("%+v %v", r, ok)
	}

	// One that changed behind what was forwarded is sent before its picture, with its time.
	tags = append([]flv.Tag{metadata("b"), header(2)}, pictures(0, 4, 7)...)
	tags = append(tags, header(3), picture(167, 4))
	out := s.Join(epoch, tags, false, nil)
	expect(t, out, "video header", "video")
	if out[0].DTS != 160 || out[1].DTS != 160 {
		t.Errorf("times %d and %d, want 160", out[0].DTS, out[1].DTS)
	}
	if r, ok := s.Report(); !ok || !r.HeadersChanged || r.Offset != -7 || !r.Settled || r.Run != 4 {
		t.Errorf("%+v %v", r, ok)
	}
	if tags[len(tags)-1].DTS != 167 {
		t.Error("the caller's tag was changed")
	}
}

func TestKeyframeJoint(t *testing.T) {
	s := NewSplicer()
	feedAll(s, append([]flv.Tag{header(1)}, pictures(0, 25, 0)...)...)
	// Other pictures on another clock: nothing before the patience is over, and then
	// from the keyframe on, with its header.
	out := s.Join(epoch, nil, false, nil)
	out = s.Take(epoch, header(2), out)
	for _, tag := range pictures(1005, 1015, 500_000) {
		out = s.Take(epoch, tag, out)
	}
	if _, ok := s.Report(); ok || len(out) > 0 {
		t.Fatalf("decided with %q", shapes(out))
	}
	out = s.Poll(at(int(patience.Milliseconds())), out)
	expect(t, out, "video header", "keyframe", "video", "video", "video", "video")
	if out[1].DTS != 24*40+step {
		t.Errorf("goes on at %d, want %d", out[1].DTS, 24*40+step)
	}
	if r, ok := s.Report(); !ok || r.Kind != Keyframe || r.Missing != -1 || !r.HeadersChanged || !r.Settled {
		t.Errorf("%+v %v", r, ok)
	}

	// With no keyframe at all, sound goes on and pictures wait for one.
	s.Join(epoch, nil, false, nil)
	var tags []flv.Tag
	for _, p := range pictures(2001, 2009, 0) {
		tags = append(tags, p, flv.New(flv.Audio, p.DTS, audioPayload(int(p.DTS), false)))
	}
	out = feedAll(s, tags...)
	out = s.Poll(at(int(patience.Milliseconds())), out)
	expect(t, out, slices.Repeat([]string{"audio"}, 8)...)
	expect(t, feedAll(s, pictures(2009, 2012, 0)...), "keyframe", "video")
}

// TestHeldIsBounded: what cannot be decided is, once it is too much to hold.
func TestHeldIsBounded(t *testing.T) {
	s := NewSplicer()
	feedAll(s, pictures(0, 25, 0)...)
	s.Join(epoch, nil, false, nil)
	for i, tag := range pictures(5000, 5400, 0) {
		if out := s.Take(epoch, tag, nil); len(out) > 0 {
			if len(out) != i+1 || i != 251 {
				t.Errorf("picture %d releases %d", i, len(out))
			}
			return
		}
	}
	t.Error("holds sixteen seconds")
}

// TestJoinWhileUndecided: what the connection before held is gone, what was
// forwarded is not.
func TestJoinWhileUndecided(t *testing.T) {
	s := NewSplicer()
	feedAll(s, pictures(0, 25, 0)...)
	if out := s.Join(epoch, pictures(1000, 1010, 0), false, nil); len(out) > 0 {
		t.Fatalf("decided with %q", shapes(out))
	}
	expect(t, s.Join(epoch, pictures(20, 27, 123), false, nil), "video", "video")
	if r, ok := s.Report(); !ok || r.Kind != Overlap || r.Duplicates != 5 {
		t.Errorf("%+v %v", r, ok)
	}
}

// TestJumpOfTheConnection: a publisher that restarts behind one connection is closed
// up, for both tracks alike.
func TestJumpOfTheConnection(t *testing.T) {
	s := NewSplicer()
	var last [tracks]int64
	for i := range 200 {
		shift := int64(0)
		if i >= 100 {
			shift = -50_000
		}
		for _, tag := range []flv.Tag{
			picture(int64(i)*40+60_000+shift, i),
			flv.New(flv.Audio, int64(i)*40+60_010+shift, audioPayload(i, false)),
		} {
			out := s.Take(at(i*40), tag, nil)
			if len(out) != 1 {
				t.Fatalf("tag %d: %d come out", i, len(out))
			}
			track := trackOf(tag.Kind)
			if d := out[0].DTS - last[track]; i > 0 && (d < 0 || d > 60) {
				t.Fatalf("%v %d: a step of %d ms", tag.Kind, i, d)
			}
			last[track] = out[0].DTS
		}
		if d := last[audio] - last[video]; d < 0 || d > 15 {
			t.Fatalf("sound %d is %d ms off", i, d)
		}
	}
}

// TestJumpBehind: the clock restarts within what is still being dropped.
func TestJumpBehind(t *testing.T) {
	s := NewSplicer()
	feedAll(s, pictures(0, 100, 0)...)
	feedAll(s, pictures(100, 200, 0)...)
	tags := append(pictures(50, 100, 70_000), pictures(100, 250, -3000)...)
	out := s.Join(epoch, tags, false, nil)
	want := pictures(200, 250, 0)
	if len(out) != len(want) {
		t.Fatalf("%d come out, want %d", len(out), len(want))
	}
	for i := range out {
		if string(out[i].Payload()) != string(want[i].Payload()) || out[i].DTS != want[i].DTS {
			t.Fatalf("picture %d: time %d, want %d", i, out[i].DTS, want[i].DTS)
		}
	}
}

// TestScriptData: cue points are forwarded once, too.
func TestScriptData(t *testing.T) {
	cue := func(n int, shift int64) flv.Tag {
		return flv.New(flv.Script, int64(n)*40+shift, append([]byte("\x02\x00\x0aonCuePoint"), byte(n)))
	}
	with := func(from, to int, shift int64) (out []flv.Tag) {
		for n := from; n < to; n++ {
			out = append(out, pictures(n, n+1, shift)...)
			if n%5 == 0 {
				out = append(out, cue(n, shift))
			}
		}
		return out
	}
	s := NewSplicer()
	feedAll(s, with(0, 23, 0)...)
	out := s.Join(epoch, with(10, 27, 55), false, nil)
	expect(t, out, "video", "video", "video", "script", "video")
	if out[3].DTS != 1000 {
		t.Errorf("cue at %d, want 1000", out[3].DTS)
	}
}

// FuzzSplicer gives the splicer whatever tags: on no input may it panic, hold without
// bound, let a track go back, or invent a tag.
func FuzzSplicer(f *testing.F) {
	f.Add([]byte("\x00\x10\x20\x30\xf0\x01\x02\x03\x04\x05\x06\x07"))
	f.Add([]byte("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"))
	f.Add([]byte("\xff\x00\x01\xff\x01\x01\xff\x02\x01\x00\x00\x00\x01\x00\x00"))
	payloads := [][]byte{
		videoPayload(true, 1, false), videoPayload(false, 2, false), videoPayload(false, 3, false), videoPayload(true, 0, true),
		audioPayload(1, false), audioPayload(0, true), videoHeader, audioHeader,
		{},
		{0x17, 2, 0, 0, 0},
		{0x57},
		[]byte("\x02\x00\x0aonMetaDatax"), []byte("\x02\x00\x0aonMetaDatay"), []byte("\x02\x00\x03cue"),
	}
	kinds := []flv.Kind{
		flv.Video, flv.Video, flv.Video, flv.Video, flv.Audio, flv.Audio, flv.Video, flv.Audio, flv.Audio, flv.Video, flv.Video,
		flv.Script, flv.Script, flv.Script,
	}
	steps := []int64{0, 1, 10, 23, 40, 41, -40, -2000, 5000, 20_000, -1 << 32, 1 << 40}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := NewSplicer()
		var last [tracks]int64
		var any [tracks]bool
		in, out := map[*byte]bool{}, 0
		see := func(tags []flv.Tag) {
			out += len(tags)
			for _, tag := range tags {
				track := trackOf(tag.Kind)
				if !in[&tag.Wire[0]] {
					t.Fatal("a tag that did not come in, or came out before")
				}
				delete(in, &tag.Wire[0])
				if tag.Is(flv.Frame) && any[track] && tag.DTS < last[track] {
					t.Fatalf("%v goes back from %d to %d", tag.Kind, last[track], tag.DTS)
				}
				if tag.Is(flv.Frame) {
					last[track], any[track] = tag.DTS, true
				}
			}
		}
		now, dts := 0, int64(0)
		for i := 0; i+2 < len(b); i += 3 {
			now += int(b[i+1]) * 2
			switch {
			case b[i] == 0xff:
				see(s.Join(at(now), nil, b[i+1]%2 == 0, nil))
			case b[i] == 0xfe:
				see(s.Poll(at(now), nil))
			default:
				n := int(b[i]) % len(payloads)
				dts += steps[int(b[i+2])%len(steps)]
				tag := flv.New(kinds[n], dts, payloads[n])
				in[&tag.Wire[0]] = true
				see(s.Take(at(now), tag, nil))
			}
			s.Report()
		}
	})
}
