package geo

import (
	"errors"
	"fmt"

	"github.com/oschwald/maxminddb-golang/v2"
)

const (
	// maxNodes bounds the nodes in the tree of one mmdb file. The largest files sold
	// have about ten million.
	maxNodes = 1 << 26
	// maxVisits bounds how often a node is come by on average. In a tree it is once,
	// but where branches join again there can be 2^128 paths.
	maxVisits = 16
	// maxRanges bounds what one file may leave of its networks once neighbours of the
	// same place are joined; each costs about fifty bytes while the table is made.
	maxRanges = 1 << 23
)

var errTree = errors.New("the search tree is damaged: fetch the file again")

// tree is the search tree of an mmdb file: a binary tree over the bits of an address
// whose leaves are offsets of records. (maxminddb's own iterator neither bounds its
// steps nor gives the holes between networks, which count here as well.)
type tree struct {
	b      []byte
	nodes  uint32 // a child below it is a node, one equal to it a hole, one above a record
	record uint   // bits of a child
	v4     uint32 // the node or leaf of ::/96, where IPv4 is; the root in a file of IPv4 only
	value  func(offset uint32) (uint32, error)

	visited, networks int
}

const separator = 16 // bytes between the tree and the records

func newTree(b []byte, m maxminddb.Metadata) (*tree, error) {
	t := &tree{b: b, nodes: uint32(m.NodeCount), record: m.RecordSize}
	switch {
	case m.RecordSize != 24 && m.RecordSize != 28 && m.RecordSize != 32:
		return nil, fmt.Errorf("has records of %d bits, can read those of 24, 28 and 32", m.RecordSize)
	case m.IPVersion != 4 && m.IPVersion != 6:
		return nil, fmt.Errorf("is for IP version %d, can read those for 4 and 6", m.IPVersion)
	case m.NodeCount == 0 || m.NodeCount > maxNodes || int(m.NodeCount*m.RecordSize/4) > len(b):
		return nil, errTree
	}
	if m.IPVersion == 6 {
		for depth := 0; depth < 96 && t.v4 < t.nodes; depth++ {
			t.v4, _ = t.children(t.v4)
		}
	}
	return t, nil
}

// children returns what hangs below node for a bit of 0 and of 1.
func (t *tree) children(node uint32) (left, right uint32) {
	size := int(t.record / 4)
	b := t.b[int(node)*size:][:size]
	switch t.record {
	case 24:
		return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]),
			uint32(b[3])<<16 | uint32(b[4])<<8 | uint32(b[5])
	case 28:
		return uint32(b[3])>>4<<24 | uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]),
			uint32(b[3])&15<<24 | uint32(b[4])<<16 | uint32(b[5])<<8 | uint32(b[6])
	}
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]),
		uint32(b[4])<<24 | uint32(b[5])<<16 | uint32(b[6])<<8 | uint32(b[7])
}

// families returns what the tree holds of IPv4 and of IPv6.
func (t *tree) families(version uint) (out families, err error) {
	if out[0], err = t.walk(nil, t.v4, key{}, 0, 32); err != nil {
		return out, err
	}
	if version == 4 {
		out[1] = flatten(nil)
		return out, nil
	}
	out[1], err = t.walk(nil, 0, key{}, 0, 128)
	return out, err
}

// walk appends the leaves below node, whose addresses begin with the first depth bits
// of at; most is how many bits an address has.
func (t *tree) walk(out runs, node uint32, at key, depth, most int) (runs, error) {
	t.visited++
	switch {
	case t.visited > maxVisits*int(t.nodes):
		return nil, errTree
	case len(out) > maxRanges:
		return nil, fmt.Errorf("more than %d neighbouring networks differ in region or ISP: list fewer of them in the maps", maxRanges)
	case node == t.nodes, most == 128 && depth > 0 && node == t.v4 && node < t.nodes:
		return out.then(at, unknown), nil // a hole, or IPv4 in IPv6 form, which is looked up as IPv4
	case node > t.nodes:
		if node-t.nodes < separator {
			return nil, errTree
		}
		v, err := t.value(node - t.nodes - separator)
		t.networks++
		return out.then(at, v), err
	case depth == most:
		return nil, errTree
	}
	left, right := t.children(node)
	out, err := t.walk(out, left, at, depth+1, most)
	if err != nil {
		return nil, err
	}
	return t.walk(out, right, at.with(depth), depth+1, most)
}
