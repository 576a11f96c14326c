package fleet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"millrace/internal/store"
)

const (
	// shareEvery is how often routers tell one another what they hear.
	shareEvery = time.Second
	// entryTTL is how long that is kept.
	entryTTL = 10 * time.Second
	// routerGone is after how long a router that says nothing new is gone.
	routerGone = 2500 * time.Millisecond
	// aloneAfter is after how long without another router nothing is told any more.
	aloneAfter = 15 * time.Second
	// newsKept is how many seconds of news are kept, so that none is missed by a router
	// that looks late.
	newsKept = 4
	// maxShared bounds how many samples, and how many groups of players, a router tells
	// the others of each second.
	maxShared = 100_000
	// caughtUp is after how long with the store all that routers can know of one another
	// is known again.
	caughtUp = 5 * time.Second
	// wholeEvery is how often what has not changed is announced again.
	wholeEvery = 5 * time.Second
	// buckets is in how many entries a router tells what its nodes carry: only those in
	// which something changed are written.
	buckets = 16
)

// share is what routers tell one another. It belongs to one goroutine, but for what has a
// lock.
type share struct {
	number     uint64          // of what was announced last
	identities uint64          // of the registry, when they were announced last
	whole      time.Time       // when all was announced last
	told       [buckets]uint64 // what stands for what was announced of each
	lonely     time.Time       // when another router was seen last
	ever       bool            // one was
	missed     time.Time       // when the store could not be reached last

	peers   map[string]*peer
	telling []Event // of the entries that are being announced

	mu   sync.Mutex
	list []RouterRow // the others
	now  routers
}

// others returns which routers are at work.
func (s *share) others() routers {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// rows returns the other routers.
func (s *share) rows() []RouterRow {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

// shareLoop shares until ctx ends.
func (f *Fleet) shareLoop(ctx context.Context) {
	tick := time.NewTicker(shareEvery)
	defer tick.Stop()
	for {
		err := f.shareOnce(ctx, time.Now())
		if ctx.Err() != nil {
			return
		}
		f.reach(time.Now(), err)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// reach notes whether the store could be reached.
func (f *Fleet) reach(now time.Time, err error) {
	ok := err == nil
	if !ok {
		f.counts.storeErrors.Add(1)
	}
	if f.reached.Swap(ok) == ok {
		return
	}
	id := f.cfg.Router + "/store/" + strconv.FormatInt(now.UnixMilli(), 10)
	if ok {
		if f.complained {
			f.log.Info("the store is back")
		}
		f.events.add(now, Event{ID: id, Kind: KindStoreUp})
		f.wake()
		return
	}
	if f.complained = !errors.Is(err, store.ErrUnavailable); f.complained { // else it has told itself
		f.log.Error("the store cannot be used: what was published last stays in force", "err", err)
	}
	f.events.add(now, Event{ID: id, Kind: KindStoreDown, Detail: err.Error()})
}

// shareOnce tells the others what is new here, and reads what is new there.
func (f *Fleet) shareOnce(ctx context.Context, now time.Time) error {
	s := &f.share
	s.number++
	lead := f.leads(now)
	row := routerWire{
		ID: f.cfg.Router, Number: s.number, Started: f.began.UTC(), Leader: lead, Nodes: f.nodes.heardBy(f.cfg.Router, now),
		Program: f.cfg.Program, URL: f.cfg.URL,
	}
	if p := f.published.Load(); p != nil {
		row.Plan = p.plan.Version
	}
	entries, err := f.entries(now, row)
	if err == nil {
		err = f.store.Announce(ctx, entries...)
	}
	if err != nil {
		f.events.retell(s.telling) // samples and sums might count twice
	}
	s.telling = nil
	if err == nil {
		err = f.readRouters(ctx, now)
	}
	if err == nil && s.together(now) {
		err = f.readOthers(ctx, now)
	}
	if err != nil {
		s.missed = now
	}
	s.mu.Lock()
	s.now.away = !s.missed.IsZero() && now.Sub(s.missed) < caughtUp
	s.mu.Unlock()
	return err
}

// together reports whether there is, or was just now, another router.
func (s *share) together(now time.Time) bool {
	return s.ever && now.Sub(s.lonely) < aloneAfter
}

// entries are what this router tells the others.
func (f *Fleet) entries(now time.Time, row routerWire) ([]store.Entry, error) {
	s := &f.share
	w := entryWriter{p: f.packer}
	w.add(kindRouters, f.cfg.Router, row)
	if !s.together(now) {
		// Nobody listens. What waits is not told when somebody comes, but all that holds is.
		f.scores.untold()
		f.players.takeUntold()
		f.events.trimUntold()
		s.whole = time.Time{}
		return w.list, w.err
	}
	whole := now.Sub(s.whole) >= wholeEvery
	if whole {
		s.whole = now
	}
	t := f.nodes.tell(now, f.cfg.Router, s, whole)
	w.add(kindNodes, f.cfg.Router, nodesWire{t.nodes})
	if t.identities != nil {
		w.add(kindIdentities, f.cfg.Router, identitiesWire{t.identities})
	}
	for at, of := range t.streams {
		if of != nil {
			w.add(kindStreams, f.cfg.Router+"."+strconv.Itoa(at), of)
		}
	}
	s.telling = f.events.takeUntold()
	w.add(kindNews, f.cfg.Router+"."+strconv.FormatUint(s.number%newsKept, 10), newsWire{
		Samples: f.scores.untold(), Players: f.players.takeUntold(), Events: s.telling, Rechecks: t.rechecks,
	})
	return w.list, w.err
}

// entryWriter gathers entries.
type entryWriter struct {
	p    *packer
	list []store.Entry
	err  error
}

func (w *entryWriter) add(kind, key string, v any) {
	body, err := w.p.pack(v)
	if err != nil {
		w.err = errors.Join(w.err, fmt.Errorf("%s: %w", kind, err))
		return
	}
	w.list = append(w.list, store.Entry{Kind: kind, Key: key, Body: body, TTL: entryTTL})
}
