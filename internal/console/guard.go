package console

import (
	"crypto/sha256"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// caller is who asks.
type caller struct {
	name   string
	role   Role
	ticket *ticket // nil for a program with a token
	under  *settings
}

// Names of cookies. Browsers keep the first one from being set without TLS, or by a
// neighbouring domain.
const (
	secureCookie = "__Host-millrace"
	plainCookie  = "millrace"
)

func (c *Console) secure(ctx *fasthttp.RequestCtx) bool {
	return ctx.IsTLS() || c.settings.Load().cfg.Secure
}

func (c *Console) cookieName(ctx *fasthttp.RequestCtx) string {
	if c.secure(ctx) {
		return secureCookie
	}
	return plainCookie
}

// who returns who asks, and renews the cookie now and then.
func (c *Console) who(ctx *fasthttp.RequestCtx, now time.Time) (*caller, *refusal) {
	s := c.settings.Load()
	if a := string(ctx.Request.Header.Peek("Authorization")); a != "" {
		return s.byToken(a)
	}
	cookie := string(ctx.Request.Header.Cookie(c.cookieName(ctx)))
	if cookie == "" {
		return nil, refuse(NoSession, "nobody is logged in: log in, or send Authorization: Bearer TOKEN")
	}
	t, ok := openTicket(cookie, c.secrets(), s.passwordHash)
	if !ok {
		return nil, refuse(Expired, "this session is not known here any more: log in again")
	}
	if r := c.still(&t, now); r != nil {
		return nil, r
	}
	if t.stale(now, &s.cfg) {
		t.seen = now
		c.setCookie(ctx, &t, s)
	}
	return &caller{t.name, s.users[t.name].Role, &t, s}, nil
}

// maxUnknown is how many bytes a body may have before it is known who sends it: a log-in.
const maxUnknown = maxSmall

// BodyLimit returns how many bytes the body of a request may have, of which h is the head.
// The server asks it when the head has come: memory is given to a body before it is
// there, and must not be given to everybody who promises one.
func (c *Console) BodyLimit(h *fasthttp.RequestHeader) int {
	s := c.settings.Load()
	if a := string(h.Peek("Authorization")); a != "" {
		if _, r := s.byToken(a); r != nil {
			return maxUnknown
		}
		return maxText
	}
	for _, name := range []string{plainCookie, secureCookie} { // whether this is TLS is not known yet
		t, ok := openTicket(string(h.Cookie(name)), c.secrets(), s.passwordHash)
		if ok && c.still(&t, time.Now()) == nil {
			return maxText
		}
	}
	return maxUnknown
}

func (s *settings) byToken(authorization string) (*caller, *refusal) {
	token, ok := strings.CutPrefix(authorization, "Bearer ")
	if ok {
		// What is looked up is a hash: how long that takes says nothing about tokens.
		if t := s.tokens[sha256.Sum256([]byte(token))]; t != nil {
			return &caller{name: t.Name, role: t.Role, under: s}, nil
		}
	}
	return nil, refuse(WrongToken, "no such token: send Authorization: Bearer TOKEN, with one of console.tokens in the configuration of the router")
}

// still says why a session that was genuine is over, nil if it is not.
func (c *Console) still(t *ticket, now time.Time) *refusal {
	s := c.settings.Load()
	switch {
	case s.users[t.name] == nil:
		return refuse(Expired, "this user is not in the configuration of the router any more")
	case t.over(now, &s.cfg):
		return refuse(Expired, "the session ended by time: log in again")
	case c.gone.has(t.id):
		return refuse(LoggedOut, "this session was ended: log in again")
	}
	return nil
}

func (c *Console) setCookie(ctx *fasthttp.RequestCtx, t *ticket, s *settings) {
	c.cookie(ctx, t.seal(c.secrets()[0], s.passwordHash(t.name)), t.begun.Add(s.cfg.Session))
}

// cookie sets the cookie of sessions; an empty one is taken away.
func (c *Console) cookie(ctx *fasthttp.RequestCtx, value string, until time.Time) {
	k := fasthttp.AcquireCookie()
	defer fasthttp.ReleaseCookie(k)
	k.SetKey(c.cookieName(ctx))
	k.SetValue(value)
	k.SetPath("/")
	k.SetHTTPOnly(true)
	k.SetSameSite(fasthttp.CookieSameSiteStrictMode)
	k.SetSecure(c.secure(ctx))
	if k.SetExpire(until); value == "" {
		k.SetExpire(fasthttp.CookieExpireDelete)
	}
	ctx.Response.Header.SetCookie(k)
}

// unforged says whether a request that may change something comes from a page of this
// origin. t is nil for log-ins, which have no token yet.
func unforged(ctx *fasthttp.RequestCtx, t *ticket) *refusal {
	h := &ctx.Request.Header
	if site := string(h.Peek("Sec-Fetch-Site")); site != "" && site != "same-origin" {
		return refuse(Forged, "not from a page of another site")
	}
	if origin := string(h.Peek("Origin")); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, string(ctx.Host())) {
			return refuse(Forged, "not from a page of another origin; a proxy before the router must pass the Host field on")
		}
	}
	if t != nil && !t.sameCSRF(string(h.Peek("X-CSRF-Token"))) {
		return refuse(Forged, "send X-CSRF-Token with what GET /api/session gives as csrf")
	}
	return nil
}
