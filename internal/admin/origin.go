package admin

import (
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"millrace/internal/stream"
	"millrace/internal/upstream"
)

// Events is the answer of /v1/events: the newest last.
type Events struct {
	Events []upstream.Event `json:"events"`
}

// listEvents answers with the newest decisions about where streams come from.
func (n *Node) listEvents(ctx *fasthttp.RequestCtx) {
	limit, wrong := readLimit(ctx.QueryArgs())
	if wrong != "" {
		fail(ctx, fasthttp.StatusBadRequest, "bad_request", wrong)
		return
	}
	name, kind := stream.Name(ctx.QueryArgs().Peek("stream")), string(ctx.QueryArgs().Peek("kind"))
	all := slices.DeleteFunc(n.origin.Events(), func(e upstream.Event) bool {
		return name != "" && e.Stream != name || kind != "" && e.Kind.String() != kind
	})
	answer(ctx, Events{append([]upstream.Event{}, all[max(0, len(all)-limit):]...)})
}

// Members is the answer of /v1/members.
type Members struct {
	Self              string                 `json:"self"`
	upstream.Standing                        // of this node
	Members           []upstream.MemberState `json:"members"`
}

func (n *Node) listMembers(ctx *fasthttp.RequestCtx) {
	answer(ctx, Members{n.id, n.origin.Standing(), n.origin.Members()})
}

// streamPath answers how a stream comes to this node. One that is published here
// has no hops.
func (n *Node) streamPath(ctx *fasthttp.RequestCtx, name stream.Name) {
	p, ok := n.origin.Path(name)
	if _, here := n.hub.Lookup(name); !ok && !here {
		fail(ctx, fasthttp.StatusNotFound, "not_found", "no such stream")
		return
	}
	if !ok {
		p = upstream.Path{Stream: name, Hops: []stream.Hop{}, Feeds: []upstream.Feed{}, Events: []upstream.Event{}}
	}
	p.Node = n.id
	answer(ctx, p)
}

// cutPath cuts /path off the path of a request.
func cutPath(path string) (name string, ok bool) { return strings.CutSuffix(path, "/path") }
