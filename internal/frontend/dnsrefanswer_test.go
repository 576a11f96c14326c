package frontend

import (
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"millrace/internal/geo"
	"millrace/internal/sched"
)

func (f *reference) zone(name string) (best *sched.Zone) {
	for i, z := range f.plan.Zones {
		if dns.IsSubDomain(dns.Fqdn(z.Name), dns.Fqdn(name)) && (best == nil || len(z.Name) > len(best.Name)) {
			best = &f.plan.Zones[i]
		}
	}
	return best
}

// names are all that have records, with the domain where players ask for it.
func (f *reference) names() map[string]*sched.Domain {
	out := map[string]*sched.Domain{}
	for _, z := range f.plan.Zones {
		out[dns.CanonicalName(z.Name)] = nil
		for _, ns := range z.NS {
			if f.zone(ns.Host) != nil {
				out[dns.CanonicalName(ns.Host)] = nil
			}
		}
	}
	for i, d := range f.plan.Domains {
		if f.zone(d.Name) != nil {
			out[dns.CanonicalName(d.Name)] = &f.plan.Domains[i]
		}
	}
	return out
}

// exists reports whether there is a name, if only because of one below it, in its zone.
func (f *reference) exists(name string) bool {
	for n := range f.names() {
		if dns.IsSubDomain(name, n) && f.zone(n) == f.zone(name) {
			return true
		}
	}
	return false
}

// answer fills in code and records, and returns the scope.
func (f *reference) answer(client netip.Addr, opt *dns.OPT, q dns.Question, r *dns.Msg) (scope int) {
	switch {
	case q.Qtype == dns.TypeMAILA, q.Qtype == dns.TypeMAILB:
		r.Rcode = dns.RcodeNotImplemented
		return 0
	case q.Qtype == dns.TypeOPT, q.Qtype == dns.TypeTSIG, q.Qtype == dns.TypeTKEY, q.Qtype == 0:
		r.Rcode = dns.RcodeFormatError
		return 0
	}
	name := dns.CanonicalName(q.Name)
	z := f.zone(name)
	if z == nil || q.Qclass != dns.ClassINET || q.Qtype == dns.TypeAXFR || q.Qtype == dns.TypeIXFR {
		r.Rcode = dns.RcodeRefused
		return 0
	}
	r.Authoritative = true
	hdr := func(kind uint16, ttl uint32) dns.RR_Header {
		return dns.RR_Header{Name: q.Name, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
	}
	in := func(d sched.Duration) uint32 { return uint32(time.Duration(d).Seconds()) }
	soa := func(z *sched.Zone, name string, least uint32) *dns.SOA {
		return &dns.SOA{
			Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: min(in(z.TTL), least)},
			Ns:  dns.Fqdn(z.NS[0].Host), Mbox: dns.Fqdn(z.Mbox), Serial: z.Serial,
			Refresh: in(z.Refresh), Retry: in(z.Retry), Expire: in(z.Expire), Minttl: in(z.Minimum),
		}
	}
	zoneTTL, minimum := in(z.TTL), in(z.Minimum)

	names := f.names()
	owner := name
	if !f.exists(name) {
		up := name
		for !f.exists(up) { // ends at the zone
			i, _ := dns.NextLabel(up, 0)
			up = up[i:]
		}
		owner = "*." + up
		if d, ok := names[owner]; !ok || d == nil {
			r.Rcode = dns.RcodeNameError
			r.Ns = []dns.RR{soa(z, dns.Fqdn(z.Name), minimum)}
			return 0
		}
	}
	d, hasRecords := names[owner]
	apex := owner == dns.CanonicalName(z.Name)
	switch {
	case q.Qtype == dns.TypeA || q.Qtype == dns.TypeAAAA:
		var list []netip.Addr
		each := zoneTTL
		if d == nil {
			for _, other := range f.plan.Zones {
				for _, ns := range other.NS {
					if dns.CanonicalName(ns.Host) == owner {
						list = append(list, ns.Addresses...)
					}
				}
			}
		} else {
			var a sched.Answer
			if a, scope = f.decide(client, opt, d, q.Qtype); a.Reason == sched.UnknownDomain {
				r.Rcode, r.Authoritative = dns.RcodeServerFailure, false
				return 0
			}
			each = uint32(a.TTL.Seconds())
			minimum = min(minimum, each)
			for _, c := range a.Candidates[:a.Near] {
				list = append(list, c.Addr4, c.Addr6)
			}
		}
		seen := map[netip.Addr]bool{}
		for _, a := range list {
			switch {
			case seen[a]:
			case a.Is4() && q.Qtype == dns.TypeA:
				r.Answer = append(r.Answer, &dns.A{Hdr: hdr(dns.TypeA, each), A: a.AsSlice()})
			case a.Is6() && q.Qtype == dns.TypeAAAA:
				r.Answer = append(r.Answer, &dns.AAAA{Hdr: hdr(dns.TypeAAAA, each), AAAA: a.AsSlice()})
			}
			seen[a] = true
		}
	case q.Qtype == dns.TypeDS && apex && f.above(z) != nil:
		z = f.above(z)
		minimum = in(z.Minimum)
	case !hasRecords:
	case q.Qtype == dns.TypeANY:
		r.Answer = []dns.RR{&dns.HINFO{Hdr: hdr(dns.TypeHINFO, zoneTTL), Cpu: "RFC8482"}}
	case q.Qtype == dns.TypeSOA && apex:
		r.Answer = []dns.RR{soa(z, q.Name, 1<<31)}
	case q.Qtype == dns.TypeNS && apex:
		for _, ns := range z.NS {
			r.Answer = append(r.Answer, &dns.NS{Hdr: hdr(dns.TypeNS, zoneTTL), Ns: dns.Fqdn(ns.Host)})
		}
		for _, ns := range z.NS {
			for _, a := range ns.Addresses {
				h := dns.RR_Header{Name: dns.CanonicalName(ns.Host), Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: zoneTTL}
				switch {
				case f.zone(ns.Host) == nil:
				case a.Is4():
					r.Extra = append(r.Extra, &dns.A{Hdr: h, A: a.AsSlice()})
				default:
					h.Rrtype = dns.TypeAAAA
					r.Extra = append(r.Extra, &dns.AAAA{Hdr: h, AAAA: a.AsSlice()})
				}
			}
		}
	case q.Qtype == dns.TypeCAA && z.Name == "example.com":
		r.Answer = []dns.RR{
			&dns.CAA{Hdr: hdr(dns.TypeCAA, zoneTTL), Tag: "issue", Value: "letsencrypt.org"},
			&dns.CAA{Hdr: hdr(dns.TypeCAA, zoneTTL), Flag: 128, Tag: "iodef", Value: "mailto:a b@example.com"},
		}
	}
	if len(r.Answer) == 0 {
		r.Ns = []dns.RR{soa(z, dns.Fqdn(z.Name), minimum)}
		return 0
	}
	return scope
}

// above is the zone that z is delegated from.
func (f *reference) above(z *sched.Zone) *sched.Zone {
	i, end := dns.NextLabel(dns.Fqdn(z.Name), 0)
	if end {
		return nil
	}
	return f.zone(dns.Fqdn(z.Name)[i:])
}

func (f *reference) decide(client netip.Addr, opt *dns.OPT, d *sched.Domain, kind uint16) (a sched.Answer, scope int) {
	q := sched.Query{Domain: d.Name, Families: sched.V4, Client: netip.PrefixFrom(client, client.BitLen())}
	if kind == dns.TypeAAAA {
		q.Families = sched.V6
	}
	if s := subnetOption(opt); s != nil && d.ECS && s.SourceNetmask > 0 {
		addr, _ := netip.AddrFromSlice(s.Address)
		if s.Family == familyIPv4 {
			addr = addr.Unmap()
		}
		if p := netip.PrefixFrom(addr, int(s.SourceNetmask)); !(addr.Is4In6() && p.Bits() >= 96) {
			own := q
			own.Client = p
			a = sched.Answer{Reason: sched.UnknownDomain}
			edgesFor(&own, &a)
			if a.Place.Source != geo.SourcePrivate {
				return a, a.Bits
			}
			scope = a.Place.Bits
		}
	}
	a = sched.Answer{Reason: sched.UnknownDomain}
	edgesFor(&q, &a)
	return a, scope
}
