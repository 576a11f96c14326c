package drill

import (
	"fmt"
	"time"

	"millrace/tools/cluster"
)

// key is what the nodes of drills sign with.
const key = "drill-drill-drill-drill"

// lanes are the edges of a fan, each with a stream and a viewer of its own: what
// happens to the link of one is no matter of another's.
const lanes = 4

// fan is a center, relays a, b and so on behind it, and edges whose pools are those
// relays, in this order.
func fan(relays int) func(*rig) (cluster.Topology, error) {
	return func(*rig) (cluster.Topology, error) {
		t := cluster.Topology{ClusterKey: key, Nodes: []cluster.Node{{ID: "center", Role: "center"}}}
		var pool []string
		for i := range relays {
			id := string(rune('a' + i))
			pool = append(pool, id)
			t.Nodes = append(t.Nodes, cluster.Node{ID: id, Role: "relay", Upstreams: []string{"center"}})
		}
		for i := range lanes {
			t.Nodes = append(t.Nodes, cluster.Node{ID: edge(i), Role: "edge", Upstreams: pool})
		}
		return t, nil
	}
}

// farFan is a fan whose center is far from the relays. a is the first to have a stream.
func farFan(r *rig) (cluster.Topology, error) {
	t, err := fan(2)(r)
	t.Links = []cluster.Rule{
		{From: "a", To: "center", Delay: 100 * time.Millisecond},
		{From: "b", To: "center", Delay: 130 * time.Millisecond},
	}
	return t, err
}

func edge(i int) string { return fmt.Sprintf("edge-%d", i+1) }
func name(i int) string { return fmt.Sprintf("live/s%d", i+1) }

// citizens are the nodes of the datacenter of city.
const citizens = 8

// city is a center and eight edges in one datacenter.
func city(*rig) (cluster.Topology, error) {
	t := cluster.Topology{ClusterKey: key, Nodes: []cluster.Node{{ID: "center", Role: "center"}}}
	for i := range citizens {
		t.Nodes = append(t.Nodes, cluster.Node{ID: edge(i), Role: "edge", Datacenter: "city", Upstreams: []string{"center"}})
	}
	return t, nil
}
