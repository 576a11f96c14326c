package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/runtest"
)

// The stages of these tests.
const (
	stageAdmin = iota
	stageHousekeeping
	stageUpstream
	stagePublish
	stageViewers
)

// order notes who stopped, in order.
type order struct {
	mu    sync.Mutex
	names []string
}

func (o *order) note(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.names = append(o.names, name)
}

// part runs until it is told to stop, and takes a while to.
func (o *order) part(name string, stage int, slow time.Duration) Component {
	return Component{name, stage, func(ctx context.Context) error {
		<-ctx.Done()
		time.Sleep(slow)
		o.note(name)
		return nil
	}}
}

func TestGroupStopsByStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o order
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		parts := []Component{
			o.part("admin", stageAdmin, 0),
			o.part("http", stageViewers, 2*time.Second),
			o.part("https", stageViewers, time.Second),
			o.part("rtmp", stagePublish, time.Second),
			o.part("upstream", stageUpstream, time.Second),
		}
		go func() { over <- Group(ctx, parts, slog.New(slog.DiscardHandler)) }()
		synctest.Wait()
		if len(o.names) > 0 {
			t.Errorf("stopped before its time: %v", o.names)
		}
		began := time.Now()
		cancel()
		if err := <-over; err != nil {
			t.Errorf("ended by its context with %v", err)
		}
		if want := []string{"https", "http", "rtmp", "upstream", "admin"}; !slices.Equal(o.names, want) {
			t.Errorf("stopped in the order %v, want %v", o.names, want)
		}
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("took %v, want 4s: the two of one stage stop together", took)
		}
	})
}

func TestFirstFailureStopsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o order
		broken := errors.New("the wire is cut")
		err := Group(t.Context(), []Component{
			o.part("admin", stageAdmin, 0),
			{"rtmp", stagePublish, func(context.Context) error { time.Sleep(time.Second); return broken }},
			{"http", stageViewers, func(ctx context.Context) error { <-ctx.Done(); return errors.New("a later one") }},
		}, slog.New(slog.DiscardHandler))
		if !errors.Is(err, broken) || err.Error() != "rtmp: the wire is cut" {
			t.Errorf("got %v, want the first failure and whose it is", err)
		}
		if want := []string{"admin"}; !slices.Equal(o.names, want) {
			t.Errorf("stopped %v, want %v", o.names, want)
		}
	})
}

func TestPartThatReturnsEarlyIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o order
		err := Group(t.Context(), []Component{
			o.part("admin", stageAdmin, 0),
			{"sweeper", stageHousekeeping, func(context.Context) error { return nil }},
		}, slog.New(slog.DiscardHandler))
		if err == nil || err.Error() != "sweeper: returned before its time" {
			t.Errorf("got %v", err)
		}
	})
}

func TestFailureWhileStoppingIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() {
			over <- Group(ctx, []Component{
				{"http", stageViewers, func(ctx context.Context) error { <-ctx.Done(); return errors.New("not clean") }},
			}, slog.New(slog.DiscardHandler))
		}()
		synctest.Wait()
		cancel()
		if err := <-over; fmt.Sprint(err) != "http: not clean" {
			t.Errorf("got %v", err)
		}
	})
}

func TestSlowPartIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o order
		log := &runtest.Journal{}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := Group(ctx, []Component{
			o.part("http", stageViewers, 3*slowStop-time.Second),
			o.part("admin", stageAdmin, 0),
		}, slog.New(slog.NewJSONHandler(log, nil)))
		if err != nil {
			t.Error(err)
		}
		lines := log.Lines(t, "still stopping")
		if len(lines) != 2 || lines[0]["component"] != "http" || strings.Contains(log.String(), "admin") {
			t.Errorf("the log says %s", log.String())
		}
	})
}
