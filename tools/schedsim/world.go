package main

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	"millrace/internal/geo"
	"millrace/internal/sched"
)

const (
	maxClients = 1_000_000
	maxEdges   = 5000
	domain     = "live.example.com"
	bitrate    = 250_000 // bytes/s of a viewer: 2 Mbit/s
	blocks     = 4       // CIDRs of each region and ISP, per family
)

// regions are where players are, and how many of a hundred.
var regions = []struct {
	name     string
	lat, lon float64
	people   float64
}{
	{"beijing", 39.9, 116.4, 14},
	{"shanghai", 31.2, 121.5, 15},
	{"guangzhou", 23.1, 113.3, 16},
	{"chengdu", 30.7, 104.1, 11},
	{"wuhan", 30.6, 114.3, 9},
	{"xian", 34.3, 108.9, 7},
	{"shenyang", 41.8, 123.4, 7},
	{"hangzhou", 30.3, 120.2, 8},
	{"kunming", 25.0, 102.7, 4},
	{"urumqi", 43.8, 87.6, 2},
	{"hongkong", 22.3, 114.2, 4},
	{"singapore", 1.35, 103.8, 3},
}

// isps are those of the players, and how many of a hundred. The last is small and has
// no edges of its own.
var isps = []struct {
	name   string
	people float64
}{{"telecom", 45}, {"mobile", 28}, {"unicom", 22}, {"cable", 5}}

// every is the ISP of edges that are good from all.
const every = "*"

// pair is a region and an ISP, by their places in the tables above.
type pair struct{ region, isp int }

func (p pair) index() int { return p.region*len(isps) + p.isp }

func (p pair) String() string { return regions[p.region].name + " " + isps[p.isp].name }

// world is what does not change in a run.
type world struct {
	plan    *sched.Plan
	table   *geo.Table
	blocks4 [][]netip.Prefix // by pair
	blocks6 [][]netip.Prefix
	byAddr  map[netip.Addr]int // edges, by their place in the plan
}

func newWorld(o options, r *rand.Rand) (*world, error) {
	w := &world{byAddr: map[netip.Addr]int{}}
	c, err := geo.ParseCoverage([]byte(w.coverage(r)))
	if err != nil {
		return nil, err
	}
	if w.table, err = geo.NewTable(c, nil, geo.Options{}); err != nil {
		return nil, err
	}
	s := &sched.Snapshot{
		Version: 1,
		Nodes:   nodes(o, r),
		Domains: []sched.Domain{{
			Name: domain, TTL: sched.Duration(o.ttl), Answers: o.answers, ECS: true, Recheck: o.recheck,
		}},
	}
	for i := range regions {
		g := &regions[i]
		s.Regions = append(s.Regions, sched.Region{Name: g.name, Lat: &g.lat, Lon: &g.lon})
	}
	if w.plan, err = sched.Compile(s, w.table.Pairs()); err != nil {
		return nil, err
	}
	for i := range w.plan.Nodes {
		for _, a := range w.plan.Nodes[i].Addresses {
			w.byAddr[a] = i
		}
	}
	return w, nil
}

// coverage deals out address space to the pairs and returns the file that says so.
// Neighbouring blocks belong to different pairs.
func (w *world) coverage(r *rand.Rand) string {
	pairs := len(regions) * len(isps)
	w.blocks4, w.blocks6 = make([][]netip.Prefix, pairs), make([][]netip.Prefix, pairs)
	var b strings.Builder
	for i, slot := range r.Perm(pairs * blocks) {
		p := pair{i / blocks / len(isps), i / blocks % len(isps)}
		v4 := netip.PrefixFrom(netip.AddrFrom4([4]byte{1, byte(slot >> 4), byte(slot << 4), 0}), 20)
		v6 := netip.PrefixFrom(netip.AddrFrom16([16]byte{0x24, 0, 0x10, byte(slot >> 8), byte(slot), 0}), 40)
		w.blocks4[p.index()] = append(w.blocks4[p.index()], v4)
		w.blocks6[p.index()] = append(w.blocks6[p.index()], v6)
		fmt.Fprintf(&b, "%s %s\n%s %s\n", v4, p, v6, p)
	}
	return b.String()
}

// address draws an address of a pair.
func (w *world) address(r *rand.Rand, p pair, v6 bool) netip.Addr {
	block := w.blocks4[p.index()][r.IntN(blocks)]
	if v6 {
		block = w.blocks6[p.index()][r.IntN(blocks)]
	}
	b := block.Addr().AsSlice()
	for n := block.Bits(); n < 8*len(b); n++ {
		if r.IntN(2) == 1 {
			b[n/8] |= 1 << (7 - n%8)
		}
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// drawPair draws where a player is.
func drawPair(r *rand.Rand) pair {
	return pair{
		draw(r, len(regions), func(i int) float64 { return regions[i].people }),
		draw(r, len(isps), func(i int) float64 { return isps[i].people }),
	}
}

// draw returns 0 to n-1, each with the chance that its weight gives it.
func draw(r *rand.Rand, n int, weight func(int) float64) int {
	sum := 0.0
	for i := range n {
		sum += weight(i)
	}
	x := r.Float64() * sum
	for i := range n - 1 {
		if x -= weight(i); x < 0 {
			return i
		}
	}
	return n - 1
}

// nodes draws the edges: where the players are, but not quite, and of three sizes.
func nodes(o options, r *rand.Rand) []sched.Node {
	type place struct {
		region int
		isp    string
	}
	var places []place
	sizes, sum := make([]int64, o.edges), int64(0)
	for i := range o.edges {
		p := place{draw(r, len(regions), func(i int) float64 { return regions[i].people }), every}
		if k := draw(r, len(isps), func(i int) float64 { return isps[i].people }); isps[k].name != "cable" && r.IntN(8) > 0 {
			p.isp = isps[k].name
		}
		places = append(places, p)
		sizes[i] = int64(1) << r.IntN(3)
		sum += sizes[i]
	}
	// Edges of one place are one datacenter, and stand together in the plan.
	slices.SortStableFunc(places, func(a, b place) int {
		if a.region != b.region {
			return a.region - b.region
		}
		return strings.Compare(a.isp, b.isp)
	})
	unit := float64(o.clients) * usual * bitrate / o.use / float64(sum)
	var out []sched.Node
	for i, p := range places {
		dc := regions[p.region].name + "-" + strings.ReplaceAll(p.isp, every, "bgp")
		out = append(out, sched.Node{
			ID: fmt.Sprintf("e%04d-%s", i, dc), Role: "edge", Datacenter: dc, Region: regions[p.region].name, ISPs: []string{p.isp},
			Addresses: []netip.Addr{
				netip.AddrFrom4([4]byte{223, 1, byte(i >> 8), byte(i)}),
				netip.AddrFrom16([16]byte{0x2a, 0, 14: byte(i >> 8), 15: byte(i)}),
			},
			HTTPPort: 80, Capacity: max(int64(unit*float64(sizes[i])), 4*bitrate),
		})
	}
	return out
}
