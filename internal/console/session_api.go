package console

import "time"

// identity is who is logged in.
type identity struct {
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	CSRF    string    `json:"csrf"`           // to be sent as X-CSRF-Token; empty for a token
	Until   time.Time `json:"until,omitzero"` // when the session ends at the latest; none for a token
	Router  string    `json:"router"`
	Version string    `json:"version"` // of the program
}

func (c *Console) identity(who *caller) identity {
	id := identity{Name: who.name, Role: who.role, Router: c.program.Router, Version: c.program.Version}
	if who.ticket != nil {
		id.CSRF, id.Until = who.ticket.csrf(), who.ticket.begun.Add(c.settings.Load().cfg.Session)
	}
	return id
}

func (c *Console) postLogin(a *call) (any, error) {
	var body struct {
		Name     string `json:"name"`
		Password string `json:"password"`
	}
	if err := a.read(&body, maxSmall); err != nil {
		return nil, err
	}
	s := c.settings.Load()
	if r := c.logins.login(s, a.now, a.peer(), body.Name, body.Password); r != nil {
		return nil, r
	}
	t := newTicket(a.now, body.Name)
	c.setCookie(a.RequestCtx, &t, s)
	c.counts.logins.Add(1)
	c.log.Info("console log-in", "peer", a.RemoteAddr(), "user", body.Name)
	return c.identity(&caller{body.Name, s.users[body.Name].Role, &t, s}), nil
}

// postLogout ends the session. It is open, so that an old cookie is taken away too.
func (c *Console) postLogout(a *call) (any, error) {
	out := struct {
		Everywhere bool `json:"everywhere"` // the other routers can know
	}{true}
	who, r := c.who(a.RequestCtx, a.now)
	if r == nil && who.ticket != nil {
		if r := unforged(a.RequestCtx, who.ticket); r != nil {
			return nil, r
		}
		ctx, cancel := timeout()
		defer cancel()
		until := who.ticket.begun.Add(c.settings.Load().cfg.Session)
		out.Everywhere = c.gone.end(ctx, c.program.Logouts, who.ticket, until, a.now) == nil // else it is told later
		c.log.Info("console log-out", "peer", a.RemoteAddr(), "user", who.name)
	}
	c.cookie(a.RequestCtx, "", time.Time{})
	return out, nil
}

// nobody says why nobody is logged in.
type nobody struct {
	Name   string `json:"name"` // empty
	Reason Reason `json:"reason"`
}

// getSession answers who asks. That nobody is logged in is an answer too: each visit of
// the page begins with this question, and a browser shows a refusal as an error.
func (c *Console) getSession(a *call) (any, error) {
	who, r := c.who(a.RequestCtx, a.now)
	switch {
	case r == nil:
		return c.identity(who), nil
	case r.reason == WrongToken:
		return nil, r
	}
	return nobody{Reason: r.reason}, nil
}
