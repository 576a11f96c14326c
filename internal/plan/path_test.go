package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"millrace/internal/stream"
)

// paths is two regions with nodes of two ISPs, and multi-homed relays.
func paths() *Network {
	n := &Network{Regions: regions(), Demand: map[string]int64{}}
	add := func(id, role, region, isps string) { n.add(id, role, id, region, isps) } // a datacenter each
	add("c1", Center, "north", "*")
	add("south-bgp", Relay, "south", "*")
	add("south-tel", Relay, "south", "tel")
	add("south-uni", Relay, "south", "uni")
	add("north-bgp", Relay, "north", "*")
	add("north-tel", Relay, "north", "tel")
	add("src-tel", Edge, "north", "tel")
	add("near-tel", Edge, "north", "tel")
	add("near-uni", Edge, "north", "uni")
	add("far-tel", Edge, "south", "tel")
	add("far-uni", Edge, "south", "uni")
	return n
}

// TestPathRules is each rule in a network of two regions, 18 ms apart, and two ISPs.
func TestPathRules(t *testing.T) {
	f := func(name, node, want string, change func(*Network, *Stream)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			n := paths()
			s := &Stream{Source: "src-tel", Epoch: 3, Bitrate: 250_000, Carriers: map[string]string{"src-tel": ""}}
			n.Streams = StreamMap{"live/a": s}
			p := Make(start, n, nil, config())
			if change != nil {
				change(n, s)
			}
			if err := n.Edits.Validate(); err != nil {
				t.Fatal(err)
			}
			a := Path(start, n, p, config(), node, "live/a")
			got := a.Reason.String()
			if len(a.Choices) > 0 {
				got += " " + strings.Join(a.Choices[0].Hops, " ")
			}
			if got != want {
				e := NewView(start, n, p, config()).ExplainPath(node, "live/a")
				t.Errorf("%s\nwant %s\n%+v", got, want, e)
			}
		})
	}
	carry := func(ids ...string) func(*Network, *Stream) {
		return func(_ *Network, s *Stream) {
			for i := range ids {
				up := "src-tel"
				if i > 0 {
					up = ids[i-1]
				}
				s.Carriers[ids[i]] = up
			}
		}
	}
	f("near and of the same ISP", "near-tel", "direct src-tel", nil)
	f("far and of the same ISP", "far-tel", "between south-tel src-tel", nil)
	f("far, and a neighbour carries it", "far-tel", "carrier south-bgp src-tel", carry("south-bgp"))
	f("far, and one at the source carries it", "far-tel", "between south-tel src-tel", carry("north-tel"))
	f("near but across ISPs", "near-uni", "bridged north-bgp src-tel", func(n *Network, _ *Stream) { n.node("c1").Draining = true })
	f("far and across ISPs", "far-uni", "bridged south-bgp src-tel", nil)
	f("across ISPs, carried behind another one", "far-uni", "carrier south-uni south-bgp src-tel", func(n *Network, s *Stream) {
		carry("south-bgp", "south-uni")(n, s)
		n.node("south-bgp").Load = 99 << 20
	})
	f("a relay goes straight", "south-tel", "direct_far src-tel", nil)
	f("a relay of another ISP does not", "south-uni", "bridged south-bgp src-tel", nil)
	f("the source", "src-tel", "source", nil)
	f("the source is not known", "far-tel", "pool south-tel", func(_ *Network, s *Stream) { s.Source = "" })
	f("the source is dead", "far-tel", "pool south-tel", func(n *Network, _ *Stream) { n.node("src-tel").Alive = false })
	f("nobody has such a stream", "far-tel", "pool south-tel", func(n *Network, _ *Stream) { n.Streams = nil })
	f("an unknown node", "nobody", "unknown", nil)
	f("a ban of the source", "near-tel", "between north-tel src-tel", func(n *Network, _ *Stream) {
		n.Edits.Bans = []Ban{{From: "src-tel", To: "near-tel"}, {From: "c1", To: "*"}, {From: "north-bgp", To: "*"}}
	})
	f("a ban of what is between", "far-tel", "bridged south-bgp src-tel", func(n *Network, _ *Stream) {
		n.Edits.Bans = []Ban{{From: "south-tel", To: "*"}}
		n.node("far-tel").ISPs = []string{"uni"}
	})
	f("a ban behind what is between", "far-tel", "between south-bgp src-tel", func(n *Network, _ *Stream) {
		n.Edits.Bans = []Ban{{From: "src-tel", To: "south-tel"}}
	})
	f("a pin of the node", "far-tel", "pinned c1", func(n *Network, _ *Stream) {
		n.Edits.Pins = []Pin{{Node: "far-tel", Upstreams: []string{"c1"}}}
	})
	f("a pin of the stream before one of the node", "far-tel", "pinned src-tel", func(n *Network, _ *Stream) {
		n.Edits.Pins = []Pin{{Node: "far-tel", Upstreams: []string{"c1"}}, {Node: "far-tel", Stream: "live/a", Upstreams: []string{"src-tel"}}}
	})
	f("a pin to an edge that is not the source", "far-tel", "between south-tel src-tel", func(n *Network, _ *Stream) {
		n.Edits.Pins = []Pin{{Node: "far-tel", Upstreams: []string{"near-tel"}}}
	})
	f("what is between is pinned elsewhere", "far-tel", "between south-bgp src-tel", func(n *Network, _ *Stream) {
		n.Edits.Pins = []Pin{{Node: "south-tel", Upstreams: []string{"c1"}}}
	})
	f("what is between is full", "far-tel", "between south-bgp src-tel", func(n *Network, _ *Stream) { n.node("south-tel").Load = 95 << 20 })
	f("what is between drains", "far-tel", "between south-bgp src-tel", func(n *Network, _ *Stream) { n.node("south-tel").Draining = true })
	f("the source is full, and a neighbour carries it", "near-tel", "carrier north-tel src-tel", func(n *Network, s *Stream) {
		carry("north-tel")(n, s)
		n.node("src-tel").Load = 95 << 20
	})
	f("near, but half the world has it", "near-tel", "carrier north-tel src-tel", func(n *Network, s *Stream) {
		carry("north-tel")(n, s)
		for i := range config().Hot {
			s.Carriers[fmt.Sprint("other-", i)] = "north-tel"
		}
	})
	f("all is full", "near-tel", "over_capacity src-tel", func(n *Network, _ *Stream) { n.node("src-tel").Load = 95 << 20 })
	f("it comes over who asks", "south-tel", "direct_far src-tel", func(_ *Network, s *Stream) {
		s.Carriers["south-tel"], s.Carriers["south-bgp"] = "src-tel", "south-tel"
	})
	f("nobody says where it comes from, and who asks has it", "far-uni", "bridged south-bgp src-tel", func(_ *Network, s *Stream) {
		s.Carriers["far-uni"], s.Carriers["south-uni"] = "south-bgp", ""
	})
	f("the ring of others", "far-tel", "between south-tel src-tel", func(_ *Network, s *Stream) {
		s.Carriers["south-bgp"], s.Carriers["north-bgp"] = "north-bgp", "south-bgp"
	})
}

// TestPathSpreads wants streams spread over equal nodes between, and all who ask for one
// stream in one place sent to the same.
func TestPathSpreads(t *testing.T) {
	n := paths()
	for i := range 4 {
		m := *n.node("south-tel")
		m.ID = fmt.Sprintf("south-tel-%d", i)
		n.Nodes = append(n.Nodes, m)
		e := *n.node("far-tel")
		e.ID = fmt.Sprintf("far-tel-%d", i)
		n.Nodes = append(n.Nodes, e)
	}
	streams := StreamMap{}
	n.Streams = streams
	v := NewView(start, n, nil, config())
	got := map[string]int{}
	for i := range 500 {
		name := stream.Name(fmt.Sprintf("live/%d", i))
		streams[name] = &Stream{Source: "src-tel", Bitrate: 1000, Carriers: map[string]string{"src-tel": ""}}
		var a, b PathAnswer
		v.Path("far-tel", name, &a)
		v.Path("far-tel-2", name, &b)
		if a.Choices[0].Upstream != b.Choices[0].Upstream {
			t.Fatalf("%s: %v and %v", name, a, b)
		}
		got[a.Choices[0].Upstream]++
	}
	if len(got) < 5 {
		t.Errorf("streams are at %v", got)
	}
	for id, k := range got {
		if k < 50 {
			t.Errorf("%s has %d of 500 streams", id, k)
		}
	}
}

// TestPathChoices wants the second choice in another failure domain, and the pool after.
func TestPathChoices(t *testing.T) {
	n := paths()
	n.Streams = StreamMap{"live/a": {Source: "src-tel", Bitrate: 1000}}
	a := Path(start, n, Make(start, n, nil, config()), config(), "far-tel", "live/a")
	if len(a.Choices) != 3 || a.Choices[0].Upstream != "south-tel" || a.Choices[1].Upstream != "south-bgp" {
		t.Errorf("%+v", a.Choices)
	}
	for _, c := range a.Choices {
		if d := c.Cost - Cost(c.Parts); d > 1e-9 || d < -1e-9 {
			t.Errorf("%+v", c)
		}
	}
}

// TestPathOwner wants the node between that brings the stream into its datacenter, for the
// others there would pull from it; whatever the stream is called.
func TestPathOwner(t *testing.T) {
	n := &Network{Regions: paths().Regions}
	for _, id := range []string{"relay-1", "relay-2", "relay-3"} {
		n.add(id, Relay, "hub", "north", "*")
	}
	n.add("center", Center, "core", "north", "tel")
	n.add("edge", Edge, "city", "south", "uni")
	s := &Stream{Source: "center", Bitrate: 250_000, Carriers: map[string]string{"center": ""}}
	owned := map[string]bool{}
	for i := range 40 {
		name := stream.Name(fmt.Sprintf("live/s%d", i))
		n.Streams = StreamMap{name: s}
		v := NewView(start, n, Make(start, n, nil, config()), config())
		owner := v.ownerOf("relay-1", name)
		owned[owner] = true
		var a PathAnswer
		v.Path("edge", name, &a)
		if len(a.Choices) == 0 || !slices.Equal(a.Choices[0].Hops, []string{owner, "center"}) {
			t.Errorf("%s: %+v, and its owner is %s", name, a.Choices, owner)
		}
	}
	if len(owned) != 3 {
		t.Errorf("owners are %v", owned)
	}
}
