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
	began   time.Time // time 0 of its clock and the shards'
	shards  []*shard
	batches sync.Pool      // of *batch, for first writes
	left    chan departure // capacity leftQueue, never closed

	// Safe from any goroutine.
	cfg            atomic.Pointer[Config]
	admitted       atomic.Int64 // viewers of any kind
	first          [3]atomic.Uint64
	relayed        atomic.Uint64 // bytes of the viewers that are on no shard
	trunks, riders atomic.Int64  // of nodes below, and the streams on them
	unlogged       atomic.Uint64 // departures for which left had no room
	closeBy        atomic.Int64  // when no viewer may be left, 0 until somebody says

	// Guarded by mu.
	mu     sync.Mutex
	spread map[*stream.Stream][]int // viewers of a stream on each shard
	total  []int                    // viewers on each shard

	// Owned by measure, but for what it shows.
	meter meter
}

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
		log: log, began: time.Now(), left: make(chan departure, leftQueue),
		spread: make(map[*stream.Stream][]int), total: make([]int, n),
	}
	f.batches.New = func() any { return newBatch() }
	f.cfg.Store(&cfg)
	for range n {
		f.shards = append(f.shards, newShard(f, f.began))
	}
	return f
}

// Run serves viewers until ctx ends; it then closes them, by the time that was given
// to CloseBy or else over the configured time, and returns nil. Another error is that
// it could not begin.
func (f *Fanout) Run(ctx context.Context) error {
	for i, s := range f.shards {
		if err := s.open(); err != nil {
			for _, opened := range f.shards[:i] {
				opened.close()
			}
			return err
		}
	}
	var shards, clerks sync.WaitGroup
	done := make(chan struct{})
	clerks.Go(func() { f.logDepartures(done) })
	clerks.Go(func() { f.measure(done) })
	for _, s := range f.shards {
		shards.Go(func() { s.run(ctx) })
	}
	shards.Wait()
	close(done)
	clerks.Wait()
	for _, s := range f.shards {
		s.close()
	}
	return nil
}

// CloseBy says until when all viewers are to be closed once the node ends, those of
// servers as well. A later call can make it earlier, also while they are being closed.
func (f *Fanout) CloseBy(at time.Time) {
	by := max(1, int64(at.Sub(f.began)))
	for {
		old := f.closeBy.Load()
		if old != 0 && old <= by {
			return
		}
		if f.closeBy.CompareAndSwap(old, by) {
			return
		}
	}
}

// keep returns how many of total viewers are not closed yet at now, when the closing
// began at begun.
func (f *Fanout) keep(total int, begun, now time.Duration) int {
	end := begun + f.config().DrainSpread
	if by := time.Duration(f.closeBy.Load()); by != 0 {
		end = by
	}
	if now >= end {
		return 0
	}
	return int(float64(total) * float64(end-now) / float64(end-begun))
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

// ended settles the accounts of a viewer that is closed, and has that logged.
func (f *Fanout) ended(v *viewer, r session.Reason) {
	if f.settle(v, r) {
		f.logLater(v.sess, r)
	}
}

// settle settles the accounts of a viewer that is closed, and reports whether the end of
// its session is to be logged.
func (f *Fanout) settle(v *viewer, r session.Reason) bool {
	v.server.hub.Detach(v.stream)
	_ = v.conn.Close() // for whoever counts connections; the socket is closed already
	f.unplace(v.stream, v.shard)
	f.admitted.Add(-1)
	if v.sess == nil {
		v.server.refused(v.info, r, "")
		return false
	}
	if !v.sess.Close(r) {
		return false
	}
	v.server.self.Quality.Ended(v.info.Peer.Addr(), r)
	return true
}

// came logs the beginning of a session for who looks closely. Unlike an end it may
// wait for the log.
func (f *Fanout) came(s *session.Session) {
	if !f.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	i := &s.Info
	f.log.Debug("viewer came", "stream", i.Stream, "peer", i.Peer, "protocol", i.Protocol, "tls", i.TLS, "agent", i.Agent, "session", s.ID)
}
