package store

import (
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"

	"millrace/internal/runtest"
)

const (
	throws   = "redis throws away what routers keep there when its memory is full: set maxmemory-policy noeviction in redis.conf, and now with redis-cli CONFIG SET"
	silentOn = "redis does not say what it does when its memory is full: see to it that its maxmemory-policy is noeviction"
)

// TestPolicyIsTold: a Redis that may throw documents away is told of when it is first
// there, and when it is back with another setting.
func TestPolicyIsTold(t *testing.T) {
	server := startRedis(t)
	o, err := redis.ParseURL(server.url())
	if err != nil {
		t.Fatal(err)
	}
	admin := redis.NewClient(o)
	defer admin.Close()
	set := func(policy string) {
		t.Helper()
		if err := admin.ConfigSet(t.Context(), "maxmemory-policy", policy).Err(); err != nil {
			t.Fatal(err)
		}
	}
	cfg := redisConfig(server.url())
	f := func(policy, text string) {
		t.Helper()
		set(policy)
		log := &runtest.Journal{}
		r := openLogged(t, cfg, "", slog.New(slog.NewJSONHandler(log, nil)))
		r.edits(t, 1) // by then it was looked at
		if l := log.Lines(t, text); text != "" && (len(l) != 1 || l[0]["maxmemory_policy"] != policy) {
			t.Errorf("%s: told %s", policy, log)
		}
		if text == "" && len(log.Lines(t, throws))+len(log.Lines(t, silentOn)) > 0 {
			t.Errorf("%s: told %s", policy, log)
		}
		r.stop()
	}
	f("allkeys-lru", throws)
	f("volatile-ttl", throws)
	f("noeviction", "")

	log := &runtest.Journal{}
	r := openLogged(t, cfg, "", slog.New(slog.NewJSONHandler(log, nil)))
	r.edits(t, 1)
	server.kill(t)
	r.reachable(t, false)
	server.start(t)
	r.reachable(t, true)
	r.edits(t, 1)
	if l := log.Lines(t, throws); len(l) != 0 {
		t.Errorf("told %v", l)
	}
	server.kill(t)
	r.reachable(t, false)
	server.args = []string{"--maxmemory-policy", "allkeys-random"}
	server.start(t)
	log.Await(t, throws)
}

// TestPolicyIsNotSaid: a Redis that does not answer the question is good all the same.
func TestPolicyIsNotSaid(t *testing.T) {
	log := &runtest.Journal{}
	r := openLogged(t, redisConfig("redis://"+startMini(t).Addr()), "", slog.New(slog.NewJSONHandler(log, nil)))
	r.edits(t, 2)
	if l := log.Lines(t, silentOn); len(l) != 1 || l[0]["level"] != "INFO" {
		t.Errorf("told %s", log)
	}
}
