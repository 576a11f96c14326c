package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// optimumNetwork is seven edges and three centers with hardly the capacity for them.
func optimumNetwork(seed uint64) (*Network, *Config) {
	r := rand.New(rand.NewPCG(seed, 1))
	n := &Network{Regions: regions(), Demand: map[string]int64{}}
	total := int64(0)
	for i := range 7 {
		id := fmt.Sprintf("e%d", i)
		n.Nodes = append(n.Nodes, Node{ID: id, Role: Edge, Region: regions()[r.IntN(4)].Name, ISPs: []string{"*"}, Capacity: 1, Alive: true})
		n.Demand[id] = (1 + r.Int64N(4)) << 20
		total += n.Demand[id]
	}
	for i := range 3 {
		n.Nodes = append(n.Nodes, Node{
			ID: fmt.Sprintf("c%d", i), Role: Center, Region: regions()[r.IntN(4)].Name, ISPs: []string{"*"},
			Capacity: total * 5 / 10 * (80 + r.Int64N(60)) / 100, Alive: true,
		})
	}
	cfg := config()
	cfg.Flat = true
	return n, cfg
}

// optimum tries all plans and returns the cost of the best one within capacity.
func optimum(n *Network, cfg *Config) float64 {
	w := newWorld(start, n, cfg)
	edges, ups := w.tiers[tierEdge], w.tiers[tierCenter]
	best := math.Inf(1)
	choice := make([]int, len(edges))
	for {
		used := make([]float64, len(w.nodes))
		for k, i := range edges {
			used[ups[choice[k]]] += w.nodes[i].demand
		}
		sum, fits := 0.0, true
		for k, i := range edges {
			up := ups[choice[k]]
			fits = fits && used[up] <= cfg.MaxUse*w.nodes[up].capacity
			b := w.parts(up, i)
			b.Load = cfg.Costs.loadCost(used[up] / w.nodes[up].capacity)
			sum += Cost(b)
		}
		if fits {
			best = min(best, sum)
		}
		k := 0
		for ; k < len(choice); k++ {
			if choice[k]++; choice[k] < len(ups) {
				break
			}
			choice[k] = 0
		}
		if k == len(choice) {
			return best
		}
	}
}
