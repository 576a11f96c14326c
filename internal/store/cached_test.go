package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/internal/runtest"
)

// router is a Cached as a router has it, with its Run.
type router struct {
	*Cached
	stop func() // ends Run and closes it; may be called again
}

// openCached begins a router with that file, "" for none, and ends it with the test.
func openCached(t testing.TB, cfg RedisConfig, file string) *router {
	t.Helper()
	return openLogged(t, cfg, file, silent)
}

// openLogged is openCached with a log.
func openLogged(t testing.TB, cfg RedisConfig, file string, log *slog.Logger) *router {
	t.Helper()
	remote, err := NewRedis(cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	local, err := NewMemory(MemoryConfig{File: file}, log)
	if err != nil {
		t.Fatal(err)
	}
	c := NewCached(remote, local, log)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	stopped := false
	r := &router{Cached: c}
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := errors.Join(<-ended, c.Close()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(r.stop)
	return r
}

func TestCachedOnMiniredis(t *testing.T) {
	contract(t, func(t *testing.T, test func(*testing.T, Store, Store)) {
		cfg := redisConfig("redis://" + startMini(t).Addr())
		test(t, openCached(t, cfg, "").Cached, openCached(t, cfg, "").Cached)
	})
}

func TestCached(t *testing.T) {
	s := startRedis(t)
	contract(t, func(t *testing.T, test func(*testing.T, Store, Store)) {
		cfg := redisConfig(s.url())
		file := filepath.Join(t.TempDir(), "state")
		test(t, openCached(t, cfg, file).Cached, openCached(t, cfg, "").Cached)
	})
}

// reachable waits until a router has seen that Redis answers, or that it does not.
func (r *router) reachable(t *testing.T, want bool) {
	t.Helper()
	eventually(t, fmt.Sprint("redis can be reached: ", want), func() bool {
		_, err := r.Away()
		return (err == nil) == want
	})
}

// edits makes n edits, each from the one before, and waits until others see them.
func (r *router) edits(t *testing.T, n int, others ...*router) (last Document) {
	t.Helper()
	for range n {
		d, err := r.Current(t.Context(), "edits")
		if err != nil && !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
		last = must[Document](t)(r.Edit(t.Context(), "edits", d.Version, fmt.Appendf(nil, "body %d", d.Version+1), anna))
	}
	for _, o := range others {
		o.sees(t, last)
	}
	return last
}

// sees waits until the newest version is that one.
func (r *router) sees(t *testing.T, want Document) {
	t.Helper()
	eventually(t, fmt.Sprintf("version %d of %s is the newest", want.Version, want.Key), func() bool {
		d, err := r.Current(t.Context(), want.Key)
		return err == nil && d.Version == want.Version && string(d.Body) == string(want.Body)
	})
}

// TestRedisRestartsEmpty kills redis with two routers on it, and starts it again with
// nothing in it.
func TestRedisRestartsEmpty(t *testing.T) {
	server := startRedis(t)
	cfg := redisConfig(server.url())
	a, b := openCached(t, cfg, filepath.Join(t.TempDir(), "a")), openCached(t, cfg, filepath.Join(t.TempDir(), "b"))
	ctx := t.Context()
	last := a.edits(t, 30, b)
	origin := must[string](t)(a.Origin(ctx))
	fence, held, err := a.Lease(ctx, "a", time.Minute)
	if err != nil || !held {
		t.Fatal(held, err)
	}
	var published Published
	for i := range 3 {
		published = must[Published](t)(a.Publish(ctx, fence, "plan", fmt.Append(nil, i)))
	}
	if err := b.Announce(ctx, Entry{"nodes", "b", []byte("of b"), time.Minute}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "b has what a published", func() bool {
		p, err := b.Published(ctx, "plan")
		return err == nil && p.Number == published.Number
	})
	if got := must[[]Entry](t)(a.Entries(ctx, "nodes")); len(got) != 1 {
		t.Fatalf("entries %v", got)
	}

	server.kill(t)
	for _, r := range []*router{a, b} {
		r.reachable(t, false)
		r.sees(t, last)
		if h := must[[]Document](t)(r.History(ctx, "edits", 100)); len(h) != 30 {
			t.Errorf("a history of %d", len(h))
		}
		if d := must[Document](t)(r.Version(ctx, "edits", 7)); string(d.Body) != "body 7" {
			t.Errorf("version 7 is %+v", d)
		}
		if p := must[Published](t)(r.Published(ctx, "plan")); string(p.Body) != "2" {
			t.Errorf("published is %+v", p)
		}
		if e := must[[]Entry](t)(r.Entries(ctx, "nodes")); len(e) != 1 || string(e[0].Body) != "of b" {
			t.Errorf("entries are %v", e)
		}
		_, err := r.Edit(ctx, "edits", last.Version, nil, anna)
		wantErr(t, "an edit without redis", err, ErrUnavailable)
		if !strings.Contains(err.Error(), "edits was not changed, try again when redis is back") {
			t.Errorf("the error of an edit does not say what to do: %v", err)
		}
		f, held, err := r.Lease(ctx, "a", time.Minute)
		wantErr(t, "the lease without redis", err, ErrUnavailable)
		if held || f < fence {
			t.Errorf("held %v with fence %d", held, f)
		}
		_, err = r.Publish(ctx, fence, "plan", nil)
		wantErr(t, "publish without redis", err, ErrUnavailable)
		wantErr(t, "announce without redis", r.Announce(ctx, Entry{"nodes", "c", nil, time.Minute}), ErrUnavailable)
	}

	server.start(t)
	began := time.Now()
	fresh := openCached(t, cfg, "")
	for _, r := range []*router{a, b, fresh} {
		r.reachable(t, true)
		r.sees(t, last)
	}
	t.Logf("documents were back after %v", time.Since(began).Round(time.Millisecond))
	raw := openRedis(t, cfg)
	eventually(t, "the whole history is in redis", func() bool {
		h, _, err := raw.history(ctx, "edits", 100)
		return err == nil && len(h) == 30
	})
	eventually(t, "one origin, the old one", func() bool {
		return must[string](t)(fresh.Origin(ctx)) == origin && must[string](t)(raw.Origin(ctx)) == origin
	})
	eventually(t, "the last plan is in redis", func() bool {
		p, err := raw.Published(ctx, "plan")
		return err == nil && p.Number == published.Number && string(p.Body) == "2"
	})
	next, held, err := b.Lease(ctx, "b", time.Minute)
	if err != nil || !held || next <= fence {
		t.Errorf("b: held %v, fence %d after %d, %v", held, next, fence, err)
	}
	_, err = a.Publish(ctx, fence, "plan", nil)
	wantErr(t, "publish of the old holder", err, ErrFenced)
	if p := must[Published](t)(b.Publish(ctx, next, "plan", nil)); p.Number <= published.Number {
		t.Errorf("number %d after %d", p.Number, published.Number)
	}
	last = b.edits(t, 1, a, fresh)
	if last.Version != 31 {
		t.Errorf("the next edit has version %d", last.Version)
	}
}

// TestRedisGetsItsFirstDocuments gives redis to a router that has run alone.
func TestRedisGetsItsFirstDocuments(t *testing.T) {
	ctx := t.Context()
	file := filepath.Join(t.TempDir(), "state")
	alone := must[*Memory](t)(NewMemory(MemoryConfig{File: file}, silent))
	for i := range uint64(5) {
		must[Document](t)(alone.Edit(ctx, "edits", i, fmt.Append(nil, i), anna))
	}
	origin := must[string](t)(alone.Origin(ctx))
	fence, _, _ := alone.Lease(ctx, "a", time.Second)
	old := must[Published](t)(alone.Publish(ctx, fence, "plan", []byte("plan")))
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := redisConfig("redis://" + startMini(t).Addr())
	a, b := openCached(t, cfg, file), openCached(t, cfg, "")
	b.sees(t, Document{Key: "edits", Version: 5, Body: []byte("4")})
	eventually(t, "the other has the history", func() bool { return len(must[[]Document](t)(b.History(ctx, "edits", 9))) == 5 })
	eventually(t, "the other has the origin and the plan", func() bool {
		p, err := b.Published(ctx, "plan")
		return err == nil && p.Number == old.Number && must[string](t)(b.Origin(ctx)) == origin
	})
	next, held, err := b.Lease(ctx, "b", time.Minute)
	if err != nil || !held || next <= fence {
		t.Errorf("held %v, fence %d after %d, %v", held, next, fence, err)
	}
	a.edits(t, 1, b)
}

// TestRouterWaitsForRedis asks a router that has not heard of Redis yet.
func TestRouterWaitsForRedis(t *testing.T) {
	remote := openRedis(t, redisConfig("redis://"+startMini(t).Addr()))
	c := NewCached(remote, openMemory(t, ""), silent)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := c.Current(ctx, "edits")
	wantErr(t, "current", err, ErrUnavailable)
	wantErr(t, "current", err, context.DeadlineExceeded)
}

// TestNewRedisHasLostNothing: a router that has run alone brings what it has into a Redis
// that was never used, and does not say that anything was lost. Of one that lost it, it does.
func TestNewRedisHasLostNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	alone := must[*Memory](t)(NewMemory(MemoryConfig{File: file}, silent))
	must[Document](t)(alone.Edit(t.Context(), "edits", 0, []byte("body 1"), anna))
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	mini := startMini(t)
	log := &runtest.Journal{}
	r := openLogged(t, redisConfig("redis://"+mini.Addr()), file, slog.New(slog.NewJSONHandler(log, nil)))
	log.Await(t, "redis did not have what this router keeps, and has it now: a document")
	r.edits(t, 1)
	if strings.Contains(log.String(), "put back") {
		t.Errorf("told %s", log)
	}
	mini.FlushAll()
	log.Await(t, "put back into redis what it had lost: a document")
}
