package frontend

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"millrace/internal/sched"
)

// zones are the names that a plan makes us authoritative for, ready to be looked up by
// their wire form in lower case. It is immutable.
type zones struct {
	plan  *sched.Plan
	names map[string]*owner // all names that exist, empty non-terminals too
	depth int               // labels of the longest of them
}

// zone is one zone, its records packed.
type zone struct {
	name        []byte // wire form, lower case
	parent      *zone  // the zone of ours above it, nil for none
	soa         []byte
	ns, caa     [][]byte
	glue        []glue
	ttl         uint32 // of SOA, NS and CAA
	negativeTTL uint32 // of "there is no such thing" (RFC 2308, 5)
}

// glue is an address of a name server of a zone.
type glue struct {
	host []byte
	kind uint16
	addr []byte
}

// owner is a name that exists. One with none of apex, domain and addrs is an empty
// non-terminal: it exists because of a name below it.
type owner struct {
	zone     *zone
	apex     bool
	domain   *sched.Domain // nil unless players ask for it
	host     bool          // a name server in the zone; addrs are its addresses
	addrs    []netip.Addr
	wildcard *owner // "*." below this name; nil for none
}

// empty reports whether the name has no records at all.
func (o *owner) empty() bool { return !o.apex && !o.host && o.domain == nil }

// lookup finds what q asks for. If its name exists, or a wildcard stands for it, o is
// the owner of its records. If not, o is nil, and z is the zone that lacks the name;
// it is nil for a name that is not in our zones.
func (z *zones) lookup(q *query) (o *owner, in *zone) {
	// No name longer than the longest exists, which bounds the work.
	for i := max(0, q.depth-z.depth); i <= q.depth; i++ {
		suffix := q.name[len(q.name)-1:] // the root
		if i < q.depth {
			suffix = q.name[q.labels[i]:]
		}
		found := z.names[string(suffix)]
		switch {
		case found == nil:
		case i == 0:
			return found, found.zone
		case found.wildcard != nil: // RFC 4592, 3.3.1: found is the closest encloser
			return found.wildcard, found.zone
		default:
			return nil, found.zone
		}
	}
	return nil, nil
}

// newZones packs the zones and domains of p, in which nothing is unset. What cannot be
// packed is left out, and told in the error; the rest is served.
func newZones(p *sched.Plan) (*zones, error) {
	z := &zones{plan: p, names: make(map[string]*owner)}
	var errs []error
	for i := range p.Zones {
		if err := z.addZone(&p.Zones[i]); err != nil {
			errs = append(errs, fmt.Errorf("zone %s: %w", p.Zones[i].Name, err))
		}
	}
	for _, o := range z.names { // only apexes so far
		if n := o.zone.name; n[0] > 0 {
			o.zone.parent = z.enclosing(n[1+n[0]:])
		}
	}
	for i := range p.Zones {
		z.addHosts(&p.Zones[i])
	}
	for i := range p.Domains {
		d := &p.Domains[i]
		name, err := wireName(d.Name)
		if err != nil {
			errs = append(errs, fmt.Errorf("domain %s: %w", d.Name, err))
		} else if o := z.at(name); o != nil {
			o.domain = d
		}
	}
	for name := range z.names {
		z.depth = max(z.depth, labels(name))
	}
	return z, errors.Join(errs...)
}

// addZone makes the apex of a zone.
func (z *zones) addZone(from *sched.Zone) error {
	name, err := wireName(from.Name)
	if err != nil {
		return err
	}
	if z.names[string(name)] != nil {
		return errors.New("is there twice: the first one is served")
	}
	ttl, minimum := seconds(from.TTL), seconds(from.Minimum)
	out := &zone{name: name, ttl: ttl, negativeTTL: min(ttl, minimum)}
	primary := from.Name
	if len(from.NS) > 0 {
		primary = from.NS[0].Host
	}
	var errs []error
	pack := func(rr dns.RR) []byte {
		b, err := packData(rr)
		if err != nil {
			errs = append(errs, err)
		}
		return b
	}
	out.soa = pack(&dns.SOA{
		Ns: dns.Fqdn(primary), Mbox: dns.Fqdn(from.Mbox), Serial: from.Serial,
		Refresh: seconds(from.Refresh), Retry: seconds(from.Retry), Expire: seconds(from.Expire), Minttl: minimum,
	})
	if out.soa == nil {
		return errors.Join(errs...)
	}
	for _, ns := range from.NS {
		if b := pack(&dns.NS{Ns: dns.Fqdn(ns.Host)}); b != nil {
			out.ns = append(out.ns, b)
		}
	}
	for _, text := range from.CAA {
		rr, err := parseCAA(text)
		if err != nil {
			errs = append(errs, err)
		} else if b := pack(rr); b != nil {
			out.caa = append(out.caa, b)
		}
	}
	z.names[string(name)] = &owner{zone: out, apex: true}
	return errors.Join(errs...)
}

// addHosts makes the names of the name servers that are in one of our zones, and the
// glue of a zone.
func (z *zones) addHosts(from *sched.Zone) {
	name, err := wireName(from.Name)
	if err != nil || z.names[string(name)] == nil {
		return // addZone has told
	}
	apex := z.names[string(name)].zone
	for _, ns := range from.NS {
		host, err := wireName(ns.Host)
		if err != nil {
			continue
		}
		o := z.at(host)
		if o == nil {
			continue // another's name: its addresses are for others to tell
		}
		o.host = true
		for _, a := range ns.Addresses {
			a = a.Unmap()
			if !slices.Contains(o.addrs, a) {
				o.addrs = append(o.addrs, a)
			}
			kind := uint16(dns.TypeAAAA)
			if a.Is4() {
				kind = dns.TypeA
			}
			apex.glue = append(apex.glue, glue{host: host, kind: kind, addr: a.AsSlice()})
		}
	}
}

// at returns the owner of a name, and makes it, and the names between it and its
// zone, if they are not there. It returns nil for a name that is in no zone.
func (z *zones) at(name []byte) *owner {
	if o := z.names[string(name)]; o != nil {
		return o
	}
	in := z.enclosing(name)
	if in == nil {
		return nil
	}
	o := &owner{zone: in}
	z.names[string(name)] = o
	above := z.at(name[1+name[0]:]) // ends at the apex at the latest
	if name[0] == 1 && name[1] == '*' {
		above.wildcard = o
	}
	return o
}

// enclosing returns the zone that name is in, nil for none.
func (z *zones) enclosing(name []byte) *zone {
	for {
		if o := z.names[string(name)]; o != nil {
			return o.zone
		}
		if name[0] == 0 {
			return nil
		}
		name = name[1+name[0]:]
	}
}

// labels is how many labels a name in wire form has, the root left out.
func labels(name string) (n int) {
	for name[0] > 0 {
		name, n = name[1+name[0]:], n+1
	}
	return n
}

// wireName is a name in wire form and lower case.
func wireName(name string) ([]byte, error) {
	name = dns.Fqdn(strings.ToLower(name))
	b := make([]byte, maxName)
	n, err := dns.PackDomainName(name, b, 0, nil, false)
	if err != nil {
		return nil, fmt.Errorf("%q is not a domain name: %w", name, err)
	}
	return b[:n], nil
}

// packData is the data of a record, without compression.
func packData(rr dns.RR) ([]byte, error) {
	rr.Header().Name, rr.Header().Class = ".", dns.ClassINET
	b := make([]byte, 1<<12)
	n, err := dns.PackRR(rr, b, 0, nil, false)
	if err != nil {
		return nil, err
	}
	return slices.Clone(b[1+rrFixed : n]), nil
}

// parseCAA reads "FLAG TAG VALUE"; the value may be in quotes.
func parseCAA(text string) (*dns.CAA, error) {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	tag, value, ok := strings.Cut(strings.TrimSpace(rest), " ")
	flag, err := strconv.ParseUint(first, 10, 8)
	if err != nil || tag == "" || !ok {
		return nil, fmt.Errorf("caa: %q must be FLAG TAG VALUE, such as 0 issue letsencrypt.org", text)
	}
	value = strings.TrimSpace(value)
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		value = value[1 : len(value)-1]
	}
	return &dns.CAA{Flag: uint8(flag), Tag: tag, Value: value}, nil
}

// seconds is d as records have it (RFC 2181, 8).
func seconds(d sched.Duration) uint32 {
	return uint32(min(max(time.Duration(d)/time.Second, 1), 1<<31-1))
}
