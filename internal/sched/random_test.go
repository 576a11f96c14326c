package sched

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"millrace/internal/stream"
)

// anyWorld draws a world: few names, so that they meet, and everything that can be
// wrong with edges.
func anyWorld(t tester, d draw) *world {
	w := newWorld(t)
	w.Domains = nil
	for i := range d.n("regions", 1, 5) {
		r := Region{Name: region(i), Near: map[string]float64{}}
		if d.yes("on the map") {
			lat, lon := d.f("lat", -80, 80), d.f("lon", -170, 170)
			r.Lat, r.Lon = &lat, &lon
		}
		for j := range i {
			if d.yes("near") {
				r.Near[region(j)] = d.f("ms", 0, 60)
			}
		}
		w.Regions = append(w.Regions, r)
	}
	for i := range d.pick("edges", 1, 2, 3, 5, 8, 12, 20, 70) {
		w.anyEdge(d, i)
	}
	for i := range d.n("domains", 1, 3) {
		w.Domains = append(w.Domains, Domain{
			Name: fmt.Sprintf("d%d.example.com", i), Groups: d.some("groups", "g0", "g1", "g2"),
			Scheme: d.word("scheme", "", "", "https", "http"), Answers: d.n("answers", 0, MaxWant),
			Spread4: d.pick("spread4", 0, 1, 16, 24, 32), Spread6: d.pick("spread6", 0, 32, 56, 128),
		})
	}
	w.anyOverrides(d)
	w.anyQuality(d)
	w.anyCoverage(d)
	return w
}

// draw draws values, each a number of lo…hi at first.
type draw struct {
	next func(name string, lo, hi int) int
}

// fromRapid draws as rapid does.
func fromRapid(t *rapid.T) draw {
	return draw{func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }}
}

// fromBytes draws from the bytes of a fuzzer, a byte for most; when they are used up,
// what is drawn is the least.
func fromBytes(b []byte) draw {
	return draw{func(_ string, lo, hi int) int {
		n := 0
		for span := hi - lo; span > 0 && len(b) > 0; span >>= 8 {
			n, b = n<<8|int(b[0]), b[1:]
		}
		return lo + n%(hi-lo+1)
	}}
}

func (d draw) n(name string, lo, hi int) int { return d.next(name, lo, hi) }
func (d draw) yes(name string) bool          { return d.next(name, 0, 1) == 1 }
func (d draw) one(in int, name string) bool  { return d.next(name, 0, in-1) == in-1 }

func (d draw) pick(name string, of ...int) int { return of[d.next(name, 0, len(of)-1)] }

func (d draw) word(name string, of ...string) string { return of[d.next(name, 0, len(of)-1)] }

func (d draw) f(name string, lo, hi float64) float64 {
	return lo + (hi-lo)*float64(d.next(name, 0, 10_000))/10_000
}

// some returns some of the words, none rather often.
func (d draw) some(name string, of ...string) (out []string) {
	mask := d.n(name, 0, 1<<len(of)-1)
	for i, s := range of {
		if mask&(1<<i) != 0 {
			out = append(out, s)
		}
	}
	return out
}

func region(i int) string { return fmt.Sprintf("r%d", i) }

func (w *world) anyEdge(d draw, i int) {
	n := w.edge(fmt.Sprintf("e%03d", i), region(d.n("region", 0, len(w.Regions)-1)), d.some("isps", "*", "i0", "i1")...)
	if d.one(10, "no edge") {
		n.Role = roleRelay
	}
	n.Datacenter = d.word("datacenter", "", "dc0", "dc1", "dc2")
	n.Groups = d.some("groups", "g0", "g1")
	switch d.n("families", 0, 5) {
	case 0:
		n.Addresses = n.Addresses[:1]
	case 1:
		n.Addresses = n.Addresses[1:]
	}
	if d.one(4, "no https") {
		n.HTTPSPort = 0
	}
	n.Weight = d.f("weight", 0, 3)
	n.Capacity = int64(d.pick("capacity", 1e8, 1e9, 1e10))
	n.Drain, n.UnderAttack = d.one(12, "drain"), d.one(12, "attack")
	s := w.of(n.ID)
	s.Load = int64(float64(n.Capacity) * d.f("load", 0, 1.2))
	if d.yes("idle") {
		s.Load = 0
	}
	s.Draining, s.UnderAttack = d.one(12, "draining"), d.one(12, "attacked")
	s.V4, s.V6 = anyHealth(d), anyHealth(d)
	for j := range 3 {
		if d.yes("carries") {
			s.Streams = append(s.Streams, stream.Name(fmt.Sprintf("live/s%d", j)))
		}
	}
}

func anyHealth(d draw) Health {
	ago := func(name string) time.Time {
		return start.Add(-time.Duration(d.pick(name, 0, 1, 9, 11, 50, 500, 5000)) * time.Second)
	}
	switch d.n("health", 0, 7) {
	case 0:
		return Health{Status: Down, At: start, Up: ago("down since")}
	case 1:
		return Health{Status: Down, At: start}
	case 2:
		return Health{}
	case 3:
		at := ago("seen")
		return Health{Status: Status(d.n("status", 0, 2)), At: at, Up: at}
	}
	return Health{Status: Up, At: start, Up: start}
}

func (w *world) anyOverrides(d draw) {
	targets := []string{}
	for i := range w.Nodes {
		targets = append(targets, w.Nodes[i].ID)
		if dc := w.Nodes[i].Datacenter; dc != "" && !slices.Contains(targets, datacenterMark+dc) {
			targets = append(targets, datacenterMark+dc)
		}
	}
	for i := range d.pick("overrides", 0, 0, 1, 3, 8) {
		o := Override{ID: fmt.Sprintf("o%d", i)}
		for range d.n("targets", 1, 4) {
			if name := d.word("target", targets...); d.one(3, "pin") {
				o.Pin = append(o.Pin, name)
			} else {
				o.Ban = append(o.Ban, name)
			}
		}
		if d.one(3, "domain") {
			o.When.Domain = w.Domains[0].Name
		}
		if d.one(3, "stream") {
			o.When.Stream = "live/s1"
		}
		o.When.Region, o.When.ISP = d.word("when region", "", "", "r0", "r1", "r9"), d.word("when isp", "", "", "i0", "i9")
		o.When.Access = Access(d.pick("when access", 0, 0, 0, 2))
		if d.yes("prefix") {
			o.When.Prefix = anyPrefix(d).Masked()
		}
		if d.one(4, "until") {
			o.Until = start.Add(time.Duration(d.n("until", -1, 1)) * time.Second)
		}
		w.Overrides = append(w.Overrides, o)
	}
}

func (w *world) anyQuality(d draw) {
	for i := range d.pick("quality", 0, 0, 2, 10) {
		q := Quality{
			Region: d.word("q region", "r0", "r1", "r9"), ISP: d.word("q isp", "", "i0", "i1"), Access: Access(d.pick("q access", 0, 0, 0, 1, 2)),
			FirstFrame: d.f("first frame", 0, 3000), Delay: d.f("delay", 0, 200), Loss: d.f("loss", 0, 0.1), Stalls: d.f("stalls", 0, 3),
			Samples: d.n("samples", 0, 1000), At: start.Add(-time.Duration(d.n("age", 0, 3600)) * time.Second),
		}
		if d.yes("of a node") {
			q.Node = fmt.Sprintf("e%03d", d.n("q node", 0, len(w.Nodes)))
		} else {
			q.Datacenter = fmt.Sprintf("dc%d", i%3)
		}
		same := func(o Quality) bool {
			return o.Region == q.Region && o.ISP == q.ISP && o.Access == q.Access && o.Node == q.Node && o.Datacenter == q.Datacenter
		}
		if !slices.ContainsFunc(w.Quality, same) {
			w.Quality = append(w.Quality, q)
		}
	}
}

// anyPrefix draws one of few prefixes, so that they overlap.
func anyPrefix(d draw) netip.Prefix {
	if d.one(3, "v6") {
		b := [16]byte{0x20, 0x01, 0x0d, 0xb8, byte(d.n("b4", 0, 3)), byte(d.n("b5", 0, 1)), byte(d.pick("b6", 0, 0, 255)), byte(d.pick("b7", 0, 1, 128))}
		b[15] = byte(d.pick("b15", 0, 0, 1))
		return netip.PrefixFrom(netip.AddrFrom16(b), d.pick("bits6", 0, 24, 40, 41, 48, 56, 64, 127, 128))
	}
	b := [4]byte{10, byte(d.n("b1", 0, 3)), byte(d.pick("b2", 0, 1, 128, 255)), byte(d.pick("b3", 0, 1, 127, 128, 255))}
	return netip.PrefixFrom(netip.AddrFrom4(b), d.pick("bits4", 0, 1, 7, 8, 9, 15, 16, 20, 23, 24, 25, 31, 32))
}

func (w *world) anyCoverage(d draw) {
	seen := map[netip.Prefix]bool{}
	var b strings.Builder
	for range d.n("coverage", 0, 12) {
		if p := anyPrefix(d).Masked(); !seen[p] {
			seen[p] = true
			fmt.Fprintf(&b, "%v %s %s\n", p, d.word("c region", "r0", "r1", "r2", "r9"), d.word("c isp", "i0", "i1", "i9", "*"))
		}
	}
	w.coverage = b.String()
}

// anyQuery draws a query for the world.
func (w *world) anyQuery(d draw) Query {
	q := Query{
		Client: anyPrefix(d), Domain: w.Domains[d.n("domain", 0, len(w.Domains)-1)].Name,
		Families: Families(d.n("families", 0, 3)), HTTPS: d.yes("https"), Want: d.n("want", 0, MaxWant),
		Stream: stream.Name(d.word("stream", "", "live/s0", "live/s1", "live/none")), Access: Access(d.n("access", 0, 2)),
	}
	if d.yes("address") {
		q.Client = netip.PrefixFrom(q.Client.Addr(), q.Client.Addr().BitLen())
	}
	if a := q.Client.Addr(); a.Is4() && d.one(5, "mapped") {
		q.Client = netip.PrefixFrom(netip.AddrFrom16(a.As16()), 96+q.Client.Bits())
	}
	if d.one(4, "given") {
		q.Region, q.ISP = d.word("given region", "", "r0", "r1", "r8"), d.word("given isp", "", "i0", "i1", "i8")
	}
	if d.yes("self") {
		q.Self = fmt.Sprintf("e%03d", d.n("self", 0, len(w.Nodes)))
	}
	return q
}

// decided is an answer for comparing and printing.
func decided(v *View, q Query) string {
	var a Answer
	v.Decide(start, &q, &a)
	return told(&a)
}

func told(a *Answer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v ttl %v place %+v self %v %v:", a.Reason, a.TTL, a.Place.Pair, a.SelfOK, a.SelfCost)
	for i := range a.N {
		c := &a.Candidates[i]
		fmt.Fprintf(&b, "\n%s %v %v cost %v = %v%+v%+v%+v%+v weight %d %v",
			c.Node.ID, c.Addr4, c.Addr6, c.Cost, c.Coverage, c.Quality, c.Stream, c.Load, c.Health, c.Weight, c.Reason)
	}
	return b.String()
}
