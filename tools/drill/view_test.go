package drill

import (
	"testing"
	"time"
)

// at makes frames of one epoch that come at the given times, one for each step of
// media time, in ms.
func at(step int64, ms ...int64) (out []frame) {
	zero := time.Unix(1, 0)
	for i, m := range ms {
		out = append(out, frame{at: zero.Add(time.Duration(m) * time.Millisecond), media: int64(i) * step, seq: int64(i), epoch: 1})
	}
	return out
}

func TestStalls(t *testing.T) {
	f := func(name string, frames []frame, wantN int, want time.Duration) {
		t.Helper()
		if n, total := stalls(frames, time.Second); n != wantN || total != want {
			t.Errorf("%s: %d stalls of %v, want %d of %v", name, n, total, wantN, want)
		}
	}
	f("nothing", nil, 0, 0)
	f("on time", at(500, 0, 500, 1000, 1500, 2000, 2500), 0, 0)
	f("late by less than the buffer", at(500, 0, 500, 1000, 2400, 2500, 2500), 0, 0)
	f("late by more", at(500, 0, 500, 1000, 2700, 2700, 2700), 1, 200*time.Millisecond)
	f("later and later", at(500, 0, 500, 1000, 2700, 3400, 4100), 1, 600*time.Millisecond)
	f("late twice", at(500, 0, 500, 1000, 2700, 2700, 2700, 4300), 2, 300*time.Millisecond)
	// The first frames are three seconds old: the player passes them over.
	f("a GOP at once", at(1000, 0, 0, 0, 0, 1000, 2000, 3000), 0, 0)
	again := at(500, 0, 500, 1000, 9000, 9500)
	for i := range again[3:] {
		again[3+i].epoch = 2
	}
	f("another publish", again, 0, 0)
}

func TestMissing(t *testing.T) {
	f := func(want uint64, seqs ...int64) {
		t.Helper()
		var frames []frame
		for _, s := range seqs {
			frames = append(frames, frame{seq: s % 100, epoch: s / 100})
		}
		if n := missing(frames); n != want {
			t.Errorf("%v: %d missing, want %d", seqs, n, want)
		}
		if text := holes(frames, time.Time{}); (text == "") != (want == 0) {
			t.Errorf("%v: holes %q", seqs, text)
		}
	}
	f(0)
	f(0, 5, 6, 7)
	f(0, 5, 7, 6, 6)
	f(2, 5, 8, 9)
	f(0, 5, 6, 150, 151) // what a publish began before the viewer came is not missing
	f(1, 5, 6, 150, 152)
}

func TestNamesOfCases(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		if found, ok := Find(c.Name); !ok || found.About != c.About || seen[c.Name] {
			t.Errorf("%s is not found, or there twice", c.Name)
		}
		seen[c.Name] = true
		if c.Runs < 1 || c.Item < 1 || c.Item > 11 {
			t.Errorf("%s: %d runs for item %d", c.Name, c.Runs, c.Item)
		}
	}
	if _, ok := Find("none"); ok {
		t.Error("there is a case none")
	}
}

func TestBursts(t *testing.T) {
	for _, c := range [][2]time.Duration{{0, 3}, {2999 * time.Millisecond / time.Second, 3}, {3, 6}, {4, 6}} {
		if got := bursts(c[0] * time.Second); got != c[1]*time.Second {
			t.Errorf("a frame of %v is sent at %v, want %v", c[0]*time.Second, got, c[1]*time.Second)
		}
	}
}

func TestRuns(t *testing.T) {
	at := time.Unix(3, 0)
	f := func(seq, epoch, shift int64) frame {
		return frame{at: at, media: 100 * seq, time: 100*seq + shift, seq: seq, epoch: epoch}
	}
	got := runs([]frame{f(0, 1000, 0), f(1, 1000, 0), f(1, 1000, 50), f(3, 1000, 50), f(0, 2000, 300)})
	clock := at.Format("05.000")
	at0 := clock + " to " + clock + ": "
	want := at0 + "0 to 1 of 01.000, +0 ms; " + at0 + "1 to 1 of 01.000, +50 ms; " + at0 + "3 to 3 of 01.000, +50 ms; " +
		at0 + "0 to 0 of 02.000, +300 ms"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
