package stream

import (
	"testing"
	"time"

	"millrace/internal/flv"
)

// TestReadersGetTheRest: the end of a stream does not take from its readers what they
// have not read yet, whichever way it ends; who comes later gets none of it.
func TestReadersGetTheRest(t *testing.T) {
	for name, end := range map[string]func(*feed){
		"after its grace time": func(f *feed) {
			f.pub.Close(epoch)
			f.hub.Sweep(epoch.Add(time.Minute))
		},
		"at once": func(f *feed) { f.pub.End(epoch.Add(time.Minute)) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeed(t, nil)
			s, err := f.hub.Attach("live/a", Demand{})
			if err != nil {
				t.Fatal(err)
			}
			f.videoHeader() // 1
			f.key(0)        // 2
			c, late := s.NewCursor(CursorOptions{}), s.NewCursor(CursorOptions{})
			wantNumbers(t, drain(&c, 8), 1, 2)
			wantNumbers(t, drain(&late, 8), 1, 2)
			f.inter(40) // 3
			f.inter(80) // 4
			end(f)
			if s.State() != Idle || c.Ended() {
				t.Errorf("state %v, ended %v with two tags unread", s.State(), c.Ended())
			}
			buf := make([]flv.Tag, 4)
			if n := c.Peek(buf); n != 2 {
				t.Fatalf("%d tags are left, want 2", n)
			}
			if c.Advance(1); c.Ended() {
				t.Error("ended with a tag unread")
			}
			if c.Advance(1); !c.Ended() {
				t.Error("not ended with everything read")
			}
			for _, opt := range []CursorOptions{{}, {KeepClock: true, Back: time.Hour}} {
				joiner := s.NewCursor(opt)
				if got := drain(&joiner, 8); len(got) != 0 || joiner.Ended() {
					t.Errorf("a joiner after the end reads %v, ended %v", numbers(got), joiner.Ended())
				}
			}

			var w counter
			s.Watch(&w)
			f.hub.Sweep(epoch.Add(time.Minute + DefaultConfig().ViewerDelay))
			if f.hub.sum.bytes.Load() != 0 || !late.Ended() || w.n.Load() != 1 {
				t.Errorf("after the time for that: %d bytes, ended %v, woken %d times", f.hub.sum.bytes.Load(), late.Ended(), w.n.Load())
			}
			if f.hub.Detach(s); len(f.hub.Streams()) != 0 {
				t.Error("the stream is kept")
			}
		})
	}
}

// TestTheRestGoesWithTheLastReader: nothing of a stream that is over stays without one.
func TestTheRestGoesWithTheLastReader(t *testing.T) {
	f := newFeed(t, nil)
	s, err := f.hub.Attach("live/a", Demand{})
	if err != nil {
		t.Fatal(err)
	}
	f.write(flv.Video, 0, 1<<20, 0x17, 1, 0, 0, 0)
	f.pub.End(epoch)
	if f.hub.sum.bytes.Load() == 0 {
		t.Error("the log is cleared while there is a reader")
	}
	f.hub.Detach(s)
	if n := f.hub.sum.bytes.Load(); n != 0 || f.hub.Cleared() < 1<<20 {
		t.Errorf("%d bytes are left, %d cleared", n, f.hub.Cleared())
	}
}
