// Package frontend has the faces of the scheduler, by which players and their
// resolvers ask for an edge.
//
//	resolver ──DNS────────▶ DNS ──┐
//	player ────302────────▶ HTTP ─┼─▶ Decider ─▶ the plan, the places, the load of edges
//	app ───────HTTP-DNS───▶ HTTP ─┤
//	player at an edge ───▶ Recheck┘
//
// A face speaks its protocol and nothing else: which edge a client gets is for the
// Decider alone, so all faces give the same answer to the same question. The domains
// and zones that they answer for are those of the Decider's plan.
//
// # DNS
//
// A [DNS] is authoritative for the zones of the plan and for nothing else. One
// goroutine per core owns a UDP socket, its buffers and its counters; a query costs
// no lock and no memory.
//
//	asked for                               the reply
//	A, AAAA of a domain                     its edges of that family, the best first
//	A, AAAA of a name server in a zone      the addresses that the plan gives it
//	SOA, NS of a zone; CAA of any name      what the plan says; NS with addresses
//	ANY of any of these                     HINFO "RFC8482"
//	all else of a name that exists          empty, with the zone's SOA
//	a name in a zone that does not exist    NXDOMAIN, with the zone's SOA
//	another's name; transfers; class CH     REFUSED
//	updates, notes of change, other opcodes NOTIMP
//	what is malformed                       FORMERR
//	a response; less than a header          none
//
// The client subnet of a query (RFC 7871) decides if the domain wants that and the
// network is one of the Internet, and comes back with the number of bits that the
// decision used. That of a private network comes back with the bits that tell so, and
// the answer is for the resolver, as without one. Unused ones come back with 0.
//
// What goes out over UDP is at most a little larger than what came in, but for answers,
// and over the rate that a network may have it is nothing, or a hint to come
// back over TCP or with a cookie (RFC 7873), for which there is no rate.
//
// # HTTP
//
// An [HTTP] answers on one listener, with or without TLS:
//
//	GET /APP/NAME.flv   302 to the player's edge; Host names the domain
//	GET /v1/resolve     ?domain= &stream= &ip= &region= &isp= &net= &family= &scheme= &n=
//	POST /v1/resolve    {"queries":[{"domain":"…","stream":"…","ip":"…"}]}, up to 64
//	GET /d              ?dn= &ip= &ttl=1 &type=a|aaaa|addrs &query=1 &clientip=1
//	GET /v1/explain     as /v1/resolve, and &self= &format=text; for operators
//
// A redirect keeps the scheme, path and query of the request and adds a ticket: the
// edge that finds it never sends the player on. /v1/resolve gives ranked edges, for a
// client to try or to race, and the same ticket to add to the URL as mr=. Its answer:
//
//	{"domain":"play.example.com","stream":"live/room","reason":"placed","ttl":60,
//	 "client":{"ip":"1.2.3.4","bits":24,"source":"coverage","region":"north","isp":"telecom"},
//	 "ticket":"…","edges":[{"node":"north-1","v4":"192.0.2.11","v6":"2001:db8:1::11",
//	 "host":"north-1.example.com","http_port":8080,"https_port":8443,"weight":100,"reason":"placed"}]}
//
// Several domain= parameters, or a POST, give {"results":[…]} with one such object, or
// one with error and reason, for each. /d is as other HTTP-DNS services have it. A
// refusal says what to do in one sentence, and why in one word: in the body of
// /v1/resolve, and in the header field Millrace-Reason everywhere.
//
// # A second look
//
// DNS sees resolvers, not players. So an edge has a [Recheck]: the same policy, on its
// own copy of the same view, for each player that comes without a ticket. A player that
// another edge serves better by more than the domain's threshold is sent there, once.
// What comes of it, by region, ISP and way, tells how good the answers by DNS are.
package frontend

import (
	"time"

	"millrace/internal/sched"
)

// Decider chooses edges. It is safe from any goroutine, and never blocks. A
// *sched.Scheduler is one.
type Decider interface {
	// Decide answers q into a. It does not allocate.
	Decide(now time.Time, q *sched.Query, a *sched.Answer)
	// Explain tells how q is answered, rule by rule.
	Explain(now time.Time, q *sched.Query) sched.Explanation
	// View is what the answers come from at the moment. It is never nil.
	View() *sched.View
}
