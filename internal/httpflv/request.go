package httpflv

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/auth"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// suffix is what the path of a stream ends in.
const suffix = ".flv"

// settings are a Config in the form that is quick to ask. It is immutable.
type settings struct {
	cfg     Config
	proxies []netip.Prefix
}

func newSettings(cfg Config) (*settings, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	proxies, err := parsePrefixes(cfg.TrustedProxies)
	cfg.Origins = slices.Clone(cfg.Origins)
	return &settings{cfg: cfg, proxies: proxies}, err
}

// play is a request for a stream. It holds nothing of the HTTP library's memory.
type play struct {
	name    stream.Name
	info    session.Info
	query   string // without the ticket
	ticket  string // of a redirect that led here; not verified
	referer string
	cors    string
	framing framing
	wsKey   string
	node    *downstream // nil for a player
	expires time.Time
}

// decodedPath returns the path as the client meant it: escapes decoded, and nothing
// tidied up.
func decodedPath(ctx *fasthttp.RequestCtx) string {
	raw := string(ctx.URI().PathOriginal())
	if path, err := url.PathUnescape(raw); err == nil {
		return path
	}
	return raw
}

// parsePlay reads a request whose path ends in the suffix.
func (st *settings) parsePlay(ctx *fasthttp.RequestCtx, path string, now time.Time) (play, *refusal) {
	p := play{
		referer: string(ctx.Request.Header.Referer()),
		cors:    st.cors(string(ctx.Request.Header.Peek("Origin"))),
		framing: chunked,
		info:    st.infoOf(ctx, now),
	}
	p.query, p.ticket = cutTicket(string(ctx.URI().QueryString()))
	if st.cfg.CloseDelimited || !ctx.Request.Header.IsHTTP11() {
		p.framing = closeDelimited
	}
	name, err := stream.ParsePath(strings.TrimSuffix(path, suffix))
	if err != nil {
		return p, &refusal{status: fasthttp.StatusBadRequest, reason: session.BadName, text: err.Error()}
	}
	p.name, p.info.Stream = name, string(name)
	marks, marked, err := ParseMarks(name, ctx.Request.Header.PeekAll)
	switch {
	case err != nil:
		return p, denied(err)
	case marked && marks.Mark.Purpose == auth.Trunk:
		r := badRequest("a trunk is asked for at " + trunkPath)
		return p, &r
	case marked:
		p.node = &downstream{marks: marks}
		p.info.Node = marks.Mark.Node
	}
	switch {
	case !headerHas(ctx, "Upgrade", "websocket"):
		return p, nil
	case p.node != nil:
		r := badRequest("a node asks for a stream without WebSocket")
		return p, &r
	}
	p.info.Protocol, p.framing = session.WSFLV, webSocket
	return p, st.parseUpgrade(ctx, &p)
}

// infoOf is what is known of whoever asks, whatever it asks for.
func (st *settings) infoOf(ctx *fasthttp.RequestCtx, now time.Time) session.Info {
	return session.Info{
		Protocol: session.HTTPFLV, Action: session.Play, TLS: isTLS(ctx), Started: now,
		Agent: string(ctx.Request.Header.UserAgent()),
		Peer:  st.peer(ctx),
	}
}

// isTLS reports whether what ctx came on is encrypted.
func isTLS(ctx *fasthttp.RequestCtx) bool {
	if x := onTrunk(ctx.Conn()); x != nil {
		return encrypted(x.Carrier())
	}
	return ctx.IsTLS()
}

// headerHas reports whether a header field has a token in its list.
func headerHas(ctx *fasthttp.RequestCtx, field, token string) bool {
	for part := range strings.SplitSeq(string(ctx.Request.Header.Peek(field)), ",") {
		if strings.EqualFold(strings.TrimSpace(part), token) {
			return true
		}
	}
	return false
}

// cors returns the header lines that let a page of the given origin read an answer:
// exactly one value, or none.
func (st *settings) cors(origin string) string {
	const allow, vary = "Access-Control-Allow-Origin: ", "\r\nVary: Origin\r\n"
	switch {
	case slices.Contains(st.cfg.Origins, "*"):
		return allow + "*" + crlf
	case len(st.cfg.Origins) == 0:
		return ""
	case origin != "" && slices.Contains(st.cfg.Origins, origin):
		return allow + origin + vary
	}
	return vary[len(crlf):]
}

// corsBehind returns cors for a request that a redirect led here. For such a one a
// browser no longer names the page but says null (Fetch standard, "HTTP-redirect
// fetch"): the page was judged where the redirect came from.
func (st *settings) corsBehind(origin, cors string) string {
	if origin == "null" && len(st.cfg.Origins) > 0 && !st.allowsOrigin(origin) {
		return "Access-Control-Allow-Origin: null\r\nVary: Origin\r\n"
	}
	return cors
}

// allowsOrigin reports whether a page of the given origin may open a WebSocket: the
// browser leaves that to the server.
func (st *settings) allowsOrigin(origin string) bool {
	return origin == "" || slices.Contains(st.cfg.Origins, "*") || slices.Contains(st.cfg.Origins, origin)
}

// peer returns who asks. Behind proxies that are trusted it is the address that the
// last of them saw: the rightmost one that is not a trusted proxy itself. What
// stands left of that was written by the client and may be anything.
func (st *settings) peer(ctx *fasthttp.RequestCtx) netip.AddrPort {
	at := addrOf(ctx.RemoteAddr())
	if !st.trusts(at.Addr()) {
		return at
	}
	forwarded := ctx.Request.Header.PeekAll("X-Forwarded-For")
	for _, line := range slices.Backward(forwarded) {
		hops := strings.Split(string(line), ",")
		for _, hop := range slices.Backward(hops) {
			a, ok := parseHop(strings.TrimSpace(hop))
			if !ok {
				return at // whoever is behind this cannot be known
			}
			at = a
			if !st.trusts(at.Addr()) {
				return at
			}
		}
	}
	if len(forwarded) == 0 {
		if a, ok := parseHop(strings.TrimSpace(string(ctx.Request.Header.Peek("X-Real-IP")))); ok {
			return a
		}
	}
	return at
}

// secure reports whether the client speaks TLS, to this node or to a trusted proxy in
// front of it.
func (st *settings) secure(ctx *fasthttp.RequestCtx) bool {
	if ctx.IsTLS() || !st.trusts(addrOf(ctx.RemoteAddr()).Addr()) {
		return ctx.IsTLS()
	}
	schemes := string(ctx.Request.Header.Peek("X-Forwarded-Proto"))
	last := schemes[strings.LastIndexByte(schemes, ',')+1:]
	return strings.EqualFold(strings.TrimSpace(last), "https")
}

func (st *settings) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(st.proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// parseHop reads an address, with or without a port.
func parseHop(s string) (netip.AddrPort, bool) {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return netip.AddrPortFrom(a.Unmap(), 0), true
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), true
	}
	return netip.AddrPort{}, false
}

func addrOf(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		ap := t.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	ap, _ := netip.ParseAddrPort(a.String())
	return ap
}

// unreadable is the text for a request that the HTTP library could not parse. What the
// library quotes of the request is left out: there are keys in it, and the text goes
// into the log.
func unreadable(err error) string {
	text, _, _ := strings.Cut(err.Error(), ": buffer size=")
	text, _, _ = strings.Cut(text, `"`)
	return fmt.Sprintf("the request could not be read (%s): ask for GET /APP/NAME.flv", strings.TrimSpace(text))
}
