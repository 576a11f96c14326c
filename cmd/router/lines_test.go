package main

import (
	"testing"

	"github.com/alicebob/miniredis/v2"

	"millrace/internal/runtest"
)

// TestKeptPlanIsNotNew: after a restart the plan in force is the one from before, and
// the log says so.
func TestKeptPlanIsNotNew(t *testing.T) {
	const made, kept = "a new plan is in force", "the plan that was published last, before this router began, is in force"
	dir := t.TempDir()
	tr := built(t, dir, "")
	tr.start(t)
	tr.awaitLog(t, made)
	if l := tr.log.Lines(t, kept); len(l) > 0 {
		t.Errorf("at the first start: %v", l)
	}
	tr.stop()
	again := built(t, dir, "")
	again.start(t)
	again.awaitLog(t, kept)
	if l := again.log.Lines(t, made); len(l) > 0 {
		t.Errorf("after a restart: %v", l)
	}
}

// TestRedisGoesAndComes: that is one line each.
func TestRedisGoesAndComes(t *testing.T) {
	mini := miniredis.RunT(t)
	tr := built(t, t.TempDir(), "redis: {url: \"redis://"+mini.Addr()+"\", look: 100ms}\n")
	tr.start(t)
	tr.awaitLog(t, "a new plan is in force")
	events := "http://" + tr.addr("admin") + "/v1/events?kind="
	mini.Close()
	tr.awaitLog(t, "redis is away: documents can be read, not edited, and the last plan stays in use")
	runtest.AwaitGet(t, events+"store_down", `"kind":"store_down"`)
	if err := mini.Restart(); err != nil {
		t.Fatal(err)
	}
	tr.awaitLog(t, "redis is back")
	runtest.AwaitGet(t, events+"store_up", `"kind":"store_up"`)
	for _, twice := range []string{"the store cannot be used: what was published last stays in force", "the store is back"} {
		if l := tr.log.Lines(t, twice); len(l) > 0 {
			t.Errorf("told again: %v", l)
		}
	}
}
