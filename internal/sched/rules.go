package sched

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"millrace/internal/stream"
)

// nodeSet is a set of nodes by index.
type nodeSet [MaxNodes / 64]uint64

func (s *nodeSet) has(i int32) bool { return s[i>>6]&(1<<(i&63)) != 0 }

// override is an Override with its words looked up.
type override struct {
	*Override
	region, isp int32 // -1: all
	pin, ban    targets
}

// targets are the nodes that a pin or a ban names.
type targets struct {
	list []int32
	set  *nodeSet // of a long list
}

// longList is how many nodes are quicker to go through as a set.
const longList = 128

// matches reports whether o is for a query, of whose domain and address it is.
func (o *override) matches(m *matching) bool {
	w := &o.When
	return (o.region < 0 || o.region == m.place.region) && (o.isp < 0 || o.isp == m.place.isp) &&
		(w.Access == AccessUnknown || w.Access == m.place.access) && (w.Stream == "" || w.Stream == m.stream) &&
		w.Prefix.Bits() <= m.bits && (o.Until.IsZero() || m.now.Before(o.Until))
}

// rules are the overrides of one domain. Each list has the most specific first, as
// numbers of Plan.overrides.
type rules struct {
	plain   []int32                 // of all streams and addresses
	streams map[stream.Name][]int32 // of all addresses
	v4, v6  ranges                  // with a prefix
}

// prefixes returns the rules with a prefix of an address's family.
func (r *rules) prefixes(a netip.Addr) *ranges {
	if a.Is4() {
		return &r.v4
	}
	return &r.v6
}

// makeRules sorts the overrides, the most specific first: stream, then the longest
// prefix, then ISP, region, access, domain; ties by id. It gives each domain its own.
func (p *Plan) makeRules(list []Override) {
	for i := range list {
		p.overrides = append(p.overrides, p.newOverride(&list[i]))
	}
	slices.SortFunc(p.overrides, func(a, b override) int {
		return cmp.Or(cmp.Compare(b.When.weight(), a.When.weight()), strings.Compare(a.ID, b.ID))
	})
	var general []int32
	special := map[string]bool{}
	for i := range p.overrides {
		if d := p.overrides[i].When.Domain; d == "" {
			general = append(general, int32(i))
		} else {
			special[canonical(d)] = true
		}
	}
	shared := p.newRules(general)
	p.rules = make([]*rules, len(p.Domains))
	for i := range p.Domains {
		p.rules[i] = shared
		if name := p.Domains[i].Name; special[name] {
			p.rules[i] = p.newRules(p.overridesOf(name))
		}
	}
}

// overridesOf returns the overrides that can be for a domain.
func (p *Plan) overridesOf(domain string) (list []int32) {
	for i := range p.overrides {
		if d := p.overrides[i].When.Domain; d == "" || canonical(d) == domain {
			list = append(list, int32(i))
		}
	}
	return list
}

// weight orders overrides: the higher, the more specific.
func (w *When) weight() (n int) {
	if w.Stream != "" {
		n += 1 << 12
	}
	if w.Prefix.IsValid() {
		n += (w.Prefix.Bits() + 1) << 4 // 129 << 4 at most
	}
	for i, given := range [...]bool{w.Domain != "", w.Access != AccessUnknown, w.Region != "", w.ISP != ""} {
		if given {
			n += 1 << i
		}
	}
	return n
}

func (p *Plan) newOverride(from *Override) override {
	o := override{Override: from, region: -1, isp: -1, pin: p.newTargets(from.Pin), ban: p.newTargets(from.Ban)}
	if from.When.Region != "" {
		o.region = p.atlas.regions[from.When.Region]
	}
	if from.When.ISP != "" {
		o.isp = p.atlas.isps[from.When.ISP]
	}
	return o
}

func (p *Plan) newTargets(names []string) (t targets) {
	for _, name := range names {
		if i, ok := p.byID[name]; ok {
			t.list = append(t.list, i)
			continue
		}
		dc := strings.TrimPrefix(name, datacenterMark)
		for i := range p.Nodes {
			if p.Nodes[i].Datacenter == dc {
				t.list = append(t.list, int32(i))
			}
		}
	}
	if len(t.list) > longList {
		var all, none nodeSet
		t.addTo(&all, &none)
		t.set = &all
	}
	return t
}

// addTo adds the targets to a set, but those in not.
func (t *targets) addTo(s, not *nodeSet) {
	if t.set != nil {
		for i, word := range t.set {
			s[i] |= word &^ not[i]
		}
		return
	}
	for _, i := range t.list {
		if !not.has(i) {
			s[i>>6] |= 1 << (i & 63)
		}
	}
}

func (p *Plan) newRules(list []int32) *rules {
	r := &rules{streams: map[stream.Name][]int32{}}
	var withPrefix []int32
	for _, i := range list {
		switch w := &p.overrides[i].When; {
		case w.Prefix.IsValid():
			withPrefix = append(withPrefix, i)
		case w.Stream != "":
			r.streams[w.Stream] = append(r.streams[w.Stream], i)
		default:
			r.plain = append(r.plain, i)
		}
	}
	r.v4 = newRanges(p.overrides, withPrefix, true)
	r.v6 = newRanges(p.overrides, withPrefix, false)
	return r
}
