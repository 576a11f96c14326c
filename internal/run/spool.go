package run

import (
	"io"
	"sync"
	"time"
)

// spoolBytes is how much of the log may wait: some thousand lines.
const spoolBytes = 1 << 20

// Spool is a writer that never blocks. What is written goes to another writer, in
// order, by a goroutine of its own; what does not fit while that one is stuck is
// dropped and counted. A program must serve, and
// end, whatever becomes of its log.
type Spool struct {
	// Fixed before the first write.
	to     io.Writer
	report func(lost uint64) // called when the writer takes something after a loss

	// Guarded by mu.
	mu     sync.Mutex
	queue  []byte
	lost   uint64
	closed bool

	news  chan struct{} // capacity 1, never closed
	ended chan struct{} // closed when run has returned
}

// NewSpool returns a spool that writes to w. Close ends its goroutine.
func NewSpool(w io.Writer) *Spool {
	s := &Spool{to: w, news: make(chan struct{}, 1), ended: make(chan struct{})}
	go s.run()
	return s
}

// Write takes one line in, or drops it.
func (s *Spool) Write(line []byte) (int, error) {
	s.mu.Lock()
	if len(s.queue)+len(line) > spoolBytes {
		s.lost++
	} else {
		s.queue = append(s.queue, line...)
	}
	s.mu.Unlock()
	s.wake()
	return len(line), nil
}

func (s *Spool) wake() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// run writes until the spool is closed and empty.
func (s *Spool) run() {
	defer close(s.ended)
	var spare []byte
	for {
		s.mu.Lock()
		out, lost, closed := s.queue, s.lost, s.closed
		s.queue, s.lost = spare[:0], 0
		s.mu.Unlock()
		switch {
		case len(out) > 0:
			_, _ = s.to.Write(out) // there is nobody to tell
			spare = out
			if lost > 0 && s.report != nil {
				s.report(lost)
			}
		case closed:
			return
		default:
			spare = out
			<-s.news
		}
	}
}

// Close writes what waits, and gives up after patience.
func (s *Spool) Close(patience time.Duration) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.wake()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-s.ended:
	case <-t.C:
	}
}
