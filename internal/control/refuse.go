package control

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"

	"github.com/valyala/fasthttp"
)

// statusOf are the statuses of refusals.
var statusOf = [refusals]int{
	BadRequest: 400, Unsigned: 401, BadSignature: 403, ClockSkew: 403, NotFound: 404,
	NoSnapshot: 503, TooMany: 503, Draining: 503,
	TooBig: 413, Absurd: 422, NotYours: 403, IdentityTaken: 409, Replayed: 409, TableFull: 507, NoOrders: 503,
}

func (s *Server) refuse(ctx *fasthttp.RequestCtx, r Refusal, text string) {
	s.refused[r].Add(1)
	s.log.Debug("question refused", "peer", ctx.RemoteAddr(), "path", string(ctx.Path()), "reason", r, "err", text)
	ctx.SetStatusCode(statusOf[r])
	ctx.SetContentType("application/json")
	h := &ctx.Response.Header
	h.Set("Cache-Control", "no-store")
	h.Set(reasonField, r.String())
	if method := methodOf(string(ctx.Path())); r == BadRequest && string(ctx.Method()) != method {
		ctx.SetStatusCode(fasthttp.StatusMethodNotAllowed)
		h.Set("Allow", method)
	}
	if r == TooMany && len(h.Peek("Retry-After")) == 0 {
		h.Set("Retry-After", strconv.Itoa(1+rand.IntN(shortRest)))
	}
	b, _ := json.Marshal(struct { // text and a word: it cannot fail
		Error  string  `json:"error"`
		Reason Refusal `json:"reason"`
	}{text, r})
	ctx.SetBody(b)
}
