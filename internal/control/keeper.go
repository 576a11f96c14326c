package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"millrace/internal/sched"
)

// KeeperConfig says how often views are made.
type KeeperConfig struct {
	// Interval is from one view to the next. Short follows load and health closely; a
	// view of 5,000 nodes takes some milliseconds.
	Interval time.Duration
	// Observer is the id of this program: what it observes itself is told to others.
	Observer string
}

// urgent is the least time between two views, when nodes fall or drain.
const urgent = 100 * time.Millisecond

// DefaultKeeperConfig makes a view each second.
func DefaultKeeperConfig() KeeperConfig { return KeeperConfig{Interval: time.Second} }

// Validate checks the interval.
func (c KeeperConfig) Validate() error {
	if c.Interval < urgent || c.Interval > time.Minute {
		return fmt.Errorf("interval is %v: use %v to 1m", c.Interval, urgent)
	}
	return nil
}

// Listener hears of what a Keeper has. Its methods are called by one goroutine and
// should return soon.
type Listener interface {
	// Bundle is called with each bundle that comes into use.
	Bundle(b *Bundle)
	// Report is called after each view with what this program has itself observed, not to
	// be changed.
	Report(r *Report)
}

// Keeper owns what changes: it takes bundles from a Source and observations from
// probes and peers, and swaps views into a Scheduler.
type Keeper struct {
	// Fixed at construction.
	cfg       KeeperConfig
	source    Source
	scheduler *sched.Scheduler
	listeners []Listener
	log       *slog.Logger

	bundles chan *Bundle  // capacity 0, never closed: from the source to the loop
	wake    chan struct{} // capacity 1, never closed: the inbox has something

	// Owned by the loop.
	board  *sched.Board
	bundle *Bundle
	own    map[seenKey]sched.Observation // the newest of this program
	last   map[witness]turn              // the newest of each
	viewed time.Time                     // when the last view was made

	// Guarded by mu.
	mu    sync.Mutex
	inbox []sched.Observation

	// Safe from any goroutine.
	status  atomic.Pointer[Status]
	taken   atomic.Uint64 // observations
	dropped atomic.Uint64 // of them, because the inbox was full
}

// maxInbox is how many observations may wait: three of each of 10,000 nodes over two
// families. The loop takes them many times a second.
const maxInbox = 60_000

// maxWitnesses is how many are remembered: ten observers of each of 10,000 nodes over
// two families. Without them some views are made sooner than needed.
const maxWitnesses = 200_000

// seenKey is what an observation is of.
type seenKey struct {
	node   string
	family sched.Families
}

// witness is who observes what. Two that disagree for good are no change.
type witness struct {
	seenKey
	observer string
}

// condition is what makes a new view urgent when it changes.
type condition struct{ up, draining bool }

// turn is a condition and how often it was seen since it changed: the board believes a
// change when it has been seen a few times, and each of these may be the one.
type turn struct {
	condition
	times int
}

// NewKeeper returns a Keeper. The listeners are told of bundles and reports, in their
// order.
func NewKeeper(cfg KeeperConfig, src Source, s *sched.Scheduler, log *slog.Logger, listeners ...Listener) (*Keeper, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	k := &Keeper{
		cfg: cfg, source: src, scheduler: s, listeners: listeners, log: log,
		bundles: make(chan *Bundle), wake: make(chan struct{}, 1),
		board: sched.NewBoard(sched.DefaultHealth()),
		own:   map[seenKey]sched.Observation{}, last: map[witness]turn{},
	}
	k.status.Store(&Status{})
	return k, nil
}

// Observe takes observations in, those of nodes that the bundle does not have among
// them: they are left out later. It does not keep the slice and never blocks. It may be called from any
// goroutine.
func (k *Keeper) Observe(obs []sched.Observation) {
	k.mu.Lock()
	room := maxInbox - len(k.inbox)
	k.inbox = append(k.inbox, obs[:min(room, len(obs))]...)
	k.mu.Unlock()
	k.taken.Add(uint64(len(obs)))
	if len(obs) > room {
		k.dropped.Add(uint64(len(obs) - room))
	}
	select {
	case k.wake <- struct{}{}:
	default: // it is awake
	}
}

// Run keeps the scheduler's view fresh until ctx ends, and then returns nil. The error
// is that of a source that has nothing to begin with.
func (k *Keeper) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return k.follow(ctx) })
	g.Go(func() error { return k.loop(ctx) })
	return g.Wait()
}

// follow hands bundles to the loop.
func (k *Keeper) follow(ctx context.Context) error {
	var have *Bundle
	for {
		b, err := k.source.Next(ctx, have)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}
		select {
		case k.bundles <- b:
			have = b
		case <-ctx.Done():
			return nil
		}
	}
}

func (k *Keeper) loop(ctx context.Context) error {
	timer := time.NewTimer(k.cfg.Interval)
	defer timer.Stop()
	for {
		var soon bool
		select {
		case <-ctx.Done():
			return nil
		case b := <-k.bundles:
			k.use(b)
			soon = true
		case <-k.wake:
			soon = k.take(time.Now())
		case <-timer.C:
			k.view(time.Now())
			timer.Reset(k.cfg.Interval)
			continue
		}
		if soon && k.bundle != nil {
			timer.Reset(max(0, urgent-time.Since(k.viewed)))
		}
	}
}

// use makes b the bundle of the views from now on.
func (k *Keeper) use(b *Bundle) {
	compiled, err := b.Compile(k.bundle)
	if err != nil {
		k.log.Error("new snapshot refused, the old one stays in use", "version", b.Version, "err", err)
		return
	}
	k.bundle = b
	k.board.Track(compiled.Plan)
	gone := func(k seenKey) bool { return compiled.Plan.Node(k.node) == nil }
	maps.DeleteFunc(k.last, func(w witness, _ turn) bool { return gone(w.seenKey) })
	maps.DeleteFunc(k.own, func(key seenKey, _ sched.Observation) bool { return gone(key) })
	k.log.Info("new snapshot in use", "version", b.Version, "nodes", len(b.Snapshot.Nodes), "domains", len(b.Snapshot.Domains))
	for _, l := range k.listeners {
		l.Bundle(b)
	}
}

// take moves the inbox to the board. It reports whether a node fell, drains, or has
// come back.
func (k *Keeper) take(now time.Time) (changed bool) {
	k.mu.Lock()
	inbox := k.inbox
	k.inbox = nil
	k.mu.Unlock()
	if k.bundle == nil {
		return false
	}
	if len(k.last) > maxWitnesses { // of programs that are long gone
		clear(k.last)
	}
	plan := k.bundle.compiled.Plan
	believed := max(plan.Health.Rise, plan.Health.Fall)
	for i := range inbox {
		o := &inbox[i]
		if plan.Node(o.Node) == nil {
			continue
		}
		if o.At.After(now) {
			o.At = now // or it would count as fresh for longer
		}
		k.board.Observe(o)
		key := seenKey{o.Node, o.Family}
		by := witness{key, o.Observer}
		was, is := k.last[by], condition{o.Up, o.Draining}
		if was.condition != is {
			was = turn{condition: is}
		}
		if was.times < believed {
			was.times++
			changed = true
		}
		k.last[by] = was
		if o.Observer == k.cfg.Observer {
			k.own[key] = *o
		}
	}
	return changed
}

// view makes a view and swaps it in.
func (k *Keeper) view(now time.Time) {
	k.viewed = now
	k.take(now)
	if k.bundle == nil {
		k.report(now, 0)
		return
	}
	begun := time.Now()
	state := k.board.State(now)
	c := k.bundle.compiled
	k.scheduler.Swap(sched.NewView(c.Plan, c.Table, state))
	k.report(now, time.Since(begun))
	r := &Report{Observer: k.cfg.Observer, At: now, Observations: make([]sched.Observation, 0, len(k.own))}
	for _, o := range k.own {
		r.Observations = append(r.Observations, o)
	}
	for _, l := range k.listeners {
		l.Report(r)
	}
}
