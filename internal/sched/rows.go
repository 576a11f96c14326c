package sched

import (
	"cmp"
	"fmt"
	"slices"

	"millrace/internal/geo"
)

// maxStatic bounds the table of costs, places × cells of 8 bytes, and maxOrders what
// sets of groups make of it, 4 bytes each.
const (
	maxStatic = 16 << 20
	maxOrders = 32 << 20
)

// static is what an edge of a cell costs a client of a place before load, health and
// stream count.
type static struct {
	coverage float32
	quality  float32 // when the measurements were new; see Plan.fade
}

// least is what an edge of the cell costs at least, however old the measurements are.
func (s static) least() float32 { return s.coverage + min(s.quality, 0) }

// places numbers the (region, ISP, access) that have a row of costs.
type places struct {
	row      []int32 // by region, ISP and access; -1: none of its own
	isps     int
	accesses int // 1 when no measurement tells them apart
	keys     []placeKey
}

type placeKey struct {
	region, isp int32
	access      Access
}

// of returns the row of a place.
func (p *places) of(region, isp int32, access Access) int32 {
	if int(access) >= p.accesses {
		access = AccessUnknown
	}
	r := p.row[(int(region)*p.isps+int(isp))*p.accesses+int(access)]
	if r < 0 { // named by a caller, not by the geo table: its region counts
		r = p.row[(int(region)*p.isps+int(unknownISP))*p.accesses+int(access)]
	}
	return r
}

// newPlaces gives all places a row, if the rows are not too many, else those of the
// pairs and those of each region with an unknown ISP.
func newPlaces(a *atlas, pairs []geo.Pair, accesses, cells int) (places, error) {
	p := places{isps: a.ispCount(), accesses: accesses}
	p.row = make([]int32, len(a.maps)*p.isps*accesses)
	all := len(p.row)*cells <= maxStatic
	for i := range p.row {
		p.row[i] = -1
		if k := p.key(i); all || k.isp == unknownISP {
			p.add(i, k)
		}
	}
	if all {
		return p, nil
	}
	for _, pair := range pairs {
		region, isp := a.pair(pair)
		for access := range accesses {
			i := (int(region)*p.isps+int(isp))*accesses + access
			p.add(i, p.key(i))
		}
	}
	if n := len(p.keys) * cells; n > maxStatic {
		return p, fmt.Errorf("%d places × %d kinds of edges are %d, at most %d are possible: name fewer regions or ISPs, or measure quality by datacenter",
			len(p.keys), cells, n, maxStatic)
	}
	return p, nil
}

func (p *places) key(i int) placeKey {
	return placeKey{int32(i / p.accesses / p.isps), int32(i / p.accesses % p.isps), Access(i % p.accesses)}
}

func (p *places) add(i int, k placeKey) {
	if p.row[i] < 0 {
		p.row[i] = int32(len(p.keys))
		p.keys = append(p.keys, k)
	}
}

// makeRows fills the costs of all places, and for each set the order of its cells.
func (p *Plan) makeRows() error {
	orders := 0
	for i := range p.sets {
		orders += len(p.sets[i].cells) * len(p.places.keys)
	}
	if orders > maxOrders {
		return fmt.Errorf("%d sets of groups make %d rows of costs, at most %d are possible: let domains share groups", len(p.sets), orders, maxOrders)
	}
	cells := len(p.cells)
	p.static = make([]static, len(p.places.keys)*cells)
	distances := make([]float64, len(p.atlas.maps))
	region := int32(-1)
	for r, k := range p.places.keys {
		if k.region != region {
			region = k.region
			for _, c := range p.cells {
				distances[c.region] = p.atlas.distance(region, c.region)
			}
		}
		row := p.static[r*cells : (r+1)*cells]
		for i := range row {
			c := &p.cells[i]
			coverage := distances[c.region] + p.atlas.ispCost(k.isp, c.isps, c.any)
			row[i] = static{float32(coverage), float32(p.quality.of(k, c.nodes[0], p.Nodes[c.nodes[0]].Datacenter, coverage))}
		}
	}
	p.orders = make([][]int32, len(p.sets))
	for i := range p.sets {
		p.orders[i] = p.makeOrders(p.sets[i].cells)
	}
	return nil
}

// makeOrders returns, for one place after the other, the cells by ascending cost.
func (p *Plan) makeOrders(cells []int32) []int32 {
	type ranked struct {
		least float32
		cell  int32
	}
	out := make([]int32, 0, len(p.places.keys)*len(cells))
	order := make([]ranked, len(cells))
	for r := range p.places.keys {
		row := p.row(int32(r))
		for i, c := range cells {
			order[i] = ranked{row[c].least(), c}
		}
		slices.SortFunc(order, func(a, b ranked) int {
			if c := cmp.Compare(a.least, b.least); c != 0 {
				return c
			}
			return cmp.Compare(a.cell, b.cell)
		})
		for _, o := range order {
			out = append(out, o.cell)
		}
	}
	return out
}

// row returns the costs of a place by cell.
func (p *Plan) row(r int32) []static {
	n := int32(len(p.cells))
	return p.static[r*n : (r+1)*n]
}

// order returns the cells of a set, those that are best for a place first.
func (p *Plan) order(set, r int32) []int32 {
	n := int32(len(p.sets[set].cells))
	return p.orders[set][r*n : (r+1)*n]
}
