package control

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestOddNamesSilenceNoNode: names that a router would refuse, as they stand in an mmdb
// file, are left out, and what players did there is told all the same.
func TestOddNamesSilenceNoNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fleet := newRouter(t, "r1", clusterKey)
		n, node := &network{}, newNode()
		n.http("r1:80", s)
		node.players = []Players{
			{Region: "New York", ISP: "x", Started: 1, Closes: map[string]int{"Gone Away": 1, "No!": 2, "slow": 3}},
			{ISP: "x", Started: 2},
			{Region: "north", ISP: "A, B and C", Started: 4},
		}
		node.rechecks = []Rechecked{
			{Region: "New York", ISP: "x", Way: "dns", Outcome: "right", Count: 1},
			{ISP: "x", Way: "dns", Outcome: "right", Count: 2},
			{ISP: "x", Way: "dns", Outcome: "sent", Count: 4},
		}
		b := beating(t, n, node, nil, "http://r1:80")
		pass(500 * time.Millisecond)
		h := fleet.heartbeats()
		if len(h) != 1 {
			t.Fatalf("heard %d heartbeats: %+v", len(h), b.Status())
		}
		p, r := h[0].Players, h[0].Rechecks
		if len(p) != 2 || p[0].Region != "" || p[0].Started != 3 || p[0].Closes[otherReason] != 3 || p[0].Closes["slow"] != 3 || p[1].Started != 4 || p[1].ISP != "" {
			t.Errorf("told of players: %+v", p)
		}
		if len(r) != 2 || r[0].Count != 3 || r[1].Count != 4 {
			t.Errorf("told of rechecks: %+v", r)
		}
	})
}
