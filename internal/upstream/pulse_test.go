package upstream

import (
	"errors"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/failover"
)

func TestPulse(t *testing.T) {
	zero := time.Unix(1000, 0)
	at := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	p := pulse{limit: muteTime}
	for _, c := range []struct {
		now, heard int
		ask        bool
		err        error
	}{
		{0, -1, true, nil},
		{5000, -1, false, nil}, // it may not know what a ping is
		{5250, 5100, true, nil},
		{5500, 5260, true, nil},
		{5750, 5260, false, nil},
		{6250, 5260, false, nil},
		{6400, 5260, false, errMute},
	} {
		if ask, err := p.beat(at(c.now), at(c.heard)); ask != c.ask || !errors.Is(err, c.err) {
			t.Errorf("at %d: ask %v, %v", c.now, ask, err)
		}
	}
	if f := failureOf(errMute); f != failover.Timeout {
		t.Errorf("it counts as %v", f)
	}
}

// A center freezes under a stream that is far too thin to fill a buffer: the push goes on at
// the other one.
func TestCenterFreezes(t *testing.T) {
	one, two := start(t, "one"), start(t, "two")
	atOne, _ := one.withRTMP(t)
	atTwo, _ := two.withRTMP(t)
	linkOne, toOne := link(t, atOne)
	linkTwo, toTwo := link(t, atTwo)
	in := start(t, "in", centers(toOne, toTwo))
	url, _ := in.withRTMP(t)
	frozen, good := linkOne, two
	if (&push{o: in.origin, mark: auth.Mark{Stream: "live/a"}}).centers(time.Now())[0] == toTwo {
		frozen, good = linkTwo, one
	}
	if _, err := shoot(t, url+"/live/a"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is pushed", func() bool { return in.count(Pushed, "") == 1 })
	said := frozen.Stats().Down.Bytes
	eventually(t, "a pong came", func() bool { return frozen.Stats().Down.Bytes > said })
	frozen.Freeze()
	eventually(t, "the center is left", func() bool { return in.count(Lost, "timeout") == 1 })
	r := good.attach("live/a")
	defer r.detach()
	if why := r.read(20); why != "" {
		t.Errorf("%s; %v", why, in.origin.Events())
	}
}
