package upstream

import (
	"testing"
	"time"

	"millrace/internal/stream"
)

func TestLag(t *testing.T) {
	zero := time.Unix(1000, 0)
	at := func(ms int64) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	var l lag
	if got := l.at(zero); got != 0 {
		t.Errorf("before the first frame: %v", got)
	}
	f := func(what string, now, dts, want int64) {
		t.Helper()
		l.came(at(now), dts)
		if got := l.at(at(now)); got != time.Duration(want)*time.Millisecond {
			t.Errorf("%s: %v behind, want %d ms", what, got, want)
		}
	}
	f("the first of a burst", 0, 7000, 0)
	f("the last of it", 0, 9000, 0)
	f("as it was made", 1000, 10_000, 0)
	f("later", 2000, 10_600, 400)
	f("a sound from before", 2000, 10_500, 400)
	f("at 60 %", 4000, 11_800, 1200)
	if got := l.at(at(5000)); got != 2200*time.Millisecond {
		t.Errorf("when nothing comes: %v", got)
	}
	f("all is made up for", 6000, 15_000, 0)
	span := lagSpan.Milliseconds()
	f("long after", 6000+span, 14_000+span, 1000)
	f("what was quickest is forgotten", 6000+2*span, 14_000+2*span, 0)
	f("nothing new for a minute", 66_000+2*span, 14_000+2*span, maxLag.Milliseconds())
}

// Whose upstream is behind, but never silent, asks another one for what it has not had.
func TestBackCoversWhatIsBehind(t *testing.T) {
	n := start(t, "edge")
	s, err := n.hub.Attach("live/a", stream.Demand{})
	if err != nil {
		t.Fatal(err)
	}
	defer n.hub.Detach(s)
	x := newSession(n.origin, s, stream.Demand{})
	now := time.Now()
	for i := range int64(100) { // at half the speed
		x.newestAt = now.Add(time.Duration(i) * 80 * time.Millisecond)
		x.lag.came(x.newestAt, 40*i)
	}
	if got, want := x.backFor(x.newestAt), 99*40*time.Millisecond+backMargin; got != want {
		t.Errorf("it asks for %v, want %v", got, want)
	}
	x.lag = lag{}
	if got := x.backFor(x.newestAt); got != minBack {
		t.Errorf("where nothing is behind it asks for %v", got)
	}
	if got, want := x.backFor(x.newestAt.Add(4*time.Second)), 4*time.Second+backMargin; got != want {
		t.Errorf("after silence it asks for %v, want %v", got, want)
	}
}
