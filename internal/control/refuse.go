package control

import (
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/auth"
)

// statusOf are the statuses of refusals.
var statusOf = [refusals]int{
	BadRequest: 400, Unsigned: 401, BadSignature: 403, ClockSkew: 403, NotFound: 404,
	NoSnapshot: 503, TooMany: 503, Draining: 503,
	TooBig: 413, Absurd: 422, NotYours: 403, IdentityTaken: 409, Replayed: 409, TableFull: 507, NoOrders: 503, LeftOut: 503,
}

func (s *Server) refuse(ctx *fasthttp.RequestCtx, r Refusal, text string) {
	s.refused[r].Add(1)
	node, peer, level := string(ctx.Request.Header.Peek(nodeField)), addressOf(ctx).String(), slog.LevelDebug
	if s.strangers.news(time.Now(), node, peer, r) {
		level = slog.LevelWarn
	}
	s.log.Log(ctx, level, "a node or scheduler is refused", "node", clip(node), "peer", peer, "path", string(ctx.Path()), "reason", r, "err", text)
	tell(ctx, statusOf[r], r, text)
	h := &ctx.Response.Header
	if method := methodOf(string(ctx.Path())); r == BadRequest && string(ctx.Method()) != method {
		ctx.SetStatusCode(fasthttp.StatusMethodNotAllowed)
		h.Set("Allow", method)
	}
	if r == TooMany && len(h.Peek("Retry-After")) == 0 {
		h.Set("Retry-After", strconv.Itoa(1+rand.IntN(shortRest)))
	}
}

// clip returns as much of the name of a stranger as a node can have.
func clip(node string) string { return node[:min(len(node), auth.MaxNodeID)] }

// RefuseUnread answers a request that was not read to its end, and so has not come to a
// [Server], as that would: with the status, and with text for people.
func RefuseUnread(ctx *fasthttp.RequestCtx, status int, text string) {
	r := BadRequest
	if status == fasthttp.StatusRequestEntityTooLarge || status == fasthttp.StatusRequestHeaderFieldsTooLarge {
		r = TooBig
	}
	tell(ctx, status, r, text)
}

// tell writes a refusal as those who ask read it.
func tell(ctx *fasthttp.RequestCtx, status int, r Refusal, text string) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.Response.Header.Set("Cache-Control", "no-store")
	ctx.Response.Header.Set(reasonField, r.String())
	b, _ := json.Marshal(struct { // text and a word: it cannot fail
		Error  string  `json:"error"`
		Reason Refusal `json:"reason"`
	}{text, r})
	ctx.SetBody(b)
}
