package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/store"
)

// board is a store of log-outs.
type board struct {
	mu      sync.Mutex
	away    bool
	entries []store.Entry
}

func (s *board) Announce(_ context.Context, entries ...store.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return store.ErrUnavailable
	}
	for _, e := range entries {
		if e.TTL > time.Hour {
			return errors.New("that is too long")
		}
		s.entries = slices.DeleteFunc(s.entries, func(old store.Entry) bool { return old.Key == e.Key })
	}
	s.entries = append(s.entries, entries...)
	return nil
}

func (s *board) Entries(_ context.Context, kind string) ([]store.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, errors.New("no route to host")
	}
	if kind != logoutKind {
		return nil, nil
	}
	return slices.Clone(s.entries), nil
}

func (s *board) set(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func TestLogoutHoldsEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &board{entries: []store.Entry{{Kind: logoutKind, Key: "short", Body: []byte("1")}, {Kind: logoutKind, Key: "x", Body: []byte("y")}}}
		shared := func(p *Program) {
			p.Secrets = func() [][]byte { return [][]byte{secretA} }
			p.Logouts = s
		}
		a, b := newBench(t, testConfig(), shared), newBench(t, testConfig(), shared)
		ctx, cancel := context.WithCancel(t.Context())
		var runs sync.WaitGroup
		runs.Go(func() { _ = a.Run(ctx) })
		runs.Go(func() { _ = b.Run(ctx) })
		defer runs.Wait()
		defer cancel()

		at := func(x *bench, s *session) *session { return &session{x, s.cookie, s.csrf} }
		ana := a.login("ana")
		at(b, ana).ask("GET", "/api/session", "").want(t, "before", 200, NotRefused)
		if got := ana.ask("POST", "/api/logout", ""); got.body != `{"everywhere":true}` {
			t.Errorf("log-out: %s", got.body)
		}
		time.Sleep(logoutEvery + time.Millisecond)
		at(b, ana).ask("GET", "/api/session", "").nobody(t, "at the other router", LoggedOut)

		// While the store is away it is told later.
		s.set(true)
		ben := b.login("ben")
		if got := ben.ask("POST", "/api/logout", ""); got.body != `{"everywhere":false}` {
			t.Errorf("log-out without the store: %s", got.body)
		}
		time.Sleep(10 * time.Second)
		at(b, ben).ask("GET", "/api/session", "").nobody(t, "where it was ended", LoggedOut)
		at(a, ben).ask("GET", "/api/session", "").want(t, "where it is not known", 200, NotRefused)
		s.set(false)
		time.Sleep(2*logoutEvery + time.Millisecond) // one router tells, the other reads
		at(a, ben).ask("GET", "/api/session", "").nobody(t, "when the store is back", LoggedOut)

		// A store that comes back empty is told again.
		s.mu.Lock()
		s.entries = nil
		s.mu.Unlock()
		time.Sleep(logoutEvery + time.Millisecond)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.entries) != 2 || s.entries[0].TTL != time.Hour || len(s.entries[0].Key) != 64 {
			t.Errorf("told: %+v", s.entries)
		}
	})
}

func TestGoneForgets(t *testing.T) {
	g := newGone()
	first, second := ticket{id: sessionID{1}}, ticket{id: sessionID{2}}
	s := &board{}
	for t, until := range map[*ticket]time.Duration{&first: time.Hour, &second: 90 * time.Minute} {
		_ = g.end(context.Background(), s, t, start.Add(until), start)
	}
	s.entries = nil
	if err := g.share(t.Context(), s, start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if g.has(first.id) || !g.has(second.id) || len(s.entries) != 1 || s.entries[0].TTL != 30*time.Minute {
		t.Errorf("left: %v, told: %+v", g.sessions, s.entries)
	}
	for i := range maxGone {
		g.put(fmt.Sprint(i), start)
	}
	if len(g.sessions) != maxGone {
		t.Errorf("%d are kept", len(g.sessions))
	}
}
