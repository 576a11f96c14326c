package console

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"millrace/internal/fleet"
	"millrace/internal/geo"
	"millrace/internal/plan"
	"millrace/internal/sched"
	"millrace/internal/stream"
)

// start is the time of the world, which stands still.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a network like that of the demo, in two datacenters and a place outside,
// planned for by package plan itself.
type world struct {
	cfg     plan.Config
	network plan.Network
	plan    *plan.Plan
	view    *plan.View
	streams plan.StreamMap
	events  []fleet.Event // the newest first
}

const show = stream.Name("live/show")

func newWorld() *world {
	node := func(id, role, dc, region string, capacity int64, isps ...string) plan.Node {
		return plan.Node{ID: id, Role: role, Datacenter: dc, Region: region, ISPs: isps, Capacity: capacity, Load: capacity / 4, Alive: true}
	}
	w := &world{cfg: plan.DefaultConfig()}
	w.network.Nodes = []plan.Node{
		node("center-1", plan.Center, "east-1", "east", 2_000_000_000, "*"),
		node("center-2", plan.Center, "west-1", "west", 2_000_000_000, "*"),
		node("relay-1", plan.Relay, "east-1", "east", 1_000_000_000, "*"),
		node("relay-2", plan.Relay, "west-1", "west", 1_000_000_000, "*"),
		node("edge-1", plan.Edge, "east-1", "east", 500_000_000, "telecom"),
		node("edge-2", plan.Edge, "west-1", "west", 500_000_000, "telecom", "unicom"),
		node("edge-3", plan.Edge, "west-1", "west", 500_000_000, "mobile"),
	}
	w.network.Nodes[6].Alive = false
	scores := plan.NewScores(plan.DefaultHalves())
	known := func(string) bool { return true }
	sample := func(from, to string, rtt time.Duration, loss float64, pulled bool) {
		for i := range 20 {
			scores.Take(start, to, []plan.Sample{{
				From: from, To: to, At: start.Add(time.Duration(i-20) * time.Second), RTT: rtt, Connect: rtt + time.Millisecond,
				Loss: loss, OK: true, Probes: 10, Pulled: pulled, Delay: rtt / 2, Rate: 3_500_000,
			}}, known)
		}
	}
	sample("center-1", "relay-1", 400*time.Microsecond, 0, true)
	sample("center-1", "relay-2", 31*time.Millisecond, 0, true)
	sample("center-2", "relay-2", 350*time.Microsecond, 0, false)
	sample("relay-1", "edge-1", 500*time.Microsecond, 0, true)
	sample("relay-2", "edge-2", 600*time.Microsecond, 0.04, true)
	sample("relay-1", "edge-2", 33*time.Millisecond, 0.001, false)
	w.network.Scores = scores
	w.network.Demand = map[string]int64{"relay-1": 3_500_000, "relay-2": 3_500_000, "edge-1": 3_500_000, "edge-2": 2_500_000}
	w.streams = plan.StreamMap{
		show: {Source: "center-1", Epoch: 1_772_366_400_000_000, Bitrate: 312_500, Carriers: map[string]string{
			"center-1": "", "relay-1": "center-1", "relay-2": "center-1", "edge-1": "relay-1", "edge-2": "relay-2",
		}},
		"live/cold": {Source: "center-2", Epoch: 1_772_365_800_000_000, Bitrate: 125_000, Carriers: map[string]string{"center-2": ""}},
	}
	w.network.Streams = w.streams
	w.network.Edits = plan.Edits{Weights: []plan.Weight{{
		From: "relay-1", To: "edge-2", Weight: 0.5, By: plan.By{Author: "ana", Comment: "the way over the sea is paid for", At: start.Add(-time.Hour)},
	}}}
	w.network.Regions = []sched.Region{
		{Name: "east", Lat: new(31.2), Lon: new(121.5), Near: map[string]float64{"west": 28}},
		{Name: "west", Lat: new(30.6), Lon: new(104.1)},
	}
	w.plan = plan.Make(start, &w.network, nil, &w.cfg)
	w.plan.Version = 42
	w.view = plan.NewView(start, &w.network, w.plan, &w.cfg)
	w.events = []fleet.Event{
		{Number: 1_772_366_390_000_004, ID: "router-1/4", At: start.Add(-10 * time.Second), Router: "router-1", Kind: fleet.KindPlan, Detail: "version 42: 1 node has another first upstream"},
		{
			Number: 1_772_366_388_000_003, ID: "edge-2/7", At: start.Add(-12 * time.Second), Node: "edge-2", Router: "router-1", Kind: "switch", Stream: show,
			From: "relay-1", To: "relay-2", Reason: "stall", Detail: "media stood still for 1.2 s", Figures: map[string]any{"duplicates": 3, "missing": 0},
		},
		{Number: 1_772_366_100_000_002, ID: "router-1/2", At: start.Add(-5 * time.Minute), Node: "edge-3", Router: "router-1", Kind: fleet.KindNodeDown, Detail: "not heard for 3.1 s"},
		{Number: 1_772_362_800_000_001, ID: "router-2/9", At: start.Add(-time.Hour), Router: "router-2", Kind: fleet.KindEdit, Detail: "ana made version 3 of edits: the way over the sea is paid for"},
	}
	return w
}

func (w *world) node(id string) *plan.Node {
	for i := range w.network.Nodes {
		if w.network.Nodes[i].ID == id {
			return &w.network.Nodes[i]
		}
	}
	return nil
}

// row is a node on the map.
func (w *world) row(n *plan.Node) fleet.NodeRow {
	r := fleet.NodeRow{
		ID: n.ID, Role: n.Role, Datacenter: n.Datacenter, Region: n.Region, ISPs: n.ISPs, State: fleet.NodeUp,
		Heard: start.Add(-300 * time.Millisecond), Silent: 0.3, Router: "router-1", Load: n.Load, Capacity: n.Capacity,
		Use: float64(n.Load) / float64(n.Capacity), Pulled: w.network.Demand[n.ID], Program: "0.5.0", Edited: n.ID == "edge-2" || n.ID == "relay-1",
	}
	if !n.Alive {
		r.State, r.Heard, r.Silent, r.Load, r.Use = fleet.NodeDown, start.Add(-303*time.Second), 303, 0, 0
	}
	if pool := w.plan.Pools[n.ID]; len(pool) > 0 {
		r.Upstream = pool[0].Upstream
	}
	for _, s := range w.streams {
		from, carries := s.Carriers[n.ID]
		if carries {
			r.Streams++
		}
		if carries && from == "" {
			r.Sources++
		}
	}
	r.Viewers = w.viewers(n.ID)
	return r
}

func (w *world) viewers(id string) int { return map[string]int{"edge-1": 812, "edge-2": 1204}[id] }

// link is a link on the map.
func (w *world) link(from, to string) fleet.LinkRow {
	x := w.view.ExplainLink(from, to)
	r := fleet.LinkRow{
		From: from, To: to, Place: x.Place, Cost: x.Cost, Promised: x.Promised, RTT: x.Figures.RTT,
		Loss: max(x.Figures.Loss, x.Figures.Retransmits), Crosses: x.Crosses, Grade: fleet.GradeUnknown,
	}
	for _, s := range w.streams {
		if up, ok := s.Carriers[to]; ok && up == from {
			r.Streams++
			r.Rate += s.Bitrate
		}
	}
	switch {
	case !x.Measured:
	case x.Cost < x.Promised+10:
		r.Grade = fleet.GradeGood
	case x.Cost < x.Promised+50:
		r.Grade = fleet.GradeFair
	default:
		r.Grade = fleet.GradePoor
	}
	return r
}

// links are those of pools and of streams.
func (w *world) links() []fleet.LinkRow {
	var out []fleet.LinkRow
	for i := range w.network.Nodes {
		to := w.network.Nodes[i].ID
		ups := map[string]bool{}
		for _, c := range w.plan.Pools[to] {
			ups[c.Upstream] = true
		}
		for _, s := range w.streams {
			if up := s.Carriers[to]; up != "" {
				ups[up] = true
			}
		}
		for up := range ups {
			out = append(out, w.link(up, to))
		}
	}
	slices.SortFunc(out, func(a, b fleet.LinkRow) int {
		return cmp.Or(strings.Compare(a.To, b.To), cmp.Compare(a.Place, b.Place), strings.Compare(a.From, b.From))
	})
	return out
}

// scheduler sends clients to the edges of the world.
func (w *world) scheduler() *sched.Scheduler {
	snapshot := &sched.Snapshot{
		Version: 17, Regions: w.network.Regions, Costs: sched.DefaultCosts(), Health: sched.DefaultHealth(),
		Domains: []sched.Domain{{Name: "play.example.com", Recheck: 20}},
	}
	state := &sched.State{At: start}
	for i, n := range w.network.Nodes {
		a := netip.AddrFrom4([4]byte{198, 18, 0, byte(i + 1)})
		snapshot.Nodes = append(snapshot.Nodes, sched.Node{
			ID: n.ID, Role: n.Role, Datacenter: n.Datacenter, Region: n.Region, ISPs: n.ISPs, Capacity: n.Capacity, HTTPPort: 80, Addresses: []netip.Addr{a},
		})
		up := sched.Health{Status: sched.Up, At: start, Up: start}
		if !n.Alive {
			up = sched.Health{Status: sched.Down, At: start}
		}
		state.Nodes = append(state.Nodes, sched.NodeState{ID: n.ID, Load: n.Load, Viewers: w.viewers(n.ID), V4: up})
	}
	coverage, err := geo.ParseCoverage([]byte("192.0.2.0/24 east telecom\n198.51.100.0/24 west unicom\n"))
	if err != nil {
		panic(err)
	}
	table, err := geo.NewTable(coverage, nil, geo.Options{})
	if err != nil {
		panic(err)
	}
	compiled, err := sched.Compile(snapshot, table.Pairs())
	if err != nil {
		panic(err)
	}
	s := sched.New()
	s.Swap(sched.NewView(compiled, table, state))
	return s
}
