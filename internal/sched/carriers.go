package sched

import (
	"math/bits"
	"slices"

	"millrace/internal/stream"
)

const (
	// maxCarried bounds the streams of all nodes together: 5,000 nodes with 400 each.
	// Nodes with more than their part are known by the streams with the lowest hashes,
	// which are the same streams on all nodes.
	maxCarried = 2 << 20
	// hotStream is from how many carriers on a stream has them as a set too.
	hotStream = 64
)

// carriers knows which nodes carry a stream.
type carriers struct {
	slots []slot // an open hash table
	nodes []int32
	hot   [][]uint64
}

type slot struct {
	hash    uint64 // 0: empty
	from, n int32  // in nodes
	hot     int32  // in hot, from 1 on; 0: it is not there
}

// carrying is the nodes that carry one stream, ascending.
type carrying struct {
	list []int32
	set  []uint64 // of many
}

// streamHashes returns the hashes of streams, sorted, without doubles.
func streamHashes(names []stream.Name) []uint64 {
	out := make([]uint64, 0, len(names))
	for _, n := range names[:min(len(names), MaxStreams)] {
		out = append(out, max(streamHash(n), 1))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func newCarriers(nodes []*NodeState) carriers {
	lists := make([][]uint64, len(nodes))
	all, most := 0, 0
	for i, s := range nodes {
		if s == nil {
			continue
		}
		if lists[i] = s.hashes; lists[i] == nil {
			lists[i] = streamHashes(s.Streams)
		}
		lists[i] = lists[i][:min(len(lists[i]), maxCarried/len(nodes))]
		all, most = all+len(lists[i]), max(most, len(lists[i]))
	}
	c := carriers{}
	if all == 0 {
		return c
	}
	c.slots = make([]slot, 1<<bits.Len(uint(4*most)))
	c.count(lists)
	from := int32(0)
	for i := range c.slots {
		s := &c.slots[i]
		s.from, from = from, from+s.n
		if s.n > hotStream {
			c.hot = append(c.hot, make([]uint64, (len(nodes)+63)/64))
			s.hot = int32(len(c.hot))
		}
		s.n = 0
	}
	c.nodes = make([]int32, all)
	for i, list := range lists {
		for _, h := range list {
			s := &c.slots[c.slot(h)]
			c.nodes[s.from+s.n] = int32(i)
			s.n++
			if s.hot > 0 {
				c.hot[s.hot-1][i>>6] |= 1 << (i & 63)
			}
		}
	}
	return c
}

// count makes a slot for each hash and counts its nodes.
func (c *carriers) count(lists [][]uint64) {
	used := 0
	for _, list := range lists {
		for _, h := range list {
			s := &c.slots[c.slot(h)]
			if s.n++; s.n > 1 {
				continue
			}
			s.hash = h
			if used++; 2*used > len(c.slots) {
				c.grow()
			}
		}
	}
}

func (c *carriers) grow() {
	old := c.slots
	c.slots = make([]slot, 2*len(old))
	for _, s := range old {
		if s.hash != 0 {
			c.slots[c.slot(s.hash)] = s
		}
	}
}

// slot returns where a hash is, or would be.
func (c *carriers) slot(h uint64) int {
	mask := uint64(len(c.slots) - 1)
	i := mix(h) & mask
	for c.slots[i].hash != 0 && c.slots[i].hash != h {
		i = (i + 1) & mask
	}
	return int(i)
}

// of returns the nodes that carry a stream. It does not allocate.
func (c *carriers) of(name stream.Name) (out carrying) {
	if name == "" || len(c.slots) == 0 {
		return out
	}
	s := &c.slots[c.slot(max(streamHash(name), 1))]
	out.list = c.nodes[s.from : s.from+s.n]
	if s.hot > 0 {
		out.set = c.hot[s.hot-1]
	}
	return out
}

// has reports whether node i carries the stream.
func (c *carrying) has(i int32) bool {
	if c.set != nil {
		return c.set[i>>6]&(1<<(i&63)) != 0
	}
	_, ok := slices.BinarySearch(c.list, i)
	return ok
}
