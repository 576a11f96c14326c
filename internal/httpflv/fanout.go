package httpflv

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/session"
	"millrace/internal/stream"
)

// Fanout sends streams to viewers: one shard for each core. It is shared by all
// servers of a node.
type Fanout struct {
	// Fixed at construction.
	log     *slog.Logger
	shards  []*shard
	batches sync.Pool      // of *batch, for first writes
	left    chan departure // capacity leftQueue, never closed

	// Safe from any goroutine.
	cfg      atomic.Pointer[Config]
	admitted atomic.Int64 // viewers of any kind
	first    [3]atomic.Uint64
	unlogged atomic.Uint64 // departures for which left had no room

	// Guarded by mu.
	mu     sync.Mutex
	spread map[*stream.Stream][]int // viewers of a stream on each shard
	total  []int                    // viewers on each shard
}

// departure is what is logged of a viewer that left.
type departure struct {
	stream  string
	peer    string
	role    string
	reason  session.Reason
	bytes   uint64
	skipped uint64
	lasted  time.Duration
}

// leftQueue is how many departures may wait to be logged: a log that blocks must
// not hold up a shard.
const leftQueue = 256

// NewFanout returns a fan-out without viewers. It starts nothing.
func NewFanout(cfg Config, log *slog.Logger) (*Fanout, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return newFanout(cfg, log), nil
}

func newFanout(cfg Config, log *slog.Logger) *Fanout {
	n := cfg.Shards
	if n == 0 {
		n = runtime.GOMAXPROCS(0)
	}
	f := &Fanout{
		log: log, left: make(chan departure, leftQueue),
		spread: make(map[*stream.Stream][]int), total: make([]int, n),
	}
	f.batches.New = func() any { return newBatch() }
	f.cfg.Store(&cfg)
	began := time.Now()
	for range n {
		f.shards = append(f.shards, newShard(f, began))
	}
	return f
}

// Run serves viewers until ctx ends; it then closes them over the configured time
// and returns nil. Another error is that it could not begin.
func (f *Fanout) Run(ctx context.Context) error {
	for i, s := range f.shards {
		if err := s.open(); err != nil {
			for _, opened := range f.shards[:i] {
				opened.close()
			}
			return err
		}
	}
	var shards, logger sync.WaitGroup
	done := make(chan struct{})
	logger.Go(func() { f.logDepartures(done) })
	for _, s := range f.shards {
		shards.Go(func() { s.run(ctx) })
	}
	shards.Wait()
	close(done)
	logger.Wait()
	for _, s := range f.shards {
		s.close()
	}
	return nil
}

// SetConfig changes what can be changed while running: all but the number of
// shards. cfg must be valid.
func (f *Fanout) SetConfig(cfg Config) { f.cfg.Store(&cfg) }

func (f *Fanout) config() *Config { return f.cfg.Load() }

// admit counts one more viewer, or reports that there are as many as may be.
func (f *Fanout) admit() bool {
	if f.admitted.Add(1) > int64(f.config().MaxViewers) {
		f.admitted.Add(-1)
		return false
	}
	return true
}

func (f *Fanout) full() bool { return f.admitted.Load() >= int64(f.config().MaxViewers) }

// homeViewers is up to how many viewers of a stream stay together on one shard: a
// stream that is watched by few should wake one shard only.
const homeViewers = 32

// place chooses the shard for one more viewer of s.
func (f *Fanout) place(s *stream.Stream) *shard {
	f.mu.Lock()
	defer f.mu.Unlock()
	mine := f.spread[s]
	if mine == nil {
		mine = make([]int, len(f.shards))
		f.spread[s] = mine
	}
	i := choose(mine, f.total)
	mine[i]++
	f.total[i]++
	return f.shards[i]
}

// choose returns the shard for a viewer of a stream that has mine viewers, where
// all streams have total: the one with the most of the stream while that is a
// handful, else the one with the fewest viewers.
func choose(mine, total []int) int {
	home, least := 0, 0
	for i := range mine {
		if mine[i] > mine[home] {
			home = i
		}
		if total[i] < total[least] {
			least = i
		}
	}
	if mine[home] > 0 && mine[home] < homeViewers && total[home] <= 2*total[least]+homeViewers {
		return home
	}
	return least
}

// unplace undoes place.
func (f *Fanout) unplace(s *stream.Stream, on *shard) {
	f.mu.Lock()
	defer f.mu.Unlock()
	mine, sum := f.spread[s], 0
	for i := range mine {
		if f.shards[i] == on {
			mine[i]--
			f.total[i]--
		}
		sum += mine[i]
	}
	if sum == 0 {
		delete(f.spread, s)
	}
}

// join hands v to its shard.
func (f *Fanout) join(v *viewer) error {
	s := v.shard
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return errStopped
	}
	s.inbox.joining = append(s.inbox.joining, v)
	s.mu.Unlock()
	s.mail.Store(true)
	s.wake()
	return nil
}

var errStopped = errors.New("the fan-out has stopped")

// kick has v ended by its shard, now or as soon as it gets there.
func (s *shard) kick(v *viewer, r session.Reason) {
	v.kicked.Store(uint32(r))
	s.mu.Lock()
	s.inbox.kicks = append(s.inbox.kicks, kick{v, r})
	s.mu.Unlock()
	s.mail.Store(true)
	s.wake()
}

// ended settles the accounts of a viewer that is closed.
func (f *Fanout) ended(v *viewer, r session.Reason) {
	v.server.hub.Detach(v.stream)
	_ = v.conn.Close() // for whoever counts connections; the socket is closed already
	f.unplace(v.stream, v.shard)
	f.admitted.Add(-1)
	if v.sess == nil {
		v.server.refused(r, string(v.stream.Name()))
		return
	}
	if v.sess.Close(r) {
		f.logLater(v.sess, r)
	}
}

// logLater has the end of a session logged without waiting for the log.
func (f *Fanout) logLater(s *session.Session, r session.Reason) {
	d := departure{
		stream: s.Info.Stream, peer: s.Info.Peer.String(), role: s.Info.Protocol.String(), reason: r,
		bytes: s.Bytes.Load(), skipped: s.Skipped.Load(), lasted: time.Since(s.Info.Started),
	}
	select {
	case f.left <- d:
	default:
		f.unlogged.Add(1)
	}
}

// logDepartures logs until done is closed and nothing waits.
func (f *Fanout) logDepartures(done <-chan struct{}) {
	log := func(d departure) {
		f.log.Info("viewer left", "stream", d.stream, "peer", d.peer, "role", d.role, "reason", d.reason.String(),
			"bytes", d.bytes, "skipped", d.skipped, "lasted", d.lasted.Round(time.Millisecond))
		if n := f.unlogged.Swap(0); n > 0 {
			f.log.Info("more viewers left than the log could take", "count", n)
		}
	}
	for {
		select {
		case d := <-f.left:
			log(d)
		case <-done:
			for {
				select {
				case d := <-f.left:
					log(d)
				default:
					return
				}
			}
		}
	}
}
