package httpflv

import (
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/flv"
)

const ms = time.Millisecond

// beating returns the pace of a steady stream after n beats.
func beating(period, interval time.Duration, n int) pace {
	var p pace
	for i := range n {
		p.arrive(time.Duration(i+1)*period, 1)
		p.plan(interval)
	}
	return p
}

func TestEveryViewerHasOneTurnInK(t *testing.T) {
	f := func(fps int, interval time.Duration, want uint64) {
		t.Helper()
		period := time.Second / time.Duration(fps)
		p := beating(period, interval, 100)
		if p.every != want {
			t.Fatalf("%d fps at %v: every %d, want %d", fps, interval, p.every, want)
		}
		const viewers = 1000
		turns := make([]int, viewers)
		for b := range 60 {
			p.arrive(time.Duration(101+b)*period, 1)
			p.plan(interval)
			now := 0
			for v := range turns {
				if p.turn(phaseOf(uint32(v))) {
					turns[v]++
					now++
				}
			}
			if share := viewers / int(want); now < share*9/10 || now > share*11/10+1 {
				t.Errorf("%d fps at %v: beat %d flushes %d of %d, want about %d", fps, interval, b, now, viewers, share)
			}
		}
		for v, n := range turns {
			if lo, hi := 60/int(want), (60+int(want)-1)/int(want); n < lo || n > hi {
				t.Errorf("%d fps at %v: viewer %d had %d turns in 60 beats", fps, interval, v, n)
			}
		}
	}
	f(30, 0, 1)
	f(30, 10*ms, 1)
	f(30, 30*ms, 1)
	f(30, 60*ms, 2)
	f(30, 100*ms, 3)
	f(30, 350*ms, 10)
	f(25, 100*ms, 2)
	f(60, 100*ms, 6)
	f(5, 100*ms, 1)
}

func TestBeatsOfOnePassMissNobody(t *testing.T) {
	for fresh := range uint64(6) {
		p := beating(33*ms, 100*ms, 90)
		p.arrive(92*33*ms, fresh)
		p.plan(100 * ms)
		n := 0
		for v := range uint32(300) {
			if p.turn(phaseOf(v)) {
				n++
			}
		}
		want := int(min(fresh, p.every)) * 300 / int(p.every)
		if n < want-3 || n > want+3 {
			t.Errorf("%d beats at once flush %d of 300, want %d", fresh, n, want)
		}
	}
}

func TestPatience(t *testing.T) {
	f := func(period, interval, want time.Duration) {
		t.Helper()
		p := beating(period, interval, 50)
		if got := p.hold; got != want {
			t.Errorf("period %v, interval %v: hold %v, want %v", period, interval, got, want)
		}
	}
	f(40*ms, 100*ms, 120*ms)
	f(40*ms, 10*ms, 15*ms)
	f(40*ms, 0, 0)
	var silent pace
	silent.plan(50 * ms)
	if silent.hold != 50*ms || silent.every != 1 || silent.turn(0) {
		t.Errorf("without beats: %+v", silent)
	}
}

func TestAPauseIsNoRhythm(t *testing.T) {
	p := beating(40*ms, 100*ms, 50)
	p.arrive(p.last+20*time.Second, 1)
	p.plan(100 * ms)
	if p.period != 40*ms {
		t.Errorf("period after a pause is %v", p.period)
	}
}

func TestIntervalFollowsTheCostOfARound(t *testing.T) {
	const lo, hi = 10 * ms, 350 * ms
	f := func(viewers int, each, lo, hi, want time.Duration) {
		t.Helper()
		l := load{interval: lo}
		for range 100 { // each window serves all viewers as often as the interval allows
			rounds := max(1, uint64(loadWindow/max(l.interval, ms)))
			served := rounds * uint64(viewers)
			l.step(time.Duration(served)*each, loadWindow, served, viewers, lo, hi)
		}
		if d := l.interval - want; d < -ms || d > ms {
			t.Errorf("%d viewers of %v each: %v, want %v", viewers, each, l.interval, want)
		}
	}
	us := time.Microsecond
	f(1, 16*us, lo, hi, lo)                // sqrt would be 7 ms
	f(25, 16*us, lo, hi, 35*ms)            // a round of 0.4 ms
	f(250, 12*us, lo, hi, 95*ms)           //
	f(500, 16*us, lo, hi, 155*ms)          //
	f(2000, 16*us, lo, hi, 310*ms)         //
	f(20_000, 16*us, lo, hi, hi)           //
	f(2000, 16*us, 100*ms, 100*ms, 100*ms) // equal bounds fix it
	f(2000, 16*us, 20*ms, 50*ms, 50*ms)    //
	f(40_000, 16*us, lo, 2*time.Second, 1386*ms)
	f(100_000, 16*us, lo, 5*time.Second, 2667*ms) // more than the root: busyMost
}

func TestIntervalWhenNobodyIsServed(t *testing.T) {
	l := load{}
	l.step(0, loadWindow, 0, 0, 10*ms, 350*ms)
	if l.interval != 10*ms {
		t.Errorf("an idle shard has %v, want the least", l.interval)
	}
	l.step(loadWindow/2, loadWindow, 500, 500, 10*ms, 350*ms)
	before := l.interval
	l.step(0, loadWindow, 0, 500, 10*ms, 350*ms) // the streams pause
	if l.interval != before {
		t.Errorf("a pause changes it from %v to %v", before, l.interval)
	}
	l.step(16*time.Microsecond, loadWindow, 1, 1, 10*ms, 350*ms)
	for range 20 {
		l.step(16*time.Microsecond, loadWindow, 1, 1, 10*ms, 350*ms)
	}
	if l.interval != 10*ms {
		t.Errorf("after all but one have left: %v, want the least", l.interval)
	}
}

func TestChooseShard(t *testing.T) {
	f := func(name string, mine, total []int, want int) {
		t.Helper()
		if got := choose(mine, total); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	f("first viewer of a stream", []int{0, 0}, []int{7, 5}, 1)
	f("few stay together", []int{3, 0}, []int{9, 5}, 0)
	f("many spread", []int{homeViewers, 0}, []int{homeViewers, 0}, 1)
	f("not on a crowded shard", []int{3, 0}, []int{500, 5}, 1)
	f("one shard", []int{900}, []int{900}, 0)
}

// TestAwaitsPicture: viewers that are served with pictures only have no use for sound
// before; those that get every tag at once have.
func TestAwaitsPicture(t *testing.T) {
	f := func(merge time.Duration, video, want bool) {
		t.Helper()
		cfg := quickly()
		cfg.MergeMin, cfg.MergeMax = merge, merge
		n := start(t, cfg, auth.DefaultConfig())
		src := n.publish("live/a")
		if video {
			src.headers()
			src.frames(10, 100)
		} else {
			src.write(flv.Audio, aacHeader)
			src.write(flv.Audio, []byte{0xaf, 1, 0})
		}
		if !src.p.AwaitsPicture() {
			t.Error("nobody watches, and somebody wants sound")
		}
		r := n.get(get11("/live/a.flv"))
		r.tag()
		eventually(t, "the feed knows what its viewers want", func() bool {
			if video {
				src.frame(false, 100)
			} else {
				src.dts += 20
				src.write(flv.Audio, []byte{0xaf, 1, 0})
			}
			return src.p.AwaitsPicture() == want
		})
	}
	f(time.Second, true, true)
	f(0, true, false)
	f(time.Second, false, false)
}
