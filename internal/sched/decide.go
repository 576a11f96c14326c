package sched

import (
	"net/netip"
	"time"

	"millrace/internal/geo"
)

// Decide answers q into a. It does not allocate, and takes some µs at most for
// thousands of edges.
func (v *View) Decide(now time.Time, q *Query, a *Answer) {
	d := decision{v: v, q: *q, now: now}
	d.decide(a)
}

// decision is one query on its way through the rules.
type decision struct {
	v        *View
	q        Query
	now      time.Time
	client   netip.Prefix // of IPv4 if it was IPv4 in IPv6 form
	mapped   int          // bits that were taken off for that
	place    placeKey
	domain   int32
	spread   int // bits of the client that its draws come from
	families Families
	kind     int
	search   // the edges that were found
	outcome  // how
}

// outcome is which edges a decision could choose among.
type outcome struct {
	pinned  bool // those that an operator pinned
	poor    bool // those that are not eligible, because no other is left
	bans    bool // all but banned ones
	despite bool // banned ones too, because no other is left
}

// decide runs the rules in their order.
func (d *decision) decide(a *Answer) {
	a.N, a.Near, a.Domain, a.Reason, a.TTL, a.Bits, a.SelfCost, a.SelfOK = 0, 0, nil, UnknownDomain, 0, 0, 0, false
	a.Place = geo.Place{Index: -1}
	if d.domain = d.v.Plan.domain(d.q.Domain); d.domain < 0 {
		return
	}
	a.Domain = &d.v.Plan.Domains[d.domain]
	d.client = unmapped(d.q.Client)
	d.mapped = d.q.Client.Bits() - d.client.Bits()
	d.locate(a)
	d.ask(a.Domain)
	d.prepare(a.Domain)
	m, n := d.matching()
	a.Bits = max(a.Bits, n)
	if o := m.next(d.v.Plan.overrides); o != nil {
		d.overruled(o, &m)
	} else {
		d.choose(nil)
	}
	d.answer(a)
}

// locate finds the place of the client: what the caller knows, else the geo table.
func (d *decision) locate(a *Answer) {
	p, q := d.v.Plan, &d.q
	region, isp := elsewhere, unknownISP
	if d.v.Geo != nil && (q.Region == "" || q.ISP == "") {
		a.Place = d.v.Geo.Locate(d.client)
		a.Bits = a.Place.Bits
		if i := a.Place.Index; i >= 0 {
			region, isp = d.v.pairs[i][0], d.v.pairs[i][1]
		}
	}
	if q.Region != "" {
		a.Place.Region, a.Place.Source, a.Place.Index = q.Region, geo.SourceGiven, -1
		region = p.atlas.regions[q.Region]
	}
	if q.ISP != "" {
		a.Place.ISP, a.Place.Source, a.Place.Index = q.ISP, geo.SourceGiven, -1
		isp = p.atlas.isp(q.ISP)
	}
	d.place = placeKey{region, isp, q.Access}
	if q.Access >= accesses {
		d.place.access = AccessUnknown
	}
}

// ask finds out what the query and the domain's policy ask for.
func (d *decision) ask(domain *Domain) {
	if d.families = d.q.Families & bothFamilies; d.families == 0 {
		d.families = bothFamilies
	}
	https := domain.Scheme == "https" || d.q.HTTPS && domain.Scheme != "http"
	d.kind = kind(d.families, https)
	d.want = d.q.Want
	if d.want <= 0 {
		d.want = domain.Answers
	}
	d.want = min(d.want, MaxWant)
}

// prepare sets up the search: costs and order of the place, carriers of the stream,
// and what the client's draws come from.
func (d *decision) prepare(domain *Domain) {
	p, set := d.v.Plan, d.v.Plan.setOf[d.domain]
	row := p.places.of(d.place.region, d.place.isp, d.place.access)
	d.plan, d.row, d.order, d.has, d.fade = p, p.row(row), p.order(set, row), p.sets[set].has, d.v.fade
	if d.carry = d.v.carried.of(d.q.Stream); len(d.carry.list) > 0 {
		d.bonus = float32(p.Costs.Carried)
	}
	d.self = -1
	if d.q.Self != "" {
		if i, ok := p.byID[d.q.Self]; ok {
			d.self = i
		}
	}
	d.k = max(d.want, 2) // two at least, to know whether there was a choice
	d.spread = domain.Spread6
	if d.client.Addr().Is4() {
		d.spread = domain.Spread4
	}
	d.spread = max(min(d.spread, d.client.Bits()), 0)
	addr := netip.PrefixFrom(d.client.Addr(), d.spread).Masked().Addr()
	d.key, d.odd = spreadKey(addr.As16(), streamHash(d.q.Stream))
}

// matching returns the overrides that may be for the query, and how many bits of the
// client it took to find them.
func (d *decision) matching() (m matching, n int) {
	r := d.v.Plan.rules[d.domain]
	m = matching{now: d.now, place: d.place, stream: d.q.Stream, bits: d.client.Bits()}
	m.lists[0] = r.plain
	if len(r.streams) > 0 {
		m.lists[1] = r.streams[d.q.Stream]
	}
	if d.client.IsValid() {
		m.lists[2], n = r.prefixes(d.client.Addr()).find(d.client.Masked().Addr())
	}
	return m, n
}

// overruled decides under the overrides from o on.
func (d *decision) overruled(o *override, m *matching) {
	var v verdict
	for ; o != nil; o = m.next(d.v.Plan.overrides) {
		v.apply(o)
	}
	if v.pins {
		if d.choosePinned(&v.pinned); d.found > 0 {
			d.pinned = true
			return
		}
	}
	if !v.bans {
		d.choose(nil)
		return
	}
	for i := range v.banned {
		v.banned[i] = ^v.banned[i]
	}
	d.bans = true
	d.choose(&v.banned)
}

// choose searches among the eligible edges, else among the rest; and when an operator
// has banned all these, among the banned ones: a viewer is better off with one of them
// than with nothing.
func (d *decision) choose(allowed *nodeSet) {
	t := d.v.tables[d.kind]
	if d.run(t.good, allowed); d.found > 0 {
		return
	}
	d.poor = true
	if d.run(t.poor, allowed); d.found > 0 || allowed == nil {
		return
	}
	d.despite, d.poor = true, false
	if d.run(t.good, nil); d.found > 0 {
		return
	}
	d.poor = true
	d.run(t.poor, nil)
}

// choosePinned searches among the pinned edges that are eligible.
func (d *decision) choosePinned(pinned *nodeSet) {
	var room [longList]int32
	t := d.v.tables[d.kind].good
	if list, ok := pinned.list(room[:]); ok {
		d.runFew(t, list)
		return
	}
	d.run(t, pinned)
}
