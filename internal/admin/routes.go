package admin

import (
	"encoding/json"
	"runtime"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/pprofhandler"
)

// route picks the answer by path and method.
func (s *Server) route(ctx *fasthttp.RequestCtx) {
	path := string(ctx.Path())
	switch {
	case path == "/metrics":
		only(ctx, s.metrics, "GET")
	case path == "/v1/version":
		only(ctx, s.version, "GET")
	case path == "/v1/streams":
		only(ctx, s.listStreams, "GET")
	case strings.HasPrefix(path, "/v1/streams/"):
		s.oneStream(ctx, strings.TrimPrefix(path, "/v1/streams/"))
	case path == "/v1/sessions":
		only(ctx, s.listSessions, "GET")
	case strings.HasPrefix(path, "/v1/sessions/"):
		s.oneSession(ctx, strings.TrimPrefix(path, "/v1/sessions/"))
	case strings.HasPrefix(path, "/debug/pprof/"):
		only(ctx, pprofhandler.PprofHandler, "GET")
	case path == "/":
		ctx.SetContentType("text/plain; charset=utf-8")
		ctx.SetBodyString("/healthz\n/metrics\n/v1/version\n/v1/streams\n/v1/sessions\n/debug/pprof/\n")
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
	if s.node.Draining() {
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
	Role     string    `json:"role"`
	Started  time.Time `json:"started"`
	Draining bool      `json:"draining"`
}

func (s *Server) version(ctx *fasthttp.RequestCtx) {
	answer(ctx, Version{
		Version: s.node.Version, Revision: s.node.Revision, Go: runtime.Version(),
		Role: s.node.Role, Started: s.node.Started.UTC(), Draining: s.node.Draining(),
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
