package sched

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// duo is a world of two regions 20 ms apart, each with an edge of its own name.
func duo(t tester) *world {
	w := newWorld(t)
	w.coverage = "10.1.0.0/16 bj telecom\n10.2.0.0/16 sh unicom\n10.3.0.0/16 bj mobile\n2001:db8:1::/48 bj telecom\n"
	w.Regions = []Region{{Name: "bj"}, {Name: "sh", Near: map[string]float64{"bj": 20}}}
	w.edge("bj", "bj", "telecom")
	w.edge("sh", "sh", "unicom")
	return w
}

// TestRules wants each rule to do what it is for.
func TestRules(t *testing.T) {
	const bj, sh = "10.1.0.1", "10.2.0.1"
	f := func(what, want string, reason Reason, change func(w *world, q *Query)) {
		t.Helper()
		w := duo(t)
		q := client(bj)
		if change != nil {
			change(w, &q)
		}
		var a Answer
		w.view().Decide(start, &q, &a)
		got := ""
		for i := range a.N {
			got += a.Candidates[i].Node.ID + " "
		}
		if got != want+" " && (want != "" || got != "") || a.Reason != reason {
			t.Errorf("%s: %q (%v), want %q (%v)", what, got, a.Reason, want, reason)
		}
	}
	f("the near one", "bj", Placed, nil)
	f("the near one of another region", "sh", Placed, func(_ *world, q *Query) { q.Client = netip.MustParsePrefix(sh + "/32") })
	f("both when two are wanted", "bj sh", Placed, func(_ *world, q *Query) { q.Want = 2 })
	f("as many as the domain says", "bj sh", Placed, func(_ *world, q *Query) { q.Want = 0 })
	f("a region that the caller knows", "sh", Placed, func(_ *world, q *Query) { q.Region, q.ISP = "sh", "unicom" })
	f("an ISP that the caller knows, where it outweighs the way", "sh", Placed, func(_ *world, q *Query) { q.ISP = "unicom" })
	f("IPv6", "bj", Placed, func(_ *world, q *Query) { q.Client, q.Families = netip.MustParsePrefix("2001:db8:1::/56"), V6 })
	f("no such domain", "", UnknownDomain, func(_ *world, q *Query) { q.Domain = "example.com" })
	f("no edges of the groups", "", NoEdges, func(w *world, _ *Query) { w.Domains[0].Groups = []string{"vip"} })
	f("those of the groups", "sh", Placed, func(w *world, _ *Query) {
		w.Domains[0].Groups, w.Nodes[1].Groups = []string{"vip"}, []string{"vip", "live"}
	})
	f("no edge, no node at all", "", NoEdges, func(w *world, _ *Query) { w.Nodes = nil })
	f("only edges", "sh", Placed, func(w *world, _ *Query) { w.Nodes[0].Role = roleRelay })
	f("a family that the near one lacks", "sh", Placed, func(w *world, q *Query) { w.Nodes[0].Addresses, q.Families = w.Nodes[0].Addresses[:1], V6 })
	f("health per family", "sh", Placed, func(w *world, q *Query) { w.of("bj").V6.Status, q.Families = Down, V6 })
	f("health of the other family", "bj", Placed, func(w *world, q *Query) { w.of("bj").V6.Status, q.Families = Down, V4 })
	f("one family is enough", "bj", Placed, func(w *world, _ *Query) { w.of("bj").V6.Status = Down })
	f("HTTPS", "sh", Placed, func(w *world, q *Query) { w.Nodes[0].HTTPSPort, q.HTTPS = 0, true })
	f("HTTPS of the domain", "sh", Placed, func(w *world, _ *Query) { w.Nodes[0].HTTPSPort, w.Domains[0].Scheme = 0, "https" })
	f("HTTP of the domain", "bj", Placed, func(w *world, q *Query) { w.Nodes[0].HTTPSPort, q.HTTPS, w.Domains[0].Scheme = 0, true, "http" })
	f("drained by the operator", "sh", Placed, func(w *world, _ *Query) { w.Nodes[0].Drain = true })
	f("draining of itself", "sh", Placed, func(w *world, _ *Query) { w.of("bj").Draining = true })
	f("marked as attacked", "sh", Placed, func(w *world, _ *Query) { w.Nodes[0].UnderAttack = true })
	f("found to be attacked", "sh", Placed, func(w *world, _ *Query) { w.of("bj").UnderAttack = true })
	f("unknown health", "sh", Placed, func(w *world, _ *Query) { *w.of("bj") = NodeState{ID: "bj"} })
	f("unknown health of all", "bj sh", Degraded, func(w *world, q *Query) { w.state.Nodes, q.Want = nil, 2 })
	f("full", "sh", Spilled, func(w *world, _ *Query) { w.of("bj").Load = 1e9 })
	f("full, and no other is left", "bj", Degraded, func(w *world, _ *Query) { w.of("bj").Load = 2e9; w.of("sh").V4, w.of("sh").V6 = Health{}, Health{} })
	f("carries the stream, not near enough", "bj", Placed, func(w *world, q *Query) { w.of("sh").Streams, q.Stream = streams(1), "live/show0" })
	f("carries the stream, near enough", "sh", Placed, func(w *world, q *Query) {
		w.Regions[1].Near["bj"], q.ISP = 9, "unicom"
		w.Nodes[0].ISPs, w.Nodes[1].ISPs = nil, nil
		w.of("sh").Streams, q.Stream = streams(1), "live/show0"
	})
	f("measured bad", "sh", Placed, func(w *world, _ *Query) {
		w.Quality = []Quality{{Region: "bj", ISP: "telecom", Node: "bj", Delay: 300, Samples: 1000, At: start}}
	})
	f("measured bad by mobile players only", "bj", Placed, func(w *world, _ *Query) {
		w.Quality = []Quality{{Region: "bj", ISP: "telecom", Access: AccessMobile, Node: "bj", Delay: 300, Samples: 1000, At: start}}
	})
	f("measured bad by mobile players, of which it is one", "sh", Placed, func(w *world, q *Query) {
		w.Quality, q.Access = []Quality{{Region: "bj", ISP: "telecom", Access: AccessMobile, Node: "bj", Delay: 300, Samples: 1000, At: start}}, AccessMobile
	})
	f("measured bad long ago", "bj", Placed, func(w *world, _ *Query) {
		w.Quality = []Quality{{Region: "bj", Node: "bj", Delay: 300, Samples: 1000, At: start.Add(-2 * time.Hour)}}
	})
	override := func(o Override) func(w *world, q *Query) {
		return func(w *world, _ *Query) { o.ID = "o"; w.Overrides = []Override{o} }
	}
	f("pinned", "sh", Pinned, override(Override{Pin: []string{"sh"}}))
	f("pinned to a datacenter", "sh", Pinned, func(w *world, _ *Query) {
		w.Nodes[1].Datacenter, w.Overrides = "x", []Override{{ID: "o", Pin: []string{"dc:x"}}}
	})
	f("banned", "sh", Placed, override(Override{Ban: []string{"bj"}}))
	f("all banned", "bj", Degraded, override(Override{Ban: []string{"bj", "sh"}}))
	f("pinned for another region", "bj", Placed, override(Override{Pin: []string{"sh"}, When: When{Region: "sh"}}))
	f("pinned for another ISP", "bj", Placed, override(Override{Pin: []string{"sh"}, When: When{ISP: "unicom"}}))
	f("pinned for this ISP", "sh", Pinned, override(Override{Pin: []string{"sh"}, When: When{ISP: "telecom", Region: "bj"}}))
	f("pinned for another stream", "bj", Placed, override(Override{Pin: []string{"sh"}, When: When{Stream: "live/x"}}))
	f("pinned for another access", "bj", Placed, override(Override{Pin: []string{"sh"}, When: When{Access: AccessMobile}}))
	f("pinned for a prefix", "sh", Pinned, override(Override{Pin: []string{"sh"}, When: When{Prefix: netip.MustParsePrefix("10.1.0.0/24")}}))
	f("pinned for another prefix", "bj", Placed, override(Override{Pin: []string{"sh"}, When: When{Prefix: netip.MustParsePrefix("10.1.1.0/24")}}))
	f("pinned for a part of the prefix", "bj", Placed, func(w *world, q *Query) {
		q.Client = netip.MustParsePrefix("10.1.0.0/20")
		w.Overrides = []Override{{ID: "o", Pin: []string{"sh"}, When: When{Prefix: netip.MustParsePrefix("10.1.0.0/24")}}}
	})
	f("pinned until now", "bj", Placed, override(Override{Pin: []string{"sh"}, Until: start}))
	f("pinned for a moment", "sh", Pinned, override(Override{Pin: []string{"sh"}, Until: start.Add(1)}))
	f("pinned to many", "sh", Pinned, func(w *world, _ *Query) {
		o := Override{ID: "o", Pin: []string{"sh"}}
		for i := range 2 * longList {
			w.edge(fmt.Sprintf("x%03d", i), "bj").Drain = true
			o.Pin = append(o.Pin, w.Nodes[len(w.Nodes)-1].ID)
		}
		w.Overrides = []Override{o}
	})
	f("pinned to many, some of them banned", "bj", Placed, func(w *world, _ *Query) {
		w.Nodes[1].Datacenter = "x"
		for i := range 2 * longList {
			w.edge(fmt.Sprintf("x%03d", i), "bj").Datacenter = "x"
		}
		w.Overrides = []Override{{ID: "a", Pin: []string{"dc:x"}}, {ID: "b", Ban: []string{"dc:x"}, When: When{ISP: "telecom"}}}
	})
	f("pinned to one that is drained", "bj", Placed, func(w *world, _ *Query) {
		w.Nodes[1].Drain, w.Overrides = true, []Override{{ID: "o", Pin: []string{"sh"}}}
	})
	f("the more specific pin", "bj", Pinned, func(w *world, _ *Query) {
		w.Overrides = []Override{{ID: "a", Pin: []string{"sh"}}, {ID: "b", Pin: []string{"bj"}, When: When{ISP: "telecom"}}}
	})
	f("a pin more specific than a ban", "bj", Pinned, func(w *world, _ *Query) {
		w.Overrides = []Override{{ID: "a", Ban: []string{"bj"}}, {ID: "b", Pin: []string{"bj"}, When: When{ISP: "telecom"}}}
	})
	f("a ban more specific than a pin", "sh", Placed, func(w *world, _ *Query) {
		w.Overrides = []Override{{ID: "a", Pin: []string{"bj"}}, {ID: "b", Ban: []string{"bj"}, When: When{ISP: "telecom"}}}
	})
	f("two equal pins: the lower id", "bj", Pinned, func(w *world, _ *Query) {
		w.Overrides = []Override{{ID: "b", Pin: []string{"sh"}}, {ID: "a", Pin: []string{"bj"}}}
	})
}
