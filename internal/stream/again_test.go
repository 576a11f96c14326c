package stream

import (
	"errors"
	"slices"
	"testing"
	"time"

	"millrace/internal/session"
)

// again continues the feed with what comes from another node.
func (f *feed) again(t *testing.T, owner string, epoch int64) (*Publisher, error) {
	t.Helper()
	p, err := f.hub.Continue(time.Unix(1_000, 0), "live/a", owner, epoch, nil)
	if err == nil {
		f.pub = p
	}
	return p, err
}

// A publish that comes another way goes on: its clock, its headers, and no wait for a
// keyframe; in its grace time and before.
func TestContinue(t *testing.T) {
	for _, grace := range []bool{false, true} {
		f := newFeed(t, nil)
		s, err := f.hub.Attach("live/a", Demand{})
		if err != nil {
			t.Fatal(err)
		}
		newer := s.Epoch() + 77
		if _, err := f.again(t, "me", newer); err != nil {
			t.Fatal(err)
		}
		c := s.NewCursor(CursorOptions{KeepClock: true})
		header := f.videoHeader()
		a, b := f.key(5000), f.inter(5040)
		f.pub.SetClock("there", "mapped")
		if got := read(&c, 10); !slices.Equal(got, []int{int(header), int(a), int(b)}) {
			t.Errorf("read %v at first", got)
		}
		if grace {
			f.pub.Close(epoch)
		}
		var past []int
		for _, tag := range s.Past() {
			past = append(past, int(number(tag)))
		}
		if want := []int{int(header), int(header), int(a), int(b)}; !slices.Equal(past, want) {
			t.Errorf("the past is %v, want %v", past, want)
		}
		p, err := f.again(t, "me", newer)
		if err != nil || !p.Resumed() || s.Epoch() != newer {
			t.Fatalf("%v: epoch %d", err, s.Epoch())
		}
		p.SetClock("there", "mapped")
		d := f.inter(5080)
		if got := read(&c, 10); !slices.Equal(got, []int{int(d)}) || s.Clock() != "there" {
			t.Errorf("read %v, want %d, on %q", got, d, s.Clock())
		}
		if newest, _ := s.Newest(); newest != 5080 {
			t.Errorf("the newest is at %d ms, want 5080", newest)
		}
		joiner := s.NewCursor(CursorOptions{})
		k := f.key(5120)
		if got := read(&joiner, 10); grace && !slices.Equal(got, []int{int(header), int(k)}) {
			t.Errorf("a joiner in the grace time read %v, want the header and %d", got, k)
		}
	}
}

// What is older than what readers have had is refused as long as they are there, and
// what is newer begins anew.
func TestContinueOlder(t *testing.T) {
	f := newFeed(t, nil)
	s, err := f.hub.Attach("live/a", Demand{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.again(t, "me", s.Epoch()+77); err != nil {
		t.Fatal(err)
	}
	f.key(0)
	had := s.Epoch()
	f.pub.Close(epoch)
	for _, owner := range []string{"me", PullOwner} {
		if _, err := f.again(t, owner, had-1); !errors.Is(err, ErrOlder) || !errors.Is(err, ErrBusy) {
			t.Errorf("%q gets %v in the grace time, want ErrOlder", owner, err)
		}
	}
	p, err := f.again(t, PullOwner, had+1)
	if err != nil || p.Resumed() || len(s.Past()) > 0 {
		t.Fatalf("a newer one: resumed %v, past %v, %v", p.Resumed(), s.Past(), err)
	}
	if _, err := f.again(t, "me", had); !errors.Is(err, ErrOlder) || p.Reason() != session.None {
		t.Errorf("an older one gets %v beside a pull, which is %v", err, p.Reason())
	}
	f.pub.End(epoch) // its readers are told
	if _, err := f.again(t, PullOwner, had); err != nil {
		t.Errorf("after the end an older one gets %v", err)
	}
	f.pub.End(epoch)
	if _, err := f.again(t, PullOwner, 0); err != nil || s.Epoch() != 0 {
		t.Errorf("one of unknown age gets %v, and the epoch %d", err, s.Epoch())
	}
}

// While a publish rests at its origin a joiner gets nothing old, and when it goes on the
// headers are there.
func TestPause(t *testing.T) {
	f := newFeed(t, nil)
	header := f.videoHeader()
	f.key(0)
	f.pub.Pause()
	joiner := f.stream().NewCursor(CursorOptions{})
	f.inter(40)
	if got := read(&joiner, 10); len(got) != 0 {
		t.Errorf("a joiner got %v", got)
	}
	k := f.key(80)
	if got := read(&joiner, 10); !slices.Equal(got, []int{int(header), int(k)}) {
		t.Errorf("read %v, want the header and %d", got, k)
	}
}

// Who asks for what it has missed gets nothing of an older publish: it would take it for
// a part of the new one.
func TestBackStaysInThePublish(t *testing.T) {
	f := newFeed(t, nil)
	s, err := f.hub.Attach("live/a", Demand{})
	if err != nil {
		t.Fatal(err)
	}
	f.key(0)
	f.inter(40)
	first := func() *Cursor {
		c := s.NewCursor(CursorOptions{KeepClock: true, Back: time.Minute})
		return &c
	}
	f.pub.Renew(s.Epoch() + 1)
	if got := read(first(), 10); len(got) != 0 {
		t.Errorf("read %v, want nothing yet", got)
	}
	a := f.key(80)
	b := f.key(120)
	if got := read(first(), 10); !slices.Equal(got, []int{int(a), int(b)}) {
		t.Errorf("read %v, want %d and %d", got, a, b)
	}
	f.publish()
	d := f.key(0)
	if got := read(first(), 10); !slices.Equal(got, []int{int(d)}) {
		t.Errorf("read %v, want %d", got, d)
	}
}

// Who reads what one publisher writes gets nothing of the next, although that has the
// same publish again by another way.
func TestOnlyOfOne(t *testing.T) {
	f := newFeed(t, nil)
	s, err := f.hub.Attach("live/a", Demand{})
	if err != nil {
		t.Fatal(err)
	}
	first := f.pub
	c := s.NewCursor(CursorOptions{KeepClock: true, Of: first})
	a, b := f.key(0), f.inter(40)
	if got := read(&c, 1); !slices.Equal(got, []int{int(a), int(b)}) {
		t.Errorf("read %v, want %d and %d", got, a, b)
	}
	d := f.inter(80)
	f.pub.Close(epoch)
	if _, err := f.again(t, PullOwner, s.Epoch()); err != nil {
		t.Fatal(err)
	}
	f.inter(120)
	f.key(160)
	if got := read(&c, 10); !slices.Equal(got, []int{int(d)}) {
		t.Errorf("read %v, want %d alone", got, d)
	}
	late := s.NewCursor(CursorOptions{KeepClock: true, Of: first, Back: time.Minute})
	if got := read(&late, 10); !slices.Equal(got, []int{int(a), int(b), int(d)}) {
		t.Errorf("later, read %v, want %d, %d and %d", got, a, b, d)
	}
	displaced := f.pub
	c = s.NewCursor(CursorOptions{KeepClock: true, Of: displaced})
	f.pub, err = f.hub.Publish(epoch, "live/a", "me", nil)
	if err != nil {
		t.Fatal(err)
	}
	f.key(0)
	if got := read(&c, 10); len(got) != 0 {
		t.Errorf("of one that was displaced, read %v", got)
	}
}
