package admin

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"millrace/internal/session"
)

// Bounds of a list.
const defaultLimit, maxLimit = 100, 1000

// Session is one open connection in the API.
type Session struct {
	ID          uint64    `json:"id"`
	Protocol    string    `json:"protocol"`
	Action      string    `json:"action"`
	Stream      string    `json:"stream"`
	Peer        string    `json:"peer"`
	TLS         bool      `json:"tls"`
	Agent       string    `json:"agent,omitempty"`
	Node        string    `json:"node,omitempty"` // id of the node that this is
	Started     time.Time `json:"started"`
	AgeMS       int64     `json:"age_ms"`
	Bytes       uint64    `json:"bytes"`
	Tags        uint64    `json:"tags"`
	SkippedTags uint64    `json:"skipped_tags"`
}

func sessionOf(s session.Snapshot, now time.Time) Session {
	return Session{
		ID: s.ID, Protocol: s.Info.Protocol.String(), Action: s.Info.Action.String(), Stream: s.Info.Stream,
		Peer: s.Info.Peer.String(), TLS: s.Info.TLS, Agent: s.Info.Agent, Node: s.Info.Node,
		Started: s.Info.Started.UTC(), AgeMS: now.Sub(s.Info.Started).Milliseconds(),
		Bytes: s.Bytes, Tags: s.Tags, SkippedTags: s.Skipped,
	}
}

// Sessions is the answer of /v1/sessions, oldest first.
type Sessions struct {
	Sessions []Session `json:"sessions"`
	Matching int       `json:"matching"`       // how many pass the filters, also those not shown
	Next     uint64    `json:"next,omitempty"` // pass it as after for more
}

// filter is what a session must have to be shown; empty fields match all.
type filter struct {
	stream, protocol, action string
	peer                     netip.Prefix
}

func (f filter) match(i session.Info) bool {
	return (f.stream == "" || f.stream == i.Stream) &&
		(f.protocol == "" || f.protocol == i.Protocol.String()) &&
		(f.action == "" || f.action == i.Action.String()) &&
		(!f.peer.IsValid() || f.peer.Contains(i.Peer.Addr().Unmap()))
}

// readFilter takes the filters from a query. Its error is for the client.
func readFilter(q *fasthttp.Args) (filter, string) {
	f := filter{
		stream: strings.Trim(string(q.Peek("stream")), "/"), protocol: string(q.Peek("protocol")), action: string(q.Peek("action")),
	}
	switch f.protocol {
	case "", session.RTMP.String(), session.HTTPFLV.String(), session.WSFLV.String():
	default:
		return f, "protocol must be rtmp, http-flv or ws-flv"
	}
	switch f.action {
	case "", session.Publish.String(), session.Play.String():
	default:
		return f, "action must be publish or play"
	}
	if peer := string(q.Peek("peer")); peer != "" {
		if addr, err := netip.ParseAddr(peer); err == nil {
			f.peer = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen())
		} else if f.peer, err = netip.ParsePrefix(peer); err != nil {
			return f, "peer must be an address or a CIDR prefix"
		}
	}
	return f, ""
}

// readLimit takes the limit from a query. Its error is for the client.
func readLimit(q *fasthttp.Args) (int, string) {
	text := string(q.Peek("limit"))
	if text == "" {
		return defaultLimit, ""
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, "limit must be 1 to 1000"
	}
	return n, ""
}

func (n *Node) listSessions(ctx *fasthttp.RequestCtx) {
	q := ctx.QueryArgs()
	f, wrong := readFilter(q)
	limit, wrongLimit := readLimit(q)
	var after uint64
	if text := string(q.Peek("after")); text != "" {
		var err error
		if after, err = strconv.ParseUint(text, 10, 64); err != nil {
			wrong = "after must be the id of a session"
		}
	}
	if wrong += wrongLimit; wrong != "" {
		fail(ctx, fasthttp.StatusBadRequest, "bad_request", wrong)
		return
	}
	out, now := Sessions{Sessions: []Session{}}, time.Now()
	for _, snap := range n.table.List() {
		if !f.match(snap.Info) {
			continue
		}
		out.Matching++
		switch {
		case snap.ID <= after:
		case len(out.Sessions) < limit:
			out.Sessions = append(out.Sessions, sessionOf(snap, now))
		default:
			out.Next = out.Sessions[limit-1].ID
		}
	}
	answer(ctx, out)
}

func (n *Node) oneSession(ctx *fasthttp.RequestCtx, text string) {
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		fail(ctx, fasthttp.StatusBadRequest, "bad_request", "a session has a number")
		return
	}
	switch {
	case ctx.IsGet(), ctx.IsHead():
		snap, ok := n.table.Get(id)
		if !ok {
			fail(ctx, fasthttp.StatusNotFound, "not_found", "no open session has this number")
			return
		}
		answer(ctx, sessionOf(snap, time.Now()))
	case ctx.IsDelete():
		if !n.table.Kick(id, session.Kicked) {
			fail(ctx, fasthttp.StatusNotFound, "not_found", "no open session has this number")
			return
		}
		n.log.Info("session kicked", "session", id, "by", ctx.RemoteAddr().String(), "reason", session.Kicked.String())
		answer(ctx, Kicked{1})
	default:
		wrongMethod(ctx, "GET, DELETE")
	}
}

// Kicked is the answer to a kick: how many sessions were asked to end.
type Kicked struct {
	Kicked int `json:"kicked"`
}
