package frontend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/sched"
)

// Bounds of the questions of one request.
const (
	maxBatch     = 64
	maxQuestions = 64 << 10 // bytes of a body
)

// resolve answers /v1/resolve: one object for one question, and for several, asked by
// repeating domain= or by POST, an object with the list of them.
func (h *HTTP) resolve(ctx *fasthttp.RequestCtx, set *httpSettings, now time.Time, path, query []byte) {
	e := exchanges.Get().(*exchange)
	defer e.release()
	var r *refusal
	if ctx.IsPost() {
		r = h.resolvePosted(ctx, set, now, path, query, e)
	} else {
		r = h.resolveQuery(ctx, set, now, path, query, e)
	}
	if r != nil {
		h.refuse(ctx, set, faceResolve, r)
		return
	}
	head := &ctx.Response.Header
	head.SetCanonical(fieldCacheControl, valueNoStore)
	head.SetCanonical(fieldNoSniff, valueNoSniff)
	set.setCORS(ctx)
	head.SetContentTypeBytes(typeJSON)
	ctx.Response.SetBody(e.buf)
}

func (h *HTTP) resolveQuery(ctx *fasthttp.RequestCtx, set *httpSettings, now time.Time, path, query []byte, e *exchange) *refusal {
	c := set.clientOf(ctx)
	e.begin(c)
	e.buf = e.buf[:0]
	domains := 0
	for rest := query; len(rest) > 0; {
		var name, value []byte
		name, value, rest = nextPair(rest)
		if string(name) == "domain" {
			domains++
			continue
		}
		if r := e.set(name, value); r != nil {
			return r
		}
	}
	if r := h.admit(ctx, set, now, c, path, query, domains); r != nil {
		return r
	}
	v := h.decider.View()
	if domains == 1 {
		r := h.answer(set, now, v, valueOf(query, "domain"), e)
		e.buf = append(e.buf, '\n')
		return r
	}
	e.buf = append(e.buf, `{"results":[`...)
	for rest, i := query, 0; len(rest) > 0; {
		var name, value []byte
		if name, value, rest = nextPair(rest); string(name) != "domain" {
			continue
		}
		e.next(i)
		if r := h.answer(set, now, v, value, e); r != nil {
			if domain, ok := unescape(value, true); ok {
				value = domain
			}
			h.appendRefused(value, r, e)
		}
		i++
	}
	e.buf = append(e.buf, "]}\n"...)
	return nil
}

// admit decides whether n questions are answered.
func (h *HTTP) admit(ctx *fasthttp.RequestCtx, set *httpSettings, now time.Time, c client, path, query []byte, n int) *refusal {
	switch {
	case n == 0:
		return badRequest("domain is missing: say for which name, as in /v1/resolve?domain=play.example.com")
	case n > maxBatch:
		return badRequest(fmt.Sprintf("%d questions at once, at most %d are answered: ask in parts", n, maxBatch))
	case !h.mayAsk(set, now, c.addr, n):
		return tooOften
	case len(set.cfg.Resolve.Secrets) > 0:
		return set.checkSigned(now, ctx.Method(), path, query, ctx.PostBody())
	}
	return nil
}

// posted is the body of a POST.
type posted struct {
	Queries []postedQuery `json:"queries"`
}

// postedQuery is one question of a POST, with the names of the parameters of a GET.
type postedQuery struct {
	Domain string `json:"domain"`
	Stream string `json:"stream"`
	IP     string `json:"ip"`
	Region string `json:"region"`
	ISP    string `json:"isp"`
	Net    string `json:"net"`
	Family string `json:"family"`
	Scheme string `json:"scheme"`
	N      int    `json:"n"`
}

func (h *HTTP) resolvePosted(ctx *fasthttp.RequestCtx, set *httpSettings, now time.Time, path, query []byte, e *exchange) *refusal {
	body := ctx.PostBody()
	if len(body) > maxQuestions {
		return &refusal{
			status: fasthttp.StatusRequestEntityTooLarge, reason: badRequest("").reason,
			text: fmt.Sprintf("the body has %d bytes, at most %d are read: ask in parts", len(body), maxQuestions),
		}
	}
	var p posted
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return badRequest(`the body is not {"queries":[{"domain":"…","stream":"…","ip":"…"}]}: ` + err.Error())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return badRequest("the body goes on after its object")
	}
	c := set.clientOf(ctx)
	if r := h.admit(ctx, set, now, c, path, query, len(p.Queries)); r != nil {
		return r
	}
	v := h.decider.View()
	e.buf = append(e.buf[:0], `{"results":[`...)
	for i := range p.Queries {
		q := &p.Queries[i]
		e.next(i)
		r := e.take(c, q)
		if r == nil {
			r = h.answerName(set, now, v, []byte(q.Domain), e)
		}
		if r != nil {
			h.appendRefused([]byte(q.Domain), r, e)
		}
	}
	e.buf = append(e.buf, "]}\n"...)
	return nil
}

// take makes q the question.
func (e *exchange) take(c client, q *postedQuery) *refusal {
	e.begin(c)
	if q.N != 0 {
		if r := e.want(q.N); r != nil {
			return r
		}
	}
	for _, p := range [...]struct{ name, value string }{
		{"stream", q.Stream},
		{"ip", q.IP},
		{"region", q.Region},
		{"isp", q.ISP},
		{"net", q.Net},
		{"family", q.Family},
		{"scheme", q.Scheme},
	} {
		if r := e.setDecoded([]byte(p.name), []byte(p.value)); r != nil {
			return r
		}
	}
	return nil
}

// next puts what is between two results.
func (e *exchange) next(i int) {
	if i > 0 {
		e.buf = append(e.buf, ',')
	}
}

// appendRefused appends the result for a name that has no answer.
func (h *HTTP) appendRefused(domain []byte, r *refusal, e *exchange) {
	h.stats.counts[faceResolve][r.reason].Add(1)
	e.buf = appendString(append(e.buf, `{"domain":`...), domain)
	from := len(e.buf)
	e.buf = r.appendJSON(e.buf)
	e.buf[from] = ','
}

// answer is answerName for a name as it stands in a query.
func (h *HTTP) answer(set *httpSettings, now time.Time, v *sched.View, domain []byte, e *exchange) *refusal {
	domain, ok := unescape(domain, true)
	if !ok {
		return badRequest("domain is not percent-encoded properly")
	}
	return h.answerName(set, now, v, domain, e)
}

// answerName decides for one name and appends the object that says so, or nothing.
func (h *HTTP) answerName(set *httpSettings, now time.Time, v *sched.View, domain []byte, e *exchange) *refusal {
	e.host = appendHost(e.host[:0], domain)
	d, name := domainOf(v, e.host, "")
	switch {
	case d == nil:
		return noDomain(string(e.host))
	case !d.HTTPDNS:
		return faceOff(d, "httpdns")
	}
	e.query.Domain = name
	v.Decide(now, &e.query, &e.answer)
	if e.answer.N == 0 {
		return noEdge(d.Name)
	}
	h.stats.placed(faceResolve, e.answer.Reason)
	e.buf = h.appendAnswer(e.buf, set, now, &e.query, &e.answer)
	return nil
}

// appendAnswer appends the object for a.
func (h *HTTP) appendAnswer(b []byte, set *httpSettings, now time.Time, q *sched.Query, a *sched.Answer) []byte {
	b = appendString(append(b, `{"domain":`...), q.Domain)
	if q.Stream != "" {
		b = appendString(append(b, `,"stream":`...), string(q.Stream))
	}
	b = append(append(b, `,"reason":"`...), a.Reason.String()...)
	b = strconv.AppendInt(append(b, `","ttl":`...), ttlSeconds(a.TTL), 10)
	b = q.Client.Addr().AppendTo(append(b, `,"client":{"ip":"`...))
	b = strconv.AppendInt(append(b, `","bits":`...), int64(a.Bits), 10)
	b = append(append(b, `,"source":"`...), a.Place.Source.String()...)
	b = append(b, '"')
	if a.Place.Region != "" {
		b = appendString(append(b, `,"region":`...), a.Place.Region)
	}
	if a.Place.ISP != "" {
		b = appendString(append(b, `,"isp":`...), a.Place.ISP)
	}
	b = append(b, '}')
	if q.Stream != "" && h.cluster.Enabled() {
		life := max(set.cfg.TicketLife, a.TTL)
		b = h.cluster.AppendTicket(append(b, `,"ticket":"`...), now, q.Stream, life)
		b = append(b, '"')
	}
	b = append(b, `,"edges":[`...)
	for i := range a.N {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendEdge(b, &a.Candidates[i])
	}
	return append(b, "]}"...)
}

// appendEdge appends the object for one of the ranked edges.
func appendEdge(b []byte, c *sched.Candidate) []byte {
	b = appendString(append(b, `{"node":`...), c.Node.ID)
	if c.Addr4.IsValid() {
		b = append(c.Addr4.AppendTo(append(b, `,"v4":"`...)), '"')
	}
	if c.Addr6.IsValid() {
		b = append(c.Addr6.AppendTo(append(b, `,"v6":"`...)), '"')
	}
	if c.Node.Host != "" {
		b = appendString(append(b, `,"host":`...), c.Node.Host)
	}
	if c.Node.HTTPPort != 0 {
		b = strconv.AppendUint(append(b, `,"http_port":`...), uint64(c.Node.HTTPPort), 10)
	}
	if c.Node.HTTPSPort != 0 {
		b = strconv.AppendUint(append(b, `,"https_port":`...), uint64(c.Node.HTTPSPort), 10)
	}
	b = strconv.AppendUint(append(b, `,"weight":`...), uint64(c.Weight), 10)
	b = append(append(b, `,"reason":"`...), c.Reason.String()...)
	return append(b, `"}`...)
}

// ttlSeconds is how long an answer may be kept, in whole seconds.
func ttlSeconds(d time.Duration) int64 { return int64(max(d, time.Second) / time.Second) }
