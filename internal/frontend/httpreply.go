package frontend

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"millrace/internal/sched"
	"millrace/internal/session"
)

// reasonField is the header field with the word of a refusal, for programs.
const reasonField = "Millrace-Reason"

// refusal is an answer that is not what was asked for. Its text says what to do.
type refusal struct {
	status int
	reason outcome
	text   string
	retry  int    // seconds after which to ask again; 0: asking again does not help
	header string // a further field
	value  string
}

// The refusals that are always the same.
var (
	noPage = &refusal{
		status: fasthttp.StatusNotFound, reason: refusedFor(session.NotFound),
		text: "nothing here: a stream is at /APP/NAME.flv, addresses at /v1/resolve and /d",
	}
	otherFormat = &refusal{
		status: fasthttp.StatusNotFound, reason: refusedFor(session.NotFound),
		text: "streams are served as HTTP-FLV only: ask for /APP/NAME.flv",
	}
	notAllowed = &refusal{
		status: fasthttp.StatusMethodNotAllowed, reason: refusedFor(session.BadRequest),
		text: "ask with GET or HEAD", header: "Allow", value: "GET, HEAD, OPTIONS",
	}
	notAllowedBatch = &refusal{
		status: fasthttp.StatusMethodNotAllowed, reason: refusedFor(session.BadRequest),
		text: "ask with GET, HEAD or POST", header: "Allow", value: "GET, HEAD, POST, OPTIONS",
	}
	tooOften = &refusal{
		status: fasthttp.StatusTooManyRequests, reason: refusedFor(session.AddressLimit), retry: 1,
		text: "this address asks more often than it may: keep answers for their ttl, and ask for several names at once",
	}
	unsigned = &refusal{
		status: fasthttp.StatusUnauthorized, reason: refusedFor(session.Unsigned),
		text:   "the request must be signed: it ends in id=APP&expires=UNIX&sign=HEX",
		header: "WWW-Authenticate", value: "Signed-URL",
	}
	badExpires = &refusal{
		status: fasthttp.StatusForbidden, reason: refusedFor(session.BadSignature),
		text: "expires is not a Unix time in seconds",
	}
	badSign = &refusal{
		status: fasthttp.StatusForbidden, reason: refusedFor(session.BadSignature),
		text: "the signature does not match: it must be made with a secret of the app id, over method, path and the sorted query without sign",
	}
	tooManyPairs = &refusal{
		status: fasthttp.StatusBadRequest, reason: refusedFor(session.BadRequest),
		text: "a signed request may have " + strconv.Itoa(maxPairs) + " parameters at most",
	}
)

func badRequest(text string) *refusal {
	return &refusal{status: fasthttp.StatusBadRequest, reason: refusedFor(session.BadRequest), text: text}
}

// noDomain is for a name that no domain of the plan serves.
func noDomain(name string) *refusal {
	return &refusal{
		status: fasthttp.StatusNotFound, reason: placedAs(sched.UnknownDomain),
		text: "no domain here serves the name " + strconv.Quote(name) + ": ask for one of the configured domains, or set default_domain",
	}
}

// noEdge is for a domain that has no edge which could serve the client.
func noEdge(name string) *refusal {
	return &refusal{
		status: fasthttp.StatusServiceUnavailable, reason: placedAs(sched.NoEdges), retry: retryNoEdge,
		text: name + " has no edge that could serve this client: ask again in a few seconds",
	}
}

// retryNoEdge is after how many seconds a client without an edge should ask again:
// probes find a new one in about that time.
const retryNoEdge = 5

// faceOff is for a domain that this face does not serve, by configuration.
func faceOff(d *sched.Domain, key string) *refusal {
	return &refusal{
		status: fasthttp.StatusNotFound, reason: refusedFor(session.NotFound),
		text: d.Name + " is not served this way: set " + key + ": true for it in the domains file",
	}
}

// setCORS lets pages read the answer: exactly one value, or none.
func (s *httpSettings) setCORS(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	if s.allOrigin {
		h.SetCanonical(fieldAllowOrigin, valueAll)
		return
	}
	if len(s.cfg.Origins) == 0 {
		return
	}
	h.SetCanonical(fieldVary, valueOrigin)
	if origin := ctx.Request.Header.Peek("Origin"); len(origin) > 0 && slices.Contains(s.cfg.Origins, string(origin)) {
		h.SetCanonical(fieldAllowOrigin, origin)
	}
}

// Fields and values of every answer, in the form in which setting them costs least.
var (
	fieldAllowOrigin  = []byte("Access-Control-Allow-Origin")
	fieldVary         = []byte("Vary")
	fieldCacheControl = []byte("Cache-Control")
	fieldLocation     = []byte("Location")
	fieldNoSniff      = []byte("X-Content-Type-Options")
	valueAll          = []byte("*")
	valueOrigin       = []byte("Origin")
	valueNoStore      = []byte("no-store")
	valueNoSniff      = []byte("nosniff")
	typeText          = []byte("text/plain; charset=utf-8")
	typeJSON          = []byte("application/json")
)

// preflight answers a browser that asks whether a page may ask.
func (s *httpSettings) preflight(ctx *fasthttp.RequestCtx, methods string) {
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	h := &ctx.Response.Header
	h.Set("Allow", methods)
	s.setCORS(ctx)
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers", "*")
	h.Set("Access-Control-Max-Age", "86400")
}

// refuse answers with r: a line of text, or an object where programs ask.
func (h *HTTP) refuse(ctx *fasthttp.RequestCtx, set *httpSettings, f face, r *refusal) {
	h.stats.refused(f, r, ctx)
	ctx.Response.Reset()
	ctx.SetStatusCode(r.status)
	head := &ctx.Response.Header
	set.setCORS(ctx)
	head.SetCanonical(fieldCacheControl, valueNoStore)
	head.SetCanonical(fieldNoSniff, valueNoSniff)
	head.Set(reasonField, r.reason.String())
	if r.retry > 0 {
		head.Set("Retry-After", strconv.Itoa(r.retry))
	}
	if r.header != "" {
		head.Set(r.header, r.value)
	}
	if f == faceResolve || f == faceExplain {
		head.SetContentTypeBytes(typeJSON)
		ctx.Response.SetBodyRaw(append(r.appendJSON(nil), '\n'))
		return
	}
	head.SetContentTypeBytes(typeText)
	ctx.SetBodyString(r.text + "\n")
}

// appendJSON appends the object for r.
func (r *refusal) appendJSON(dst []byte) []byte {
	dst = appendString(append(dst, `{"error":`...), r.text)
	dst = append(append(dst, `,"reason":"`...), r.reason.String()...)
	return append(dst, `"}`...)
}

// appendString appends s as a JSON string (RFC 8259, 7). What is not UTF-8 becomes
// the replacement character.
func appendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			dst = append(append(dst, s[from:i]...), `\ufffd`...)
		} else {
			if c >= ' ' && c != '"' && c != '\\' && c != 0x7f {
				i++
				continue
			}
			dst = append(dst, s[from:i]...)
			if c == '"' || c == '\\' {
				dst = append(dst, '\\', c)
			} else {
				const hex = "0123456789abcdef"
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
			}
		}
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}
