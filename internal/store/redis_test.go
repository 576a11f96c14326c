package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// prefixes keeps tests apart that share one Redis.
var prefixes atomic.Int64

func redisConfig(url string) RedisConfig {
	cfg := DefaultRedisConfig()
	cfg.URL = url
	cfg.Prefix = fmt.Sprintf("test%d:", prefixes.Add(1))
	cfg.Timeout = 5 * time.Second // the machine may have much else to do
	cfg.Look = 100 * time.Millisecond
	return cfg
}

// openRedis connects, and closes with the test.
func openRedis(t testing.TB, cfg RedisConfig) *Redis {
	t.Helper()
	r, err := NewRedis(cfg, silent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// server is a redis-server of this test, without anything on the disk.
type server struct {
	path   string // of the program
	socket string
	args   []string // beside those that all have
	cmd    *exec.Cmd
}

// startRedis starts a real redis-server, and ends it with the test. Without the program
// the test is skipped, or fails where nothing may be missing.
func startRedis(t testing.TB) *server {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	switch {
	case err == nil:
	case os.Getenv("E2E_REQUIRE") != "":
		t.Fatal("redis-server is not installed, and E2E_REQUIRE is set")
	default:
		t.Skip("skipped: redis-server is not installed (apt-get install redis-server)")
	}
	dir, err := os.MkdirTemp("", "redis") // t.TempDir may be longer than the name of a socket
	if err != nil {
		t.Fatal(err)
	}
	s := &server{path: path, socket: filepath.Join(dir, "s")}
	s.start(t)
	t.Cleanup(func() {
		s.kill(t)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *server) url() string { return "unix://" + s.socket }

func (s *server) start(t testing.TB) {
	t.Helper()
	s.cmd = exec.Command(s.path, append([]string{
		"--port", "0", "--unixsocket", s.socket, "--save", "", "--appendonly", "no",
		"--dir", filepath.Dir(s.socket), "--loglevel", "warning",
	}, s.args...)...)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	probe := openRedis(t, redisConfig(s.url()))
	eventually(t, "redis-server answers", func() bool {
		_, err := probe.state(context.Background())
		return err == nil
	})
}

// kill ends it at once: it has no time for anything.
func (s *server) kill(t testing.TB) {
	t.Helper()
	if s.cmd == nil {
		return
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = s.cmd.Wait() // its error tells that it was killed
	s.cmd = nil
}

func startMini(t *testing.T) *miniredis.Miniredis {
	m := miniredis.RunT(t)
	m.ClockTTL(true)
	return m
}

func TestRedisConfig(t *testing.T) {
	f := func(change func(*RedisConfig), want string) {
		t.Helper()
		cfg := DefaultRedisConfig()
		cfg.URL = "redis://user:secret@127.0.0.1:6379/2"
		change(&cfg)
		err := cfg.Validate()
		if want == "" && err == nil {
			return
		}
		if want == "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows the password: %v", err)
		}
		if _, err := NewRedis(cfg, silent); err == nil {
			t.Error("NewRedis takes it")
		}
	}
	f(func(*RedisConfig) {}, "")
	f(func(c *RedisConfig) { c.URL = "" }, "url is not one of Redis")
	f(func(c *RedisConfig) { c.URL = "http://a:secret@b" }, "url is not one of Redis")
	f(func(c *RedisConfig) { c.URL = "redis://a:secret@b:x/1" }, "url is not one of Redis")
	f(func(c *RedisConfig) { c.Prefix = "a b" }, "prefix")
	f(func(c *RedisConfig) { c.Prefix = "" }, "")
	f(func(c *RedisConfig) { c.Timeout = 0 }, "timeout is 0s: use 100ms to 1m")
	f(func(c *RedisConfig) { c.Look = time.Hour }, "look is 1h0m0s: use 100ms to 1m")
}

func TestRedisGone(t *testing.T) {
	mini := startMini(t)
	addr := mini.Addr()
	cfg := redisConfig("redis://:hush@" + addr)
	mini.RequireAuth("other")
	r := openRedis(t, cfg)
	for range 2 { // a wrong password, then nobody at all
		_, err := r.version(t.Context(), "edits", 0)
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), addr) || strings.Contains(err.Error(), "hush") {
			t.Errorf("current: %v", err)
		}
		wantErr(t, "edit", r.put(t.Context(), head{}, newVersion("edits", 1, nil, anna)), ErrUnavailable)
		_, _, err = r.take(t.Context(), "a", time.Second, 0)
		wantErr(t, "lease", err, ErrUnavailable)
		wantErr(t, "announce", r.Announce(t.Context(), Entry{"nodes", "a", nil, time.Second}), ErrUnavailable)
		mini.Close()
	}
}

// TestRedisForeign meets what was not written by a router.
func TestRedisForeign(t *testing.T) {
	mini := startMini(t)
	cfg := redisConfig("redis://" + mini.Addr())
	r := openRedis(t, cfg)
	ctx := t.Context()
	f := func(what string, write func(), read func() error) {
		t.Helper()
		mini.FlushAll()
		write()
		if err := read(); err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "prefix") {
			t.Errorf("%s: got error %v", what, err)
		}
	}
	current := func() error { _, err := r.version(ctx, "a", 0); return err }
	edit := func() error { return r.put(ctx, head{}, newVersion("a", 1, nil, anna)) }
	history := func() error { _, _, err := r.history(ctx, "a", 5); return err }
	published := func() error { _, err := r.Published(ctx, "plan"); return err }
	entries := func() error { _, err := r.Entries(ctx, "nodes"); return err }
	f("a state of another kind", func() { _ = mini.Set(r.key("state"), "x") }, current)
	f("a head without a mark", func() { mini.HSet(r.key("state"), "d:a", "7") }, edit)
	f("a head that is no number", func() { mini.HSet(r.key("state"), "d:a", "0x7 "+strings.Repeat("A", idLength)) }, edit)
	f("a version without a mark", func() {
		mini.HSet(r.key("state"), "d:a", "7 "+strings.Repeat("A", idLength))
		mini.HSet(r.key("doc", "a"), "7", "{}")
	}, current)
	f("a version without JSON", func() { mini.HSet(r.key("doc", "a"), "7", strings.Repeat("A", idLength)+"{") }, history)
	f("a publication without a number", func() { mini.HSet(r.key("pub", "plan"), "number", "x", "fence", "1", "at", "", "body", "") }, published)
	f("a publication without a time", func() { mini.HSet(r.key("pub", "plan"), "number", "1", "fence", "1", "at", "x", "body", "") }, published)
	f("an entry for ever", func() {
		_, _ = mini.SAdd(r.key("entries", "nodes"), "a")
		_ = mini.Set(r.key("entry", "nodes", "a"), "x")
		mini.SetTTL(r.key("entry", "nodes", "a"), 2*maxTTL)
	}, entries)
}
