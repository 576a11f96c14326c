package control

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/auth"
	"millrace/internal/session"
)

// Paths that a Server answers.
const (
	snapshotPath  = "/v1/snapshot"
	statePath     = "/v1/state"
	blobPath      = "/v1/blob/"
	heartbeatPath = "/v1/heartbeat"
	ordersPath    = "/v1/orders"
	routePath     = "/v1/path"
)

// Handle answers a request, and reports whether its path is one of this package. It
// blocks for as long as the question may wait.
func (s *Server) Handle(ctx *fasthttp.RequestCtx) bool {
	path := string(ctx.Path())
	switch {
	case path == snapshotPath, path == statePath, path == heartbeatPath, path == ordersPath, path == routePath:
	case strings.HasPrefix(path, blobPath):
	default:
		return false
	}
	if r, text := s.answer(ctx, path); r != NotRefused {
		s.refuse(ctx, r, text)
	} else {
		s.answered.Add(1)
	}
	return true
}

func (s *Server) answer(ctx *fasthttp.RequestCtx, path string) (Refusal, string) {
	if method := methodOf(path); string(ctx.Method()) != method {
		return BadRequest, "this path takes " + method
	}
	var q question
	signature := questionOf(&ctx.Request.Header, &q)
	if path == heartbeatPath {
		return s.heartbeat(ctx, q, signature)
	}
	if r, text := s.admit(q, signature); r != NotRefused {
		return r, text
	}
	switch {
	case path == ordersPath:
		return s.ordersOf(ctx, q.node, signature)
	case path == routePath:
		return s.route(ctx, q.node, signature)
	case strings.HasPrefix(path, blobPath):
		return s.blob(ctx, signature, strings.TrimPrefix(path, blobPath))
	}
	return s.bulletin(ctx, path, signature)
}

// methodOf returns the method that a path takes.
func methodOf(path string) string {
	if path == heartbeatPath {
		return fasthttp.MethodPost
	}
	return fasthttp.MethodGet
}

// admit decides whether a question is answered at all.
func (s *Server) admit(q question, signature string) (Refusal, string) {
	if r, text := s.verify(q, signature); r != NotRefused {
		return r, text
	}
	if s.closed() {
		return Draining, "the server shuts down: ask another one"
	}
	return NotRefused, ""
}

// bulletin answers with what is the same for all.
func (s *Server) bulletin(ctx *fasthttp.RequestCtx, path, signature string) (Refusal, string) {
	args := ctx.QueryArgs()
	wait, err := parseWait(string(args.Peek("wait")))
	if err != nil {
		return BadRequest, err.Error()
	}
	h := &ctx.Request.Header
	b := s.snapshots
	switch {
	case path == statePath && args.GetBool("streams"):
		b = s.carried
	case path == statePath:
		b = s.reports
	}
	have := string(args.Peek("have"))
	p, ok := b.next(have, min(wait, s.cfg.MaxWait), s.cfg.MaxWaiting, s.ended)
	switch {
	case !ok:
		return TooMany, fmt.Sprintf("%d questions wait here already: ask another server", s.cfg.MaxWaiting)
	case p == nil:
		return s.nothing(string(h.Peek(nodeField)))
	case p.token == have:
		s.send(ctx, signature, fasthttp.StatusNotModified, p.token, &nobody)
	default:
		s.send(ctx, signature, fasthttp.StatusOK, p.token, p.in(best(string(h.Peek("Accept-Encoding")))))
	}
	return NotRefused, ""
}

// nothing says why there is no snapshot for a node, and so no report either.
func (s *Server) nothing(node string) (Refusal, string) {
	if f := s.fleet.Load(); f != nil {
		return (*f).Placeless(node)
	}
	return NoSnapshot, "this server has nothing to tell yet: ask another one"
}

func (s *Server) verify(q question, signature string) (Refusal, string) {
	if len(q.node) > auth.MaxNodeID || len(q.nonce) > maxNonce || len(signature) > maxSignature {
		return BadRequest, "a header field is too long"
	}
	err := q.verify(s.cluster, time.Now(), signature)
	denied, ok := errors.AsType[*auth.Denied](err)
	switch {
	case err == nil:
		return NotRefused, ""
	case !ok, denied.Reason == session.BadSignature:
		return BadSignature, err.Error()
	case denied.Reason == session.Unsigned:
		return Unsigned, err.Error()
	}
	return ClockSkew, err.Error()
}

// Bounds of header fields; what is longer is not ours.
const (
	maxNonce     = 64
	maxSignature = 128
)

// parseWait reads a waiting time: "25s", or a number of seconds.
func parseWait(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if n, bad := strconv.ParseUint(text, 10, 16); bad == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || d < 0 {
		return 0, fmt.Errorf("wait is %.40q: write for example 25s", text)
	}
	return d, nil
}

// blob sends a file.
func (s *Server) blob(ctx *fasthttp.RequestCtx, signature, sum string) (Refusal, string) {
	p := (*s.blobs.Load())[sum]
	if p == nil {
		return NotFound, "no file here has this sum; the snapshot names those that there are"
	}
	if s.transfers.Add(1) > int64(s.cfg.MaxTransfers) {
		s.transfers.Add(-1)
		return TooMany, fmt.Sprintf("%d files are being sent already: come back", s.cfg.MaxTransfers)
	}
	b := p.in(best(string(ctx.Request.Header.Peek("Accept-Encoding"))))
	s.head(ctx, signature, fasthttp.StatusOK, p.token, b)
	ctx.SetBodyStream(&transfer{rest: b.bytes, server: s}, len(b.bytes))
	return NotRefused, ""
}

// transfer is a file on its way. The HTTP library closes it, however it ends.
type transfer struct {
	rest   []byte
	server *Server
	closed bool
}

// Read gives what comes next.
func (t *transfer) Read(b []byte) (int, error) {
	if len(t.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// Close frees the place for another one.
func (t *transfer) Close() error {
	if !t.closed {
		t.closed = true
		t.server.transfers.Add(-1)
	}
	return nil
}

// nobody is the body of an answer without one.
var nobody = body{sum: sha256.Sum256(nil)}

// send answers with a body that is shared. token is empty for what is for one only.
func (s *Server) send(ctx *fasthttp.RequestCtx, signature string, status int, token string, b *body) {
	s.head(ctx, signature, status, token, b)
	ctx.Response.SetBodyRaw(b.bytes)
}

func (s *Server) head(ctx *fasthttp.RequestCtx, signature string, status int, token string, b *body) {
	h := &ctx.Response.Header
	etag := ""
	if token != "" {
		etag = `"` + token + `"`
		h.Set("ETag", etag)
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	h.Set("Cache-Control", "no-store")
	if name := b.encoding.String(); name != "" {
		h.Set("Content-Encoding", name)
	}
	a := answer{signature, status, b.encoding.String(), etag, b.sum}
	if sig := a.sign(s.cluster, time.Now()); sig != "" {
		h.Set(signatureField, sig)
	}
}
