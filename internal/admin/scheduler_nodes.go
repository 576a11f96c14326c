package admin

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/sched"
)

// nodePath is before the id of a node.
const nodePath = "/v1/nodes/"

// PlacedNode is one node as the scheduler sees it.
type PlacedNode struct {
	ID         string   `json:"id"`
	Role       string   `json:"role"`
	Datacenter string   `json:"datacenter,omitempty"`
	Region     string   `json:"region"`
	ISPs       []string `json:"isps"`
	Groups     []string `json:"groups"`
	HTTPPort   uint16   `json:"http_port,omitempty"`
	HTTPSPort  uint16   `json:"https_port,omitempty"`
	Host       string   `json:"host,omitempty"`
	Weight     float64  `json:"weight"`
	Capacity   int64    `json:"capacity_bytes_per_second"`
	Load       int64    `json:"load_bytes_per_second"`
	Used       float64  `json:"used"` // of the capacity, 0 to 1 and beyond
	Viewers    int      `json:"viewers"`
	Refused    float64  `json:"refused_per_second"`
	Streams    int      `json:"streams"` // that it carries
	// Draining and UnderAttack are what the node or its figures say, and Marks what an
	// operator does.
	Draining    bool       `json:"draining"`
	UnderAttack bool       `json:"under_attack"`
	Marks       []string   `json:"marks,omitempty"`
	V4          NodeFamily `json:"v4"`
	V6          NodeFamily `json:"v6"`
}

// NodeFamily is a node over one address family.
type NodeFamily struct {
	Address netip.Addr `json:"address,omitzero"`
	Status  string     `json:"status"`      // up, down or unknown
	At      time.Time  `json:"at,omitzero"` // when it was last looked at
	Up      time.Time  `json:"up,omitzero"` // when it was last seen up
	AgeMS   int64      `json:"age_ms"`      // since the last look
	Why     string     `json:"why"`         // it is not offered, or that it is: offered
}

// PlacedNodes is the answer of /v1/nodes, sorted by id.
type PlacedNodes struct {
	Nodes    []PlacedNode `json:"nodes"`
	Matching int          `json:"matching"`       // how many pass the filters, also those not shown
	Version  uint64       `json:"version"`        // of the snapshot
	Next     string       `json:"next,omitempty"` // pass it as after for more
}

func (s *Scheduler) listNodes(ctx *fasthttp.RequestCtx) {
	q := ctx.QueryArgs()
	limit, wrong := readLimit(q)
	if wrong != "" {
		fail(ctx, fasthttp.StatusBadRequest, "bad_request", wrong)
		return
	}
	region, datacenter, reason, after := string(q.Peek("region")), string(q.Peek("datacenter")), string(q.Peek("why")), string(q.Peek("after"))
	if reason != "" && reason != offered && !slices.ContainsFunc(sched.Reasons(), func(r sched.Reason) bool { return r.String() == reason }) {
		fail(ctx, fasthttp.StatusBadRequest, "bad_request", "why must be offered, or a reason such as unhealthy or full")
		return
	}
	v, now := s.of.View(), time.Now()
	states := statesOf(v)
	out := PlacedNodes{Nodes: []PlacedNode{}, Version: v.Plan.Version}
	for i := range v.Plan.Nodes {
		n := &v.Plan.Nodes[i]
		if region != "" && n.Region != region || datacenter != "" && n.Datacenter != datacenter ||
			reason != "" && why(v, i, sched.V4) != reason && why(v, i, sched.V6) != reason {
			continue
		}
		out.Matching++
		switch {
		case n.ID <= after:
		case len(out.Nodes) < limit:
			out.Nodes = append(out.Nodes, placedNode(v, i, states[n.ID], now))
		default:
			out.Next = out.Nodes[limit-1].ID
		}
	}
	answer(ctx, out)
}

func (s *Scheduler) oneNode(ctx *fasthttp.RequestCtx, id string) {
	v := s.of.View()
	i := slices.IndexFunc(v.Plan.Nodes, func(n sched.Node) bool { return n.ID == id })
	if i < 0 {
		fail(ctx, fasthttp.StatusNotFound, "not_found", "no node of the snapshot has this id")
		return
	}
	answer(ctx, placedNode(v, i, statesOf(v)[id], time.Now()))
}

// placedNode returns the node of that index; st is nil when nothing is known of it.
func placedNode(v *sched.View, index int, st *sched.NodeState, now time.Time) PlacedNode {
	n := &v.Plan.Nodes[index]
	if st == nil {
		st = &sched.NodeState{}
	}
	out := PlacedNode{
		ID: n.ID, Role: n.Role, Datacenter: n.Datacenter, Region: n.Region, ISPs: list(n.ISPs), Groups: list(n.Groups),
		HTTPPort: n.HTTPPort, HTTPSPort: n.HTTPSPort, Host: n.Host, Weight: cmp.Or(n.Weight, 1), Capacity: n.Capacity,
		Load: st.Load, Used: float64(st.Load) / float64(max(n.Capacity, 1)), Viewers: st.Viewers, Refused: st.Refused,
		Streams: len(st.Streams), Draining: st.Draining, UnderAttack: st.UnderAttack,
		V4: familyOf(v, index, sched.V4, st.V4, now), V6: familyOf(v, index, sched.V6, st.V6, now),
	}
	if n.Drain {
		out.Marks = append(out.Marks, sched.Draining.String())
	}
	if n.UnderAttack {
		out.Marks = append(out.Marks, sched.UnderAttack.String())
	}
	return out
}

func familyOf(v *sched.View, index int, f sched.Families, h sched.Health, now time.Time) NodeFamily {
	out := NodeFamily{Status: h.Status.String(), At: h.At.UTC(), Up: h.Up.UTC(), Why: why(v, index, f)}
	if !h.At.IsZero() {
		out.AgeMS = now.Sub(h.At).Milliseconds()
	}
	for _, a := range v.Plan.Nodes[index].Addresses {
		if a = a.Unmap(); a.Is4() == (f == sched.V4) {
			out.Address = a
			break
		}
	}
	return out
}

// list returns an empty list for none, as JSON has one.
func list(s []string) []string { return append([]string{}, s...) }
