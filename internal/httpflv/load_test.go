package httpflv

import (
	"log/slog"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestMeter(t *testing.T) {
	var m meter
	load := func() float64 { return math.Float64frombits(m.load.Load()) }
	at, bytes := 3*time.Second, uint64(1000)
	f := func(step time.Duration, more uint64, want float64) {
		t.Helper()
		at, bytes = at+step, bytes+more
		m.sample(at, bytes)
		if got := load(); math.Abs(got-want) > 0.01 {
			t.Errorf("after %v: %v bytes/s, want %v", at, got, want)
		}
	}
	f(0, 0, 0) // what was before does not count
	f(time.Second, 100, 100)
	f(time.Second, 300, 200)
	f(0, 0, 200)
	f(2*time.Second, 0, 100)
	m = meter{}
	f(0, 0, 0)
	for range 2 * loadSteps {
		f(time.Second, 500, 500)
	}
	for i := range loadSteps {
		f(time.Second, 0, float64(500*(loadSteps-1-i))/loadSteps)
	}
	f(time.Second, 1<<40, float64(1<<40)/loadSteps)
}

// TestMeasure: bytes count by whatever way they went.
func TestMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.Shards = 2
		fan := newFanout(cfg, slog.New(slog.DiscardHandler))
		done := make(chan struct{})
		var measuring sync.WaitGroup
		measuring.Go(func() { fan.measure(done) })
		synctest.Wait()
		if got := fan.Stats().Load; got != 0 {
			t.Errorf("load %v at the start", got)
		}
		time.Sleep(loadEvery / 2)
		for range 2 * loadSteps {
			fan.relayed.Add(1000)
			fan.first[2].Add(200)
			fan.shards[1].stats.bytes.Add(30)
			time.Sleep(loadEvery)
		}
		if got := fan.Stats().Load; math.Abs(got-1230) > 1e-6 {
			t.Errorf("load %v, want 1230", got)
		}
		close(done)
		measuring.Wait()
	})
}

func TestCrowded(t *testing.T) {
	f := func(limit int, viewers int64, want bool) {
		t.Helper()
		cfg := DefaultConfig()
		cfg.MaxViewers, cfg.Shards = limit, 1
		fan := newFanout(cfg, slog.New(slog.DiscardHandler))
		fan.admitted.Store(viewers)
		if got := fan.crowded(); got != want {
			t.Errorf("%d of %d: crowded is %v", viewers, limit, got)
		}
	}
	f(1, 0, false)
	f(1, 1, true)
	f(49, 48, false)
	f(49, 49, true)
	f(50, 49, true)
	f(10_000, 9_799, false)
	f(10_000, 9_800, true)
	f(10_000, 10_000, true)
}
