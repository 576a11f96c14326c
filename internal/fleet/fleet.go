// Package fleet is the mind of a router: it knows the nodes, plans for them, and tells
// everybody who asks.
//
//	heartbeats ─▶ registry ─┬─▶ frame, each second ─▶ Path, Report, models of the console
//	other routers ─▶ share ─┘        │
//	                                 ▼ the router that has the lease
//	documents of operators ─────▶ lead: plan.Make ─▶ store ─▶ every router: orders, bundle
//
// A router hears the nodes that talk to it and announces them to the others through
// the store, so that each has the same table and the same measurements: any of them
// can plan at once. One holds a lease, plans, and publishes what it planned; all serve
// what was published last, also while the store is away or nobody plans. Nothing that
// a node does waits for a plan.
//
// # Locks
//
// The registry, the queue of samples, the links, the events, the players, the orders and
// the trends have a lock each. None is held while another is taken. What the console is
// shown comes from a frame that is not changed after it was made.
package fleet

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/sched"
	"millrace/internal/store"
)

// Fleet is what a router knows and decides. All methods but Connect and Run may be called
// from any goroutine.
type Fleet struct {
	// Fixed at construction.
	cfg    Config
	store  store.Store
	log    *slog.Logger
	packer *packer
	began  time.Time

	// Fixed before Run.
	out Listener

	// Each has a lock of its own.
	nodes      *registry
	scores     *scores
	players    *players
	events     *eventLog
	trends     *trends
	orders     papers
	bundles    bundles
	share      share // of the goroutine that shares, but for what it says
	complained bool  // of the goroutine that shares: the log says that the store cannot be used
	changed    broadcast

	// Owned by the goroutine that plans.
	planner planner

	// Safe from any goroutine.
	name      atomic.Pointer[string] // origin
	frame     atomic.Pointer[frame]
	published atomic.Pointer[published]
	docs      atomic.Pointer[documents]
	leading   atomic.Pointer[leadership]
	ready     atomic.Bool // what was published and edited has been read since this router leads
	reached   atomic.Bool // the store
	ordersDue atomic.Bool
	wanted    atomic.Uint64 // times that everything was to be read again
	counts    counts
	adopting  sync.Mutex // held while published is replaced
	reading   sync.Mutex // held while docs are

	kick   chan struct{} // capacity 1, never closed: a frame is wanted at once
	framed chan struct{} // capacity 1, never closed: there is a new frame
	again  chan struct{} // capacity 1, never closed: the store is to be read
}

// Listener hears what a Fleet has for others. Its methods are called by one goroutine
// and should return soon.
type Listener interface {
	// OrdersChanged is called with the nodes that have new orders.
	OrdersChanged(nodes []string)
	// Observed is called each second with what the heartbeats tell of the edges, not to
	// be changed.
	Observed(obs []sched.Observation)
}

// nobody listens.
type nobody struct{}

func (nobody) OrdersChanged([]string)       {}
func (nobody) Observed([]sched.Observation) {}

// New returns a Fleet of a router. It does not close s.
func New(cfg Config, s store.Store, log *slog.Logger) (*Fleet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p, err := newPacker()
	if err != nil {
		return nil, err
	}
	f := &Fleet{cfg: cfg, store: s, log: log, packer: p, began: time.Now(), out: nobody{}}
	f.nodes = newRegistry(&f.cfg, f.began)
	f.scores = newScores(cfg.Plan.Half)
	f.players = newPlayers(f.began)
	f.events = newEventLog(cfg.Router)
	f.trends = newTrends()
	f.orders.made = map[string]paper{}
	f.share.peers = map[string]*peer{}
	f.share.now.alone = true
	f.planner.leftOut = map[string]string{}
	f.docs.Store(noDocuments())
	f.reached.Store(true)
	f.kick, f.framed, f.again = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	return f, nil
}

// Connect says who is told of orders and observations. It is called before Run, or not
// at all.
func (f *Fleet) Connect(l Listener) { f.out = l }

// Run shares, plans and publishes until ctx ends, gives up the lease, and returns nil.
func (f *Fleet) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { f.watchLoop(ctx) })
	wg.Go(func() { f.shareLoop(ctx) })
	wg.Go(func() { f.leaseLoop(ctx) })
	wg.Go(func() { f.planLoop(ctx) })
	wg.Go(func() { f.frameLoop(ctx) })
	wg.Wait()
	return nil
}

// origin is the name of the store; empty while it has not been read.
func (f *Fleet) origin() string {
	if name := f.name.Load(); name != nil {
		return *name
	}
	return ""
}

const (
	// frameEvery is how often everything is looked at.
	frameEvery = time.Second
	// frameGap is how soon it is looked at again when somebody wants it, or frameRest times
	// as long as that took, if that is more: thousands of nodes may come at once.
	frameGap  = 200 * time.Millisecond
	frameRest = 4
	// pruneEvery is how often links are forgotten that nobody measures.
	pruneEvery = time.Minute
)

// wake wants a frame soon.
func (f *Fleet) wake() {
	select {
	case f.kick <- struct{}{}:
	default: // it comes
	}
}

// frameLoop makes frames until ctx ends.
func (f *Fleet) frameLoop(ctx context.Context) {
	tick := time.NewTicker(frameEvery)
	defer tick.Stop()
	var pruned time.Time
	var identities uint64
	for {
		now := time.Now()
		f.sweep(now)
		fr := f.makeFrame(now)
		f.frame.Store(fr)
		f.trends.add(fr)
		if is := f.nodes.version(); f.ordersDue.Swap(false) || is != identities {
			identities = is
			f.refreshOrders()
		}
		f.out.Observed(f.observations(fr))
		f.changed.Broadcast()
		select {
		case f.framed <- struct{}{}:
		default: // the one that plans is at it
		}
		if now.Sub(pruned) >= pruneEvery {
			pruned = now
			f.scores.prune(now, fr)
		}
		last := time.Now()
		gap := max(frameGap, frameRest*last.Sub(now))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-f.kick:
			select {
			case <-ctx.Done():
				return
			case <-time.After(gap - time.Since(last)):
			}
			tick.Reset(frameEvery) // or the tick that came meanwhile makes another one at once
		}
	}
}

// sweep finds out who has fallen silent, and tells of them.
func (f *Fleet) sweep(now time.Time) {
	others := f.share.others()
	for _, of := range f.nodes.sweep(now, &others) {
		e := Event{Kind: KindNodeDown, Node: of.id, ID: "down/" + of.id + "/" + of.boot + "/" + strconv.FormatUint(of.sequence, 10)}
		what := "a node is down: it does not speak any more"
		e.Detail = "not heard for " + now.Sub(of.heard).Round(100*time.Millisecond).String()
		if of.forgotten {
			e.Kind, e.ID = KindNodeGone, "gone/"+of.id+"/"+of.boot
			what = "a node is forgotten: it has been down for too long"
		}
		if of.mine {
			f.log.Warn(what, "node", of.id, "heard", of.heard.UTC())
			f.events.add(now, e)
		}
	}
}

// nodeBack tells of a node that is there again, or for the first time.
func (f *Fleet) nodeBack(now time.Time, b back) {
	e := Event{Kind: KindNodeUp, Node: b.id, ID: "up/" + b.id + "/" + b.boot + "/" + strconv.FormatUint(b.sequence, 10)}
	what := "a node is up again"
	switch {
	case b.restarted:
		e.Kind, e.ID = KindNodeRestart, "restarted/"+b.id+"/"+b.boot
		what = "a node was started again"
	case b.added:
		e.ID = "up/" + b.id + "/" + b.boot
		what = "a node is up"
	}
	f.log.Info(what, "node", b.id)
	f.events.add(now, e)
	f.wake()
}

// Changed returns a channel that is closed when there is something new to be seen: each
// second, and at once after an edit or a new plan. A listener asks for it, then looks at
// what there is, then waits.
func (f *Fleet) Changed() <-chan struct{} { return f.changed.Wait() }
