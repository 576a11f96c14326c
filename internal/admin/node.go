package admin

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"millrace/internal/session"
	"millrace/internal/stream"
	"millrace/internal/upstream"
)

// NodeConfig says who may ask a node and how much is told.
type NodeConfig struct {
	Config
	// MetricStreams is how many streams, those with the most viewers, have metrics
	// of their own. Each costs a handful of series in Prometheus.
	MetricStreams int
}

// DefaultNodeConfig is for a loopback address.
func DefaultNodeConfig() NodeConfig {
	return NodeConfig{Config: DefaultConfig(), MetricStreams: 100}
}

// Validate checks every value. Its errors name the key and the accepted range, and
// never the token.
func (c NodeConfig) Validate() error {
	errs := []error{c.Config.Validate()}
	if c.MetricStreams < 0 || c.MetricStreams > 10_000 {
		errs = append(errs, fmt.Errorf("metric_streams is %d: use 0 to 10000", c.MetricStreams))
	}
	return errors.Join(errs...)
}

// Node is the API of a node.
type Node struct {
	// Fixed at construction.
	id     string
	hub    *stream.Hub
	table  *session.Table
	origin *upstream.Origin
	log    *slog.Logger

	// Fixed before it is asked.
	routing func() Routing // nil without routers

	// Safe from any goroutine.
	metricStreams atomic.Int64
}

// NewNode returns the API of the node id.
func NewNode(cfg NodeConfig, id string, hub *stream.Hub, table *session.Table, origin *upstream.Origin, log *slog.Logger) *Node {
	n := &Node{id: id, hub: hub, table: table, origin: origin, log: log}
	n.SetConfig(cfg)
	return n
}

// SetConfig puts a valid cfg in force, but for who may ask: that is the server's.
func (n *Node) SetConfig(cfg NodeConfig) { n.metricStreams.Store(int64(cfg.MetricStreams)) }

// Overview lists the paths.
func (n *Node) Overview() string {
	return `GET    /v1/streams                what is live: ?limit= &after=NAME
GET    /v1/streams/APP/NAME       one stream
GET    /v1/streams/APP/NAME/path  how it comes here, hop by hop
POST   /v1/streams/APP/NAME/kick  ends sessions: ?who=publisher|viewers|all
GET    /v1/sessions               who publishes and plays: ?stream= &protocol= &action= &peer= &limit= &after=ID
GET    /v1/sessions/ID            one session
DELETE /v1/sessions/ID            ends it
GET    /v1/events                 why streams came from where: ?stream= &kind= &limit=
GET    /v1/members                the other nodes of the datacenter
GET    /v1/router                 how the node works with its routers

A kick is not a ban: who was ended may come back at once.
`
}

// Route answers what is asked of the node.
func (n *Node) Route(ctx *fasthttp.RequestCtx, path string) bool {
	switch {
	case path == "/v1/streams":
		only(ctx, n.listStreams, "GET")
	case strings.HasPrefix(path, "/v1/streams/"):
		n.oneStream(ctx, strings.TrimPrefix(path, "/v1/streams/"))
	case path == "/v1/events":
		only(ctx, n.listEvents, "GET")
	case path == "/v1/members":
		only(ctx, n.listMembers, "GET")
	case path == "/v1/router":
		only(ctx, n.showRouting, "GET")
	case path == "/v1/sessions":
		only(ctx, n.listSessions, "GET")
	case strings.HasPrefix(path, "/v1/sessions/"):
		n.oneSession(ctx, strings.TrimPrefix(path, "/v1/sessions/"))
	default:
		return false
	}
	return true
}
