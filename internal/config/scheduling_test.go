package config

import (
	"strings"
	"testing"
	"time"
)

func TestScheduling(t *testing.T) {
	f := func(name string, change func(*Node), want ...string) {
		t.Run(name, func(t *testing.T) {
			n := DefaultNode()
			n.Role, n.ID, n.Cluster.Keys = Edge, "edge-1", []string{"a key of some length"}
			n.Scheduling.From = []string{"http://scheduler:8081", "https://[2001:db8::1]:8443/"}
			change(&n)
			err := n.Validate()
			if len(want) == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			for _, w := range want {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("got %v, want %q in it", err, w)
				}
			}
		})
	}
	f("as it should be", func(*Node) {})
	f("without an id", func(n *Node) { n.ID = "" }, "scheduling.from needs an id")
	f("without a key", func(n *Node) { n.Cluster.Keys = nil }, "scheduling.recheck signs where it sends players: set cluster.keys")
	f("without a key, nobody is sent on", func(n *Node) { n.Cluster.Keys, n.Scheduling.Recheck = nil, false })
	f("a center", func(n *Node) { n.Role = Center }, "scheduling.from is for edges, and this is a center")
	f("no URL", func(n *Node) { n.Scheduling.From = []string{"scheduler:8081"} }, `scheduling: from: "scheduler:8081" is not the URL of a server: write http://`)
	f("too many", func(n *Node) { n.Scheduling.From = make([]string, 17) }, "scheduling: from has 17 URLs")
	f("times", func(n *Node) { n.Scheduling.Wait, n.Scheduling.ReportEvery, n.Scheduling.MaxAge = 0, time.Hour, 0 },
		"scheduling: wait is 0s: use 1s to 5m", "scheduling: report_every is 1h", "scheduling: max_age: is 0s")
	f("domain", func(n *Node) { n.Scheduling.DefaultDomain = "http://x" }, `scheduling: default_domain: "http://x" is not a host name`)
	f("capacity", func(n *Node) { n.Scheduling.Capacity = -1 }, "scheduling: capacity is -1: use the bytes")
	f("a center that only tells its capacity", func(n *Node) { n.Role, n.Scheduling.From, n.Scheduling.Capacity = Center, nil, 125e6 })
}
