package frontend

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/auth"
	"millrace/internal/sched"
	"millrace/internal/stream"
)

// Redirector writes the URLs that send a player on. The faces of a scheduler and the
// edges use the same one, so that what one of them writes all understand. It is safe
// from any goroutine.
type Redirector struct {
	cluster *auth.Cluster
}

// NewRedirector returns a Redirector that signs with the key of cluster, if there is one.
func NewRedirector(cluster *auth.Cluster) *Redirector { return &Redirector{cluster} }

// Destination is where a player is sent: an edge, over one address family.
type Destination struct {
	Node  *sched.Node
	Addr  netip.Addr
	HTTPS bool
}

// Location appends the absolute URL of a stream at d to dst. uri is the path and query
// as the player sent them, and stays as it is but for two things: a ticket valid for
// life takes the place of one that is there, and bytes that cannot stand in a header
// line are escaped. Without a key there is no ticket.
//
// An edge with HTTPS is called by the name in its certificate. Otherwise its address
// stands in the URL: no look-up, and the family is the one that was chosen.
func (r *Redirector) Location(dst []byte, now time.Time, d Destination, name stream.Name, uri []byte, life time.Duration) []byte {
	dst = appendBase(dst, d)
	path, query := uri, []byte(nil)
	if i := bytes.IndexByte(uri, '?'); i >= 0 {
		path, query = uri[:i], uri[i+1:]
	}
	dst = append(appendSafe(dst, path), '?')
	from := len(dst)
	if bytes.Contains(query, ticketName) {
		dst = appendWithoutTicket(dst, query)
	} else {
		dst = appendSafe(dst, query)
	}
	switch bare := len(dst) == from; {
	case !r.cluster.Enabled() && bare:
		return dst[:from-1]
	case !r.cluster.Enabled():
		return dst
	case !bare:
		dst = append(dst, '&')
	}
	dst = append(append(dst, ticketName...), '=')
	return r.cluster.AppendTicket(dst, now, name, life)
}

var ticketName = []byte(auth.TicketParam)

// appendWithoutTicket appends query without the pairs that are tickets.
func appendWithoutTicket(dst, query []byte) []byte {
	first := true
	for more := true; more; {
		pair := query
		i := bytes.IndexByte(query, '&')
		if more = i >= 0; more {
			pair, query = query[:i], query[i+1:]
		}
		if name, _, _ := nextPair(pair); bytes.Equal(name, ticketName) {
			continue
		}
		if !first {
			dst = append(dst, '&')
		}
		dst, first = appendSafe(dst, pair), false
	}
	return dst
}

// appendBase appends scheme, host and port of d. The usual port of the scheme is left
// out.
func appendBase(dst []byte, d Destination) []byte {
	port, usual := d.Node.HTTPPort, uint16(80)
	if d.HTTPS {
		dst = append(dst, "https://"...)
		port, usual = d.Node.HTTPSPort, 443
	} else {
		dst = append(dst, "http://"...)
	}
	switch {
	case d.HTTPS && d.Node.Host != "":
		dst = append(dst, d.Node.Host...)
	case d.Addr.Is6():
		dst = append(d.Addr.AppendTo(append(dst, '[')), ']')
	default:
		dst = d.Addr.AppendTo(dst)
	}
	if port != usual {
		dst = strconv.AppendUint(append(dst, ':'), uint64(port), 10)
	}
	return dst
}

// appendSafe appends s with what cannot stand in a URL escaped (RFC 3986, 2): a client
// may send nearly every byte. What a URL may hold, or is often seen to hold, stays.
func appendSafe(dst, s []byte) []byte {
	const hex = "0123456789ABCDEF"
	from := 0
	for i, c := range s {
		if c > ' ' && c < 0x7f && c != '#' {
			continue
		}
		dst = append(append(dst, s[from:i]...), '%', hex[c>>4], hex[c&0xf])
		from = i + 1
	}
	return append(dst, s[from:]...)
}

// suffix is what the path of a stream ends in.
const suffix = ".flv"

// otherSuffixes are those of streams that are not served here, to say so.
var otherSuffixes = []string{".m3u8", ".m3u", ".ts", ".mpd", ".m4s", ".mp4", ".f4m", ".mp3", ".aac"}

// redirect sends a player to its edge.
func (h *HTTP) redirect(ctx *fasthttp.RequestCtx, set *httpSettings, now time.Time, path, query []byte) {
	e := exchanges.Get().(*exchange)
	defer e.release()
	if r := h.place(ctx, set, now, path, query, e); r != nil {
		h.refuse(ctx, set, faceRedirect, r)
		return
	}
	h.stats.placed(faceRedirect, e.answer.Reason)
	ctx.SetStatusCode(fasthttp.StatusFound)
	head := &ctx.Response.Header
	head.SetCanonical(fieldLocation, e.buf)
	head.SetCanonical(fieldCacheControl, valueNoStore)
	set.setCORS(ctx)
	head.SetContentTypeBytes(typeText)
	ctx.Response.SetBodyRaw(followText)
}

var followText = []byte("this player's edge is at Location\n")

// place decides where a player goes and writes its Location into e.buf.
func (h *HTTP) place(ctx *fasthttp.RequestCtx, set *httpSettings, now time.Time, path, query []byte, e *exchange) *refusal {
	decoded, ok := unescape(path, false)
	if !ok {
		return badName("the path is not percent-encoded properly")
	}
	name, err := streamName(decoded[:len(decoded)-len(suffix)])
	if err != nil {
		return badName(err.Error())
	}
	v := h.decider.View()
	e.host = appendHost(e.host[:0], hostOf(ctx))
	d, host := domainOf(v, e.host, set.domain)
	if d == nil {
		return noDomain(string(e.host))
	}
	if !d.Redirect {
		return faceOff(d, "redirect")
	}
	c := set.clientOf(ctx)
	e.query = sched.Query{
		Client: prefixOf(c.addr), Domain: host, Stream: name, Want: 1, Families: familyOf(c.addr),
		HTTPS: wantsHTTPS(d, c.https),
	}
	v.Decide(now, &e.query, &e.answer)
	if e.answer.N == 0 {
		e.query.Families = (sched.V4 | sched.V6) &^ e.query.Families
		v.Decide(now, &e.query, &e.answer)
	}
	if e.answer.N == 0 {
		return noEdge(d.Name)
	}
	e.uri = append(e.uri[:0], path...)
	if query != nil {
		e.uri = append(append(e.uri, '?'), query...)
	}
	to := Destination{Node: e.answer.Candidates[0].Node, Addr: addressOf(&e.answer.Candidates[0], e.query.Families), HTTPS: e.query.HTTPS}
	e.buf = h.redirector.Location(e.buf[:0], now, to, name, e.uri, set.cfg.TicketLife)
	return nil
}

// domainOf returns the domain that serves a host in its normal form, and the name to
// ask for. A host that no domain serves is taken for fallback, unless that is empty.
func domainOf(v *sched.View, host []byte, fallback string) (*sched.Domain, string) {
	d := v.Plan.Domain(string(host))
	switch {
	case d == nil && fallback != "":
		return v.Plan.Domain(fallback), fallback
	case d != nil && d.Name == string(host):
		return d, d.Name
	}
	return d, string(host)
}

// prefixOf is one client.
func prefixOf(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// familyOf is the family that a client came by.
func familyOf(a netip.Addr) sched.Families {
	if a.Is4() {
		return sched.V4
	}
	return sched.V6
}

// addressOf is the address of c in the family wanted.
func addressOf(c *sched.Candidate, f sched.Families) netip.Addr {
	if f == sched.V6 {
		return c.Addr6
	}
	return c.Addr4
}

// isStream reports whether a raw path is that of a stream as it is served here.
func isStream(path []byte) bool {
	if bytes.IndexByte(path, '%') >= 0 {
		if decoded, ok := unescape(path, false); ok {
			path = decoded
		}
	}
	return bytes.HasSuffix(path, []byte(suffix))
}

// isOtherStream reports whether a path is that of a stream as others serve it.
func isOtherStream(path []byte) bool {
	p := strings.ToLower(string(path[max(0, len(path)-len(".m3u8")):]))
	for _, s := range otherSuffixes {
		if strings.HasSuffix(p, s) {
			return true
		}
	}
	return false
}
