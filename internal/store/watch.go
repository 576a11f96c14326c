package store

import (
	"context"
	"errors"
	"sync"
)

var errClosed = errors.New("the store is closed")

// hub hands changes to those who watch.
type hub struct {
	running sync.WaitGroup

	// Guarded by mu.
	mu       sync.Mutex
	watchers map[*watcher]struct{}
	end      chan struct{} // capacity 0, closed by close; made by the first watch
	closed   bool
}

// watcher is one who watches. What it has not read yet is a set: a change that waits
// already is not added again, so it holds no more than there are kinds and documents.
type watcher struct {
	out  chan Change   // capacity 0, closed by run
	wake chan struct{} // capacity 1, never closed

	// Guarded by mu.
	mu      sync.Mutex
	waiting []Change
	known   map[Change]bool // what is in waiting
}

// watch returns a channel that is told of changes from now on, until ctx ends or the
// hub is closed.
func (h *hub) watch(ctx context.Context) (<-chan Change, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	if h.watchers == nil {
		h.watchers, h.end = map[*watcher]struct{}{}, make(chan struct{})
	}
	w := &watcher{out: make(chan Change), wake: make(chan struct{}, 1), known: map[Change]bool{}}
	h.watchers[w] = struct{}{}
	end := h.end
	h.running.Go(func() {
		w.run(ctx, end)
		h.mu.Lock()
		delete(h.watchers, w)
		h.mu.Unlock()
	})
	return w.out, nil
}

// tell hands a change to all. It never blocks.
func (h *hub) tell(c Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		w.add(c)
	}
}

// close ends all watching and waits for it. It may be called again.
func (h *hub) close() {
	h.mu.Lock()
	if !h.closed && h.end != nil {
		close(h.end)
	}
	h.closed = true
	h.mu.Unlock()
	h.running.Wait()
}

func (w *watcher) add(c Change) {
	w.mu.Lock()
	if !w.known[c] {
		w.known[c] = true
		w.waiting = append(w.waiting, c)
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default: // it is awake
	}
}

// next takes the oldest change that waits.
func (w *watcher) next() (c Change, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		return Change{}, false
	}
	c = w.waiting[0]
	w.waiting = w.waiting[1:]
	delete(w.known, c)
	return c, true
}

func (w *watcher) run(ctx context.Context, end <-chan struct{}) {
	defer close(w.out)
	for {
		c, ok := w.next()
		if !ok {
			select {
			case <-w.wake:
				continue
			case <-ctx.Done():
				return
			case <-end:
				return
			}
		}
		select {
		case w.out <- c:
		case <-ctx.Done():
			return
		case <-end:
			return
		}
	}
}
