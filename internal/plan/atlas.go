package plan

import (
	"math"
	"slices"
	"strings"

	"millrace/internal/sched"
)

// earth is its radius in km.
const earth = 6371

// atlas knows how far regions are apart. Region 0 is one of which nothing is known.
type atlas struct {
	regions map[string]int32
	ways    []float64 // ms from region to region
	n       int32
}

// spot is where a region is, on a sphere of radius 1.
type spot struct {
	x, y, z float64
	known   bool
}

func newAtlas(regions []sched.Region, nodes []Node, c *Costs) *atlas {
	a := &atlas{regions: map[string]int32{"": 0}, n: 1}
	number := func(name string) {
		if _, ok := a.regions[name]; !ok {
			a.regions[name] = a.n
			a.n++
		}
	}
	for i := range regions {
		number(regions[i].Name)
	}
	for i := range nodes {
		number(nodes[i].Region)
	}
	spots := make([]spot, a.n)
	for i := range regions {
		if r := &regions[i]; r.Lat != nil && r.Lon != nil {
			lat, lon := *r.Lat*math.Pi/180, *r.Lon*math.Pi/180
			spots[a.regions[r.Name]] = spot{math.Cos(lat) * math.Cos(lon), math.Cos(lat) * math.Sin(lon), math.Sin(lat), true}
		}
	}
	a.ways = make([]float64, a.n*a.n)
	for i := range a.n {
		for j := range a.n {
			a.ways[i*a.n+j] = c.way(spots[i], spots[j], i == j && i != 0)
		}
	}
	near := make([]float64, a.n*a.n) // what regions say themselves, +1
	for i := range regions {
		from := a.regions[regions[i].Name]
		for name, ms := range regions[i].Near {
			to, ok := a.regions[name]
			if !ok || to == from {
				continue
			}
			for _, at := range [...]int32{from*a.n + to, to*a.n + from} {
				if near[at] == 0 || ms < near[at]-1 {
					near[at] = ms + 1
				}
				a.ways[at] = near[at] - 1
			}
		}
	}
	return a
}

// way returns the ms between two places.
func (c *Costs) way(a, b spot, same bool) float64 {
	switch {
	case same:
		return 0
	case a.known && b.known:
		dot := min(max(a.x*b.x+a.y*b.y+a.z*b.z, -1), 1)
		return c.PerKm * earth * math.Acos(dot)
	}
	return c.UnknownDistance
}

func (a *atlas) way(from, to int32) float64 { return a.ways[from*a.n+to] }

// isps is a set of ISPs.
type isps struct {
	bits [4]uint64
	any  bool // good from all
	none bool // nothing is known of it
}

// sameISP is how two nodes meet.
type sameISP uint8

const (
	ispShared  sameISP = iota // they have one in common
	ispAny                    // one of them is good from all
	ispUnknown                // one of them names none
	ispOther
)

func (a *isps) meet(b *isps) sameISP {
	switch {
	case a.bits[0]&b.bits[0]|a.bits[1]&b.bits[1]|a.bits[2]&b.bits[2]|a.bits[3]&b.bits[3] != 0:
		return ispShared
	case a.any || b.any:
		return ispAny
	case a.none || b.none:
		return ispUnknown
	}
	return ispOther
}

// maxISPs bounds how many ISPs are told apart; the rest meet nobody.
const maxISPs = 256

// cell is what nodes have in common that nothing but measurements tells apart: their
// region and their ISPs.
type cell struct {
	region int32
	isps   isps
}

// cells numbers the cells of nodes, which are sorted by id.
func (a *atlas) cells(nodes []Node) (all []cell, of []int32) {
	names := map[string]int{}
	for i := range nodes {
		for _, isp := range nodes[i].ISPs {
			names[isp] = 0
		}
	}
	sorted := make([]string, 0, len(names))
	for isp := range names {
		sorted = append(sorted, isp)
	}
	slices.Sort(sorted)
	for i, isp := range sorted {
		names[isp] = i
	}
	byKey := map[string]int32{}
	of = make([]int32, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		list := slices.Sorted(slices.Values(n.ISPs))
		key := n.Region + "\x00" + strings.Join(list, "\x00")
		at, ok := byKey[key]
		if !ok {
			at = int32(len(all))
			byKey[key] = at
			c := cell{region: a.regions[n.Region]}
			c.isps.none = len(list) == 0
			for _, isp := range list {
				if bit := names[isp]; isp == anyISP {
					c.isps.any = true
				} else if bit < maxISPs {
					c.isps.bits[bit/64] |= 1 << (bit % 64)
				}
			}
			all = append(all, c)
		}
		of[i] = at
	}
	return all, of
}
