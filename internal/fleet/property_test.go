package fleet

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"millrace/internal/control"
	"millrace/internal/plan"
)

// TestOrdersProperty draws systems and lets nodes come and go. Orders never name the node
// itself or one that has been silent for long enough, and never name a node twice in a
// pool; both routers give the same.
func TestOrdersProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			s := memory(t)
			a, b := run(t, "r1", s, nil), run(t, "r2", s, nil)
			var nodes []*node
			add := func(role string, least, most int) {
				for i := range rapid.IntRange(least, most).Draw(rt, role+"s") {
					n := newNode(fmt.Sprintf("%s-%d", role, i), role, fmt.Sprintf("dc-%d", rapid.IntRange(0, 2).Draw(rt, "datacenter")))
					n.Region = rapid.SampledFrom([]string{"north", "south"}).Draw(rt, "region")
					n.ISPs = rapid.SampledFrom([][]string{{"*"}, {"telecom"}, {"unicom"}}).Draw(rt, "isps")
					n.pulled = rapid.Int64Range(0, 1<<20).Draw(rt, "pulled")
					nodes = append(nodes, n)
				}
			}
			add(plan.Center, 1, 2)
			add(plan.Relay, 0, 3)
			add(plan.Edge, 1, 5)
			up := make([]bool, len(nodes))
			for i := range up {
				up[i] = true
			}
			for range rapid.IntRange(1, 2).Draw(rt, "rounds") {
				for i := range up {
					up[i] = rapid.IntRange(0, 3).Draw(rt, "up") > 0
				}
				for range 8 {
					for i, n := range nodes {
						if up[i] {
							n.beat(t, [...]*Fleet{a.Fleet, b.Fleet}[i%2])
						}
					}
					time.Sleep(time.Second)
				}
				time.Sleep(beside)
				anybody := slices.Contains(up, true)
				for i, n := range nodes {
					if !up[i] || !anybody {
						continue
					}
					x, y := a.ordersOf(n.ID), b.ordersOf(n.ID)
					if x == nil || y == nil || control.NewOrdersPaper(x).Token() != control.NewOrdersPaper(y).Token() {
						rt.Fatalf("orders of %s differ: %+v and %+v", n.ID, x, y)
					}
					for what, list := range map[string][]control.Target{"pool": x.Pool, "peers": x.Peers, "centers": x.Centers, "measure": x.Measure} {
						seen := map[string]bool{}
						for _, target := range list {
							at := slices.IndexFunc(nodes, func(n *node) bool { return n.ID == target.Node })
							if target.Node == n.ID || at < 0 || !up[at] || seen[target.Node] || target.URL == "" {
								rt.Fatalf("the %s of %s names %+v: up %v, %+v", what, n.ID, target, up, x)
							}
							seen[target.Node] = true
						}
					}
				}
			}
			a.stop()
			b.stop()
		})
	})
}
