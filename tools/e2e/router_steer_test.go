package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/fleet"
	"millrace/tools/cluster"
)

// twoWays is a center, two relays in datacenters of their own, of which relay-1 is nearer,
// and an edge.
func twoWays(t *testing.T, settings map[string]string) cluster.Topology {
	t.Helper()
	top, err := cluster.Read(strings.NewReader(`
seed: 1
cluster_key: a-key-of-these-tests
nodes:
  - {id: center-1, role: center, region: core}
  - {id: relay-1, role: relay, region: north, datacenter: north, upstreams: [center-1]}
  - {id: relay-2, role: relay, region: east, datacenter: east, upstreams: [center-1]}
  - {id: edge-1, role: edge, region: city, datacenter: city, upstreams: [relay-1, relay-2]}
regions:
  - {name: core, near: {north: 10, east: 10, city: 120}}
  - {name: north, near: {city: 5, east: 10}}
  - {name: east, near: {city: 80}}
  - {name: city}
links:
  - {from: edge-1, to: relay-1, delay: 5ms}
  - {from: edge-1, to: relay-2, delay: 80ms}
  - {from: edge-1, to: center-1, delay: 120ms}
  - {from: "relay-*", to: center-1, delay: 10ms}
streams:
  - {name: live/test, source: frames, kbps: 500, at: [center-1]}
`))
	if err != nil {
		t.Fatal(err)
	}
	top.Routers = []cluster.Router{{ID: "router-1", Settings: settings}}
	return top
}

// TestQualitySteers: a link that gets worse is left by the plan within ten seconds, and by
// the stream soon after, and players see nothing of either; when it is well again the plan
// goes back, once.
func TestQualitySteers(t *testing.T) {
	const stream = "live/test"
	// By default an average needs 15 s for half of the way back, and how late media were on
	// a link that nobody uses counts half after two minutes, so that nobody is moved onto a
	// link that was well for a moment. Unless it is strict the test does not wait for so
	// long, and wants no move for what a busy machine does to round trips.
	settings, lasts, recovery := map[string]string{"plan.half.better": "3s", "plan.half.memory": "10s", "plan.gain_ms": "20"}, 80*time.Second, 2*patience
	if strict {
		settings, lasts, recovery = nil, 5*time.Minute, 4*time.Minute
	}
	s := startSystem(t, twoWays(t, settings))
	s.awaitPlan(t, "router-1")
	await(t, "relay-1 is first", patience, func() bool { return s.first("router-1", "edge-1") == "relay-1" })
	s.awaitStreams(t, stream, "edge-1")
	watching := s.view(t, stream, lasts, "edge-1")
	await(t, "the stream comes over relay-1, and the link is measured", patience, func() bool {
		l, ok := askRouter[fleet.Link](s, "router-1", "/v1/link?from=relay-1&to=edge-1")
		return ok && l.Why.Measured && l.Why.Figures.Samples > 5 && s.comesFrom(t, "edge-1", stream) == "relay-1"
	})
	good, _ := askRouter[fleet.Link](s, "router-1", "/v1/link?from=relay-1&to=edge-1")

	var firsts []string // of the pool, as it changes
	look := func(want string) func() bool {
		return func() bool {
			now := s.first("router-1", "edge-1")
			if len(firsts) == 0 || now != "" && firsts[len(firsts)-1] != now {
				firsts = append(firsts, now)
			}
			return now == want
		}
	}
	look("")()
	s.do(t, "delay edge-1>relay-1 250")
	planned := await(t, "the plan leaves the link", patience, look("relay-2"))
	bad, _ := askRouter[fleet.Link](s, "router-1", "/v1/link?from=relay-1&to=edge-1")
	moved := planned + await(t, "so does the stream", patience, func() bool {
		look("")()
		return s.comesFrom(t, "edge-1", stream) == "relay-2"
	})
	s.do(t, "heal edge-1>relay-1")
	back := await(t, "the plan goes back", recovery, look("relay-1"))
	await(t, "so does the stream", patience, func() bool {
		look("")()
		return s.comesFrom(t, "edge-1", stream) == "relay-1"
	})
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); <-tick.C {
		look("")()
	}
	watching.noticed(t)
	t.Logf("cost %.1f ms, %.1f ms when it was left; the plan left after %v, the stream after %v; back after %v; first upstreams %v",
		good.Cost, bad.Cost, planned, moved, back, firsts)
	if planned > promised(10*time.Second) {
		t.Errorf("the plan left the link after %v, and 10 s are promised", planned)
	}
	if want := []string{"relay-1", "relay-2", "relay-1"}; !slices.Equal(firsts, want) {
		t.Errorf("the first upstream was %v, want %v", firsts, want)
	}
	if bad.Cost < good.Cost+10 {
		t.Errorf("the score of the link was %.1f ms and became %.1f", good.Cost, bad.Cost)
	}
}
