package sched

import (
	"net/netip"
	"slices"

	"millrace/internal/geo"
)

// Plan is a compiled Snapshot. It is immutable and safe from any goroutine; so is
// what its fields hold.
type Plan struct {
	Version uint64
	Nodes   []Node // by id, with defaults filled in
	Zones   []Zone // with defaults filled in
	Domains []Domain
	Regions []Region
	Costs   Costs
	Health  HealthConfig

	byID      map[string]int32
	domains   map[string]int32 // by canonical name
	zones     map[string]int32
	addr      [2][]netip.Addr // the first of each family, by node
	hash      []uint64        // by node
	share     []float64       // by node
	falloff   float64         // ms by which an edge is worse for each factor e that its share is smaller
	cells     []cell
	cellOf    []int32 // by node; -1: it is no edge
	sets      []selection
	setOf     []int32 // by domain
	atlas     *atlas
	places    places
	static    []static  // by place and cell
	orders    [][]int32 // by set: for each place, its cells
	quality   *measured
	overrides []override // the most specific first
	rules     []*rules   // by domain
}

// Compile makes the tables of a Snapshot. The pairs are those of the geo table that
// the Plan is to be used with. An error is one of Validate, or says that the tables
// would be too large. Compile keeps parts of s: its caller must not change s after.
func Compile(s *Snapshot, pairs []geo.Pair) (*Plan, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	p := &Plan{
		Version: s.Version, Nodes: slices.Clone(s.Nodes), Zones: slices.Clone(s.Zones),
		Domains: slices.Clone(s.Domains), Regions: s.Regions, Costs: s.Costs, Health: s.Health,
		byID: map[string]int32{}, domains: map[string]int32{}, zones: map[string]int32{},
	}
	p.setDefaults()
	p.falloff = p.Costs.Margin / steep
	p.index()
	p.makeAddresses()
	p.atlas = newAtlas(s, &p.Costs)
	p.quality = newMeasured(s, p.atlas, p.byID, &p.Costs)
	p.makeCells(p.quality.alone)
	p.makeSets()
	p.makeShares()
	var err error
	if p.places, err = newPlaces(p.atlas, pairs, p.quality.accesses(), len(p.cells)); err != nil {
		return nil, err
	}
	if err := p.makeRows(); err != nil {
		return nil, err
	}
	p.makeRules(s.Overrides)
	return p, nil
}

// index puts nodes, zones and domains where they are looked up.
func (p *Plan) index() {
	slices.SortFunc(p.Nodes, byID)
	for i := range p.Nodes {
		p.byID[p.Nodes[i].ID] = int32(i)
	}
	for i := range p.Zones {
		p.zones[p.Zones[i].Name] = int32(i)
	}
	for i := range p.Domains {
		d := &p.Domains[i]
		p.domains[d.Name] = int32(i)
		if z := p.Zone(d.Name); d.Zone == "" && z != nil {
			d.Zone = z.Name
		}
	}
}

// makeAddresses finds the addresses that players are given.
func (p *Plan) makeAddresses() {
	for f := range p.addr {
		p.addr[f] = make([]netip.Addr, len(p.Nodes))
		for i := range p.Nodes {
			of := func(a netip.Addr) bool { return FamilyOf(a) == 1<<f }
			if j := slices.IndexFunc(p.Nodes[i].Addresses, of); j >= 0 {
				p.addr[f][i] = p.Nodes[i].Addresses[j]
			}
		}
	}
}

// Node returns the node with this id, nil if there is none.
func (p *Plan) Node(id string) *Node {
	if i, ok := p.byID[id]; ok {
		return &p.Nodes[i]
	}
	return nil
}
