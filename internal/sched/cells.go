package sched

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// cell is a set of edges that no client tells apart but by their load and health:
// same region, ISPs, datacenter and groups, and no measurement of one alone. A
// decision weighs cells first, and then the edges of the few that are near.
type cell struct {
	region int32
	isps   []int32 // sorted
	any    bool    // good from all ISPs
	nodes  []int32 // of the plan, ascending
}

// makeCells groups the edges of p. Nodes in alone have a cell of their own. Cells are
// in the order of their first nodes.
func (p *Plan) makeCells(alone map[string]bool) {
	p.cellOf = make([]int32, len(p.Nodes))
	byKey := map[string]int32{}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Role != roleEdge {
			p.cellOf[i] = -1
			continue
		}
		key := n.cellKey()
		if alone[n.ID] {
			key += "\n" + n.ID
		}
		c, ok := byKey[key]
		if !ok {
			c = int32(len(p.cells))
			byKey[key] = c
			p.cells = append(p.cells, newCell(n, p.atlas))
		}
		p.cellOf[i] = c
		p.cells[c].nodes = append(p.cells[c].nodes, int32(i))
	}
}

func newCell(n *Node, a *atlas) cell {
	c := cell{region: a.regions[n.Region], any: len(n.ISPs) == 0}
	for _, isp := range n.ISPs {
		if isp == anyISP {
			c.any = true
			continue
		}
		c.isps = append(c.isps, a.isp(isp))
	}
	slices.Sort(c.isps)
	return c
}

// cellKey is the same for nodes that can share a cell. No name has a line break in it.
func (n *Node) cellKey() string {
	var b strings.Builder
	b.WriteString(n.Region + "\n" + n.Datacenter)
	for _, list := range [][]string{n.ISPs, n.Groups} {
		b.WriteByte('\n')
		for _, s := range slices.Sorted(slices.Values(list)) {
			b.WriteString(s + ",")
		}
	}
	return b.String()
}

// selection is the cells that the domains with the same groups choose from.
type selection struct {
	groups []string
	cells  []int32
	has    []bool // by cell
}

// makeSets gives each domain its selection.
func (p *Plan) makeSets() {
	byKey := map[string]int32{}
	p.setOf = make([]int32, len(p.Domains))
	for i := range p.Domains {
		groups := slices.Sorted(slices.Values(p.Domains[i].Groups))
		key := strings.Join(groups, ",")
		s, ok := byKey[key]
		if !ok {
			s = int32(len(p.sets))
			byKey[key] = s
			p.sets = append(p.sets, p.selectCells(groups))
		}
		p.setOf[i] = s
	}
}

func (p *Plan) selectCells(groups []string) selection {
	s := selection{groups: groups, has: make([]bool, len(p.cells))}
	for c := range p.cells {
		if inGroups(&p.Nodes[p.cells[c].nodes[0]], groups) {
			s.cells = append(s.cells, int32(c))
			s.has[c] = true
		}
	}
	return s
}

// inGroups reports whether n is in one of the groups; all nodes are when there are none.
func inGroups(n *Node, groups []string) bool {
	return len(groups) == 0 || slices.ContainsFunc(n.Groups, func(g string) bool { return slices.Contains(groups, g) })
}

// makeShares gives each node its hash, and its share of the clients: its weight times
// its capacity, as a part of the largest.
func (p *Plan) makeShares() {
	p.hash, p.share = make([]uint64, len(p.Nodes)), make([]float64, len(p.Nodes))
	most := 0.0
	for i := range p.Nodes {
		n := &p.Nodes[i]
		p.hash[i] = mix(xxhash.Sum64String(n.ID))
		p.share[i] = n.Weight * float64(n.Capacity)
		most = max(most, p.share[i])
	}
	for i := range p.share {
		p.share[i] = max(p.share[i]/most, 1e-9)
	}
}

// mix makes each bit of the result depend on each bit of x (the finalizer of
// MurmurHash3).
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return x
}

// streamHash is what the tables of carried streams know a stream by.
func streamHash[S ~string](name S) uint64 { return xxhash.Sum64String(string(name)) }

// spreadKey is what a client's streams are spread by: 16 bytes of address and the
// stream.
func spreadKey(addr [16]byte, stream uint64) (key, odd uint64) {
	hi, lo := binary.BigEndian.Uint64(addr[:8]), binary.BigEndian.Uint64(addr[8:])
	key = mix(hi ^ mix(lo^mix(stream)))
	return key, mix(key+0x9e3779b97f4a7c15) | 1
}

func byID(a, b Node) int { return cmp.Compare(a.ID, b.ID) }
