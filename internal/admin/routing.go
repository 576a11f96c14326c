package admin

import (
	"github.com/valyala/fasthttp"

	"millrace/internal/control"
	"millrace/internal/measure"
	"millrace/internal/session"
)

// Routing is the answer of /v1/router.
type Routing struct {
	Heartbeats control.BeatStatus   `json:"heartbeats"`
	Orders     control.SourceStatus `json:"orders"`   // whom the node asks, and what came of it
	InForce    *control.Orders      `json:"in_force"` // null before the first
	Paths      control.PathStatus   `json:"paths"`
	Probes     Probes               `json:"probes"`
}

// Probes is what the ways to other nodes are measured with.
type Probes struct {
	Sent     measure.ProberStats     `json:"sent"`
	Answered *measure.ResponderStats `json:"answered"` // null where none are answered
}

// ShowRouting has /v1/router answered by of, which is used from many goroutines. It comes
// before the node is asked for anything.
func (n *Node) ShowRouting(of func() Routing) { n.routing = of }

func (n *Node) showRouting(ctx *fasthttp.RequestCtx) {
	if n.routing == nil {
		fail(ctx, fasthttp.StatusNotFound, session.NotFound.String(), "this node works with no router: set router.servers or --router http://HOST:PORT")
		return
	}
	answer(ctx, n.routing())
}
