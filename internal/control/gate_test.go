package control

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(2)
		var wg sync.WaitGroup
		var in, refused, most atomic.Int64
		for range 2*waitersEach + 500 {
			wg.Go(func() {
				if !g.enter() {
					refused.Add(1)
					return
				}
				begun := time.Now()
				if n := in.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(2 * time.Millisecond)
				in.Add(-1)
				g.leave(begun, time.Now())
			})
		}
		wg.Wait()
		// Of the 1500, a thousand and two were let in or in the queue; in 800 ms 800 had
		// their turn, give or take those of the first and last moment.
		if n := refused.Load(); most.Load() != 2 || n < 690 || n > 710 || g.waiting.Load() != 0 {
			t.Errorf("%d at once, %d refused, %d wait", most.Load(), n, g.waiting.Load())
		}
		if s := g.stretch(time.Now()); s <= 1 || s > mostStretch {
			t.Errorf("stretched by %v", s)
		}
		time.Sleep(2 * time.Second)
		if s := g.stretch(time.Now()); s != 1 {
			t.Errorf("stretched by %v when there is nothing to do", s)
		}
	})
}

func TestGateStretch(t *testing.T) {
	g := newGate(100)
	half := time.Duration(min(runtime.GOMAXPROCS(0), 100)) * time.Second / 2
	for _, c := range []struct {
		spent time.Duration
		want  float64
	}{{0, 1}, {half / 2, 1}, {half, 1}, {half * 3 / 2, 1.5}, {half * 2, 2}, {half * 40, mostStretch}} {
		g.second, g.before, g.now = noon.Unix(), work{spent: c.spent}, work{}
		if got := g.stretch(noon); got != c.want {
			t.Errorf("%v of work: %v, want %v", c.spent, got, c.want)
		}
		if got := g.stretch(noon.Add(time.Hour)); got != 1 {
			t.Errorf("an hour after %v of work: %v", c.spent, got)
		}
	}
}

func TestGateSendsAway(t *testing.T) {
	g := newGate(1)
	longest := func(taken int) (most int) {
		g.second, g.before, g.now = noon.Unix(), work{}, work{taken: taken}
		for range 1000 {
			most = max(most, g.reject(noon))
		}
		return most
	}
	if few, crowd := longest(10_000), longest(10); few != shortRest || crowd != longRest {
		t.Errorf("sent away for %d s at most, and from a crowd for %d", few, crowd)
	}
}

func TestGateRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fleet := newRouter(t, "r1", clusterKey)
		for range cap(s.gate.places) {
			s.gate.enter()
		}
		text := mustJSON(goodHeartbeat(time.Now()))
		answer := post(t, s, heartbeatPath, text, signed(s.cluster, "", text))
		if !strings.Contains(answer, " 503 ") || !strings.Contains(answer, "Retry-After: ") || !strings.Contains(answer, `"reason":"too_many"`) || len(fleet.heartbeats()) != 0 {
			t.Errorf("got %s", answer)
		}
		// When too many wait, nothing is computed for one more: not even who it is.
		s.gate.waiting.Store(s.gate.waiters)
		if answer := post(t, s, heartbeatPath, text, nil); !strings.Contains(answer, `"reason":"too_many"`) {
			t.Errorf("got %s", answer)
		}
	})
}

func TestBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes = 1000
		fleet, b := newFleet("r1"), newBoard(500)
		papers := [2]*OrdersPaper{NewOrdersPaper(ordersOf("e", 1, "r1")), NewOrdersPaper(ordersOf("e", 2, "r2"))}
		for i := range nodes {
			fleet.orders[fmt.Sprint("e", i)] = papers[0]
		}
		var wg sync.WaitGroup
		var woken, latest atomic.Int64
		begun := time.Now()
		for i := range nodes {
			wg.Go(func() {
				p, ok := b.await(fleet, fmt.Sprint("e", i), papers[0].Token(), 30*time.Second, nodes, nil)
				if !ok {
					t.Error("refused")
				}
				if p == papers[1] {
					woken.Add(1)
					if d := int64(time.Since(begun)); d > latest.Load() {
						latest.Store(d)
					}
				}
			})
		}
		synctest.Wait()
		if b.waiters() != nodes {
			t.Fatalf("%d wait", b.waiters())
		}
		if _, ok := b.await(fleet, "e0", papers[0].Token(), time.Second, nodes, nil); ok {
			t.Error("one more is let wait")
		}
		fleet.with(func() {
			for i := range nodes / 2 {
				fleet.orders[fmt.Sprint("e", i)] = papers[1]
			}
		})
		b.wake([]string{"e0", "nobody"})
		synctest.Wait()
		pass(100 * time.Millisecond)
		if woken.Load() != 1 {
			t.Errorf("%d were woken", woken.Load())
		}
		all := make([]string, nodes)
		for i := range all {
			all[i] = fmt.Sprint("e", i)
		}
		b.wake(all)
		wg.Wait()
		// At 500 a second 999 of them take two seconds.
		if d := time.Duration(latest.Load()); woken.Load() != nodes/2 || d < 1500*time.Millisecond || d > 2200*time.Millisecond {
			t.Errorf("%d were woken, the last after %v", woken.Load(), d)
		}
		if len(b.desks) != 0 || b.waiters() != 0 {
			t.Errorf("%d desks are left", len(b.desks))
		}
		// Those who wait are let go when the server ends, with what there is.
		ended := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(ended) })
		begun = time.Now()
		if p, ok := b.await(fleet, "e0", papers[1].Token(), time.Minute, 1, ended); !ok || p != papers[1] || time.Since(begun) != time.Second {
			t.Errorf("got %v, %v after %v", p, ok, time.Since(begun))
		}
	})
}
