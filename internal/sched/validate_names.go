package sched

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/internal/stream"
)

// maxTTL is how long an answer may be kept: an edge that fails stays in caches as long.
const maxTTL = 24 * time.Hour

func (c *check) zone(where string, z *Zone) {
	where += " " + z.Name
	if !c.host(where+": name", z.Name) {
		return
	}
	if name := canonical(z.Name); c.zones[name] {
		c.add(where, "is there twice: remove one")
	} else {
		c.zones[name] = true
	}
	c.count(where+": ns", len(z.NS), maxList)
	if len(z.NS) == 0 {
		c.add(where+": ns", "a zone needs one name server at least: the names that it is delegated to")
	}
	for i, ns := range z.NS[:min(len(z.NS), maxList)] {
		at := fmt.Sprintf("%s: ns[%d]", where, i)
		c.host(at+": host", ns.Host)
		c.addresses(at+": addresses", ns.Addresses)
	}
	if z.Mbox != "" {
		c.host(where+": mbox", strings.Replace(z.Mbox, "@", ".", 1))
	}
	const most = 10 * 365 * 24 * time.Hour
	c.span(where+": refresh", z.Refresh, 0, most)
	c.span(where+": retry", z.Retry, 0, most)
	c.span(where+": expire", z.Expire, 0, most)
	c.span(where+": minimum", z.Minimum, 0, maxTTL)
	c.span(where+": ttl", z.TTL, 0, 7*maxTTL)
	c.count(where+": caa", len(z.CAA), maxList)
	for _, caa := range z.CAA[:min(len(z.CAA), maxList)] {
		flag, rest, _ := strings.Cut(caa, " ")
		tag, value, ok := strings.Cut(strings.TrimSpace(rest), " ")
		if _, err := strconv.ParseUint(flag, 10, 8); err != nil || tag == "" || !ok || len(value) > 255 {
			c.add(where+": caa", `%.80q: write FLAG TAG VALUE, such as "0 issue letsencrypt.org"`, caa)
		}
	}
}

func (c *check) domain(where string, d *Domain) {
	where += " " + d.Name
	if !c.host(where+": name", strings.TrimPrefix(d.Name, "*.")) {
		return
	}
	name := canonical(d.Name)
	if c.domains[name] {
		c.add(where, "is there twice: remove one")
	}
	c.domains[name] = true
	if zone := canonical(d.Zone); d.Zone != "" {
		switch {
		case !c.zones[zone]:
			c.add(where+": zone", "there is no zone %q: declare it under zones", d.Zone)
		case !inside(name, zone):
			c.add(where+": zone", "the name is not in %s: leave zone out to take the one that it is in", d.Zone)
		}
	}
	c.words(where+": groups", d.Groups, maxList)
	c.span(where+": ttl", d.TTL, 0, maxTTL)
	c.span(where+": degraded_ttl", d.DegradedTTL, 0, maxTTL)
	c.figure(where+": answers", float64(d.Answers), 0, MaxWant)
	c.figure(where+": spread4", float64(d.Spread4), 0, 32)
	c.figure(where+": spread6", float64(d.Spread6), 0, 128)
	c.figure(where+": recheck", d.Recheck, 0, longest)
	if d.Scheme != "" && d.Scheme != "http" && d.Scheme != "https" {
		c.add(where+": scheme", "%q: use http or https, or leave it out for that of the request", d.Scheme)
	}
}

func (c *check) overrideRows() {
	seen := map[string]bool{}
	for i := range c.s.Overrides {
		o := &c.s.Overrides[i]
		where := fmt.Sprintf("overrides[%d] %s", i, o.ID)
		if c.word(where+": id", o.ID) && seen[o.ID] {
			c.add(where, "the id is taken: give each override its own")
		}
		seen[o.ID] = true
		if len(o.Pin)+len(o.Ban) == 0 {
			c.add(where, "does nothing: give it a pin or a ban")
		}
		c.targets(where+": pin", o.Pin)
		c.targets(where+": ban", o.Ban)
		w := &o.When
		if w.Domain != "" && !c.domains[canonical(w.Domain)] {
			c.add(where+": when: domain", "there is no domain %q", w.Domain)
		}
		if n, err := stream.ParsePath(string(w.Stream)); w.Stream != "" && (err != nil || n != w.Stream) {
			c.add(where+": when: stream", "%.80q is not the name of a stream: write APP/NAME", string(w.Stream))
		}
		if w.Region != "" {
			c.word(where+": when: region", w.Region)
			c.named[w.Region] = true
		}
		if w.ISP != "" && c.word(where+": when: isp", w.ISP) {
			c.isps[w.ISP] = true
		}
		if w.ISP == anyISP || w.Region == anyISP {
			c.add(where+": when", "leave region or isp out for all of them")
		}
		if w.Access >= accesses {
			c.add(where+": when: access", "%v is unknown", w.Access)
		}
		if p := w.Prefix; p != p.Masked() || p.Addr().Is4In6() {
			c.add(where+": when: prefix", "%v is not a CIDR: write it as %v", p, unmapped(p).Masked())
		}
		if len(o.Comment) > 1000 || len(o.Author) > 100 {
			c.add(where, "comment and author may have 1000 and 100 bytes")
		}
	}
}

// targets wants nodes and datacenters that exist: a typing error in a ban should not
// be found out by the players.
func (c *check) targets(where string, list []string) {
	c.count(where, len(list), MaxNodes)
	for _, t := range list {
		dc, ok := strings.CutPrefix(t, datacenterMark)
		switch {
		case ok && !c.datacenters[dc]:
			c.add(where, "no node is in a datacenter %q", dc)
		case !ok && !c.nodes[t]:
			c.add(where, "there is no node %q; a datacenter is written %sNAME", t, datacenterMark)
		}
	}
}

// qualityKey is what a row of quality is about.
type qualityKey struct {
	region, isp, node, datacenter string
	access                        Access
}

// qualityRows checks rows of measurements. They may be of nodes that are gone. There
// can be many, so a row is described only when something is wrong with it.
func (c *check) qualityRows() {
	seen := make(map[qualityKey]bool, len(c.s.Quality))
	for i := range c.s.Quality {
		q := &c.s.Quality[i]
		k := qualityKey{q.Region, q.ISP, q.Node, q.Datacenter, q.Access}
		if seen[k] {
			c.add(fmt.Sprintf("quality[%d]", i), "there are two rows for %s %s %s%s: merge them", q.Region, q.ISP, q.Node, q.Datacenter)
		}
		seen[k] = true
		c.isps[q.ISP], c.named[q.Region] = true, true
		quiet := faults{}
		quiet.quality("", q)
		if len(quiet.errs) > 0 {
			c.quality(fmt.Sprintf("quality[%d] %s %s", i, q.Region, q.ISP), q)
		}
	}
	delete(c.isps, "")
}

func (f *faults) quality(where string, q *Quality) {
	f.word(where, q.Region)
	if q.ISP != "" && f.word(where, q.ISP) && q.ISP == anyISP {
		f.add(where, "leave isp out for all ISPs")
	}
	if (q.Node == "") == (q.Datacenter == "") {
		f.add(where, "must be of a node or of a datacenter: give one of the two")
	}
	if q.Access >= accesses {
		f.add(where, "access: %v is unknown", q.Access)
	}
	if q.Samples < 0 {
		f.add(where, "samples: %d must not be below 0", q.Samples)
	}
	f.measure(where, "first_frame", q.FirstFrame, 1e6)
	f.measure(where, "delay", q.Delay, 1e6)
	f.measure(where, "stalls", q.Stalls, 1e6)
	f.measure(where, "loss", q.Loss, 1)
}

func (f *faults) measure(where, name string, v, most float64) {
	if !(v >= 0 && v <= most) {
		f.add(where, "%s: %v must be between 0 and %v", name, v, most)
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
