package sched

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"millrace/internal/geo"
	"millrace/internal/stream"
)

// start is when the tests' worlds begin.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a snapshot and a state, both for changing, and what is made of them.
type world struct {
	Snapshot
	state    State
	coverage string
	t        tester
}

// tester is what worlds need of a test, be it of rapid.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// newWorld returns a world with one domain and no node.
func newWorld(t tester) *world {
	return &world{
		t: t, state: State{At: start},
		Snapshot: Snapshot{
			Domains: []Domain{{Name: "live.example.com"}},
			Costs:   DefaultCosts(), Health: DefaultHealth(),
		},
	}
}

// edge adds an edge that is well, with both families and HTTPS.
func (w *world) edge(id, region string, isps ...string) *Node {
	i := len(w.Nodes) + 1
	w.Nodes = append(w.Nodes, Node{
		ID: id, Role: roleEdge, Region: region, ISPs: isps, Capacity: 1e9, HTTPPort: 80, HTTPSPort: 443,
		Addresses: []netip.Addr{
			netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}),
			netip.MustParseAddr(fmt.Sprintf("2001:db8:e::%x", i)),
		},
	})
	up := Health{Status: Up, At: w.state.At, Up: w.state.At}
	w.state.Nodes = append(w.state.Nodes, NodeState{ID: id, V4: up, V6: up})
	return &w.Nodes[len(w.Nodes)-1]
}

// of returns the state of a node.
func (w *world) of(id string) *NodeState {
	for i := range w.state.Nodes {
		if w.state.Nodes[i].ID == id {
			return &w.state.Nodes[i]
		}
	}
	w.t.Fatalf("no node %s", id)
	return nil
}

// view compiles the world as it is now.
func (w *world) view() *View {
	w.t.Helper()
	c, err := geo.ParseCoverage([]byte(w.coverage))
	if err != nil {
		w.t.Fatal(err)
	}
	g, err := geo.NewTable(c, nil, geo.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	p, err := Compile(&w.Snapshot, g.Pairs())
	if err != nil {
		w.t.Fatal(err)
	}
	return NewView(p, g, &w.state)
}

// client is a query of an IPv4 address for the world's domain.
func client(addr string) Query {
	a := netip.MustParseAddr(addr)
	return Query{Client: netip.PrefixFrom(a, a.BitLen()), Domain: "live.example.com", Want: 1}
}

// big is a world of n edges over some regions, with coverage of 10.R.I.0/24… and loads.
func big(t tester, n, regions, isps int) *world {
	w := newWorld(t)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range regions {
		lat, lon := r.Float64()*60-10, r.Float64()*120
		w.Regions = append(w.Regions, Region{Name: fmt.Sprintf("r%d", i), Lat: &lat, Lon: &lon})
		for j := range isps {
			w.coverage += fmt.Sprintf("10.%d.%d.0/20 r%d isp%d\n", i, j*16, i, j)
		}
	}
	for i := range n {
		e := w.edge(fmt.Sprintf("e%04d", i), fmt.Sprintf("r%d", i%regions), fmt.Sprintf("isp%d", i/regions%isps))
		e.Datacenter = fmt.Sprintf("dc%d", i%regions*isps+i/regions%isps)
		w.state.Nodes[i].Load = int64(r.Float64() * 0.4e9)
	}
	return w
}

// addr returns client i of a big world.
func addr(i, regions, isps int) netip.Prefix {
	u := uint32(i) * 2654435761
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(int(u>>20) % regions), byte(int(u>>10)%isps*16 + i>>8&15), byte(i)}), 32)
}

func streams(n int) (out []stream.Name) {
	for i := range n {
		out = append(out, stream.Name(fmt.Sprintf("live/show%d", i)))
	}
	return out
}
