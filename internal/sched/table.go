package sched

import (
	"cmp"
	"math"
	"slices"
)

// table is the edges that a kind of queries can be answered with, by cell, and in a
// cell by what load and health cost.
type table struct {
	off   []int32   // by cell: where its edges begin in the next four; one more than cells
	hash  []uint64  // of the node
	scale []float32 // what its draws are multiplied with, as against those of the cell's best
	cost  []float32
	node  []int32

	least  []float32 // by cell: the cost of its best edge, infinite if it has none
	byNode []float32 // the cost by node, infinite if it is not in the table
	isWell []bool    // by node: eligible, or would be if it were not full
	well   []bool    // by cell: has a node that is well
}

// steep is how many times the falloff is within the margin: an edge at the end of the
// margin gets e^-3, a twentieth, of what the best gets.
const steep = 3

// same reports whether t was made of these costs.
func (t *table) same(costs []float32) bool { return t != nil && slices.Equal(t.byNode, costs) }

// newTable makes the table of the nodes with a finite cost.
func (p *Plan) newTable(costs []float32, isWell []bool) *table {
	n := 0
	for _, c := range costs {
		if c < inf {
			n++
		}
	}
	t := &table{
		off: make([]int32, 1, len(p.cells)+1), least: make([]float32, len(p.cells)),
		byNode: costs, isWell: isWell, well: make([]bool, len(p.cells)),
		hash: make([]uint64, 0, n), scale: make([]float32, 0, n), cost: make([]float32, 0, n), node: make([]int32, 0, n),
	}
	for c := range p.cells {
		from := len(t.node)
		for _, i := range p.cells[c].nodes {
			if costs[i] < inf {
				t.node = append(t.node, i)
			}
			t.well[c] = t.well[c] || isWell[i]
		}
		slices.SortFunc(t.node[from:], func(a, b int32) int {
			return cmp.Or(cmp.Compare(costs[a], costs[b]), cmp.Compare(a, b))
		})
		t.least[c] = inf
		if len(t.node) > from {
			t.least[c] = costs[t.node[from]]
		}
		for _, i := range t.node[from:] {
			t.hash = append(t.hash, p.hash[i])
			t.cost = append(t.cost, costs[i])
			t.scale = append(t.scale, float32(p.scale(i, costs[i]-t.least[c])))
		}
		t.off = append(t.off, int32(len(t.node)))
	}
	return t
}

// scale returns what the draws of a node are multiplied with when it is worse than
// another by so many ms. An edge far behind is in nobody's margin; the bound only
// keeps the figure finite.
func (p *Plan) scale(node int32, behind float32) float64 {
	return math.Exp(min(float64(behind)/p.falloff, 40)) / p.share[node]
}
