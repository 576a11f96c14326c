package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"millrace/internal/store"
)

// Logouts is the part of a store.Store by which routers tell one another who logged out.
type Logouts interface {
	Announce(ctx context.Context, entries ...store.Entry) error
	Entries(ctx context.Context, kind string) ([]store.Entry, error)
}

const (
	logoutKind = "console_logouts" // in the store
	// logoutEvery is how often routers read it: a log-out holds everywhere after that.
	logoutEvery = 2 * time.Second
	// logoutKept is how long the store keeps one, at most as long as it keeps anything of
	// the kind. Any router tells it again after that.
	logoutKept = time.Hour
	// maxGone bounds what is remembered. It takes more than one log-out a second for a
	// whole session to get there; sessions of the first then last as long as their times.
	maxGone = 65_536
)

// gone are the sessions that were ended, each until it would have ended of itself. They
// are named by the hash of their id: who reads the store learns nothing to log in with.
type gone struct {
	// Guarded by mu.
	mu       sync.Mutex
	sessions map[string]time.Time
}

func newGone() *gone { return &gone{sessions: map[string]time.Time{}} }

func nameOf(id sessionID) string {
	sum := sha256.Sum256(id[:])
	return hex.EncodeToString(sum[:])
}

func (g *gone) has(id sessionID) bool {
	name := nameOf(id)
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.sessions[name]
	return ok
}

func (g *gone) put(name string, until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.sessions[name]; !ok && len(g.sessions) >= maxGone {
		for other := range g.sessions { // any
			delete(g.sessions, other)
			break
		}
	}
	g.sessions[name] = until
}

// entry is what the store is told of one.
func entry(name string, until, now time.Time) store.Entry {
	return store.Entry{
		Kind: logoutKind, Key: name, Body: strconv.AppendInt(nil, until.Unix(), 10), TTL: min(until.Sub(now), logoutKept),
	}
}

// end ends a session, and tells the store if there is one.
func (g *gone) end(ctx context.Context, s Logouts, t *ticket, until, now time.Time) error {
	name := nameOf(t.id)
	g.put(name, until)
	if s == nil {
		return nil
	}
	return s.Announce(ctx, entry(name, until, now))
}

// share takes in what the store has, and tells it what it does not have (any more).
func (g *gone) share(ctx context.Context, s Logouts, now time.Time) error {
	entries, err := s.Entries(ctx, logoutKind)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, e := range entries {
		until, err := strconv.ParseInt(string(e.Body), 10, 64)
		if err == nil && len(e.Key) == 2*sha256.Size {
			g.put(e.Key, time.Unix(until, 0))
			there[e.Key] = true
		}
	}
	if missing := g.missing(there, now); len(missing) > 0 {
		return s.Announce(ctx, missing...)
	}
	return nil
}

// missing returns entries of the sessions that are not there, and forgets those that
// have ended of themselves.
func (g *gone) missing(there map[string]bool, now time.Time) (out []store.Entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, until := range g.sessions {
		switch {
		case until.Sub(now) < time.Millisecond: // the store takes no less
			delete(g.sessions, name)
		case !there[name]:
			out = append(out, entry(name, until, now))
		}
	}
	return out
}

// follow shares until ctx ends. What the store misses while it is away, or when it comes
// back empty, it is told again.
func (g *gone) follow(ctx context.Context, s Logouts, log *slog.Logger) {
	tick := time.NewTicker(logoutEvery)
	defer tick.Stop()
	away := false
	for {
		err := g.share(ctx, s, time.Now())
		if err != nil && !away && ctx.Err() == nil {
			log.Warn("log-outs hold at their own router only until the store is back", "err", err)
		}
		away = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
