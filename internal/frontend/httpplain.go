package frontend

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/sched"
)

// plainAsk is a question in the form of the HTTP-DNS services that apps know:
//
//	/d?dn=a.example.com                 1.1.1.1;2.2.2.2
//	/d?dn=a.example.com&ttl=1           1.1.1.1;2.2.2.2,60
//	  …&type=aaaa                       2001:db8::1,60
//	  …&type=addrs                      1.1.1.1;2.2.2.2,60-2001:db8::1,60
//	  …&query=1                         a.example.com.:1.1.1.1;2.2.2.2,60
//	  …&clientip=1                      1.1.1.1;2.2.2.2,60|3.3.3.3
//	/d?dn=a.example.com,b.example.com   a line for each, as with query=1
//
// A name without addresses has an empty answer, or a 0 where something must stand.
// The status is 200 then too: that is how these clients know a name that is not served
// from a service that fails.
type plainAsk struct {
	names    []byte
	families sched.Families
	both     bool // A and AAAA beside each other
	ttl      bool
	name     bool // each answer behind its name
	client   bool // who it is for, at the end
}

func (h *HTTP) plain(ctx *fasthttp.RequestCtx, set *httpSettings, now time.Time, path, query []byte) {
	e := exchanges.Get().(*exchange)
	defer e.release()
	if r := h.plainAnswer(ctx, set, now, path, query, e); r != nil {
		h.refuse(ctx, set, facePlain, r)
		return
	}
	head := &ctx.Response.Header
	head.SetCanonical(fieldCacheControl, valueNoStore)
	head.SetCanonical(fieldNoSniff, valueNoSniff) // names come back as they were asked for
	set.setCORS(ctx)
	head.SetContentTypeBytes(typeText)
	ctx.Response.SetBody(e.buf)
}

func (h *HTTP) plainAnswer(ctx *fasthttp.RequestCtx, set *httpSettings, now time.Time, path, query []byte, e *exchange) *refusal {
	c := set.clientOf(ctx)
	e.begin(c)
	e.buf = e.buf[:0]
	ask, r := e.plainAsk(query)
	if r != nil {
		return r
	}
	n := bytes.Count(ask.names, []byte(",")) + 1
	switch {
	case len(ask.names) == 0:
		return badRequest("dn is missing: say for which name, as in /d?dn=play.example.com&ttl=1")
	case n > maxBatch:
		return badRequest(strconv.Itoa(n) + " names at once, at most " + strconv.Itoa(maxBatch) + " are answered: ask in parts")
	case !h.mayAsk(set, now, c.addr, n):
		return tooOften
	case len(set.cfg.Resolve.Secrets) > 0 && !set.cfg.Resolve.PlainUnsigned:
		if r := set.checkSigned(now, ctx.Method(), path, query, nil); r != nil {
			return r
		}
	}
	v := h.decider.View()
	ask.name = ask.name || n > 1
	for rest, i := ask.names, 0; i < n; i++ {
		var name []byte
		name, rest, _ = bytes.Cut(rest, []byte(","))
		if i > 0 {
			e.buf = append(e.buf, '\n')
		}
		h.plainName(now, v, name, &ask, e)
	}
	if ask.client && len(e.buf) > 0 {
		e.buf = e.query.Client.Addr().AppendTo(append(e.buf, '|'))
	}
	return nil
}

// plainAsk reads the parameters of a question.
func (e *exchange) plainAsk(query []byte) (plainAsk, *refusal) {
	ask := plainAsk{families: sched.V4}
	for rest := query; len(rest) > 0; {
		var name, value []byte
		name, value, rest = nextPair(rest)
		switch string(name) {
		case "dn":
			names, ok := unescape(value, true)
			if !ok {
				return ask, badRequest("dn is not percent-encoded properly")
			}
			// Names come back in the answer, where a line break would make one more of it.
			if bytes.IndexFunc(names, func(c rune) bool { return c <= ' ' || c == 0x7f }) >= 0 {
				return ask, badRequest(fmt.Sprintf("dn: %.64q has blanks or control characters in it: send names with commas between them", names))
			}
			ask.names = names
		case "ip":
			if r := e.set(name, value); r != nil {
				return ask, r
			}
		case "ttl":
			ask.ttl = string(value) == "1"
		case "query":
			ask.name = string(value) == "1"
		case "clientip":
			ask.client = string(value) == "1"
		case "type":
			switch string(bytes.ToLower(value)) {
			case "", "a":
			case "aaaa":
				ask.families = sched.V6
			case "addrs":
				ask.both = true
			default:
				return ask, badRequest("type must be a, aaaa or addrs")
			}
		}
	}
	return ask, nil
}

// plainName appends the answer for one name.
func (h *HTTP) plainName(now time.Time, v *sched.View, name []byte, ask *plainAsk, e *exchange) {
	e.host = appendHost(e.host[:0], name)
	if ask.name {
		e.buf = append(append(e.buf, e.host...), ".:"...)
	}
	d, host := domainOf(v, e.host, "")
	e.query.Domain = host
	if d != nil && !d.HTTPDNS {
		d = nil
	}
	if d == nil {
		h.stats.placed(facePlain, sched.UnknownDomain)
	}
	if !ask.both {
		h.plainFamily(now, v, d, ask.families, ask, e)
		return
	}
	h.plainFamily(now, v, d, sched.V4, ask, e)
	e.buf = append(e.buf, '-')
	h.plainFamily(now, v, d, sched.V6, ask, e)
}

// plainFamily appends the addresses of one family.
func (h *HTTP) plainFamily(now time.Time, v *sched.View, d *sched.Domain, f sched.Families, ask *plainAsk, e *exchange) {
	e.answer.N = 0
	if d != nil {
		e.query.Families = f
		v.Decide(now, &e.query, &e.answer)
		h.stats.placed(facePlain, e.answer.Reason)
	}
	if e.answer.N == 0 {
		if ask.name || ask.both {
			e.buf = append(e.buf, '0')
		}
		return
	}
	for i := range e.answer.N {
		if i > 0 {
			e.buf = append(e.buf, ';')
		}
		e.buf = addressOf(&e.answer.Candidates[i], f).AppendTo(e.buf)
	}
	if ask.ttl {
		e.buf = strconv.AppendInt(append(e.buf, ','), ttlSeconds(e.answer.TTL), 10)
	}
}
