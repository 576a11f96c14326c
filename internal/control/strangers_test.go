package control

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestStrangersAreTold: operators hear once of each node that is refused, of which reason
// and what to do, and not of what is everyday.
func TestStrangersAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s, err := NewServer(DefaultServerConfig(), newCluster(t, clusterKey), slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		f := func(what string, lines int, words ...string) {
			t.Helper()
			if n := strings.Count(log.String(), "level=WARN"); n != lines {
				t.Errorf("%s: %d lines, want %d:\n%s", what, n, lines, &log)
			}
			for _, w := range words {
				if !strings.Contains(log.String(), w) {
					t.Errorf("%s: no %q in %s", what, w, &log)
				}
			}
			log.Reset()
		}
		ask := func(node string) {
			get(t, s, "GET", "/v1/snapshot", nodeField+": "+node, nonceField+": "+strings.Repeat("A", 26))
		}
		for range 5 {
			ask("edge-1")
		}
		f("the same again and again", 1, "node=edge-1", "reason=unsigned", "set the same cluster.keys", "path=/v1/snapshot")
		ask("edge-2")
		f("another one", 1, "node=edge-2")
		get(t, s, "GET", "/v1/none")
		f("a path that is not there", 0)
		time.Sleep(strangersAgain)
		ask("edge-1")
		f("later", 1)
		for i := range 2 * maxStrangers {
			ask(fmt.Sprint("ghost-", i))
		}
		f("under many names", maxStrangers-1)
	})
}

// TestFirstFailuresAreNoWarnings: programs that are started together find one another
// within seconds. Later, and after an answer, the same is a warning, once.
func TestFirstFailuresAreNoWarnings(t *testing.T) {
	r := newRota("e1", []string{"a"}, time.Second, time.Second)
	now := time.Now()
	f := func(after time.Duration, o Outcome, level slog.Level, news bool) {
		t.Helper()
		if l, n := r.failed(now.Add(after), o); n != news || news && l != level {
			t.Errorf("after %v: %v, %v, want %v, %v", after, l, n, level, news)
		}
	}
	f(0, Unreachable, slog.LevelInfo, true)
	f(time.Second, Unreachable, 0, false)
	f(2*time.Second, Refused, slog.LevelInfo, true)
	f(grace, Refused, slog.LevelWarn, true)
	f(grace+time.Second, Refused, 0, false)
	r.answered()
	f(grace+time.Minute, Unreachable, slog.LevelWarn, true)

	r = newRota("e1", []string{"a"}, time.Second, time.Second)
	r.answered()
	f(time.Hour, Unreachable, slog.LevelWarn, true)
}
