package frontend

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/sched"
	"millrace/internal/session"
)

// ExplainHandler answers operators who ask how d would answer: which rule did what,
// and with which figures. It asks nobody who they are; that is for the admin address,
// where it belongs. Parameters are those of /v1/resolve, and self, an edge to compare
// with. The answer is JSON, or text for format=text and for Accept: text/plain.
func ExplainHandler(d Decider) fasthttp.RequestHandler {
	set := &httpSettings{}
	return func(ctx *fasthttp.RequestCtx) { explain(ctx, d, set, time.Now()) }
}

// mayExplain decides whether an operator asks. Nothing but a token proves it; from
// this machine none is needed if so configured, but then nothing may look as if a
// proxy or a page of another site stood between.
func (s *httpSettings) mayExplain(ctx *fasthttp.RequestCtx) *refusal {
	c := s.cfg.Explain
	if got, ok := strings.CutPrefix(string(ctx.Request.Header.Peek("Authorization")), "Bearer "); c.Token != "" && ok && same(got, c.Token) {
		return nil
	}
	if c.Loopback && addrOf(ctx.RemoteAddr()).IsLoopback() && localHost(ctx.Host()) && !hasAny(ctx, "Origin", "X-Forwarded-For", "Forwarded", "Via") {
		return nil
	}
	if c.Token != "" {
		return &refusal{
			status: fasthttp.StatusUnauthorized, reason: refusedFor(session.Unauthorized),
			text:   "explanations are for operators: send the header Authorization: Bearer TOKEN, with explain.token of the configuration",
			header: "WWW-Authenticate", value: `Bearer realm="millrace"`,
		}
	}
	return &refusal{
		status: fasthttp.StatusForbidden, reason: refusedFor(session.Forbidden),
		text: "explanations are for operators: ask at the admin address, or set explain.token in the configuration",
	}
}

// same compares in a time that says nothing about where the two differ, nor how long
// the right one is.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// localHost reports whether a Host field names this machine. A name that merely
// resolves to it does not (DNS rebinding).
func localHost(host []byte) bool {
	h := string(appendHost(nil, host))
	a, err := netip.ParseAddr(h)
	return h == "localhost" || err == nil && a.IsLoopback()
}

func hasAny(ctx *fasthttp.RequestCtx, fields ...string) bool {
	for _, f := range fields {
		if len(ctx.Request.Header.Peek(f)) > 0 {
			return true
		}
	}
	return false
}

// explain answers one who may know. Pages get no leave to read it.
func explain(ctx *fasthttp.RequestCtx, d Decider, set *httpSettings, now time.Time) {
	head := &ctx.Response.Header
	head.SetCanonical(fieldCacheControl, valueNoStore)
	head.SetCanonical(fieldNoSniff, valueNoSniff)
	e := exchanges.Get().(*exchange)
	defer e.release()
	if r := e.explained(ctx, set); r != nil {
		ctx.SetStatusCode(r.status)
		head.Set(reasonField, r.reason.String())
		if r.header != "" {
			head.Set(r.header, r.value)
		}
		head.SetContentTypeBytes(typeJSON)
		ctx.Response.SetBodyRaw(append(r.appendJSON(nil), '\n'))
		return
	}
	x := d.Explain(now, &e.query)
	if wantsText(ctx) {
		head.SetContentTypeBytes(typeText)
		writeExplanation(ctx, &x)
		return
	}
	body, err := json.MarshalIndent(&x, "", "  ")
	if err != nil {
		ctx.SetStatusCode(fasthttp.StatusInternalServerError)
		body = badRequest("the explanation cannot be written as JSON: " + err.Error() + "; ask with format=text").appendJSON(nil)
	}
	head.SetContentTypeBytes(typeJSON)
	ctx.Response.SetBodyRaw(append(body, '\n'))
}

// explained reads the question into e.query.
func (e *exchange) explained(ctx *fasthttp.RequestCtx, set *httpSettings) *refusal {
	if !ctx.IsGet() && !ctx.IsHead() {
		return notAllowed
	}
	e.begin(set.clientOf(ctx))
	_, query := target(ctx)
	for rest := query; len(rest) > 0; {
		var name, value []byte
		name, value, rest = nextPair(rest)
		if string(name) != "domain" && string(name) != "self" {
			if r := e.set(name, value); r != nil {
				return r
			}
			continue
		}
		value, ok := unescape(value, true)
		if !ok {
			return badRequest(string(name) + " is not percent-encoded properly")
		}
		if string(name) == "domain" {
			e.query.Domain = string(appendHost(nil, value))
		} else {
			e.query.Self = string(value)
		}
	}
	if e.query.Domain == "" {
		return badRequest("domain is missing: say for which name, as in /v1/explain?domain=play.example.com&ip=1.2.3.4")
	}
	return nil
}

// wantsText reports whether a person asks.
func wantsText(ctx *fasthttp.RequestCtx) bool {
	_, query := target(ctx)
	if f := valueOf(query, "format"); len(f) > 0 {
		return string(f) == "text"
	}
	accept := ctx.Request.Header.Peek("Accept")
	return bytes.Contains(accept, []byte("text/plain")) && !bytes.Contains(accept, []byte("application/json"))
}

// writeExplanation writes x for reading.
func writeExplanation(w io.Writer, x *sched.Explanation) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "client\t%v\n", x.Client)
	fmt.Fprintf(tw, "place\t%s, %s (%v, the first %d bits)\n", orNone(x.Place.Region), orNone(x.Place.ISP), x.Place.Source, x.Place.Bits)
	fmt.Fprintf(tw, "domain\t%s\n", orNone(x.Domain))
	fmt.Fprintf(tw, "stream\t%s\n", orNone(string(x.Stream)))
	if x.Access != sched.AccessUnknown {
		fmt.Fprintf(tw, "access\t%v\n", x.Access)
	}
	fmt.Fprintf(tw, "snapshot\tversion %d, load and health of %s\n", x.Version, age(x.Now, x.StateAt))
	fmt.Fprintf(tw, "answer\t%v, for %v and all clients with the same %d bits\n\n", x.Reason, x.TTL, x.Bits)
	for i := range x.Rules {
		r := &x.Rules[i]
		fmt.Fprintf(tw, "%d %s\t%s\n", i+1, r.Name, r.Did)
		for _, d := range r.Dropped {
			more := ""
			if d.Count > len(d.Nodes) {
				more = ", …"
			}
			fmt.Fprintf(tw, "\tout, %v: %d (%s%s)\n", d.Reason, d.Count, strings.Join(d.Nodes, ", "), more)
		}
	}
	if x.Self != nil {
		can := "may serve this client"
		if !x.Self.OK {
			can = "may not serve this client"
		}
		fmt.Fprintf(tw, "\t%s %s, at %.1f ms\n", x.Self.Node, can, x.Self.Cost)
	}
	_ = tw.Flush() // into memory
	if len(x.Candidates) == 0 {
		return
	}
	fmt.Fprintln(w)
	tw = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "EDGE\tIPV4\tIPV6\tCOST MS\tCOVERAGE\tQUALITY\tSTREAM\tLOAD\tHEALTH\tWEIGHT\tREASON")
	for i := range x.Candidates {
		c := &x.Candidates[i]
		fmt.Fprintf(tw, "%s\t%s\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%d\t%v\n", c.Node, orDash(c.Addr4), orDash(c.Addr6),
			c.Cost, c.Coverage, c.Quality, c.Stream, c.Load, c.Health, c.Weight, c.Reason)
	}
	_ = tw.Flush()
}

func age(now, at time.Time) string {
	if at.IsZero() {
		return "no time: nothing is known yet"
	}
	return now.Sub(at).Round(100*time.Millisecond).String() + " ago"
}

func orNone(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func orDash(a netip.Addr) string {
	if !a.IsValid() {
		return "-"
	}
	return a.String()
}
