package failover

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"millrace/internal/flv"
)

// epoch is when tests begin.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

// source is a programme as it was made: frames in the order of their times. A frame
// is recognised by where its bytes are, also when others have equal ones.
type source struct {
	frames []flv.Tag
	number map[*byte]int // of a frame within its track
	gop    int
}

type content struct {
	ms       int
	fps      float64 // 0: no video
	audio    float64 // frames a second, 0: no audio
	gop      int     // frames from keyframe to keyframe
	parts    int     // messages per picture, with one time
	static   func(ms int) bool
	silent   func(ms int) bool
	loop     int // frames after which video and audio payloads repeat
	audioLag int64
}

func never(int) bool { return false }

func videoPayload(key bool, n int, static bool) []byte {
	p := []byte{0x27, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if key {
		p[0] = 0x17
	}
	if !static {
		binary.BigEndian.PutUint64(p[6:], uint64(n)+1)
	}
	return p
}

func audioPayload(n int, silent bool) []byte {
	p := []byte{0xaf, 1, 0, 0, 0, 0, 0, 0, 0, 0}
	if !silent {
		binary.BigEndian.PutUint64(p[2:], uint64(n)+1)
	}
	return p
}

func (c content) make() *source {
	if c.static == nil {
		c.static = never
	}
	if c.silent == nil {
		c.silent = never
	}
	s := &source{number: map[*byte]int{}, gop: c.gop}
	count := [2]int{}
	add := func(t flv.Tag, track int) {
		s.number[&t.Wire[0]] = count[track]
		count[track]++
		s.frames = append(s.frames, t)
	}
	name := func(n int) int {
		if c.loop > 0 {
			return n % c.loop
		}
		return n
	}
	for i := 0; c.fps > 0 && float64(i)*1000/c.fps < float64(c.ms); i++ {
		dts := int64(float64(i) * 1000 / c.fps)
		for part := range max(1, c.parts) {
			p := videoPayload(i%c.gop == 0 && part == 0, name(i)*8+part, c.static(int(dts)))
			add(flv.New(flv.Video, dts, p), video)
		}
	}
	for i := 0; c.audio > 0 && float64(i)*1000/c.audio < float64(c.ms); i++ {
		dts := int64(float64(i)*1000/c.audio) + c.audioLag
		add(flv.New(flv.Audio, dts, audioPayload(name(i), c.silent(int(dts)))), audio)
	}
	slices.SortStableFunc(s.frames, func(a, b flv.Tag) int { return int(a.DTS - b.DTS) })
	return s
}

var (
	videoHeader = []byte{0x17, 0, 0, 0, 0, 1, 2, 3}
	audioHeader = []byte{0xaf, 0, 0x12, 0x10}
)

func metadata(text string) flv.Tag {
	return flv.New(flv.Script, 0, append([]byte("\x02\x00\x0aonMetaData"), text...))
}

// upstream is the source as one server sends it.
type upstream struct {
	shift int64 // of its clock
	lag   int64 // ms by which its audio is sent later than its video of the same time
	meta  string
	// jitter is by how much, in ms, its times are off at most, as of a server that
	// rounds or smoothes; it leaves out what has a time within hole.
	jitter int64
	hole   [2]int64
}

// from returns what a connection to u gets that begins with the newest keyframe at
// or before dts, or with the frame itself if there is no video: headers, then all
// frames in the order of u.
func (s *source) from(u upstream, dts int64) []flv.Tag {
	frames := slices.Clone(s.frames)
	place := func(t flv.Tag) int64 {
		if t.Kind == flv.Audio {
			return t.DTS + u.lag
		}
		return t.DTS
	}
	slices.SortStableFunc(frames, func(a, b flv.Tag) int { return int(place(a) - place(b)) })
	hasVideo := slices.ContainsFunc(frames, func(t flv.Tag) bool { return t.Kind == flv.Video })
	begin := 0
	for i, t := range frames {
		if (t.Is(flv.Keyframe) || !hasVideo) && t.DTS <= dts {
			begin = i
		}
	}
	out := []flv.Tag{metadata(u.meta), flv.New(flv.Video, 0, videoHeader), flv.New(flv.Audio, 0, audioHeader)}
	var last [tracks]int64
	for i, t := range frames[begin:] {
		if t.DTS >= u.hole[0] && t.DTS < u.hole[1] {
			continue
		}
		if track := trackOf(t.Kind); u.jitter > 0 {
			t.DTS = max(t.DTS+int64(i*7)%(2*u.jitter+1)-u.jitter, last[track])
			last[track] = t.DTS
		}
		t.DTS += u.shift
		out = append(out, t)
	}
	return out
}

// until returns how many of tags have a time before dts of the source.
func until(tags []flv.Tag, u upstream, dts int64) int {
	for i, t := range tags {
		if t.Is(flv.Frame) && t.DTS-u.shift >= dts {
			return i
		}
	}
	return len(tags)
}

// viewer checks what comes out: every frame once, in order, time never back.
type viewer struct {
	s       *source
	next    [tracks]int
	last    [tracks]int64
	any     [tracks]bool
	missing int
	headers int
	metas   int
	frames  int
	newest  int64
}

func (v *viewer) see(tags []flv.Tag) error {
	for _, t := range tags {
		track := trackOf(t.Kind)
		switch {
		case t.Is(flv.Metadata):
			v.metas++
			continue
		case t.Is(flv.Header):
			v.headers++
		case t.Is(flv.Frame):
			n, ok := v.s.number[&t.Wire[0]]
			switch {
			case !ok:
				return fmt.Errorf("a %v frame that is not of the source", t.Kind)
			case v.any[track] && n < v.next[track]:
				return fmt.Errorf("%v frame %d comes again, or late: %d was expected", t.Kind, n, v.next[track])
			case v.any[track]:
				v.missing += n - v.next[track]
			}
			v.next[track] = n + 1
			v.frames++
		}
		if v.any[track] && t.DTS < v.last[track] {
			return fmt.Errorf("%v goes back from %d to %d", t.Kind, v.last[track], t.DTS)
		}
		v.last[track] = t.DTS
		if t.Is(flv.Frame) {
			v.any[track] = true
			v.newest = max(v.newest, t.DTS)
		}
	}
	return nil
}

// play gives tags to s, the first burst of them at once and the others at the pace
// of their times, from now on. It returns what came out and when it is over.
func play(s *Splicer, now time.Time, tags []flv.Tag, burst int) (out []flv.Tag, end time.Time) {
	polled := now
	for i, t := range tags {
		if i >= burst && i > 0 && t.Is(flv.Frame) && tags[i-1].Is(flv.Frame) {
			now = now.Add(ms(max(0, t.DTS-tags[i-1].DTS)))
		}
		for now.Sub(polled) >= 100*time.Millisecond {
			polled = polled.Add(100 * time.Millisecond)
			out = s.Poll(polled, out)
		}
		out = s.Take(now, t, out)
	}
	for range 8 {
		polled = polled.Add(100 * time.Millisecond)
		out = s.Poll(polled, out)
	}
	return out, polled
}

func seeded(seed int) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), 1)) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
