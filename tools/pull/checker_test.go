package pull

import (
	"maps"
	"slices"
	"testing"
	"time"

	"millrace/internal/flv"
	"millrace/tools/frames"
)

// stream is what a viewer gets: headers, then frames of which a test takes some
// away, moves or damages them.
func stream(t *testing.T, change func(*frames.Config), n int) []flv.Tag {
	t.Helper()
	cfg := frames.DefaultConfig()
	cfg.GOP, cfg.VideoKbps, cfg.Epoch = 500*time.Millisecond, 200, 1000
	if change != nil {
		change(&cfg)
	}
	g, err := frames.NewGenerator(cfg)
	if err != nil {
		t.Fatal(err)
	}
	tags := slices.Clone(g.Headers())
	for range n {
		tags = append(tags, g.Next(time.Unix(2, 0)))
	}
	return tags
}

// check runs a fresh parser and checker over the tags.
func check(t *testing.T, id int64, tags []flv.Tag) Checker {
	t.Helper()
	c, p := NewChecker(id, true), Parser{Verify: true}
	emit := func(tag *Tag) { c.Tag(tag) }
	if err := p.Feed(flv.AppendFileHeader(nil, true, true), emit); err != nil {
		t.Fatal(err)
	}
	for _, tag := range tags {
		if err := p.Feed(tag.Wire, emit); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// nth returns the index of the nth keyframe, from 0.
func nth(tags []flv.Tag, n int) int {
	for i, tag := range tags {
		if tag.Is(flv.Keyframe) {
			if n == 0 {
				return i
			}
			n--
		}
	}
	return -1
}

func later(tags []flv.Tag, ms int64) []flv.Tag {
	out := slices.Clone(tags)
	for i := range out {
		out[i].Wire = slices.Clone(out[i].Wire)
		flv.SetTime(out[i].Wire, out[i].DTS+ms)
	}
	return out
}

func TestCheckerFindsFaults(t *testing.T) {
	f := func(name string, change func([]flv.Tag) []flv.Tag, want map[string]uint64, skips, skipped uint64) {
		t.Helper()
		c := check(t, 0, change(stream(t, nil, 200)))
		if got := c.Faults.Words(); !maps.Equal(got, want) || c.Skips != skips || c.Skipped != skipped {
			t.Errorf("%s: faults %v, %d skips of %d; want %v, %d, %d", name, got, c.Skips, c.Skipped, want, skips, skipped)
		}
	}
	cut := func(from, to int) func([]flv.Tag) []flv.Tag {
		return func(tags []flv.Tag) []flv.Tag { return slices.Delete(tags, from, to) }
	}
	f("as it should be", func(tags []flv.Tag) []flv.Tag { return tags }, nil, 0, 0)
	f("a frame twice", func(tags []flv.Tag) []flv.Tag { return slices.Insert(tags, 10, tags[9]) },
		map[string]uint64{"repeated": 1}, 0, 0)
	f("a run of frames twice", func(tags []flv.Tag) []flv.Tag { return slices.Insert(tags, 40, tags[30:40]...) },
		map[string]uint64{"repeated": 10, "clock_back": 1}, 0, 0)
	f("an old frame twice", func(tags []flv.Tag) []flv.Tag { return slices.Insert(tags, 150, tags[10]) },
		map[string]uint64{"repeated": 1, "clock_back": 1}, 0, 0)
	f("a frame missing", cut(10, 11), map[string]uint64{"missing": 1}, 0, 0)
	f("frames missing in two places", func(tags []flv.Tag) []flv.Tag {
		return slices.Delete(slices.Delete(tags, 60, 64), 10, 11)
	}, map[string]uint64{"missing": 2}, 0, 0)
	f("two frames in the wrong order", func(tags []flv.Tag) []flv.Tag {
		tags[11], tags[12] = tags[12], tags[11]
		return tags
	}, map[string]uint64{"missing": 1, "reordered": 1, "clock_back": 1}, 0, 0)
	f("a skip to a keyframe", func(tags []flv.Tag) []flv.Tag { return slices.Delete(tags, 10, nth(tags, 2)) },
		nil, 1, uint64(nth(stream(t, nil, 200), 2)-10))
	f("a skip to behind a keyframe", func(tags []flv.Tag) []flv.Tag { return slices.Delete(tags, 10, nth(tags, 2)+1) },
		map[string]uint64{"missing": 1}, 0, 0)
	f("a skip over which the clock closes up", func(tags []flv.Tag) []flv.Tag {
		at := nth(tags, 2)
		return append(tags[:10:10], later(tags[at:], tags[10].DTS-tags[at].DTS)...)
	}, nil, 1, uint64(nth(stream(t, nil, 200), 2)-10))
	f("a start behind the keyframe", func(tags []flv.Tag) []flv.Tag { return slices.Delete(tags, 3, 4) },
		map[string]uint64{"no_keyframe_first": 1}, 0, 0)
	f("no video header", cut(1, 2), map[string]uint64{"no_header": 82}, 0, 0) // all of the video
	f("no metadata", cut(0, 1), nil, 0, 0)
	f("clock back", func(tags []flv.Tag) []flv.Tag { return append(tags[:20], later(tags[20:], -100)...) },
		map[string]uint64{"clock_back": 1, "clock_shifted": 1}, 0, 0)
	f("a jump of the clock", func(tags []flv.Tag) []flv.Tag { return append(tags[:20], later(tags[20:], 1000)...) },
		map[string]uint64{"clock_shifted": 1}, 0, 0)
	f("another clock from the start", func(tags []flv.Tag) []flv.Tag { return later(tags, 1<<32-5) }, nil, 0, 0)
	f("a damaged payload", func(tags []flv.Tag) []flv.Tag {
		tags[30].Wire[len(tags[30].Wire)-5] ^= 1
		return tags
	}, map[string]uint64{"damaged": 1, "missing": 1}, 0, 0)
	f("a damaged stamp", func(tags []flv.Tag) []flv.Tag {
		tags[30].Wire[flv.HeaderSize+30] ^= 1
		return tags
	}, map[string]uint64{"damaged": 1, "missing": 1}, 0, 0)
	f("a frame without a stamp", func(tags []flv.Tag) []flv.Tag {
		return slices.Insert(tags, 30, flv.New(flv.Video, tags[30].DTS, []byte{0x2c, 1, 0, 0, 0, 1, 2, 3}))
	}, map[string]uint64{"unstamped": 1}, 0, 0)
	f("a frame of a codec that has none", func(tags []flv.Tag) []flv.Tag {
		return slices.Insert(tags, 30, flv.New(flv.Video, tags[30].DTS, []byte{0x22, 1, 2, 3}))
	}, map[string]uint64{"unstamped": 1}, 0, 0)
}

func TestCheckerKnowsTheStream(t *testing.T) {
	other := func(c *frames.Config) { c.Stream = 5 }
	if c := check(t, 0, stream(t, other, 20)); c.Faults[WrongStream] != 20 || c.Faults.Total() != 20 {
		t.Errorf("number 5 for 0: %v", c.Faults.Words())
	}
	if c := check(t, AnyStream, stream(t, other, 20)); c.Faults.Total() != 0 {
		t.Errorf("any stream: %v", c.Faults.Words())
	}
	mixed := append(stream(t, nil, 20), stream(t, other, 20)[3:]...)
	if c := check(t, AnyStream, mixed); c.Faults[WrongStream] != 20 {
		t.Errorf("two streams in one: %v", c.Faults.Words())
	}
}

func TestCheckerFollowsAPublisherThatComesBack(t *testing.T) {
	first := stream(t, nil, 50)
	again := stream(t, func(c *frames.Config) { c.Epoch++ }, 50)
	end := first[len(first)-1].DTS
	if c := check(t, 0, append(slices.Clone(first), later(again, end+40)...)); c.Faults.Total() != 0 || c.Epochs != 1 {
		t.Errorf("continued clock: %v, %d restarts", c.Faults.Words(), c.Epochs)
	}
	if c := check(t, 0, append(slices.Clone(first), again...)); c.Faults[ClockBack] != 1 {
		t.Errorf("clock from zero again: %v", c.Faults.Words())
	}
	mixed := append(append(slices.Clone(first[:30]), later(again, end+40)...), later(first[30:], 5000)...)
	if c := check(t, 0, mixed); c.Faults[OldEpoch] != uint64(len(first)-30) {
		t.Errorf("frames of the old publish behind those of the new: %v", c.Faults.Words())
	}
}

func TestCheckerOfOneTrack(t *testing.T) {
	audio := stream(t, func(c *frames.Config) { c.NoVideo = true }, 100)
	if c := check(t, 0, append(audio[:2:2], audio[30:]...)); c.Faults.Total() != 0 {
		t.Errorf("audio may begin anywhere: %v", c.Faults.Words())
	}
	if c := check(t, 0, slices.Delete(slices.Clone(audio), 30, 40)); c.Faults.Total() != 0 || c.Skips != 1 {
		t.Errorf("audio may skip: %v, %d", c.Faults.Words(), c.Skips)
	}
	video := stream(t, func(c *frames.Config) { c.NoAudio = true }, 100)
	if c := check(t, 0, video); c.Faults.Total() != 0 {
		t.Errorf("video alone: %v", c.Faults.Words())
	}
}

func TestHistogram(t *testing.T) {
	var h, other Histogram
	for i := range 1000 {
		if i%2 == 0 {
			h.Add(time.Duration(i) * time.Millisecond)
		} else {
			other.Add(time.Duration(i) * time.Millisecond)
		}
	}
	h.Merge(&other)
	f := func(q float64, want time.Duration) {
		t.Helper()
		if got := h.Quantile(q); got < want*98/100 || got > want*102/100 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	f(.5, 500*time.Millisecond)
	f(.9, 900*time.Millisecond)
	f(.99, 990*time.Millisecond)
	f(1, 999*time.Millisecond)
	if q := h.Quantiles(); q.Count != 1000 || q.Max != 999 {
		t.Errorf("%+v", q)
	}
	last := -1
	for d := time.Duration(0); d < time.Hour; d += d/100 + time.Microsecond {
		b := bucket(d)
		if b < last || b > last+1 && d > time.Millisecond && b-last > 2 {
			t.Fatalf("%v is in bucket %d, after %d", d, b, last)
		}
		if m := middle(b); d >= 64*time.Microsecond && d < 10*time.Minute && (m < d*98/100 || m > d*102/100) {
			t.Fatalf("%v has bucket %d, which stands for %v", d, b, m)
		}
		last = b
	}
	h.Add(-time.Second)
	var none Histogram
	if none.Quantile(.5) != 0 {
		t.Error("quantile of nothing")
	}
}
