package plan

import (
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"millrace/internal/ring"
)

// View answers where to pull streams from, as of one time. It is not changed after
// NewView returned it, and safe from any goroutine if the Streams of its Network are.
type View struct {
	*world
	plan   *Plan
	at     time.Time
	near   [][]int32       // relays and centers by promised delay to a cell, the nearest first
	hashes []uint64        // of ids
	rings  [][]ring.Member // by node, those that share streams with it; shared by datacenter
}

// nearest is how many relays and centers are looked at around who asks, and around the
// source: who has more of them within reach spreads streams over the nearest only.
const nearest = 24

// NewView makes n and p ready for questions. Nothing of n is kept but its Streams.
func NewView(now time.Time, n *Network, p *Plan, cfg *Config) *View {
	if p == nil {
		p = &Plan{}
	}
	v := &View{world: newWorld(now, n, cfg), plan: p, at: now}
	v.hashes = make([]uint64, len(v.nodes))
	for i := range v.nodes {
		v.hashes[i] = xxhash.Sum64String(v.nodes[i].ID)
	}
	v.sortNear()
	v.sortRings()
	return v
}

// sortRings makes rings of the members of the plan that are alive.
func (v *View) sortRings() {
	v.rings = make([][]ring.Member, len(v.nodes))
	made := make(map[*Peer][]ring.Member)
	for id, peers := range v.plan.Members {
		i, ok := v.ids[id]
		if !ok || len(peers) == 0 {
			continue
		}
		r, ok := made[&peers[0]]
		if !ok {
			for _, p := range peers {
				if k, ok := v.ids[p.ID]; ok && v.nodes[k].Alive {
					r = append(r, ring.Member{ID: p.ID, Weight: p.Weight})
				}
			}
			made[&peers[0]] = r
		}
		v.rings[i] = r
	}
}

// sortNear finds the nearest relays and centers of each cell, by way of their cells.
func (v *View) sortNear() {
	byCell := make([][]int32, len(v.cells))
	for _, t := range [...]tier{tierCenter, tierRelay} {
		for _, i := range v.tiers[t] {
			byCell[v.nodes[i].cell] = append(byCell[v.nodes[i].cell], i)
		}
	}
	type distance struct {
		ms   float64
		cell int32
	}
	order := make([]distance, 0, len(v.cells))
	v.near = make([][]int32, len(v.cells))
	for to := range v.cells {
		order = order[:0]
		for from := range v.cells {
			if len(byCell[from]) > 0 {
				order = append(order, distance{v.between(&v.cells[from], &v.cells[to]), int32(from)})
			}
		}
		slices.SortFunc(order, func(a, b distance) int {
			switch {
			case a.ms < b.ms:
				return -1
			case a.ms > b.ms:
				return 1
			}
			return int(a.cell - b.cell)
		})
		var list []int32
		for _, d := range order {
			if len(list) >= nearest {
				break
			}
			list = append(list, byCell[d.cell]...)
		}
		v.near[to] = list
	}
}

// mix spreads the bits of a hash (the finisher of SplitMix64).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
