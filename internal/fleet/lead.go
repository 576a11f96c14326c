package fleet

import (
	"context"
	"errors"
	"strconv"
	"time"

	"millrace/internal/plan"
	"millrace/internal/store"
)

const (
	// figuresEvery is how often a plan is published whose pools are those of the last one:
	// its costs are newer.
	figuresEvery = 10 * time.Second
	// rest is how many times as long as it took to make a plan nothing is planned after.
	rest = 4
	// rosterEvery and bundleEvery are how often the nodes, and what schedulers place from,
	// are published at most.
	rosterEvery = 5 * time.Second
	bundleEvery = 2 * time.Second
	// bundleAnyway is how often the latter is made anew though nothing is known to have changed.
	bundleAnyway = 10 * time.Second
	// storeTimeout bounds what is asked of the store.
	storeTimeout = 5 * time.Second
)

// leadership is that this router plans, until the time when another one may.
type leadership struct {
	fence store.Fence
	until time.Time
	since time.Time
}

// leads reports whether this router plans.
func (f *Fleet) leads(now time.Time) bool {
	l := f.leading.Load()
	return l != nil && now.Before(l.until)
}

// leaseLoop holds the lease, or waits for it, until ctx ends, and then gives it up.
func (f *Fleet) leaseLoop(ctx context.Context) {
	tick := time.NewTicker(f.cfg.Lease / 4)
	defer tick.Stop()
	defer func() {
		f.leading.Store(nil)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := f.store.Release(ctx, f.cfg.Router); err != nil {
			f.log.Warn("the lease could not be given up: it runs out by itself", "err", err)
		}
	}()
	for {
		f.leaseOnce(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// leaseOnce asks for the lease. While the store is away nobody plans: this router does
// not know then what the others hear, and would take their nodes for dead. The plan that
// was published last stays.
func (f *Fleet) leaseOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.Lease)
	defer cancel()
	asked := time.Now()
	fence, held, err := f.store.Lease(ctx, f.cfg.Router, f.cfg.Lease)
	was := f.leading.Load()
	switch {
	case err != nil:
		return // what is held runs out by itself
	case !held:
		if was != nil {
			f.leading.Store(nil)
			f.log.Info("another router plans now")
		}
		return
	}
	l := &leadership{fence: fence, until: asked.Add(f.cfg.Lease), since: asked}
	if was != nil && was.fence == fence {
		l.since = was.since
		f.leading.Store(l)
		return
	}
	// What the one before published counts, and what operators have edited meanwhile.
	f.ready.Store(false)
	f.leading.Store(l)
	f.log.Info("this router plans now", "fence", uint64(fence))
	f.events.add(asked, Event{ID: "leader/" + f.origin() + "/" + strconv.FormatUint(uint64(fence), 10), Kind: KindLeader, To: f.cfg.Router})
	f.reload()
	f.wake()
}

// planLoop plans whenever there is a new frame, as far as this router should, until ctx
// ends.
func (f *Fleet) planLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.framed:
		}
		if err := f.planOnce(ctx, time.Now()); err != nil && ctx.Err() == nil {
			f.counts.storeErrors.Add(1)
			f.log.Warn("what was planned could not be published", "err", err)
		}
	}
}

// planOnce plans and publishes, if it is time.
func (f *Fleet) planOnce(ctx context.Context, now time.Time) error {
	l, fr := f.leading.Load(), f.frame.Load()
	if l == nil || !now.Before(l.until) || fr == nil || !f.ready.Load() || !f.nodes.settled(now) || f.share.others().away {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	p := &f.planner
	var errs []error
	if now.Sub(p.at) >= max(f.cfg.Every-frameEarly, rest*p.took) || fr.docs != p.docs { // an edit wants a plan at once
		errs = append(errs, f.publishPlan(ctx, now, l, fr))
	}
	errs = append(errs, f.publishRoster(ctx, now, l), f.publishBundle(ctx, now, l, fr))
	err := errors.Join(errs...)
	if errors.Is(err, store.ErrFenced) {
		f.leading.CompareAndSwap(l, nil)
		f.log.Info("another router plans now: what this one planned is dropped")
		return nil
	}
	return err
}

// frameEarly is by how much a frame may come before its time.
const frameEarly = 50 * time.Millisecond

// publishPlan makes a plan from the last one, whoever made that, and publishes it if it
// differs or the figures of the last one are old.
func (f *Fleet) publishPlan(ctx context.Context, now time.Time, l *leadership, fr *frame) error {
	p := &f.planner
	old := f.published.Load()
	var before *plan.Plan
	if old != nil {
		before = old.plan
	}
	began := time.Now()
	f.scores.mu.Lock()
	made := plan.Make(now, &fr.network, before, &f.cfg.Plan)
	f.scores.mu.Unlock()
	p.at, p.took, p.docs = now, time.Since(began), fr.docs
	f.counts.plans.Add(1)
	f.counts.took.Store(int64(p.took))
	if old != nil && before.Follows(made) && before.Frozen == made.Frozen && now.Sub(before.At) < figuresEvery {
		return nil
	}
	view := fr.view
	if old == nil || !before.Follows(made) {
		// What is measured beyond the pools depends on them.
		f.scores.mu.Lock()
		view = plan.NewView(now, &fr.network, made, &f.cfg.Plan)
		f.scores.mu.Unlock()
	}
	body, err := f.packer.pack(planWireOf(made, f.cfg.Router, view))
	if err != nil {
		return err
	}
	out, err := f.store.Publish(ctx, l.fence, kindPlan, body)
	if err != nil {
		return err
	}
	return f.adoptPlan(now, &out)
}

// publishRoster publishes who the nodes are, for routers that begin later.
func (f *Fleet) publishRoster(ctx context.Context, now time.Time, l *leadership) error {
	p := &f.planner
	if now.Sub(p.rosterAt) < rosterEvery || f.nodes.version() == p.identities {
		return nil
	}
	list, identities := f.nodes.roster()
	body, err := f.packer.pack(list)
	if err != nil {
		return err
	}
	p.rosterAt = now
	if _, err = f.store.Publish(ctx, l.fence, kindRoster, body); err == nil {
		p.identities = identities
	}
	return err
}

// planner is what the goroutine that plans remembers.
type planner struct {
	at         time.Time // of the last plan
	took       time.Duration
	rosterAt   time.Time
	identities uint64 // of the registry, as in the roster that was published last
	bundleAt   time.Time
	bundleOf   bundleOf          // what the last bundle was made of
	quality    qualityKept       // that of players, as it is in bundles
	leftOut    map[string]string // edges that cannot be offered, and why, as was told
	docs       *documents        // that the last plan was made with
}
