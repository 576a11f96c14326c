package rtmp

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"millrace/internal/session"
)

// freeLines is how many equal endings a second have a line each.
const freeLines = 5

// flood keeps the log readable. Of equal events it lets a few through in each
// second; the others are counted and reported together when the second is over.
type flood struct {
	log *slog.Logger

	// Guarded by mu.
	mu     sync.Mutex
	counts map[floodKey]int
}

// floodKey is what makes events equal.
type floodKey struct {
	event  string
	reason session.Reason
}

// allow counts an event and reports whether it may have a line of its own.
func (f *flood) allow(event string, r session.Reason, free int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts == nil {
		f.counts = make(map[floodKey]int)
	}
	k := floodKey{event, r}
	if _, ok := f.counts[k]; !ok {
		f.counts[k] = -free
	}
	f.counts[k]++
	return f.counts[k] <= 0
}

// run reports once a second until ctx is done.
func (f *flood) run(ctx context.Context) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			f.report()
		case <-ctx.Done():
			f.report()
			return
		}
	}
}

// report tells what was held back and begins a new second.
func (f *flood) report() {
	f.mu.Lock()
	counts := f.counts
	f.counts = nil
	f.mu.Unlock()
	for k, n := range counts {
		switch {
		case n <= 0:
		case k.reason == session.None:
			f.log.Info(k.event, "count", n)
		default:
			f.log.Info(k.event, "reason", k.reason, "count", n)
		}
	}
}
