package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"
)

// handle is the way in: access first, then the path.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	if string(ctx.Path()) == "/healthz" {
		s.health(ctx)
		return
	}
	if !s.admitted(ctx) {
		return
	}
	s.route(ctx)
}

// admitted answers what must not go on, and reports whether the request may.
func (s *Server) admitted(ctx *fasthttp.RequestCtx) bool {
	if token := s.cfg.Load().Token; token != "" {
		got, ok := strings.CutPrefix(string(ctx.Request.Header.Peek("Authorization")), "Bearer ")
		if !ok || !same(got, token) {
			ctx.Response.Header.Set("WWW-Authenticate", `Bearer realm="millrace"`)
			fail(ctx, fasthttp.StatusUnauthorized, "unauthorized", "send the header Authorization: Bearer TOKEN, with admin.token of the configuration")
			return false
		}
		return true // a page that knows the token is no stranger
	}
	if !localHost(string(ctx.Host())) {
		fail(ctx, fasthttp.StatusForbidden, "forbidden", "without a token this API answers to localhost and loopback addresses only")
		return false
	}
	changes := !ctx.IsGet() && !ctx.IsHead()
	if (changes || strings.HasPrefix(string(ctx.Path()), "/debug/")) && foreign(ctx) {
		fail(ctx, fasthttp.StatusForbidden, "forbidden", "not from a page of another site")
		return false
	}
	return true
}

// same compares in a time that says nothing about where the two differ, nor how
// long the right one is.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// localHost reports whether a Host header names this machine. A name that merely
// resolves to it does not (DNS rebinding).
func localHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// foreign reports whether a browser sends the request for a page of another site.
// Old browsers send no Sec-Fetch-Site, but all send Origin with a POST.
func foreign(ctx *fasthttp.RequestCtx) bool {
	if site := ctx.Request.Header.Peek("Sec-Fetch-Site"); len(site) > 0 {
		return string(site) != "same-origin" && string(site) != "none"
	}
	origin := ctx.Request.Header.Peek("Origin")
	if len(origin) == 0 {
		return false
	}
	u, err := url.Parse(string(origin))
	return err != nil || !strings.EqualFold(u.Host, string(ctx.Host()))
}
