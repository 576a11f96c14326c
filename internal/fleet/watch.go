package fleet

import (
	"context"
	"errors"
	"time"

	"millrace/internal/store"
)

const (
	// lookEvery is how often the store is read whether it tells of changes or not.
	lookEvery = 5 * time.Second
	// lookAgain is how soon it is read again after that has failed.
	lookAgain = 500 * time.Millisecond
)

// reload wants everything read from the store.
func (f *Fleet) reload() {
	f.wanted.Add(1)
	select {
	case f.again <- struct{}{}:
	default: // it will be
	}
}

// watchLoop takes up what others edit and publish until ctx ends.
func (f *Fleet) watchLoop(ctx context.Context) {
	changes, err := f.store.Watch(ctx)
	if err != nil {
		f.log.Warn("the store does not tell of changes: it is looked at now and then", "err", err)
	}
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		ok := true
		select {
		case <-ctx.Done():
			return
		case c, open := <-changes:
			if !open {
				changes = nil // until ctx ends, or the store is closed
				continue
			}
			ok = f.readChange(ctx, c)
		case <-f.again:
			ok = f.readStore(ctx)
		case <-next.C:
			ok = f.readStore(ctx)
		}
		if ok {
			next.Reset(lookEvery)
		} else {
			next.Reset(lookAgain)
		}
	}
}

// readChange reads what is said to be new.
func (f *Fleet) readChange(ctx context.Context, c store.Change) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	var err error
	switch c.Kind {
	case store.Documents:
		err = f.readDocuments(ctx, time.Now())
	case kindPlan, kindBundle:
		err = f.readPublished(ctx, time.Now(), c.Kind)
	}
	return f.readFault(ctx, err)
}

// readStore reads all that the store keeps for long. It reports whether it could.
func (f *Fleet) readStore(ctx context.Context) bool {
	wanted := f.wanted.Load()
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	now := time.Now()
	first := f.name.Load() == nil
	if first {
		name, err := f.store.Origin(ctx)
		if err != nil {
			return f.readFault(ctx, err)
		}
		f.name.Store(&name)
		err = f.readPublished(ctx, now, kindRoster)
		f.wake()
		if !f.readFault(ctx, err) {
			f.name.Store(nil)
			return false
		}
	}
	err := errors.Join(f.readDocuments(ctx, now), f.readPublished(ctx, now, kindPlan, kindBundle))
	if err == nil && f.wanted.Load() == wanted {
		f.ready.Store(true)
	}
	return f.readFault(ctx, err)
}

// readFault tells of an error, and reports whether there was none.
func (f *Fleet) readFault(ctx context.Context, err error) bool {
	if err == nil {
		return true
	}
	if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		f.counts.storeErrors.Add(1)
		f.log.Warn("the store could not be read, what was read before stays", "err", err)
	}
	return false
}
