package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"millrace/internal/plan"
	"millrace/internal/sched"
)

var start = time.Date(2026, 3, 1, 20, 0, 0, 0, time.UTC)

// hand is how many ms a node takes to hand a stream on: bench/results/fanout-hop.txt has 1.3
// in the median, and 13 for one tag in a hundred.
const hand = 2

// places are the regions: name, latitude, longitude. The first four are those of the
// comparison of cold streams.
var places = []struct {
	name     string
	lat, lon float64
}{
	{"beijing", 39.9, 116.4},
	{"shanghai", 31.2, 121.5},
	{"guangzhou", 23.1, 113.3},
	{"chengdu", 30.6, 104.1},
	{"wuhan", 30.6, 114.3},
	{"xian", 34.3, 108.9},
	{"shenyang", 41.8, 123.4},
	{"hangzhou", 30.3, 120.2},
	{"kunming", 25.0, 102.7},
	{"jinan", 36.7, 117.0},
	{"nanning", 22.8, 108.3},
	{"lanzhou", 36.1, 103.8},
}

// world is the network, and what is true of it.
type world struct {
	net   *plan.Network
	cfg   *plan.Config
	edges []string
	at    map[string]int
	seed  uint64
	slow  map[[2]string]float64 // ms that are added to a link
	links map[[2]string]float64 // what delay found before
	rand  *rand.Rand
}

// newWorld builds regions with edges of each ISP.
func newWorld(seed uint64, regions, isps, edges int, centers []int) *world {
	cfg := plan.DefaultConfig()
	w := &world{
		net: &plan.Network{Scores: plan.NewScores(cfg.Half), Demand: map[string]int64{}}, cfg: &cfg,
		at: map[string]int{}, seed: seed, slow: map[[2]string]float64{}, links: map[[2]string]float64{}, rand: rand.New(rand.NewPCG(seed, 1)),
	}
	names := []string{"telecom", "unicom", "mobile"}[:isps]
	for i := range regions {
		p := &places[i]
		w.net.Regions = append(w.net.Regions, sched.Region{Name: p.name, Lat: &p.lat, Lon: &p.lon})
		for _, isp := range names {
			for k := range 2 {
				w.add(plan.Relay, fmt.Sprintf("%s-%s-relay-%d", p.name, isp, k), p.name, isp, fmt.Sprintf("%s-%s-%d", p.name, isp, k), 0.02)
			}
			for k := range edges {
				id := fmt.Sprintf("%s-%s-edge-%d", p.name, isp, k)
				w.add(plan.Edge, id, p.name, isp, fmt.Sprintf("%s-%s-%d", p.name, isp, k), 0.02)
				w.edges = append(w.edges, id)
			}
		}
		w.add(plan.Relay, p.name+"-bgp-relay", p.name, "*", p.name+"-bgp", 0.06)
		if slices.Contains(centers, i) {
			w.add(plan.Center, p.name+"-center", p.name, "*", p.name+"-bgp", 0.06)
		}
	}
	w.reindex()
	return w
}

func (w *world) add(role, id, region, isp, datacenter string, price float64) {
	capacity := int64(2e9)
	if role == plan.Center {
		capacity = 10e9
	}
	w.net.Nodes = append(w.net.Nodes, plan.Node{
		ID: id, Role: role, Datacenter: datacenter, Region: region, ISPs: []string{isp}, Capacity: capacity, Price: price, Alive: true,
	})
}

func (w *world) reindex() {
	for i := range w.net.Nodes {
		w.at[w.net.Nodes[i].ID] = i
	}
}

func (w *world) node(id string) *plan.Node { return &w.net.Nodes[w.at[id]] }

// crosses reports whether a link is back-haul: it leaves the region or the ISP.
func (w *world) crosses(from, to string) bool {
	a, b := w.node(from), w.node(to)
	return a.Region != b.Region || !meet(a, b)
}

func meet(a, b *plan.Node) bool {
	return a.ISPs[0] == "*" || b.ISPs[0] == "*" || a.ISPs[0] == b.ISPs[0]
}

// delay is what a link truly takes, one way, in ms.
func (w *world) delay(from, to string) float64 {
	link := [2]string{from, to}
	ms, ok := w.links[link]
	if !ok {
		ms = w.draw(from, to)
		w.links[link] = ms
	}
	return ms + w.slow[link]
}

// draw finds out how long a link is; the same each time.
func (w *world) draw(from, to string) float64 {
	a, b := w.node(from), w.node(to)
	luck := rand.New(rand.NewPCG(w.seed^hash(from), hash(to)))
	ms := 1.0
	if a.Region != b.Region {
		ms += 0.009 * w.km(a.Region, b.Region) * (0.9 + 0.5*luck.Float64())
	}
	if !meet(a, b) {
		ms += 30 + 30*luck.Float64()
	} else if a.ISPs[0] != b.ISPs[0] {
		ms += 2
	}
	return ms
}

func hash(s string) (h uint64) {
	h = 14695981039346656037
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

func (w *world) km(a, b string) float64 {
	var x, y *sched.Region
	for i := range w.net.Regions {
		if r := &w.net.Regions[i]; r.Name == a {
			x = r
		} else if r.Name == b {
			y = r
		}
	}
	const rad = math.Pi / 180
	c := math.Sin(*x.Lat*rad)*math.Sin(*y.Lat*rad) + math.Cos(*x.Lat*rad)*math.Cos(*y.Lat*rad)*math.Cos((*x.Lon-*y.Lon)*rad)
	return 6371 * math.Acos(min(c, 1))
}

// measured are the links that nodes measure: to the nearest relays and to all centers.
func (w *world) measured() (links [][2]string) {
	for i := range w.net.Nodes {
		to := &w.net.Nodes[i]
		if to.Role == plan.Center {
			continue
		}
		var ups []string
		for j := range w.net.Nodes {
			from := &w.net.Nodes[j]
			if i == j || from.Role == plan.Edge {
				continue
			}
			if from.Role == plan.Center || from.Region == to.Region {
				ups = append(ups, from.ID)
			}
		}
		for _, up := range ups {
			links = append(links, [2]string{up, to.ID})
		}
	}
	return links
}

// sample lets all links be measured once, with noise.
func (w *world) sample(now time.Time, links [][2]string) {
	samples := make([]plan.Sample, 0, len(links))
	for _, l := range links {
		if !w.node(l[0]).Alive || !w.node(l[1]).Alive {
			continue
		}
		rtt := 2 * w.delay(l[0], l[1]) * (0.9 + 0.2*w.rand.Float64())
		s := plan.Sample{From: l[0], To: l[1], At: now, OK: true, RTT: time.Duration(rtt * 1e6), Probes: 5}
		if w.rand.Float64() < 0.01 {
			s.Loss = 0.2
		}
		samples = append(samples, s)
	}
	w.net.Scores.Take(now, "", samples, func(id string) bool { _, ok := w.at[id]; return ok })
}
