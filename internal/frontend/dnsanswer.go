package frontend

import (
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"millrace/internal/address"
	"millrace/internal/geo"
	"millrace/internal/sched"
)

// responder turns messages into replies. It has the memory that this takes, so each
// goroutine has its own.
type responder struct {
	// Fixed at construction.
	d     *DNS
	count *dnsCounters

	// Owned by the goroutine; good during one call of respond.
	q      query
	w      reply
	ask    sched.Query
	answer sched.Answer
	cookie [serverCookieLen]byte
}

// peer is who sent a message.
type peer struct {
	addr netip.Addr // not mapped, without a zone
	tcp  bool
}

// respond returns the reply to msg, in buf or longer memory of its own, or nil if msg
// gets none. It keeps nothing.
func (r *responder) respond(now time.Time, from peer, msg, buf []byte) []byte {
	r.count.messages.Add(1)
	rcode, answerable := r.q.parse(msg)
	if !answerable {
		r.count.drop(dropNoQuery)
		return nil
	}
	q, s := &r.q, r.d.settings.Load()
	if q.question > 0 && q.opcode() == dns.OpcodeQuery {
		r.count.types[indexOfType(q.qtype)].Add(1)
	}
	var server []byte
	proof := cookieNone
	if q.cookie != nil {
		proof, server = r.d.cookieSecrets(s).check(now, q.cookie, from.addr, r.cookie[:0])
	}
	r.count.cookies[proof].Add(1)

	var o *owner
	var in *zone
	if rcode == dns.RcodeSuccess && q.question > 0 {
		o, in, rcode = r.find()
	}
	limit := maxTCP
	if !from.tcp {
		limit = q.limit(s.MaxUDPSize)
	}
	r.w.begin(buf, msg, q, limit)
	if !from.tcp && proof != cookieValid {
		class, limit := classError, s.errs
		if o != nil {
			class, limit = classAnswer, s.answers
		}
		key := newRateKey(from.addr, class)
		if !r.d.rates.allow(now, key, limit) && !address.Within(s.exempt, from.addr) {
			return r.limited(s, key, server)
		}
	}
	use, scope := ecsAbsent, 0
	switch {
	case q.badECS:
		use = ecsBad
	case q.ecs.present():
		use = ecsUnused
	}
	switch {
	case rcode != dns.RcodeSuccess: // nothing to add
	case q.question == 0: // RFC 7873, 5.4
		if proof == cookieBad {
			rcode = dns.RcodeBadCookie
		}
	case o == nil:
		rcode = dns.RcodeNameError
		r.negative(in, in.negativeTTL)
	default:
		rcode, use, scope = r.records(now, from.addr, o, use)
	}
	r.count.ecs[use].Add(1)
	r.count.code(rcode)
	if r.w.cut {
		r.count.truncated.Add(1)
	}
	return r.w.finish(q, rcode, in != nil && rcode != dns.RcodeServerFailure, scope, server, s.MaxUDPSize)
}

// find looks up what is asked for. The code is other than NOERROR for what we do not
// answer at all.
func (r *responder) find() (o *owner, in *zone, rcode int) {
	q, z := &r.q, r.d.current()
	switch q.qtype {
	case dns.TypeMAILA, dns.TypeMAILB: // obsolete (RFC 1035, 3.2.3)
		return nil, nil, dns.RcodeNotImplemented
	case dns.TypeOPT, dns.TypeTSIG, dns.TypeTKEY, dns.TypeNone: // no types of data (RFC 6895, 3.1)
		return nil, nil, dns.RcodeFormatError
	case dns.TypeAXFR, dns.TypeIXFR:
		return nil, nil, dns.RcodeRefused
	}
	if q.qclass != dns.ClassINET {
		return nil, nil, dns.RcodeRefused
	}
	if len(z.names) == 0 { // no plan yet: another server may have one
		return nil, nil, dns.RcodeServerFailure
	}
	if o, in = z.lookup(q); in == nil {
		return nil, nil, dns.RcodeRefused
	}
	return o, in, dns.RcodeSuccess
}

// limited is the reply to a client over its rate: mostly none, sometimes a hint that
// is no longer than the question. A client that knows cookies is told to use them, all
// others to come over TCP.
func (r *responder) limited(s *dnsSettings, key rateKey, server []byte) []byte {
	if hint := r.d.rates.hint(key, s.RateSlip); !hint || r.q.question == 0 {
		r.count.drop(dropRate)
		return nil
	}
	r.count.slipped.Add(1)
	rcode := dns.RcodeSuccess
	if r.w.cut = server == nil; server != nil {
		rcode = dns.RcodeBadCookie
	}
	return r.w.finish(&r.q, rcode, false, 0, server, s.MaxUDPSize)
}

// records writes what o has of the type asked for. It returns the code, and what
// became of the client subnet.
func (r *responder) records(now time.Time, client netip.Addr, o *owner, use ecsUse) (rcode int, _ ecsUse, scope int) {
	z, before := o.zone, len(r.w.b)
	negativeTTL := z.negativeTTL
	switch q := &r.q; {
	case q.qtype == dns.TypeA || q.qtype == dns.TypeAAAA:
		if o.domain == nil {
			r.addresses(o.addrs, q.qtype, z.ttl)
			break
		}
		use, scope = r.place(now, client, o, use)
		if r.answer.Reason == sched.UnknownDomain { // the plan has changed since the look-up
			return dns.RcodeServerFailure, use, 0
		}
		ttl := uint32(max(r.answer.TTL/time.Second, 1))
		for i := range r.answer.Near { // resolvers turn the order round, and players take any
			c := &r.answer.Candidates[i]
			r.address(c.Addr4, q.qtype, ttl)
			r.address(c.Addr6, q.qtype, ttl)
		}
		negativeTTL = min(negativeTTL, ttl) // which edges there are may change soon
	case q.qtype == dns.TypeDS && o.apex && z.parent != nil: // of the upper side (RFC 4035, 3.1.4.1)
		z = z.parent
		negativeTTL = z.negativeTTL
	case o.empty():
	case q.qtype == dns.TypeANY: // RFC 8482, 4.2
		r.w.must(answerSection, questionName, dns.TypeHINFO, z.ttl, anyData)
	case q.qtype == dns.TypeSOA && o.apex:
		r.w.must(answerSection, questionName, dns.TypeSOA, z.ttl, z.soa)
	case q.qtype == dns.TypeNS && o.apex:
		for _, ns := range z.ns {
			r.w.must(answerSection, questionName, dns.TypeNS, z.ttl, ns)
		}
		for _, g := range z.glue {
			if r.w.cut || !r.w.addNamed(additionalSection, g.host, g.kind, z.ttl, g.addr) {
				break // RFC 2181, 9: extra records are left out without a hint
			}
		}
	case q.qtype == dns.TypeCAA:
		for _, caa := range z.caa {
			r.w.must(answerSection, questionName, dns.TypeCAA, z.ttl, caa)
		}
	}
	if len(r.w.b) == before && !r.w.cut {
		r.negative(z, negativeTTL)
		scope = 0 // RFC 7871, 7.4
	}
	return dns.RcodeSuccess, use, scope
}

// anyData is "RFC8482" and an empty text, as HINFO.
var anyData = append([]byte("\x07RFC8482"), 0)

// negative says that there is no such thing (RFC 2308, 3).
func (r *responder) negative(z *zone, ttl uint32) {
	r.w.must(authoritySection, questionName+len(r.q.name)-len(z.name), dns.TypeSOA, ttl, z.soa)
}

// place has the Decider choose edges for the client: for its network if the query
// tells it, the domain wants to know and it is one of the Internet; else for the
// address that the query comes from. It returns what became of the client subnet.
func (r *responder) place(now time.Time, client netip.Addr, o *owner, use ecsUse) (_ ecsUse, scope int) {
	r.ask = sched.Query{Domain: o.domain.Name, Families: sched.V4}
	if r.q.qtype == dns.TypeAAAA {
		r.ask.Families = sched.V6
	}
	if e := &r.q.ecs; o.domain.ECS && e.names() {
		r.ask.Client = e.prefix
		r.d.decider.Decide(now, &r.ask, &r.answer)
		if r.answer.Place.Source != geo.SourcePrivate {
			r.count.decided(&r.answer)
			return ecsUsed, min(r.answer.Bits, e.prefix.Bits())
		}
		// RFC 7871, 10: the answer is made for the resolver, and must not be given to
		// clients outside of that network.
		use, scope = ecsPrivate, min(r.answer.Place.Bits, e.prefix.Bits())
	}
	r.ask.Client = netip.PrefixFrom(client, client.BitLen())
	r.d.decider.Decide(now, &r.ask, &r.answer)
	r.count.decided(&r.answer)
	return use, scope
}

// addresses writes those of list that are of the type.
func (r *responder) addresses(list []netip.Addr, kind uint16, ttl uint32) {
	for _, a := range list {
		r.address(a, kind, ttl)
	}
}

// address writes a if it is of the type.
func (r *responder) address(a netip.Addr, kind uint16, ttl uint32) {
	switch {
	case kind == dns.TypeA && a.Is4():
		b := a.As4()
		r.w.must(answerSection, questionName, kind, ttl, b[:])
	case kind == dns.TypeAAAA && a.Is6():
		b := a.As16()
		r.w.must(answerSection, questionName, kind, ttl, b[:])
	}
}
