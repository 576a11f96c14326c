package sched

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"millrace/internal/stream"
)

// TestCarriers wants the table of carried streams to know who carries what.
func TestCarriers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := fromRapid(rt)
		nodes := make([]*NodeState, d.pick("nodes", 0, 1, 5, 90, 200))
		names := d.pick("names", 1, 5, 400)
		want := map[stream.Name][]int32{}
		for i := range nodes {
			if d.one(5, "unknown") {
				continue
			}
			nodes[i] = &NodeState{}
			for range d.n("carried", 0, 5) {
				name := stream.Name(fmt.Sprintf("live/%d", (i*7+d.n("name", 0, 30))%names))
				nodes[i].Streams = append(nodes[i].Streams, name)
				if !slices.Contains(want[name], int32(i)) {
					want[name] = append(want[name], int32(i))
				}
			}
			if d.yes("hashed") {
				nodes[i].hashes = streamHashes(nodes[i].Streams)
			}
		}
		c := newCarriers(nodes)
		for n := range names {
			name := stream.Name(fmt.Sprintf("live/%d", n))
			got := c.of(name)
			if !slices.Equal(got.list, want[name]) || (got.set != nil) != (len(want[name]) > hotStream) {
				rt.Fatalf("%s: %v, want %v", name, got.list, want[name])
			}
			for i := range nodes {
				if got.has(int32(i)) != slices.Contains(want[name], int32(i)) {
					rt.Fatalf("%s on %d: %v", name, i, got.has(int32(i)))
				}
			}
		}
		if got := c.of(""); len(got.list) > 0 {
			rt.Fatalf("no stream is carried by %v", got.list)
		}
	})
}

// TestCarriedIsBounded wants nodes with too many streams to be known by the same ones.
func TestCarriedIsBounded(t *testing.T) {
	nodes := make([]*NodeState, maxCarried/100)
	for i := range nodes {
		nodes[i] = &NodeState{}
	}
	all := streams(2 * MaxStreams)
	for i := range 3 {
		nodes[i].Streams = slices.Clone(all)
		slices.Reverse(nodes[i].Streams[:i*1000])
	}
	c := newCarriers(nodes)
	known := 0
	for _, name := range all {
		switch n := len(c.of(name).list); n {
		case 0:
		case 3:
			known++
		default:
			t.Fatalf("%s is known of %d nodes", name, n)
		}
	}
	if known != 100 || len(c.nodes) != 300 {
		t.Errorf("%d streams, %d in all, are known", known, len(c.nodes))
	}
}
