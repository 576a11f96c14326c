package admin

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/control"
	"millrace/internal/fleet"
	"millrace/internal/plan"
	"millrace/internal/stream"
)

// RouterSources are what the API of a router looks at. All of them are used from many
// goroutines.
type RouterSources struct {
	Fleet   RouterFleet
	Keeper  func() control.Status
	Server  func() control.ServerStats
	Explain fasthttp.RequestHandler // how a player is placed
}

// RouterFleet is what a router knows of the network: *fleet.Fleet. What its methods
// return is only read.
type RouterFleet interface {
	Stats() fleet.Stats
	Routers() []fleet.RouterRow
	Network() *fleet.Network
	Node(id string) (*fleet.Node, bool)
	Link(from, to string) (*fleet.Link, bool)
	Plan() *fleet.Plan
	Streams(query string, limit int) *fleet.Streams
	Stream(name stream.Name) *fleet.Stream
	ExplainPath(node string, s stream.Name) plan.PathExplanation
	Events(filter fleet.EventFilter, after uint64, limit int) *fleet.Events
}

// Router is the API of a router: to look, while the console is there to steer.
type Router struct{ of RouterSources }

// NewRouter returns the API of the router that the sources are of.
func NewRouter(of RouterSources) *Router { return &Router{of} }

// Overview lists the paths.
func (r *Router) Overview() string {
	return `GET    /v1/status                 the router, the others of its store, the plan and the snapshot in force
GET    /v1/network                nodes, links in use, datacenters
GET    /v1/nodes/ID               one node, and why its pool is as it is
GET    /v1/link                   one link, and why it costs what it does: ?from= &to=
GET    /v1/plan                   the pools of all nodes
GET    /v1/path                   where a node should pull a stream from, and why: ?node= &stream=
GET    /v1/streams                the streams: ?q= &limit=
GET    /v1/streams/APP/NAME       who pulls one stream from whom
GET    /v1/events                 what happened: ?kind= &node= &stream= &reason= &after= &limit=
GET    /v1/explain                how a player is placed, rule by rule: ?domain= &ip= &stream= &isp= &region= &net= &n= &format=text

`
}

// streamPath is before the name of a stream.
const streamPath = "/v1/streams/"

// Route answers what is asked of the router.
func (r *Router) Route(ctx *fasthttp.RequestCtx, path string) bool {
	var f fasthttp.RequestHandler
	id, isNode := under(path, nodePath)
	name, isStream := under(path, streamPath)
	switch {
	case path == "/v1/explain":
		r.of.Explain(ctx)
		return true
	case path == "/v1/status":
		f = r.status
	case path == "/v1/network":
		f = func(ctx *fasthttp.RequestCtx) { answer(ctx, r.of.Fleet.Network()) }
	case path == "/v1/plan":
		f = func(ctx *fasthttp.RequestCtx) { answer(ctx, r.of.Fleet.Plan()) }
	case path == "/v1/link":
		f = r.link
	case path == "/v1/path":
		f = r.path
	case path == "/v1/streams":
		f = r.streams
	case path == "/v1/events":
		f = r.events
	case isNode:
		f = func(ctx *fasthttp.RequestCtx) { r.node(ctx, id) }
	case isStream:
		f = func(ctx *fasthttp.RequestCtx) { r.stream(ctx, name) }
	default:
		return false
	}
	only(ctx, f, "GET")
	return true
}

// under returns what is behind the beginning of a path, and whether there is something.
func under(path, before string) (rest string, ok bool) {
	if len(path) <= len(before) || path[:len(before)] != before {
		return "", false
	}
	return path[len(before):], true
}

// RouterStatus is the answer of /v1/status.
type RouterStatus struct {
	Fleet    fleet.Stats         `json:"fleet"`
	Routers  []fleet.RouterRow   `json:"routers"`
	Snapshot control.Status      `json:"snapshot"` // for schedulers and edges
	Server   control.ServerStats `json:"server"`   // of nodes, schedulers and edges
}

func (r *Router) status(ctx *fasthttp.RequestCtx) {
	answer(ctx, RouterStatus{r.of.Fleet.Stats(), r.of.Fleet.Routers(), r.of.Keeper(), r.of.Server()})
}

func (r *Router) node(ctx *fasthttp.RequestCtx, id string) {
	n, ok := r.of.Fleet.Node(id)
	if !ok {
		fail(ctx, fasthttp.StatusNotFound, "not_found", "no such node: /v1/network lists them")
		return
	}
	answer(ctx, n)
}

func (r *Router) link(ctx *fasthttp.RequestCtx) {
	q := ctx.QueryArgs()
	l, ok := r.of.Fleet.Link(string(q.Peek("from")), string(q.Peek("to")))
	if !ok {
		fail(ctx, fasthttp.StatusNotFound, "not_found", "from or to is no node: /v1/network lists them")
		return
	}
	answer(ctx, l)
}

func (r *Router) path(ctx *fasthttp.RequestCtx) {
	name, ok := streamOfQuery(ctx, string(ctx.QueryArgs().Peek("stream")))
	if ok {
		answer(ctx, r.of.Fleet.ExplainPath(string(ctx.QueryArgs().Peek("node")), name))
	}
}

func (r *Router) stream(ctx *fasthttp.RequestCtx, raw string) {
	name, ok := streamOfQuery(ctx, raw)
	if ok {
		answer(ctx, r.of.Fleet.Stream(name))
	}
}

// streamOfQuery reads the name of a stream. Unless ok, the answer says what is wrong.
func streamOfQuery(ctx *fasthttp.RequestCtx, raw string) (name stream.Name, ok bool) {
	name, err := stream.ParsePath("/" + raw)
	if err != nil {
		fail(ctx, fasthttp.StatusBadRequest, "bad_request", "stream must be APP/NAME: "+err.Error())
		return "", false
	}
	return name, true
}

func (r *Router) streams(ctx *fasthttp.RequestCtx) {
	limit, wrong := readLimit(ctx.QueryArgs())
	if wrong != "" {
		fail(ctx, fasthttp.StatusBadRequest, "bad_request", wrong)
		return
	}
	answer(ctx, r.of.Fleet.Streams(string(ctx.QueryArgs().Peek("q")), limit))
}

func (r *Router) events(ctx *fasthttp.RequestCtx) {
	q := ctx.QueryArgs()
	limit, wrong := readLimit(q)
	if wrong != "" {
		fail(ctx, fasthttp.StatusBadRequest, "bad_request", wrong)
		return
	}
	var after uint64
	if raw := string(q.Peek("after")); raw != "" {
		var err error
		if after, err = strconv.ParseUint(raw, 10, 64); err != nil {
			fail(ctx, fasthttp.StatusBadRequest, "bad_request", "after must be the next of an answer before")
			return
		}
	}
	filter := fleet.EventFilter{
		Kind: string(q.Peek("kind")), Node: string(q.Peek("node")), Stream: stream.Name(q.Peek("stream")), Reason: string(q.Peek("reason")),
	}
	answer(ctx, r.of.Fleet.Events(filter, after, limit))
}

// Figures reads what the router knows and does.
func (r *Router) Figures(f *Figures) {
	st, keeper := r.of.Fleet.Stats(), r.of.Keeper()
	f.Gauge("millrace_fleet_nodes", "Nodes that are remembered.", float64(st.Nodes))
	f.Gauge("millrace_fleet_nodes_up", "Of these, those that are alive.", float64(st.Up))
	f.Gauge("millrace_fleet_streams", "Different streams that nodes carry.", float64(st.Streams))
	f.Gauge("millrace_fleet_carried", "Streams times the nodes that carry them.", float64(st.Carried))
	f.Gauge("millrace_fleet_links", "Links that were measured.", float64(st.Links))
	f.Counter("millrace_fleet_heartbeats_total", "Heartbeats that were taken.", st.Heartbeats)
	ByWord(f, "millrace_fleet_refused_total", "Heartbeats that were refused.", "reason", st.Refused)
	ByWord(f, "millrace_fleet_samples_total", "Samples of links by what became of them.", "reason", st.Samples)
	f.Counter("millrace_fleet_resends_total", "Heartbeats with everything that were asked for.", st.Resends)
	f.Counter("millrace_fleet_paths_total", "Questions of nodes for the way of a stream.", st.Paths)
	f.Gauge("millrace_fleet_leader", "1 while this router plans.", boolFloat(st.Leader))
	f.Gauge("millrace_fleet_plan_version", "Version of the plan in force.", float64(st.Plan))
	f.Gauge("millrace_fleet_plan_age_seconds", "Time since the plan in force was made.", st.PlanAge.Seconds())
	f.Gauge("millrace_fleet_plan_seconds", "What it took to make the newest plan.", st.PlanTook.Seconds())
	f.Counter("millrace_fleet_plans_total", "Plans that this router made.", st.Plans)
	f.Gauge("millrace_fleet_routers", "Routers that are alive, this one among them.", float64(st.Routers))
	f.Gauge("millrace_fleet_store", "1 while the store can be reached.", boolFloat(st.Store))
	f.Counter("millrace_fleet_store_errors_total", "Questions to the store that failed.", st.StoreErrors)
	f.Counter("millrace_fleet_events_total", "Events that this router learned of.", st.Events)
	if !keeper.Made.IsZero() {
		f.Gauge("millrace_fleet_snapshot_age_seconds", "Time since the snapshot for schedulers was made.", time.Since(keeper.Made).Seconds())
	}
	f.Gauge("millrace_fleet_snapshot_nodes", "Nodes that the snapshot has.", float64(keeper.Nodes))
	serverFigures(f, r.of.Server())
}
