package sched

import (
	"time"

	"millrace/internal/geo"
)

// View is a Plan, a geo table and a State, made ready for answering. It is immutable
// and safe from any goroutine.
type View struct {
	Plan  *Plan
	Geo   *geo.Table // nil: every place is unknown
	State *State

	pairs   [][2]int32 // region and ISP, by pair of Geo
	fade    float32    // what is left of the quality that the Plan knows
	why     [2][]Reason
	load    []float32 // ms, by node
	tables  [2 * int(bothFamilies)]tables
	carried carriers
}

// tables are the edges for queries of one kind: those that are eligible, and the
// rest of those that could serve it at all.
type tables struct {
	good, poor *table
}

// NewView makes a View; it takes some ms for thousands of nodes. Nodes that s does
// not mention are of unknown health; s nil mentions none. It keeps s: it must not be
// changed after.
func NewView(p *Plan, g *geo.Table, s *State) *View {
	if s == nil {
		s = &State{}
	}
	v := &View{Plan: p, Geo: g, State: s}
	if g != nil {
		for _, pair := range g.Pairs() {
			region, isp := p.atlas.pair(pair)
			v.pairs = append(v.pairs, [2]int32{region, isp})
		}
	}
	v.fade = float32(half(s.At.Sub(p.quality.latest), p.Costs.QualityHalf))
	nodes := v.statesByNode()
	v.judge(nodes)
	v.makeTables(nodes)
	v.carried = newCarriers(nodes)
	return v
}

// empty returns a View that knows no domain.
func empty() *View {
	p, err := Compile(&Snapshot{}, nil)
	if err != nil {
		panic(err) // an empty snapshot has no fault
	}
	return NewView(p, nil, nil)
}

// statesByNode returns what the State says of each node of the Plan, nil for nothing.
func (v *View) statesByNode() []*NodeState {
	out := make([]*NodeState, len(v.Plan.Nodes))
	for i := range v.State.Nodes {
		s := &v.State.Nodes[i]
		if i < len(out) && v.Plan.Nodes[i].ID == s.ID { // the usual case: made for this Plan
			out[i] = s
		} else if j, ok := v.Plan.byID[s.ID]; ok {
			out[j] = s
		}
	}
	return out
}

// stateOf returns what the State says of node i, nil for nothing.
func (v *View) stateOf(i int32) *NodeState {
	id := v.Plan.Nodes[i].ID
	for j := range v.State.Nodes {
		if v.State.Nodes[j].ID == id {
			return &v.State.Nodes[j]
		}
	}
	return nil
}

// old reports whether nothing of the State can be relied on at now.
func (v *View) old(now time.Time) bool {
	return now.Sub(v.State.At) > time.Duration(v.Plan.Health.Fresh)
}

// Why returns why a node, by its index in the Plan, is not offered over one address
// family: None if it is, Held if it is though it seems down. What depends on the
// query (groups, HTTPS, overrides) is not in it.
func (v *View) Why(index int32, f Families) Reason {
	if f == V6 {
		return v.why[1][index]
	}
	return v.why[0][index]
}

// kind returns which tables a query is answered from.
func kind(f Families, https bool) int {
	k := int(f) - 1
	if https {
		k += int(bothFamilies)
	}
	return k
}

// makeTables makes the tables of all kinds of queries. Kinds with the same edges share
// them: where all edges have IPv4, IPv6 and HTTPS and are well, one is made.
func (v *View) makeTables(nodes []*NodeState) {
	for _, https := range [...]bool{false, true} {
		for f := V4; f <= bothFamilies; f++ {
			k := kind(f, https)
			good, poor := v.costs(nodes, f, https)
			for i := range k {
				if v.tables[i].good.same(good) && v.tables[i].poor.same(poor) {
					v.tables[k] = v.tables[i]
				}
			}
			if v.tables[k].good == nil {
				isWell := make([]bool, len(nodes))
				for i := range isWell {
					isWell[i] = good[i] < inf || poor[i] < poorStep
				}
				v.tables[k] = tables{v.Plan.newTable(good, isWell), v.Plan.newTable(poor, isWell)}
			}
		}
	}
}
