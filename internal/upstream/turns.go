package upstream

import (
	"slices"
	"sync"
)

// turns bounds how many streams are looked for at once. The newest of those who wait is
// next: with names that are nowhere in a flood, the oldest have lost their viewers
// already, and whoever asks for a live stream is let in before the flood goes on, instead
// of behind all of it.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting []chan struct{} // the newest last; closed when it has its turn
}

func newTurns(n int) *turns { return &turns{free: n} }

// ask takes a turn. If there is none it returns a channel, which is closed when the turn
// has come; who cannot wait so long has to leave.
func (t *turns) ask() (wait chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free > 0 {
		t.free--
		return nil
	}
	wait = make(chan struct{})
	t.waiting = append(t.waiting, wait)
	return wait
}

// leave gives up waiting. It returns false if the turn has come meanwhile.
func (t *turns) leave(wait chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting, wait)
	if i < 0 {
		return false
	}
	t.waiting = slices.Delete(t.waiting, i, i+1)
	return true
}

// give hands a turn on.
func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.waiting) - 1
	if n < 0 {
		t.free++
		return
	}
	close(t.waiting[n])
	t.waiting = slices.Delete(t.waiting, n, n+1)
}
