package frontend

import (
	"sync/atomic"

	"github.com/miekg/dns"

	"millrace/internal/geo"
	"millrace/internal/sched"
)

// DNSStats are the figures of a DNS. What is counted by a word lists only words that
// have been counted.
type DNSStats struct {
	UDP, TCP    uint64            // messages that came in
	Types       map[string]uint64 // by type asked for: A, AAAA, …, OTHER
	Codes       map[string]uint64 // replies, by code: NOERROR, NXDOMAIN, …; slipped ones left out
	ECS         map[string]uint64 // by what became of the client subnet
	Cookies     map[string]uint64 // by what the cookie was worth
	Reasons     map[string]uint64 // by the reason of the decision
	Sources     map[string]uint64 // by who knew the client's place
	Dropped     map[string]uint64 // messages without a reply
	Slipped     uint64            // replies over the rate that were hints to come back
	Truncated   uint64            // replies that did not fit, slipped ones left out
	Connections int               // over TCP, open now
	Ended       map[string]uint64 // connections over TCP, by why they ended or were refused
	Zones       int               // that are served
	Names       int               // in these zones
}

// typeIndex is how types of questions are counted.
type typeIndex uint8

const (
	typeOther typeIndex = iota
	typeA
	typeAAAA
	typeSOA
	typeNS
	typeCAA
	typeANY
	typeHTTPS
	typeTXT
	typeTransfer
	types
)

var typeWords = [types]string{"OTHER", "A", "AAAA", "SOA", "NS", "CAA", "ANY", "HTTPS", "TXT", "XFR"}

func indexOfType(t uint16) typeIndex {
	switch t {
	case dns.TypeA:
		return typeA
	case dns.TypeAAAA:
		return typeAAAA
	case dns.TypeSOA:
		return typeSOA
	case dns.TypeNS:
		return typeNS
	case dns.TypeCAA:
		return typeCAA
	case dns.TypeANY:
		return typeANY
	case dns.TypeHTTPS:
		return typeHTTPS
	case dns.TypeTXT:
		return typeTXT
	case dns.TypeAXFR, dns.TypeIXFR:
		return typeTransfer
	}
	return typeOther
}

// ecsUse is what became of a client subnet.
type ecsUse uint8

const (
	ecsAbsent  ecsUse = iota
	ecsUsed           // it decided the answer
	ecsUnused         // the domain does not want it, or there was nothing to decide
	ecsPrivate        // it is no network of the Internet
	ecsBad            // malformed
	ecsUses
)

var ecsWords = [ecsUses]string{"absent", "used", "unused", "private", "bad"}

// dropCause is why a message got no reply.
type dropCause uint8

const (
	dropNoQuery dropCause = iota // a response, or too short for a query
	dropRate                     // over the rate of its network
	dropNoPort                   // from port 0, where nobody can listen
	dropSend                     // the socket did not take the reply
	dropTooLong                  // longer than any query is
	drops
)

var dropWords = [drops]string{"no_query", "rate_limited", "port_0", "send_failed", "too_long"}

// codes are the replies that there can be, by how they are counted.
var codes = [...]struct {
	rcode int
	word  string
}{
	{dns.RcodeSuccess, "NOERROR"},
	{dns.RcodeFormatError, "FORMERR"},
	{dns.RcodeServerFailure, "SERVFAIL"},
	{dns.RcodeNameError, "NXDOMAIN"},
	{dns.RcodeNotImplemented, "NOTIMP"},
	{dns.RcodeRefused, "REFUSED"},
	{dns.RcodeBadVers, "BADVERS"},
	{dns.RcodeBadCookie, "BADCOOKIE"},
}

// reasons and sources are how many of sched.Reason and geo.Source are counted; what
// is beyond is counted as the last.
const (
	reasons = int(sched.UnknownDomain) + 1
	sources = int(geo.SourceGiven) + 1
)

// dnsCounters are the figures of one worker, or of all connections over TCP.
type dnsCounters struct {
	messages  atomic.Uint64
	types     [types]atomic.Uint64
	codes     [len(codes)]atomic.Uint64
	ecs       [ecsUses]atomic.Uint64
	cookies   [cookieStates]atomic.Uint64
	reasons   [reasons]atomic.Uint64
	sources   [sources]atomic.Uint64
	dropped   [drops]atomic.Uint64
	slipped   atomic.Uint64
	truncated atomic.Uint64
	_         [64]byte // the next worker's are on other cache lines
}

func (c *dnsCounters) drop(why dropCause) { c.dropped[why].Add(1) }

func (c *dnsCounters) code(rcode int) {
	for i := range codes {
		if codes[i].rcode == rcode {
			c.codes[i].Add(1)
			return
		}
	}
}

func (c *dnsCounters) decided(a *sched.Answer) {
	c.reasons[min(int(a.Reason), reasons-1)].Add(1)
	c.sources[min(int(a.Place.Source), sources-1)].Add(1)
}

// addTo adds the figures of c to s.
func (c *dnsCounters) addTo(s *DNSStats) {
	add := func(to map[string]uint64, word string, n *atomic.Uint64) {
		if n := n.Load(); n > 0 {
			to[word] += n
		}
	}
	for i := range c.types {
		add(s.Types, typeWords[i], &c.types[i])
	}
	for i := range c.codes {
		add(s.Codes, codes[i].word, &c.codes[i])
	}
	for i := range c.ecs {
		add(s.ECS, ecsWords[i], &c.ecs[i])
	}
	for i := range c.cookies {
		add(s.Cookies, cookieState(i).String(), &c.cookies[i])
	}
	for i := range c.reasons {
		add(s.Reasons, sched.Reason(i).String(), &c.reasons[i])
	}
	for i := range c.sources {
		add(s.Sources, geo.Source(i).String(), &c.sources[i])
	}
	for i := range c.dropped {
		add(s.Dropped, dropWords[i], &c.dropped[i])
	}
	s.Slipped += c.slipped.Load()
	s.Truncated += c.truncated.Load()
}
