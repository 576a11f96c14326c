package admin

import (
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/control"
	"millrace/internal/probe"
	"millrace/internal/sched"
)

// SchedulerSources are what the API of a scheduler looks at. All of them are used from
// many goroutines.
type SchedulerSources struct {
	View      func() *sched.View
	Keeper    func() control.Status
	Questions func() map[string]uint64 // to routers, by what came of them; nil with files
	Probes    func() probe.Stats
	Peers     func() []control.PeerStatus // nil without peers
	Server    func() control.ServerStats  // nil without followers
	Explain   fasthttp.RequestHandler
}

// Scheduler is the API of a scheduler.
type Scheduler struct{ of SchedulerSources }

// NewScheduler returns the API of the scheduler that the sources are of.
func NewScheduler(of SchedulerSources) *Scheduler { return &Scheduler{of} }

// Overview lists the paths.
func (s *Scheduler) Overview() string {
	return `GET    /v1/explain                how a player is placed, rule by rule: ?domain= &ip= &stream= &isp= &region= &net= &n= &format=text
GET    /v1/nodes                  the nodes, their load, and why they are offered or not: ?region= &datacenter= &why= &limit= &after=ID
GET    /v1/nodes/ID               one node
GET    /v1/status                 what the scheduler works from, and how old that is

`
}

// Route answers what is asked of the scheduler.
func (s *Scheduler) Route(ctx *fasthttp.RequestCtx, path string) bool {
	switch {
	case path == "/v1/explain":
		s.of.Explain(ctx)
	case path == "/v1/nodes":
		only(ctx, s.listNodes, "GET")
	case len(path) > len(nodePath) && path[:len(nodePath)] == nodePath:
		only(ctx, func(ctx *fasthttp.RequestCtx) { s.oneNode(ctx, path[len(nodePath):]) }, "GET")
	case path == "/v1/status":
		only(ctx, s.status, "GET")
	default:
		return false
	}
	return true
}

// SchedulerStatus is the answer of /v1/status.
type SchedulerStatus struct {
	Snapshot control.Status       `json:"snapshot"` // the files or the router, and what is in use of them
	State    StateStatus          `json:"state"`    // load and health of the nodes
	Probes   probe.Stats          `json:"probes"`
	Peers    []control.PeerStatus `json:"peers,omitempty"`
	Server   *control.ServerStats `json:"followers,omitempty"`
}

// StateStatus is how the edges are, in figures.
type StateStatus struct {
	At       time.Time      `json:"at"`
	AgeMS    int64          `json:"age_ms"`
	Edges    int            `json:"edges"`
	V4       map[string]int `json:"v4"` // edges by why they are not offered over IPv4, "offered" if they are
	V6       map[string]int `json:"v6"`
	Load     int64          `json:"load_bytes_per_second"`
	Capacity int64          `json:"capacity_bytes_per_second"`
	Viewers  int            `json:"viewers"`
}

func (s *Scheduler) status(ctx *fasthttp.RequestCtx) {
	out := SchedulerStatus{Snapshot: s.of.Keeper(), State: stateOf(s.of.View(), time.Now()), Probes: s.of.Probes()}
	if s.of.Peers != nil {
		out.Peers = s.of.Peers()
	}
	if s.of.Server != nil {
		st := s.of.Server()
		out.Server = &st
	}
	answer(ctx, out)
}

// stateOf adds up the edges of v.
func stateOf(v *sched.View, now time.Time) StateStatus {
	out := StateStatus{At: v.State.At, V4: map[string]int{}, V6: map[string]int{}}
	if !v.State.At.IsZero() {
		out.AgeMS = now.Sub(v.State.At).Milliseconds()
	}
	states := statesOf(v)
	for i := range v.Plan.Nodes {
		n := &v.Plan.Nodes[i]
		if n.Role != roleEdge {
			continue
		}
		out.Edges++
		out.V4[why(v, i, sched.V4)]++
		out.V6[why(v, i, sched.V6)]++
		out.Capacity += n.Capacity
		if st := states[n.ID]; st != nil {
			out.Load += st.Load
			out.Viewers += st.Viewers
		}
	}
	return out
}

const roleEdge = "edge"

// offered is the word for a node that is.
const offered = "offered"

// why returns why a node is not offered over a family, or that it is.
func why(v *sched.View, index int, f sched.Families) string {
	if r := v.Why(int32(index), f); r != sched.None {
		return r.String()
	}
	return offered
}

// statesOf returns what is known of the nodes, by id.
func statesOf(v *sched.View) map[string]*sched.NodeState {
	out := make(map[string]*sched.NodeState, len(v.State.Nodes))
	for i := range v.State.Nodes {
		out[v.State.Nodes[i].ID] = &v.State.Nodes[i]
	}
	return out
}
