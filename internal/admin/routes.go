package admin

import (
	"encoding/json"
	"runtime"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/pprofhandler"
)

// The answer of / around the overview of the program.
const (
	overviewHead = `GET    /healthz                   200 "ok", 503 "draining" after SIGTERM; needs no token
GET    /metrics                   Prometheus text
GET    /v1/version                what runs here, since when
GET    /debug/pprof/              profiles
`
	overviewTail = `With admin.token set, send Authorization: Bearer TOKEN.
`
)

// route picks the answer by path and method.
func (s *Server) route(ctx *fasthttp.RequestCtx) {
	path := string(ctx.Path())
	switch {
	case path == "/metrics":
		only(ctx, s.metrics, "GET")
	case path == "/v1/version":
		only(ctx, s.version, "GET")
	case strings.HasPrefix(path, "/debug/pprof/"):
		only(ctx, pprofhandler.PprofHandler, "GET")
	case path == "/":
		ctx.SetContentType("text/plain; charset=utf-8")
		ctx.SetBodyString(overviewHead + s.program.API.Overview() + overviewTail)
	case s.program.API.Route(ctx, path):
	default:
		fail(ctx, fasthttp.StatusNotFound, "not_found", "no such path; / lists what there is")
	}
}

// only calls h for one method. HEAD is GET without the body, which fasthttp drops.
func only(ctx *fasthttp.RequestCtx, h fasthttp.RequestHandler, method string) {
	if m := string(ctx.Method()); m != method && !(m == "HEAD" && method == "GET") {
		wrongMethod(ctx, method)
		return
	}
	h(ctx)
}

func wrongMethod(ctx *fasthttp.RequestCtx, allowed string) {
	ctx.Response.Header.Set("Allow", allowed)
	fail(ctx, fasthttp.StatusMethodNotAllowed, "bad_request", "this path takes "+allowed)
}

func (s *Server) health(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.Response.Header.Set("Cache-Control", "no-store")
	if s.program.Draining() {
		ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
		ctx.SetBodyString("draining\n")
		return
	}
	ctx.SetBodyString("ok\n")
}

// Version is the answer of /v1/version.
type Version struct {
	Version  string    `json:"version"`
	Revision string    `json:"revision,omitempty"`
	Go       string    `json:"go"`
	ID       string    `json:"id"`
	Role     string    `json:"role"`
	Started  time.Time `json:"started"`
	Draining bool      `json:"draining"`
}

func (s *Server) version(ctx *fasthttp.RequestCtx) {
	answer(ctx, Version{
		Version: s.program.Version, Revision: s.program.Revision, Go: runtime.Version(),
		ID: s.program.ID, Role: s.program.Role, Started: s.program.Started.UTC(), Draining: s.program.Draining(),
	})
}

func answer(ctx *fasthttp.RequestCtx, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		fail(ctx, fasthttp.StatusInternalServerError, "internal", err.Error())
		return
	}
	ctx.SetContentType("application/json")
	ctx.Response.Header.Set("Cache-Control", "no-store")
	ctx.SetBody(append(b, '\n'))
}

// Error is the answer when something is wrong.
type Error struct {
	Error  string `json:"error"`  // for people
	Reason string `json:"reason"` // for programs, a session.Reason
}

func fail(ctx *fasthttp.RequestCtx, status int, reason, text string) {
	answer(ctx, Error{Error: text, Reason: reason})
	ctx.SetStatusCode(status)
}
