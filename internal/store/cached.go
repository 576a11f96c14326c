package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Cached is a Redis with a copy of its own, which a Memory keeps: documents with their
// history in its file, and the rest. It is the Store of a router beside others.
//
// Documents and publications are read from the copy, which follows Redis within
// milliseconds. While Redis is away
//
//   - documents, publications, and entries for their time are read as before;
//   - edits and announcements return ErrUnavailable;
//   - nobody holds the lease and nobody publishes, since nobody could know of another
//     who does: every router goes on with what was published last.
//
// When Redis is back, it is first told what it has lost. It may have lost everything, or
// be an old copy of itself: what is in either is then in both. Of two edits that were
// given one number, since the one was made before the other was put back, the one that
// Redis has stays the newest, and the other gets a number of its own in the history.
//
// A router that has run alone finds its documents in Redis when it is given one.
type Cached struct {
	// Fixed at construction.
	remote *Redis
	local  *Memory
	log    *slog.Logger
	looked chan struct{} // capacity 0, closed when Redis was asked for the first time

	// Safe from any goroutine.
	once sync.Once // closes looked
	away atomic.Pointer[away]

	// Guarded by syncing: whoever has put something into it may read and change these, and
	// make the two equal. Unlike a mutex it can be waited for until a context ends.
	syncing chan struct{}     // capacity 1, never closed
	last    map[string]string // the state at the last look
	partial map[string]bool   // documents whose history may not be equal yet
	failing bool              // the copy cannot be written
	policy  *string           // the maxmemory-policy of Redis when it was last asked; "" is not known
}

var _ Store = (*Cached)(nil)

// away is why Redis cannot be used, and since when.
type away struct {
	err   error
	since time.Time
}

// NewCached returns a Cached, which closes both stores when it is closed. Run must be
// running: until Redis was asked once everything waits.
func NewCached(remote *Redis, local *Memory, log *slog.Logger) *Cached {
	return &Cached{
		remote: remote, local: local, log: log,
		looked: make(chan struct{}), syncing: make(chan struct{}, 1), partial: map[string]bool{},
	}
}

// Away returns why Redis cannot be used and since when; nil when it can.
func (c *Cached) Away() (since time.Time, err error) {
	if a := c.away.Load(); a != nil {
		return a.since, a.err
	}
	return time.Time{}, nil
}

// Run keeps the copy and Redis equal until ctx ends, and then returns nil.
func (c *Cached) Run(ctx context.Context) error {
	var all sync.WaitGroup
	all.Go(func() { _ = c.local.Run(ctx) }) // it returns nil
	c.remote.follow(ctx, func(state map[string]string, err error) { c.look(ctx, state, err) })
	all.Wait()
	return nil
}

// ready waits until Redis was asked once, and returns what is in the way of using it.
func (c *Cached) ready(ctx context.Context) error {
	if err := c.wait(ctx); err != nil {
		return err
	}
	_, err := c.Away()
	return err
}

// wait waits until Redis was asked once.
func (c *Cached) wait(ctx context.Context) error {
	select {
	case <-c.looked:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: redis has not answered yet: %w", ErrUnavailable, ctx.Err())
	}
}

// Origin implements Store.
func (c *Cached) Origin(ctx context.Context) (string, error) {
	if origin := c.local.knownOrigin(); origin != "" {
		return origin, nil
	}
	if err := c.ready(ctx); errors.Is(err, ErrUnavailable) {
		return c.local.Origin(ctx) // Redis may have an older one; then it is taken
	}
	origin, err := c.remote.Origin(ctx)
	if err != nil {
		return "", err
	}
	return c.local.adoptOrigin(origin)
}

// Edit implements Store.
func (c *Cached) Edit(ctx context.Context, key string, based uint64, body []byte, who Author) (Document, error) {
	if err := checkEdit(key, body, who); err != nil {
		return Document{}, err
	}
	if err := c.ready(ctx); err != nil {
		return Document{}, fmt.Errorf("%s was not changed, try again when redis is back: %w", key, err)
	}
	select {
	case c.syncing <- struct{}{}:
		defer func() { <-c.syncing }()
	case <-ctx.Done():
		return Document{}, fmt.Errorf("%s was not changed, try again: %w: %w", key, ErrUnavailable, ctx.Err())
	}
	v, err := c.edit(ctx, key, based, body, who)
	if errors.Is(err, ErrUnavailable) {
		return Document{}, fmt.Errorf("whether %s was changed is not known, look at its history when redis is back: %w", key, err)
	}
	if err != nil {
		return Document{}, err
	}
	c.keep(v)
	return v.Document, nil
}

// edit makes a version after the one that the copy has under the number based: what
// Redis has under that number may be another edit. The caller holds syncing.
func (c *Cached) edit(ctx context.Context, key string, based uint64, body []byte, who Author) (version, error) {
	v := newVersion(key, based+1, body, who)
	for try := range maxTries {
		mine, _ := c.local.newestOf(key)
		switch {
		case mine.Version > based || mine.Version < based && try > 0:
			current := mine.head()
			current.Key = key
			return version{}, &ConflictError{Current: current, Based: based}
		case mine.Version == based:
			c.unsure(key)
			err := c.remote.put(ctx, headOf(mine), v)
			var changed *changedError
			if !errors.As(err, &changed) {
				return v, err
			}
		}
		if err := c.syncDocument(ctx, key); err != nil {
			return version{}, err
		}
	}
	return version{}, fmt.Errorf("%s: %w: it is changed again and again", key, ErrUnavailable)
}

// Current implements Store.
func (c *Cached) Current(ctx context.Context, key string) (Document, error) {
	if err := c.wait(ctx); err != nil {
		return Document{}, err
	}
	return c.local.Current(ctx, key)
}

// Version implements Store. Soon after a router has begun, old versions may still be in
// Redis alone.
func (c *Cached) Version(ctx context.Context, key string, number uint64) (Document, error) {
	away := c.ready(ctx)
	d, err := c.local.Version(ctx, key, number)
	if err != nil && away == nil && number > 0 {
		v, err := c.remote.version(ctx, key, number)
		return v.Document, err
	}
	return d, err
}

// History implements Store. Just after many edits of other routers it may lack some.
func (c *Cached) History(ctx context.Context, key string, limit int) ([]Document, error) {
	if err := c.wait(ctx); err != nil {
		return nil, err
	}
	return c.local.History(ctx, key, limit)
}

// Announce implements Store. Its own entries are there without Redis as well.
func (c *Cached) Announce(ctx context.Context, entries ...Entry) error {
	if err := c.local.Announce(ctx, entries...); err != nil {
		return err
	}
	if err := c.ready(ctx); err != nil {
		return err
	}
	return c.remote.Announce(ctx, entries...)
}

// Entries implements Store. Entries end with their time alone, so one that Redis does
// not have any more is one that it has lost.
func (c *Cached) Entries(ctx context.Context, kind string) ([]Entry, error) {
	if c.ready(ctx) == nil {
		if entries, err := c.remote.Entries(ctx, kind); err == nil {
			if err := c.local.merge(entries); err != nil {
				return nil, err
			}
		}
	}
	return c.local.Entries(ctx, kind)
}

// Lease implements Store. Nobody holds it while Redis is away.
func (c *Cached) Lease(ctx context.Context, who string, ttl time.Duration) (Fence, bool, error) {
	seen := c.local.seen(0)
	if err := c.ready(ctx); err != nil {
		return seen, false, err
	}
	fence, held, err := c.remote.take(ctx, who, ttl, seen)
	if err != nil {
		return seen, false, err
	}
	c.local.seen(fence)
	return fence, held, nil
}

// Release implements Store.
func (c *Cached) Release(ctx context.Context, who string) error {
	if err := c.ready(ctx); err != nil {
		return err
	}
	return c.remote.Release(ctx, who)
}

// Publish implements Store.
func (c *Cached) Publish(ctx context.Context, fence Fence, kind string, body []byte) (Published, error) {
	if err := c.ready(ctx); err != nil {
		return Published{}, err
	}
	last, err := c.local.Published(ctx, kind)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Published{}, err
	}
	p, err := c.remote.publish(ctx, fence, kind, body, last.Number)
	if err != nil {
		return Published{}, err
	}
	c.local.takePublished(p)
	return p, nil
}

// Published implements Store.
func (c *Cached) Published(ctx context.Context, kind string) (Published, error) {
	if err := c.wait(ctx); err != nil {
		return Published{}, err
	}
	return c.local.Published(ctx, kind)
}

// Watch implements Store.
func (c *Cached) Watch(ctx context.Context) (<-chan Change, error) { return c.local.Watch(ctx) }

// Close closes both stores. It may be called again.
func (c *Cached) Close() error { return errors.Join(c.remote.Close(), c.local.Close()) }
