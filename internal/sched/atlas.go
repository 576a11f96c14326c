package sched

import (
	"math"

	"millrace/internal/geo"
)

// earth is its radius in km.
const earth = 6371

// atlas numbers the regions and ISPs of a Snapshot and knows how far regions are
// apart. Region 0 is any that the Snapshot does not name; ISP 0 is an unknown one,
// ISP 1 any that nobody names.
type atlas struct {
	regions map[string]int32
	isps    map[string]int32
	maps    []spot // by region
	costs   *Costs
}

const (
	elsewhere  = int32(0) // a region
	unknownISP = int32(0)
	otherISP   = int32(1)
)

// spot is what is known of where a region is.
type spot struct {
	x, y, z float64 // on a sphere of radius 1
	known   bool
	near    map[int32]float64
}

func newAtlas(s *Snapshot, costs *Costs) *atlas {
	a := &atlas{
		regions: map[string]int32{"": elsewhere}, isps: map[string]int32{"": unknownISP},
		maps: make([]spot, 1), costs: costs,
	}
	for i := range s.Regions {
		a.addRegion(s.Regions[i].Name)
	}
	for i := range s.Nodes {
		a.addRegion(s.Nodes[i].Region)
		for _, isp := range s.Nodes[i].ISPs {
			a.addISP(isp)
		}
	}
	for i := range s.Quality {
		a.addRegion(s.Quality[i].Region)
		a.addISP(s.Quality[i].ISP)
	}
	for i := range s.Overrides {
		a.addRegion(s.Overrides[i].When.Region)
		a.addISP(s.Overrides[i].When.ISP)
	}
	for i := range s.Regions {
		a.survey(&s.Regions[i])
	}
	return a
}

func (a *atlas) addRegion(name string) {
	if _, ok := a.regions[name]; !ok {
		a.regions[name] = int32(len(a.maps))
		a.maps = append(a.maps, spot{})
	}
}

func (a *atlas) addISP(name string) {
	if _, ok := a.isps[name]; !ok && name != anyISP {
		a.isps[name] = int32(len(a.isps)) + otherISP
	}
}

func (a *atlas) survey(r *Region) {
	p := &a.maps[a.regions[r.Name]]
	if r.Lat != nil {
		lat, lon := *r.Lat*math.Pi/180, *r.Lon*math.Pi/180
		p.x, p.y, p.z = math.Cos(lat)*math.Cos(lon), math.Cos(lat)*math.Sin(lon), math.Sin(lat)
		p.known = true
	}
	if len(r.Near) > 0 {
		p.near = make(map[int32]float64, len(r.Near))
		for to, ms := range r.Near {
			p.near[a.regions[to]] = ms
		}
	}
}

// isp returns the number of an ISP's name.
func (a *atlas) isp(name string) int32 {
	if i, ok := a.isps[name]; ok {
		return i
	}
	return otherISP
}

// ispCount is how many numbers ISPs have.
func (a *atlas) ispCount() int { return len(a.isps) + int(otherISP) }

// pair returns the numbers of a region and an ISP.
func (a *atlas) pair(p geo.Pair) (region, isp int32) { return a.regions[p.Region], a.isp(p.ISP) }

// distance returns the ms between two regions: what one of them says in Near, the
// smaller if both do, else what the map says.
func (a *atlas) distance(from, to int32) float64 {
	if from == elsewhere || to == elsewhere {
		return a.costs.UnknownDistance
	}
	if from == to {
		return 0
	}
	p, q := &a.maps[from], &a.maps[to]
	there, ok1 := p.near[to]
	back, ok2 := q.near[from]
	switch {
	case ok1 && ok2:
		return min(there, back)
	case ok1:
		return there
	case ok2:
		return back
	case p.known && q.known:
		// float64() keeps processors that can from fusing, and so from rounding otherwise.
		dot := float64(p.x*q.x) + float64(p.y*q.y) + float64(p.z*q.z)
		return a.costs.PerKm * earth * math.Acos(max(-1, min(1, dot)))
	}
	return a.costs.UnknownDistance
}

// ispCost returns what it costs a client of an ISP to be served by a node of others.
func (a *atlas) ispCost(client int32, node []int32, any bool) float64 {
	for _, isp := range node {
		if isp == client {
			return 0
		}
	}
	switch {
	case any:
		return a.costs.ISPAny
	case client == unknownISP:
		return a.costs.ISPUnknown
	}
	return a.costs.ISPOther
}
