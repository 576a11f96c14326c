package console

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"

	"millrace/internal/fleet"
	"millrace/internal/store"
)

// route is one path of the API.
type route struct {
	method string
	path   []string // segments below /api; "*" takes any
	access access
	answer func(*call) (any, error) // nil, nil: it has answered itself
}

// access is what a route asks of its caller.
type access uint8

const (
	open    access = iota // anybody, from a page of this origin or a program
	asks                  // anybody
	looks                 // a caller
	changes               // an operator, from a page of this origin
	tries                 // a caller, from a page of this origin: it changes nothing, but costs
)

// call is one request.
type call struct {
	*fasthttp.RequestCtx
	now    time.Time
	args   []string // segments that a * stands for
	caller *caller  // nil where anybody may ask
}

func (c *Console) table() []route {
	r := func(method, path string, a access, f func(*call) (any, error)) route {
		return route{method, strings.Split(path, "/"), a, f}
	}
	return []route{
		r("POST", "login", open, c.postLogin),
		r("POST", "logout", open, c.postLogout),
		r("GET", "session", asks, c.getSession),
		r("GET", "live", looks, c.live.get),
		r("GET", "network", looks, c.getNetwork),
		r("GET", "nodes/*", looks, c.getNode),
		r("GET", "link", looks, c.getLink),
		r("GET", "path", looks, c.getPath),
		r("GET", "plan", looks, func(*call) (any, error) { return c.fleet.Plan(), nil }),
		r("POST", "plan/dryrun", tries, c.postDryRun),
		r("GET", "documents", looks, c.getDocuments),
		r("GET", "documents/*", looks, c.getDocument),
		r("PUT", "documents/*", changes, c.putDocument),
		r("GET", "documents/*/history", looks, c.getHistory),
		r("POST", "documents/*/rollback", changes, c.postRollback),
		r("POST", "documents/*/check", tries, c.postCheck),
		r("GET", "streams", looks, c.getStreams),
		r("GET", "stream", looks, c.getStream),
		r("GET", "scheduling", looks, c.getScheduling),
		r("GET", "scheduling/explain", looks, c.getExplain),
		r("GET", "events", looks, c.getEvents),
	}
}

// match returns the segments that stars stand for, and whether path is the one of r.
func (r *route) match(path []string) (args []string, ok bool) {
	if len(path) != len(r.path) {
		return nil, false
	}
	for i, s := range r.path {
		switch {
		case s == "*":
			args = append(args, path[i])
		case s != path[i]:
			return nil, false
		}
	}
	return args, true
}

// api answers what is below /api/.
func (c *Console) api(ctx *fasthttp.RequestCtx, path string) {
	ctx.Response.Header.Set("Cache-Control", "no-store")
	got, err := c.dispatch(&call{RequestCtx: ctx, now: time.Now()}, path)
	switch {
	case err != nil:
		c.refuse(ctx, err)
	case got != nil:
		c.counts.answered.Add(1)
		answerJSON(ctx, got)
	default:
		c.counts.answered.Add(1)
	}
}

func (c *Console) dispatch(a *call, path string) (any, error) {
	if c.closed() {
		return nil, refuse(Closing, "this router shuts down: ask another one, or wait until it is back")
	}
	segments := strings.Split(strings.TrimPrefix(path, "/api/"), "/")
	var allow []string
	for i := range c.routes {
		r := &c.routes[i]
		args, ok := r.match(segments)
		if !ok {
			continue
		}
		if method := string(a.Method()); method != r.method {
			allow = append(allow, r.method)
			continue
		}
		a.args = args
		if err := c.admit(a, r); err != nil {
			return nil, err
		}
		return r.answer(a)
	}
	if allow != nil {
		a.Response.Header.Set("Allow", strings.Join(allow, ", "))
		return nil, refuse(WrongMethod, "this path takes %s", strings.Join(allow, ", "))
	}
	return nil, refuse(NotFound, "no such path")
}

// admit says whether who asks may.
func (c *Console) admit(a *call, r *route) error {
	switch r.access {
	case open:
		return asError(unforged(a.RequestCtx, nil))
	case asks:
		return nil
	}
	var err *refusal
	if a.caller, err = c.who(a.RequestCtx, a.now); err != nil {
		return err
	}
	if r.access == looks {
		return nil
	}
	if a.caller.ticket != nil {
		if err := unforged(a.RequestCtx, a.caller.ticket); err != nil {
			return err
		}
	}
	if r.access == changes && a.caller.role != Operator {
		return refuse(ReadOnly, "%s may look and not change: the role operator can", a.caller.name)
	}
	return nil
}

// asError keeps a nil refusal from becoming an error.
func asError(r *refusal) error {
	if r == nil {
		return nil
	}
	return r
}

// refuse answers what is not granted.
func (c *Console) refuse(ctx *fasthttp.RequestCtx, err error) {
	r := refusalOf(err)
	c.counts.refused[r.reason].Add(1)
	level, unlogged := c.log.Debug, uint64(0)
	switch r.reason {
	case WrongPassword, WrongToken, TooMany, Forged, ReadOnly:
		if more, ok := c.lines.take(time.Now()); ok {
			level, unlogged = c.log.Info, more
		}
	case Failed:
		level = c.log.Error
	}
	attrs := []any{"peer", ctx.RemoteAddr(), "path", string(ctx.Path()), "reason", r.reason, "err", r.text}
	if unlogged > 0 {
		attrs = append(attrs, "unlogged", unlogged)
	}
	level("console request refused", attrs...)
	ctx.SetStatusCode(statuses[r.reason])
	if again, ok := r.more.(retry); ok {
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(again.RetryAfter))
	}
	answerJSON(ctx, r)
}

// refusalOf finds the reason of an error of those who were asked.
func refusalOf(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
		d := &conflict.Current
		return &refusal{Conflict, conflict.Error(), current{fleet.Document{Key: d.Key, Version: d.Version, At: d.At, Author: d.Name, Comment: d.Comment}}}
	}
	if invalid, ok := errors.AsType[*fleet.InvalidError](err); ok {
		return refuse(Invalid, "%v", invalid.Err)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return refuse(NotFound, "%v", err)
	case errors.Is(err, store.ErrTooBig):
		return refuse(TooBig, "%v", err)
	case errors.Is(err, store.ErrUnavailable):
		return refuse(Unavailable, "%v", err)
	}
	return refuse(Failed, "%v", err)
}

// current is what a conflict tells.
type current struct {
	Current fleet.Document `json:"current"`
}

// MarshalJSON puts what there is more to say beside the sentence and the word.
func (r *refusal) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(struct {
		Error  string `json:"error"`
		Reason Reason `json:"reason"`
	}{r.text, r.reason})
	if err != nil || r.more == nil {
		return b, err
	}
	more, err := json.Marshal(r.more)
	if err != nil {
		return nil, err
	}
	return append(append(b[:len(b)-1], ','), more[1:]...), nil
}

// minPacked is the size from which answers are compressed.
const minPacked = 1400

func answerJSON(ctx *fasthttp.RequestCtx, v any) {
	b, err := json.Marshal(v)
	if err != nil { // a figure that is no number
		ctx.SetStatusCode(fasthttp.StatusInternalServerError)
		b, _ = json.Marshal(refuse(Failed, "the answer cannot be written: %v", err))
	}
	ctx.SetContentType("application/json")
	h := &ctx.Response.Header
	h.Set("Vary", "Accept-Encoding")
	if len(b) >= minPacked && ctx.Request.Header.HasAcceptEncoding("gzip") {
		h.Set("Content-Encoding", "gzip")
		w := packers.Get().(*gzip.Writer)
		b = packed(w, b)
		packers.Put(w)
	}
	ctx.Response.SetBodyRaw(b)
}
