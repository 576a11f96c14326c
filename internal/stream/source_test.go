package stream

import (
	"slices"
	"testing"
	"time"

	"millrace/internal/flv"
	"millrace/internal/session"
)

// bringer is a Source that notes what it is asked.
type bringer struct {
	calls  []string
	brings Name
}

func (b *bringer) Want(s *Stream, d Demand) {
	call := "want " + string(s.Name())
	if d.Peer {
		call += " for a peer"
	}
	b.calls = append(b.calls, call)
}
func (b *bringer) Unwant(s *Stream)      { b.calls = append(b.calls, "unwant "+string(s.Name())) }
func (b *bringer) Brings(s *Stream) bool { return s.Name() == b.brings }
func (b *bringer) Outlook(Name) Outlook {
	return Outlook{Wait: time.Second, Path: []Hop{{Node: "center"}}}
}

// The source hears of every reader, and of the end of the last one.
func TestSourceHearsOfReaders(t *testing.T) {
	h, _ := NewHub(DefaultConfig())
	if h.Outlook("live/a").Wait != 0 {
		t.Error("a hub without a source gives hope")
	}
	b := &bringer{}
	h.SetSource(b)
	s, _ := h.Attach("live/a", Demand{})
	_, _ = h.Attach("live/a", Demand{Peer: true})
	h.Detach(s)
	h.Detach(s)
	want := []string{"want live/a", "want live/a for a peer", "unwant live/a"}
	if !slices.Equal(b.calls, want) {
		t.Errorf("the source heard %q, want %q", b.calls, want)
	}
	if o := h.Outlook("live/a"); o.Wait != time.Second || len(o.Path) != 1 {
		t.Errorf("outlook %+v", o)
	}
	if len(h.Streams()) != 0 {
		t.Error("a stream without readers and publisher is kept")
	}
}

// Who waits for a stream that will not come learns why; who comes later waits anew.
func TestFail(t *testing.T) {
	h, _ := NewHub(DefaultConfig())
	s, _ := h.Attach("live/a", Demand{})
	c := s.NewCursor(CursorOptions{})
	s.Fail(session.Loop)
	if !c.Ended() || s.Failure() != session.Loop {
		t.Errorf("ended %v, failure %v", c.Ended(), s.Failure())
	}
	later := s.NewCursor(CursorOptions{})
	if later.Ended() {
		t.Error("a reader that came after the failure has ended")
	}
	p, _ := h.Publish(epoch, "live/a", "me", nil)
	s.Fail(session.NotFound)
	if later.Ended() || s.Failure() != session.NoKeyframe {
		t.Error("a live stream failed for another reason than what it does not show")
	}
	if p.Close(epoch); s.Failure() != session.NotFound {
		t.Error("an old failure is remembered")
	}
}

// A publisher of this node takes a stream from an upstream at once, never the other
// way round.
func TestPublisherBeforePull(t *testing.T) {
	h, _ := NewHub(DefaultConfig())
	pull, _ := h.Publish(epoch, "live/a", PullOwner, nil)
	own, err := h.Publish(epoch, "live/a", "me", nil)
	if err != nil {
		t.Fatal(err)
	}
	if pull.Reason() != session.Displaced {
		t.Errorf("the pull lost the stream for %v", pull.Reason())
	}
	if _, err := h.Publish(epoch, "live/a", PullOwner, nil); err != ErrBusy {
		t.Errorf("a pull beside a publisher: %v", err)
	}
	own.Close(epoch)
}

// End ends a stream without a grace time.
func TestEnd(t *testing.T) {
	f := newFeed(t, nil)
	c := f.stream().NewCursor(CursorOptions{})
	f.key(0)
	read(&c, 10)
	f.pub.End(epoch)
	if f.stream().State() != Idle || !c.Ended() || f.pub.Reason() != session.StreamEnded {
		t.Errorf("state %v, ended %v, reason %v", f.stream().State(), c.Ended(), f.pub.Reason())
	}
	f.pub.End(epoch)
}

// After Renew a joiner gets nothing old, and those who are there go on.
func TestRenew(t *testing.T) {
	f := newFeed(t, nil)
	there := f.stream().NewCursor(CursorOptions{})
	f.videoHeader()
	f.key(0)
	read(&there, 10)
	f.pub.Renew(77)
	joiner := f.stream().NewCursor(CursorOptions{})
	if got := read(&joiner, 10); len(got) != 0 || f.stream().Epoch() != 77 {
		t.Errorf("a joiner got %v, epoch %d", got, f.stream().Epoch())
	}
	f.inter(40) // belongs to a picture that the new publish has not shown
	n := f.key(80)
	for _, c := range []*Cursor{&there, &joiner} {
		if got := read(c, 10); !slices.Equal(got, []int{int(n)}) {
			t.Errorf("read %v, want %d", got, n)
		}
	}
}

// The headers of a renewed publish come behind all there was, in time too.
func TestRenewedHeaders(t *testing.T) {
	f := newFeed(t, nil)
	f.key(0)
	f.sound(100)
	f.inter(80)
	f.pub.Renew(77)
	c := f.stream().NewCursor(CursorOptions{KeepClock: true})
	f.videoHeader()
	f.key(120)
	for _, tag := range drain(&c, 10) {
		if tag.DTS < 100 {
			t.Errorf("a tag of %v at %d ms", tag.Flags, tag.DTS)
		}
	}
	w := f.stream().log.window.Load()
	for _, b := range w.blocks {
		for i := range b.n.Load() {
			if e := &b.entries[i]; e.tag.Is(flv.Header) && e.tag.DTS != 100 {
				t.Errorf("the header stands at %d ms", e.tag.DTS)
			}
		}
	}
}

// A reader that must know where a publish ends never gets two at once.
func TestOnePublish(t *testing.T) {
	f := newFeed(t, nil)
	c := f.stream().NewCursor(CursorOptions{KeepClock: true, OnePublish: true})
	f.pub.SetEpoch(50)
	a, b := f.key(0), f.inter(40)
	var first [8]flv.Tag
	c.Peek(first[:]) // it has found where to begin
	f.pub.Renew(77)
	d := f.key(80)
	for _, want := range []struct {
		epoch int64
		tags  []int
	}{{50, []int{int(a), int(b)}}, {77, []int{int(d)}}} {
		var dst [8]flv.Tag
		n := c.Peek(dst[:])
		if got := numbers(dst[:n]); !slices.Equal(got, want.tags) || c.Epoch() != want.epoch {
			t.Errorf("got %v of %d, want %v of %d", got, c.Epoch(), want.tags, want.epoch)
		}
		c.Advance(n)
	}
	if c.Epoch() != 0 {
		t.Errorf("behind the end the epoch is %d", c.Epoch())
	}
}

// A reader that asks for what it missed begins at a start point that is old enough.
func TestBack(t *testing.T) {
	f := newFeed(t, nil)
	f.hub.Attach("live/a", Demand{})
	f.videoHeader()
	var keys []int
	for gop := range int64(4) {
		keys = append(keys, int(f.key(gop*1000)))
		f.sound(gop*1000 + 10)
		f.inter(gop*1000 + 500)
	}
	first := func(back time.Duration) int {
		c := f.stream().NewCursor(CursorOptions{KeepClock: true, Back: back})
		var dst [8]flv.Tag
		if n := c.Peek(dst[:]); n < 2 || !dst[0].Is(flv.Header) {
			t.Fatalf("back %v: begins with %d tags, %v", back, n, dst[0].Flags)
		}
		return int(number(dst[1]))
	}
	for _, c := range []struct {
		back time.Duration
		want int
	}{
		{0, keys[3]},
		{100 * time.Millisecond, keys[3]},
		{501 * time.Millisecond, keys[2]},
		{1500 * time.Millisecond, keys[2]},
		{1501 * time.Millisecond, keys[1]},
		{time.Hour, keys[0]},
	} {
		if got := first(c.back); got != c.want {
			t.Errorf("back %v begins at %d, want %d of %v", c.back, got, c.want, keys)
		}
	}
	f.pub.Close(epoch) // in the grace time what was missed is still there
	if got := first(501 * time.Millisecond); got != keys[2] {
		t.Errorf("in the grace time it begins at %d, want %d", got, keys[2])
	}
}

// Without video the start points are audio frames.
func TestBackWithoutVideo(t *testing.T) {
	f := newFeed(t, nil)
	f.audioHeader()
	for ms := int64(0); ms < 3000; ms += 20 {
		f.sound(ms)
	}
	c := f.stream().NewCursor(CursorOptions{KeepClock: true, Back: time.Second})
	var dst [4]flv.Tag
	if n := c.Peek(dst[:]); n < 2 || dst[1].DTS != 1980 {
		t.Errorf("begins at %d ms, want 1980", dst[1].DTS)
	}
}

func read(c *Cursor, piece int) []int { return numbers(drain(c, piece)) }

// A stream that the source works on is kept without readers, until that is over.
func TestBrought(t *testing.T) {
	h, err := NewHub(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	b := &bringer{brings: "live/a"}
	h.SetSource(b)
	for _, n := range []Name{"live/a", "live/b"} {
		s, err := h.Attach(n, Demand{})
		if err != nil {
			t.Fatal(err)
		}
		h.Detach(s)
	}
	if all := h.Streams(); len(all) != 1 || all[0].Name() != "live/a" {
		t.Fatalf("the hub keeps %v, want live/a", all)
	}
	s := h.Streams()[0]
	h.Forget(s)
	if len(h.Streams()) != 1 {
		t.Error("forgotten while it is brought")
	}
	b.brings = ""
	h.Forget(s)
	if len(h.Streams()) != 0 {
		t.Error("kept for nobody")
	}
}

// The name of a clock holds as long as the times that are written are kept.
func TestClockName(t *testing.T) {
	f := newFeed(t, nil)
	clock := func(want string) {
		t.Helper()
		if got := f.stream().Clock(); got != want {
			t.Errorf("the clock is called %q, want %q", got, want)
		}
	}
	clock("")
	f.pub.SetClock("theirs", "ours")
	clock("theirs")
	f.key(0)
	f.key(40)
	f.pub.SetClock("renamed", "ours")
	clock("renamed")
	f.key(1_000_000) // a jump: nobody else maps it to this time
	clock("")
	f.pub.SetClock("theirs", "ours")
	clock("ours")
	f.publish()
	f.pub.SetClock("theirs", "again ours")
	clock("again ours") // it goes on behind the publish before
}

// Who comes back from another node begins behind a hole that has changed the clock: what
// it has of the time before fits to what stands there, but not to what follows.
func TestBackBehindAHole(t *testing.T) {
	for name, want := range map[string]int64{"theirs": 80, "": 0} {
		f := newFeed(t, nil)
		if name != "" { // else it is published here: all there is goes on
			f.pub.SetClock(name, "ours")
		}
		f.key(0)
		f.key(40)
		f.key(20_000) // given out as 80
		f.inter(20_040)
		c := f.stream().NewCursor(CursorOptions{KeepClock: true, Back: time.Minute})
		var tags [8]flv.Tag
		if n := c.Peek(tags[:]); n == 0 || tags[0].DTS != want {
			t.Errorf("on a clock called %q it begins at %d ms, want %d", name, tags[0].DTS, want)
		}
	}
}
