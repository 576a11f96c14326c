package e2e

import (
	"strings"
	"testing"
	"time"

	"millrace/internal/fleet"
	"millrace/tools/cluster"
)

// TestNobodyNoticesTheRouter kills the router under players, for longer than any timer of
// nodes and of itself, and the scheduler too. Meanwhile a relay dies, new players come, and
// a stream is published that no node has heard of. Then both come back, and nothing moves.
func TestNobodyNoticesTheRouter(t *testing.T) {
	const stream = "live/test"
	away := 15 * time.Second // grace is 10 s, and followers pause for up to 10 s
	if strict {
		away = 10 * time.Minute
	}
	top, err := cluster.Default()
	if err != nil {
		t.Fatal(err)
	}
	top.Streams = append(top.Streams, cluster.Feed{Name: "live/cold", Source: cluster.Frames, Kbps: 300, At: []string{"center-1"}})
	s := startSystem(t, top)
	s.awaitPlan(t, "router-1")
	edges := []string{"edge-1", "edge-2", "edge-3"}
	s.awaitStreams(t, stream, edges...)
	with := s.firstFrames(t, "live/demo", edges...)
	watching := s.view(t, stream, away+15*time.Second, edges...)
	s.awaitStreams(t, stream, edges...)

	s.do(t, "kill router-1")
	s.do(t, "kill scheduler")
	killed := time.Now()
	// At once: who asks a router for the first time since must not wait for it.
	without := s.firstFrames(t, "live/cold", edges...)
	relay := s.comesFrom(t, "edge-3", stream)
	if !strings.HasPrefix(relay, "relay") {
		t.Fatalf("edge-3 has the stream from %q", relay)
	}
	s.do(t, "kill "+relay)
	await(t, "edge-3 has it from elsewhere", patience, func() bool {
		now := s.comesFrom(t, "edge-3", stream)
		return now != "" && now != relay
	})
	s.do(t, "restart "+relay)
	pools := map[string]string{}
	for _, e := range edges {
		pools[e] = ordersOf(t, s.Cluster, e)
	}
	await(t, "every timer is over", away+time.Minute, func() bool { return time.Since(killed) > away })
	late := s.firstFrames(t, "live/test", edges...)
	for _, e := range edges {
		if now := ordersOf(t, s.Cluster, e); now != pools[e] {
			t.Errorf("%s follows %s, and had %s when the router died", e, now, pools[e])
		}
	}
	before := s.Observe(t.Context())

	s.do(t, "restart router-1")
	s.do(t, "restart scheduler")
	s.awaitPlan(t, "router-1")
	if why := brief(s.events("router-1", fleet.KindNodeDown)); why != "" {
		t.Errorf("nodes are down for the router that came back: %s", why)
	}
	for _, e := range edges {
		// The relay that was killed is where the orders have it come from, router or not.
		if got, want := s.comesFrom(t, e, stream), from(before, e, stream); got != want && got != relay {
			t.Errorf("%s has the stream from %s since the router is back, and had it from %s", e, got, want)
		}
	}
	report := watching.noticed(t)
	t.Logf("first frames: %v with the router, %v of a cold stream just after its death, %v later; delay of those who watched p99 %.0f ms",
		with, without, late, report.Normal.Delay.P99)
	for what, took := range map[string]time.Duration{"just after": without, "later": late} {
		if took > with+promised(2*time.Second) { // on a quiet machine they are alike
			t.Errorf("%s the death of the router the first frame took %v, and %v with it", what, took, with)
		}
	}
}
