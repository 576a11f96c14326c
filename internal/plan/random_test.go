package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"millrace/internal/sched"
	"millrace/internal/stream"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// everybody knows all nodes.
func everybody(string) bool { return true }

func config() *Config {
	c := DefaultConfig()
	return &c
}

// at returns a region at a place.
func at(name string, lat, lon float64) sched.Region {
	return sched.Region{Name: name, Lat: &lat, Lon: &lon}
}

// regions are four places some 1,000 km apart.
func regions() []sched.Region {
	return []sched.Region{at("north", 40, 116), at("east", 31, 121), at("south", 23, 113), at("west", 30, 104)}
}

// add puts a node into n that is alive and has capacity. isps are joined by +.
func (n *Network) add(id, role, datacenter, region, isps string) *Node {
	n.Nodes = append(n.Nodes, Node{
		ID: id, Role: role, Datacenter: datacenter, Region: region, ISPs: strings.Split(isps, "+"), Capacity: 100 << 20, Alive: true,
	})
	return &n.Nodes[len(n.Nodes)-1]
}

// randomNetwork draws a small network. tight ones have less capacity than they need.
func randomNetwork(t *rapid.T, tight bool) *Network {
	n := &Network{Regions: regions(), Demand: map[string]int64{}, Scores: NewScores(DefaultHalves())}
	names := []string{"north", "east", "south", "west", "nowhere"}
	isps := [][]string{{"telecom"}, {"unicom"}, {"*"}, {"telecom", "unicom"}, nil}
	add := func(role string, least, most int, capacity int64) {
		for i := range rapid.IntRange(least, most).Draw(t, role+"s") {
			m := Node{
				ID: fmt.Sprintf("%s-%d", role, i), Role: role, Alive: rapid.IntRange(0, 9).Draw(t, "alive") > 0,
				Draining: rapid.IntRange(0, 9).Draw(t, "draining") == 0,
				Region:   rapid.SampledFrom(names).Draw(t, "region"), ISPs: rapid.SampledFrom(isps).Draw(t, "isps"),
				Capacity: capacity * rapid.Int64Range(1, 4).Draw(t, "capacity"),
				Price:    float64(rapid.IntRange(0, 3).Draw(t, "price")) / 20,
			}
			m.Datacenter = m.Region + fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "datacenter"))
			n.Nodes = append(n.Nodes, m)
		}
	}
	capacity := int64(1000 << 20)
	if tight {
		capacity = 3 << 20
	}
	add(Center, 1, 3, capacity)
	add(Relay, 0, 8, capacity)
	add(Edge, 0, 24, capacity)
	for i := range n.Nodes {
		n.Demand[n.Nodes[i].ID] = rapid.Int64Range(1, 4).Draw(t, "demand") << 20
	}
	for range rapid.IntRange(0, 30).Draw(t, "samples") {
		from, to := rapid.SampledFrom(n.Nodes).Draw(t, "from"), rapid.SampledFrom(n.Nodes).Draw(t, "to")
		s := Sample{From: from.ID, To: to.ID, At: start.Add(-time.Second), OK: true, RTT: time.Duration(rapid.IntRange(1, 200).Draw(t, "rtt")) * time.Millisecond}
		n.Scores.Take(start, "", []Sample{s, s, s}, everybody)
	}
	n.Edits = randomEdits(t, n)
	return n
}

func randomEdits(t *rapid.T, n *Network) (e Edits) {
	if rapid.Bool().Draw(t, "unedited") {
		return e
	}
	name := func() string {
		m := rapid.SampledFrom(n.Nodes).Draw(t, "edited")
		return rapid.SampledFrom([]string{m.ID, m.ID, datacenterMark + m.Datacenter}).Draw(t, "name")
	}
	for range rapid.IntRange(0, 3).Draw(t, "pins") {
		p := Pin{Node: name(), Upstreams: []string{rapid.SampledFrom(n.Nodes).Draw(t, "pinned").ID}}
		if rapid.Bool().Draw(t, "one stream") {
			p.Stream = "live/show"
		}
		e.Pins = append(e.Pins, p)
	}
	for range rapid.IntRange(0, 3).Draw(t, "bans") {
		e.Bans = append(e.Bans, Ban{From: name(), To: rapid.SampledFrom([]string{name(), all}).Draw(t, "to")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "weights") {
		e.Weights = append(e.Weights, Weight{From: name(), To: name(), Weight: rapid.Float64Range(0.01, 100).Draw(t, "weight")})
	}
	if rapid.Bool().Draw(t, "drained") {
		e.Drains = append(e.Drains, Drain{Node: name()})
	}
	return e
}

func (n *Network) node(id string) *Node {
	i := slices.IndexFunc(n.Nodes, func(m Node) bool { return m.ID == id })
	return &n.Nodes[i]
}

// clone copies what tests change.
func (n *Network) clone() *Network {
	c := *n
	c.Nodes = slices.Clone(n.Nodes)
	return &c
}

// upstreams returns a pool by name.
func (p *Plan) upstreams(id string) []string {
	out := []string{}
	for _, c := range p.Pools[id] {
		out = append(out, c.Upstream)
	}
	return out
}

// randomStream draws a stream whose carriers pull over ways that Path gave them.
func randomStream(t *rapid.T, n *Network) (stream.Name, *Stream) {
	s := &Stream{Source: rapid.SampledFrom(n.Nodes).Draw(t, "source").ID, Epoch: 1, Bitrate: 250_000, Carriers: map[string]string{}}
	s.Carriers[s.Source] = ""
	return "live/show", s
}

// follow returns where a stream comes from to a node, or an error if it goes round.
func follow(s *Stream, id string) error {
	for range 20 {
		if id == s.Source {
			return nil
		}
		up, ok := s.Carriers[id]
		if !ok {
			return nil // it waits for the first answer
		}
		id = up
	}
	return fmt.Errorf("goes round at %s: %v", id, s.Carriers)
}
