package httpflv

import (
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/auth"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// Placer knows which edge suits a player. It is asked before anything is started
// for the player, from any goroutine, and answers from memory.
type Placer interface {
	// Elsewhere returns where a player is better served than here: an absolute URL
	// with a ticket. ok is false for one that is served here. client is the player
	// itself, not a trusted proxy, host what it asked for, and uri the path and the
	// query, which holds no ticket.
	Elsewhere(now time.Time, client netip.Addr, host string, https bool, name stream.Name, uri string) (location string, ok bool)
	// CheckTicket reports whether ticket was given lately to a player of name that
	// was sent here. One that was is not sent on: that is what makes a player follow
	// one redirect at most. A ticket that is forged or over is as good as none.
	CheckTicket(now time.Time, name stream.Name, ticket string) bool
}

// elsewhere sends a player to the edge that suits it better, if there is one. Nodes
// know where they want to go, and no browser follows a redirect of a WebSocket.
func (s *Server) elsewhere(ctx *fasthttp.RequestCtx, p *play, now time.Time) *refusal {
	if p.node != nil || p.framing == webSocket {
		return nil
	}
	st := s.settings.Load()
	if s.ticketed(p, now) {
		p.cors = st.corsBehind(string(ctx.Request.Header.Peek("Origin")), p.cors)
		return nil
	}
	if s.self.Placer == nil {
		return nil
	}
	location, ok := s.self.Placer.Elsewhere(now, p.info.Peer.Addr(), string(ctx.Host()), st.secure(ctx), p.name, p.uri())
	if !ok {
		return nil
	}
	return &refusal{
		status: fasthttp.StatusFound, reason: session.Elsewhere, header: "Location: " + location + crlf,
		text: "another edge serves this player better: follow Location",
	}
}

// ticketed reports whether a redirect led p here, by an edge or by a scheduler.
func (s *Server) ticketed(p *play, now time.Time) bool {
	switch {
	case p.ticket == "":
		return false
	case s.self.Placer != nil:
		return s.self.Placer.CheckTicket(now, p.name, p.ticket)
	}
	return s.self.Cluster.Enabled() && s.self.Cluster.CheckTicket(now, p.name, p.ticket) == nil
}

// uri returns the path and the query of p in a form that can stand in a header line.
func (p *play) uri() string {
	path := url.URL{Path: "/" + string(p.name) + suffix}
	if p.query == "" {
		return path.EscapedPath()
	}
	return path.EscapedPath() + "?" + escaped(p.query)
}

// escaped escapes what must not stand in a URL as it is (RFC 3986, 2): a player
// may send nearly every byte in a query.
func escaped(query string) string {
	const hex = "0123456789ABCDEF"
	var out []byte
	for i := range len(query) {
		c := query[i]
		switch odd := c <= ' ' || c >= 0x7f; {
		case odd:
			if out == nil {
				out = append(make([]byte, 0, len(query)+16), query[:i]...)
			}
			out = append(out, '%', hex[c>>4], hex[c&0xf])
		case out != nil:
			out = append(out, c)
		}
	}
	if out == nil {
		return query
	}
	return string(out)
}

// cutTicket takes the ticket out of a raw query: neither who signed the URL nor an
// upstream knows of it. Of several the first counts, and all are taken out.
func cutTicket(query string) (rest, ticket string) {
	if !strings.Contains(query, auth.TicketParam) {
		return query, ""
	}
	kept := make([]string, 0, strings.Count(query, "&")+1)
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name != auth.TicketParam {
			kept = append(kept, pair)
			continue
		}
		if ticket == "" {
			ticket = value
		}
	}
	return strings.Join(kept, "&"), ticket
}
