package stream

import (
	"encoding/binary"
	"fmt"
	"maps"
	"testing"
	"time"

	"millrace/internal/flv"
	"millrace/internal/session"

	"pgregory.net/rapid"
)

var epoch = time.Unix(1_700_000_000, 0)

// feed publishes numbered tags into a stream with virtual time.
type feed struct {
	t   *testing.T
	hub *Hub
	pub *Publisher
	n   uint32
}

func newFeed(t *testing.T, change func(*Config)) *feed {
	t.Helper()
	cfg := DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	h, err := NewHub(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := &feed{t: t, hub: h}
	f.publish()
	return f
}

func (f *feed) publish() {
	f.t.Helper()
	p, err := f.hub.Publish(epoch, "live/a", "me", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	f.pub = p
}

func (f *feed) stream() *Stream { return f.pub.Stream() }

// write publishes a payload of at least six bytes that ends in a number.
func (f *feed) write(kind flv.Kind, ms int64, size int, head ...byte) uint32 {
	f.t.Helper()
	f.n++
	p := make([]byte, max(size, len(head)+5))
	copy(p, head)
	binary.BigEndian.PutUint32(p[len(p)-4:], f.n)
	if err := f.pub.Write(epoch.Add(time.Duration(ms)*time.Millisecond), flv.New(kind, ms, p)); err != nil {
		f.t.Fatal(err)
	}
	return f.n
}

func (f *feed) key(ms int64) uint32   { return f.write(flv.Video, ms, 20, 0x17, 1, 0, 0, 0) }
func (f *feed) inter(ms int64) uint32 { return f.write(flv.Video, ms, 20, 0x27, 1, 0, 0, 0) }
func (f *feed) sound(ms int64) uint32 { return f.write(flv.Audio, ms, 10, 0xaf, 1) }
func (f *feed) videoHeader() uint32   { return f.write(flv.Video, 0, 12, 0x17, 0, 0, 0, 0) }
func (f *feed) audioHeader() uint32   { return f.write(flv.Audio, 0, 8, 0xaf, 0) }
func (f *feed) metadata() uint32 {
	return f.write(flv.Script, 0, 20, []byte("\x02\x00\x0aonMetaData")...)
}
func number(t flv.Tag) uint32 { p := t.Payload(); return binary.BigEndian.Uint32(p[len(p)-4:]) }
func numbers(tags []flv.Tag) (n []int) {
	for _, t := range tags {
		n = append(n, int(number(t)))
	}
	return
}

// drain reads all that there is, in pieces of the given size.
func drain(c *Cursor, piece int) []flv.Tag {
	var out []flv.Tag
	buf := make([]flv.Tag, piece)
	for {
		n := c.Peek(buf)
		if n == 0 {
			return out
		}
		out = append(out, buf[:n]...)
		c.Advance(n)
	}
}

func wantNumbers(t *testing.T, got []flv.Tag, want ...int) {
	t.Helper()
	if fmt.Sprint(numbers(got)) != fmt.Sprint(want) {
		t.Errorf("read %v, want %v", numbers(got), want)
	}
}

func TestJoinBeginsAtTheKeyframeWithItsHeaders(t *testing.T) {
	f := newFeed(t, nil)
	f.metadata()    // 1
	f.videoHeader() // 2
	f.audioHeader() // 3
	f.sound(90)     // 4
	early := f.stream().NewCursor(CursorOptions{})
	if got := drain(&early, 8); len(got) != 0 || early.Started() {
		t.Errorf("read %v before the first keyframe", numbers(got))
	}
	f.key(100)    // 5
	f.inter(133)  // 6
	f.sound(99)   // 7
	f.inter(1033) // 8

	got := drain(&early, 4)
	wantNumbers(t, got, 1, 2, 3, 5, 6, 7, 8)
	for i, want := range []int64{0, 0, 0, 0, 33, 0, 933} {
		if got[i].DTS != want {
			t.Errorf("tag %d at %d ms, want %d", i, got[i].DTS, want)
		}
	}
	kept := f.stream().NewCursor(CursorOptions{KeepClock: true})
	if got := drain(&kept, 64); got[3].DTS != 100 || got[5].DTS != 99 {
		t.Errorf("with KeepClock: keyframe at %d, sound at %d; want 100, 99", got[3].DTS, got[5].DTS)
	}
}

func TestHeadersBelongToTheStartPoint(t *testing.T) {
	f := newFeed(t, nil)
	f.videoHeader() // 1
	f.key(0)        // 2
	f.inter(40)     // 3
	f.videoHeader() // 4: a change of resolution whose keyframe is not here yet
	c := f.stream().NewCursor(CursorOptions{})
	wantNumbers(t, drain(&c, 8), 1, 2, 3, 4)
	f.key(80) // 5
	wantNumbers(t, drain(&c, 8), 5)
	d := f.stream().NewCursor(CursorOptions{})
	wantNumbers(t, drain(&d, 8), 4, 5)
}

func TestStartPoints(t *testing.T) {
	t.Run("several tags of one picture", func(t *testing.T) {
		f := newFeed(t, nil)
		for range 4 {
			f.key(0) // 1..4
		}
		f.inter(40) // 5
		c := f.stream().NewCursor(CursorOptions{})
		wantNumbers(t, drain(&c, 8), 1, 2, 3, 4, 5)
	})
	t.Run("pictures before the first keyframe are left out", func(t *testing.T) {
		f := newFeed(t, nil)
		c := f.stream().NewCursor(CursorOptions{})
		f.inter(0) // 1
		f.key(40)  // 2
		wantNumbers(t, drain(&c, 8), 2)
		if n := f.hub.Stats(f.stream(), epoch).Drops[session.BeforeKeyframe]; n != 1 {
			t.Errorf("%d counted, want 1", n)
		}
	})
	t.Run("audio only, then a late video track", func(t *testing.T) {
		f := newFeed(t, nil)
		f.audioHeader() // 1
		for ms := int64(0); ms <= 1000; ms += 100 {
			f.sound(ms) // 2..12
		}
		c := f.stream().NewCursor(CursorOptions{})
		wantNumbers(t, drain(&c, 32), 1, 12)
		f.videoHeader() // 13
		f.sound(1100)   // 14
		f.key(1100)     // 15
		f.sound(1200)   // 16
		wantNumbers(t, drain(&c, 32), 13, 14, 15, 16)
		d := f.stream().NewCursor(CursorOptions{})
		wantNumbers(t, drain(&d, 32), 13, 1, 15, 16)
	})
}

// TestSlowReaderSkips is the rule, a line at a time: what a cursor that reads
// nothing until the end has skipped.
func TestSlowReaderSkips(t *testing.T) {
	run := newFeed(t, func(c *Config) { c.ViewerDelay, c.LogDuration = time.Second, 2*time.Second })
	f := run
	f.key(0)
	c := f.stream().NewCursor(CursorOptions{})
	buf := make([]flv.Tag, 4)
	c.Peek(buf)
	step := func(ms int64, key bool, want uint64) {
		t.Helper()
		if key {
			f.key(ms)
		} else {
			f.inter(ms)
		}
		c.Peek(buf)
		if got := c.Skips(); got.Time != want || got.Total() != want {
			t.Errorf("at %d ms: skipped %+v, want %d", ms, got, want)
		}
	}
	step(500, false, 0)
	step(1000, false, 0)
	step(1001, false, 4) // over a second behind, no keyframe near: everything goes
	step(1400, false, 5) // still waiting for one
	step(1500, true, 5)  // there it is
	step(2000, true, 5)
	step(2501, false, 6) // behind again, and a keyframe is near: up to that
	c.Peek(buf)
	c.Advance(2)
	step(2600, false, 6)
}

// TestSkipsAreCountedOnce: looks at a cursor add up to what it skipped, by reason.
func TestSkipsAreCountedOnce(t *testing.T) {
	table := session.NewTable()
	sess := table.Open(session.Info{}, func(session.Reason) {})
	var before Skips
	for _, now := range []Skips{{}, {Time: 2}, {Time: 2}, {Time: 3, Bytes: 5}, {Time: 3, Bytes: 5, OffLog: 7}} {
		now.Count(before, sess)
		before = now
	}
	want := map[session.Reason]uint64{session.SlowTime: 3, session.SlowBytes: 5, session.OffLog: 7}
	if got := table.Skips(); !maps.Equal(got, want) || sess.Skipped.Load() != before.Total() {
		t.Errorf("the table has %v, the session %d; want %v and %d", got, sess.Skipped.Load(), want, before.Total())
	}
}

func TestWhatLiesInABufferCountsAsBehind(t *testing.T) {
	f := newFeed(t, func(c *Config) { c.ViewerDelay, c.LogDuration = time.Second, 2*time.Second })
	f.key(0)
	c := f.stream().NewCursor(CursorOptions{})
	buf := make([]flv.Tag, 4)
	c.Peek(buf)
	f.inter(600)
	c.Held(300 * time.Millisecond)
	if c.Peek(buf); c.Skips().Total() != 0 {
		t.Errorf("600 ms behind with 300 ms held: skipped %+v", c.Skips())
	}
	c.Held(500 * time.Millisecond)
	if c.Peek(buf); c.Skips().Time != 2 {
		t.Errorf("600 ms behind with 500 ms held: skipped %+v, want 2 by time", c.Skips())
	}
	f.key(1000)
	f.inter(1200)
	c.Held(time.Hour) // at most three quarters count, or nothing would ever go out
	wantNumbers(t, drain(&c, 4), 3, 4)
}

func TestReaderClockHasNoHoleAfterASkip(t *testing.T) {
	f := newFeed(t, func(c *Config) { c.ViewerDelay, c.LogDuration = time.Second, 2*time.Second })
	f.key(0)
	f.inter(40)
	c := f.stream().NewCursor(CursorOptions{})
	wantNumbers(t, drain(&c, 8), 1, 2)
	for ms := int64(80); ms <= 4000; ms += 40 {
		f.inter(ms)
	}
	drain(&c, 8) // goes behind and gives up
	f.key(4040)
	got := drain(&c, 8)
	if len(got) != 1 || got[0].DTS != 80 {
		t.Fatalf("after the skip: %v at %d ms, want one tag at 80", numbers(got), got[0].DTS)
	}
	f.inter(4080)
	if got := drain(&c, 8); got[0].DTS != 120 {
		t.Errorf("next at %d ms, want 120", got[0].DTS)
	}
}

func TestLongGOPDoesNotPushItsJoinersOut(t *testing.T) {
	f := newFeed(t, func(c *Config) { c.ViewerDelay, c.LogDuration = time.Second, 2*time.Second })
	f.key(0)
	for ms := int64(40); ms <= 10_000; ms += 40 {
		f.inter(ms)
	}
	c := f.stream().NewCursor(CursorOptions{})
	if got := drain(&c, 16); len(got) != 251 || c.Skips().Total() != 0 {
		t.Errorf("got %d tags, skipped %+v; want the whole GOP of 251", len(got), c.Skips())
	}
}

func TestLogIsBounded(t *testing.T) {
	f := newFeed(t, func(c *Config) { c.LogBytes, c.ViewerBytes = 1<<20, 1<<19 })
	f.key(0)
	slow := f.stream().NewCursor(CursorOptions{})
	buf := make([]flv.Tag, 4)
	slow.Peek(buf)
	slow.Advance(1)
	for ms := int64(1); ms <= 3000; ms++ {
		f.write(flv.Video, ms, 10_000, 0x27, 1, 0, 0, 0)
		if st := f.hub.Stats(f.stream(), epoch); st.LogBytes > 1<<20 {
			t.Fatalf("log holds %d bytes, at most %d are allowed", st.LogBytes, 1<<20)
		}
	}
	late := f.stream().NewCursor(CursorOptions{})
	if n := late.Peek(buf); n != 0 {
		t.Error("a GOP whose keyframe has left the log is joined")
	}
	if n := slow.Peek(buf); n != 0 || slow.Skips().OffLog != 3000 {
		t.Errorf("peeked %d, skipped %+v; want 3000 off the log", n, slow.Skips())
	}
	f.key(4000)
	if n := slow.Peek(buf); n != 1 {
		t.Error("the slow reader does not go on at the next keyframe")
	}
	// Small tags are let go of by time.
	for ms := int64(5000); ms < 60_000; ms += 10 {
		if ms%1000 == 0 {
			f.key(ms)
		} else {
			f.inter(ms)
		}
	}
	if st := f.hub.Stats(f.stream(), epoch); st.LogTags > 501+2*blockTags {
		t.Errorf("log holds %d tags of 10 ms; five seconds and a block are allowed", st.LogTags)
	}
}

// TestAnyWayOfReadingGivesTheSameTags: however the reads and the partial writes
// fall, a reader that keeps up gets every tag once, in order.
func TestAnyWayOfReadingGivesTheSameTags(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := newFeed(t, nil)
		f.metadata()
		f.videoHeader()
		c := f.stream().NewCursor(CursorOptions{})
		var got []flv.Tag
		ms := int64(0)
		buf := make([]flv.Tag, 16)
		for range rapid.IntRange(1, 300).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0:
				f.key(ms)
			case 1:
				f.sound(ms)
			case 2:
				f.audioHeader()
			case 3:
				f.inter(ms)
			default:
				n := c.Peek(buf[:rapid.IntRange(4, 16).Draw(rt, "room")])
				took := rapid.IntRange(0, n).Draw(rt, "took")
				got = append(got, buf[:took]...)
				c.Advance(took)
			}
			ms += 10
		}
		got = append(got, drain(&c, 16)...)
		if s := c.Skips(); s.Total() != 0 {
			rt.Fatalf("skipped %+v", s)
		}
		seen := map[uint32]bool{}
		for i, x := range got {
			if seen[number(x)] {
				rt.Fatalf("tag %d twice in %v", number(x), numbers(got))
			}
			seen[number(x)] = true
			if i > 0 && x.Kind == flv.Video && x.Is(flv.Frame) && x.DTS < got[i-1].DTS {
				rt.Fatalf("clock goes back at %d", i)
			}
		}
		if len(got) == 0 {
			return
		}
		// From the first frame on nothing is missing.
		first := 0
		for i, x := range got {
			if x.Is(flv.Frame) {
				first = i
				break
			}
		}
		for i := first + 1; i < len(got); i++ {
			a, b := number(got[i-1]), number(got[i])
			for n := a + 1; n < b; n++ {
				if !f.dropped(n) {
					rt.Fatalf("tag %d is missing in %v", n, numbers(got))
				}
			}
			if b < a {
				rt.Fatalf("order: %v", numbers(got))
			}
		}
	})
}

// dropped reports whether tag n is not in the log, which still has everything.
func (f *feed) dropped(n uint32) bool {
	w := f.stream().log.window.Load()
	for _, b := range w.blocks {
		for i := range b.n.Load() {
			if number(b.entries[i].tag) == n {
				return false
			}
		}
	}
	return true
}

func TestReadingAllocatesNothing(t *testing.T) {
	f := newFeed(t, nil)
	f.metadata()
	f.videoHeader()
	f.audioHeader()
	f.key(0)
	for ms := int64(40); ms < 4000; ms += 40 {
		f.inter(ms)
	}
	buf := make([]flv.Tag, 16)
	if n := testing.AllocsPerRun(100, func() {
		c := f.stream().NewCursor(CursorOptions{})
		for {
			n := c.Peek(buf)
			if n == 0 {
				break
			}
			c.Advance(n)
			c.Behind()
		}
	}); n != 0 {
		t.Errorf("%v allocations to read a GOP, want 0", n)
	}
}

func TestWritingAllocatesTheTagOnly(t *testing.T) {
	f := newFeed(t, nil)
	f.key(0)
	payload := make([]byte, 1000)
	payload[0], payload[1] = 0x27, 1
	ms := int64(0)
	if n := testing.AllocsPerRun(2000, func() {
		ms += 20
		if err := f.pub.Write(epoch, flv.New(flv.Video, ms, payload)); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("%v allocations for a tag, want 1", n)
	}
}

func BenchmarkPeek(b *testing.B) {
	h, _ := NewHub(DefaultConfig())
	p, _ := h.Publish(epoch, "live/a", "", nil)
	write := func(ms int64, b0 byte) {
		x := make([]byte, 1000)
		x[0], x[1] = b0, 1
		p.Write(epoch, flv.New(flv.Video, ms, x))
	}
	for i := range int64(150) {
		if i%50 == 0 {
			write(i*40, 0x17)
		} else {
			write(i*40, 0x27)
		}
	}
	c := p.Stream().NewCursor(CursorOptions{})
	buf := make([]flv.Tag, 8)
	c.Peek(buf)
	c.Advance(2)
	b.ReportAllocs()
	for b.Loop() {
		at := c
		at.Advance(at.Peek(buf))
	}
}

// A tag that begins a new block, after the reader looked at the log, is no reason to skip:
// the reader has all that it saw there.
func TestCursorIsNotBehindWhatItDidNotSee(t *testing.T) {
	f := newFeed(t, nil)
	f.key(0)
	c := f.stream().NewCursor(CursorOptions{})
	var tags [4]flv.Tag
	read := func() {
		for n := c.Peek(tags[:]); n > 0; n = c.Peek(tags[:]) {
			c.Advance(n)
		}
	}
	for i := range int64(4*blockTags - 1) { // twenty seconds
		f.inter(80 * (i + 1))
		read()
	}
	w := f.stream().log.window.Load()
	f.inter(80 * 4 * blockTags)
	if len(f.stream().log.window.Load().blocks) == len(w.blocks) {
		t.Fatal("the tag has begun no block")
	}
	if _, ms, bytes := c.behind(w); ms != 0 || bytes != 0 {
		t.Errorf("behind by %d ms and %d bytes", ms, bytes)
	}
	if !c.place(w) || c.skips.Total() != 0 {
		t.Errorf("skipped: %+v", c.skips)
	}
	if n := c.Peek(tags[:]); n != 1 || tags[0].DTS != 80*4*blockTags {
		t.Errorf("then %d tags, the first of %d ms", n, tags[0].DTS)
	}
}

// What comes all at once, after the stream was cut off from where it comes from, is
// nothing that a reader is too slow for, nor that leaves the log before it was read.
func TestCursorReadsWhatComesAtOnce(t *testing.T) {
	const gop, frames = 50, 500 // twenty seconds of 40 ms
	f := newFeed(t, nil)
	f.key(0)
	c := f.stream().NewCursor(CursorOptions{})
	wantNumbers(t, drain(&c, 8), 1)
	came := epoch.Add(10 * time.Second)
	write := func(i int64) {
		head := byte(0x27)
		if i%gop == 0 {
			head = 0x17
		}
		f.n++
		tag := flv.New(flv.Video, 40*i, binary.BigEndian.AppendUint32([]byte{head, 1, 0, 0, 0}, f.n))
		if err := f.pub.Write(came, tag); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(frames) {
		write(i + 1)
	}
	var want []int
	for i := range frames {
		want = append(want, i+2)
	}
	wantNumbers(t, drain(&c, 8), want...)

	// Who does not read it in time is slow.
	write(frames + 1)
	came = came.Add(DefaultConfig().ViewerDelay + time.Second)
	for i := range int64(200) {
		write(frames + 2 + i)
	}
	drain(&c, 8)
	if got := c.Skips(); got.Time == 0 {
		t.Errorf("skipped %+v", got)
	}
}

// A reader that went back to the end of the log, and falls off it, goes on with the oldest
// that there is; if it falls off again, near live.
func TestCursorThatWentBackFallsOffTheLog(t *testing.T) {
	f := newFeed(t, nil)
	i := int64(0)
	write := func(frames int) {
		for range frames {
			if i%50 == 0 {
				f.key(40 * i)
			} else {
				f.inter(40 * i)
			}
			i++
		}
	}
	write(500)
	c := f.stream().NewCursor(CursorOptions{KeepClock: true, Back: time.Hour})
	var tags [4]flv.Tag
	for _, oldest := range []bool{true, false} {
		c.Advance(c.Peek(tags[:]))
		write(4 * blockTags)
		w := f.stream().log.window.Load()
		want := f.stream().start.Load().Seq
		if oldest {
			want = w.startBefore(time.Hour.Milliseconds(), 0).Seq
		}
		if c.next >= w.first {
			t.Fatal("it has not fallen off")
		}
		if n := c.Peek(tags[:]); n == 0 || c.next != want || !tags[0].Is(flv.Keyframe) {
			t.Errorf("%d tags from %d on, want them from %d on", n, c.next, want)
		}
	}
	if s := c.Skips(); s.OffLog == 0 || s.Total() != s.OffLog {
		t.Errorf("skips %+v", s)
	}
}
