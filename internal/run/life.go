package run

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// HurryTime is what is left to close everything after a second signal.
const HurryTime = 2 * time.Second

// errForced is the end after a third signal.
var errForced = errors.New("a third signal came before everything had stopped")

// Life is what a program does from its first component to its last. Nothing in it is
// nil; all but the functions that Read and Drain return are called from one goroutine,
// that of Run.
type Life struct {
	Parts []Component
	Log   *slog.Logger
	// Ready is called when the components have been started.
	Ready func()
	// Read reads the settings again, in a goroutine of its own: a file may lie on a disk
	// that does not answer. What it returns puts them in force.
	Read func() (apply func())
	// Drain is called at the first signal. over is when the program ends whatever has not
	// stopped by then. wait runs in a goroutine of its own and returns when there is
	// nothing left to wait for; at the latest when ctx ends or hurry is closed.
	Drain func() (over time.Time, wait func(ctx context.Context, hurry <-chan struct{}))
	// Hurry is called at the second signal.
	Hurry func()
}

// Run runs the program until a signal or a failure ends it. It returns the failure.
func (l Life) Run(sigs Signals) error {
	ctx, cancel := context.WithCancel(context.Background())
	var drains sync.WaitGroup
	defer drains.Wait()
	defer cancel()
	over := make(chan error, 1)
	go func() { over <- Group(ctx, l.Parts, l.Log) }()
	l.Ready()

	hurry := make(chan struct{})
	reload, readings := sigs.Reload, make(chan func(), 1) // one at a time
	var last <-chan time.Time
	var drained chan struct{} // closed when there is nothing left to wait for
	ending := 0
	for {
		select {
		case err := <-over:
			return err
		case <-drained:
			cancel()
			drained = nil
		case <-reload:
			reload = nil // until this one is read; a further signal waits
			go func() { readings <- l.Read() }()
		case apply := <-readings:
			apply()
			reload = sigs.Reload
		case s := <-sigs.End:
			switch ending++; ending {
			case 1:
				l.Log.Info("ending", "signal", s.String())
				end, wait := l.Drain()
				last = time.After(time.Until(end))
				drained = make(chan struct{})
				drains.Go(func() {
					defer close(drained)
					wait(ctx, hurry)
				})
			case 2:
				l.Hurry()
				last = time.After(HurryTime)
				close(hurry)
			default:
				return errForced
			}
		case <-last:
			l.Log.Warn("the deadline of the drain is over: ending with what has stopped")
			return nil
		}
	}
}
