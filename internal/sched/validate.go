package sched

import (
	"fmt"
	"net/netip"
	"net/url"
	"time"
)

// Limits of a Snapshot, with which its tables stay within some hundred MB.
const (
	MaxNodes     = 16_384
	MaxRegions   = 1024
	MaxNames     = 4096 // of regions that nodes, overrides and quality name
	MaxISPs      = 256  // that they name
	MaxZones     = 1024
	MaxDomains   = 4096
	MaxOverrides = 1024
	MaxQuality   = 1 << 20
	maxList      = 64 // addresses, groups, ISPs of one node and the like
)

// longest is the most that one figure may add to a cost, in ms. It is far below what
// one step of badness adds to the cost of an edge that is not eligible.
const longest = 2000

// Roles of nodes, as in their configuration.
const (
	roleCenter = "center"
	roleRelay  = "relay"
	roleEdge   = "edge"
)

// check is a Snapshot under validation and what its rows may refer to.
type check struct {
	faults
	s           *Snapshot
	nodes       map[string]bool
	datacenters map[string]bool
	regions     map[string]bool // that are declared
	named       map[string]bool // regions
	isps        map[string]bool
	zones       map[string]bool
	domains     map[string]bool
}

// Validate returns all faults of s, each with where it is and what to do.
func (s *Snapshot) Validate() error {
	c := &check{
		s: s, nodes: map[string]bool{}, datacenters: map[string]bool{}, regions: map[string]bool{}, named: map[string]bool{},
		isps: map[string]bool{}, zones: map[string]bool{}, domains: map[string]bool{},
	}
	c.count("nodes", len(s.Nodes), MaxNodes)
	c.count("regions", len(s.Regions), MaxRegions)
	c.count("zones", len(s.Zones), MaxZones)
	c.count("domains", len(s.Domains), MaxDomains)
	c.count("overrides", len(s.Overrides), MaxOverrides)
	c.count("quality", len(s.Quality), MaxQuality)
	if c.more+len(c.errs) > 0 {
		return c.join()
	}
	c.regionRows()
	for i := range s.Nodes {
		c.node(fmt.Sprintf("nodes[%d]", i), &s.Nodes[i])
	}
	for i := range s.Zones {
		c.zone(fmt.Sprintf("zones[%d]", i), &s.Zones[i])
	}
	for i := range s.Domains {
		c.domain(fmt.Sprintf("domains[%d]", i), &s.Domains[i])
	}
	c.overrideRows()
	c.qualityRows()
	if s.Costs != (Costs{}) {
		c.costs("costs", &s.Costs)
	}
	if s.Health != (HealthConfig{}) {
		c.health("health", &s.Health)
	}
	c.count("names of regions", len(c.named), MaxNames)
	c.count("names of ISPs", len(c.isps), MaxISPs)
	return c.join()
}

func (c *check) regionRows() {
	for i := range c.s.Regions {
		name := c.s.Regions[i].Name
		where := fmt.Sprintf("regions[%d] %s", i, name)
		if c.word(where+": name", name) && c.regions[name] {
			c.add(where, "is there twice: remove one")
		}
		c.regions[name] = true
	}
	for i := range c.s.Regions {
		r := &c.s.Regions[i]
		where := fmt.Sprintf("regions[%d] %s", i, r.Name)
		if (r.Lat == nil) != (r.Lon == nil) {
			c.add(where, "has only one of lat and lon: give both or none")
		} else if r.Lat != nil {
			c.figure(where+": lat", *r.Lat, -90, 90)
			c.figure(where+": lon", *r.Lon, -180, 180)
		}
		for _, to := range sortedKeys(r.Near) {
			if !c.regions[to] {
				c.add(where+": near", "there is no region %q: declare it under regions", to)
			}
			c.figure(where+": near: "+to, r.Near[to], 0, longest)
		}
	}
}

func (c *check) node(where string, n *Node) {
	where += " " + n.ID
	switch {
	case !c.word(where+": id", n.ID):
	case c.nodes[n.ID]:
		c.add(where, "the id is taken: give each node its own")
	case isDatacenter(n.ID):
		c.add(where, "an id must not begin with %q", datacenterMark)
	}
	c.nodes[n.ID] = true
	if n.Role != roleEdge && n.Role != roleRelay && n.Role != roleCenter {
		c.add(where+": role", "%q is not a role: use center, relay or edge", n.Role)
	}
	if n.Datacenter != "" && c.word(where+": datacenter", n.Datacenter) {
		c.datacenters[n.Datacenter] = true
	}
	if c.word(where+": region", n.Region) && len(c.regions) > 0 && !c.regions[n.Region] {
		c.add(where+": region", "there is no region %q: declare it under regions", n.Region)
	}
	c.named[n.Region] = true
	c.words(where+": isps", n.ISPs, maxList)
	for _, isp := range n.ISPs {
		c.isps[isp] = true
	}
	c.words(where+": groups", n.Groups, maxList)
	c.addresses(where+": addresses", n.Addresses)
	if n.Capacity <= 0 {
		c.add(where+": capacity", "%d must be above 0: the bytes/s that it can send", n.Capacity)
	}
	c.figure(where+": weight", n.Weight, 0, 1000)
	if n.Host != "" {
		c.host(where+": host", n.Host)
	}
	if n.Role == roleEdge && len(n.Addresses) == 0 {
		c.add(where+": addresses", "an edge needs one at least")
	}
	if n.Role == roleEdge && n.HTTPPort == 0 && n.HTTPSPort == 0 {
		c.add(where, "an edge needs an http_port or an https_port")
	}
	if u, err := url.Parse(n.Probe); n.Probe != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		c.add(where+": probe", "%.80q is not a URL: use one such as http://192.0.2.1:8080", n.Probe)
	}
}

func (c *check) addresses(where string, list []netip.Addr) {
	c.count(where, len(list), maxList)
	for i, a := range list[:min(len(list), maxList)] {
		switch {
		case !a.IsValid():
			c.add(where, "an address is empty: remove it")
		case a.IsUnspecified() || a.IsMulticast() || a.Zone() != "" || a.Is4In6():
			c.add(where, "%v cannot be given to players", a)
		}
		for _, before := range list[:i] {
			if a == before {
				c.add(where, "%v is there twice: remove one", a)
			}
		}
	}
}

func (c *check) costs(where string, v *Costs) {
	const most = longest / 2
	c.figure(where+": per_km", v.PerKm, 0, longest/20_100.)
	c.figure(where+": unknown_distance", v.UnknownDistance, 0, longest)
	c.figure(where+": isp_any", v.ISPAny, 0, longest)
	c.figure(where+": isp_other", v.ISPOther, 0, longest)
	c.figure(where+": isp_unknown", v.ISPUnknown, 0, longest)
	c.figure(where+": good_first_frame", v.GoodFirstFrame, 0, 60_000)
	c.figure(where+": good_delay", v.GoodDelay, 0, 60_000)
	c.figure(where+": first_frame", v.FirstFrame, 0, 100)
	c.figure(where+": stall", v.Stall, 0, 1e6)
	c.figure(where+": loss", v.Loss, 0, 1e6)
	c.figure(where+": quality_best", v.QualityBest, 0, most)
	c.figure(where+": quality_worst", v.QualityWorst, 0, longest)
	c.figure(where+": quality_samples", v.QualitySamples, 0, 1e6)
	c.span(where+": quality_half", v.QualityHalf, time.Second, 30*24*time.Hour)
	c.figure(where+": carried", v.Carried, 0, most)
	c.figure(where+": load", v.Load, 0.001, longest)
	c.figure(where+": held", v.Held, 0, longest)
	c.figure(where+": margin", v.Margin, 0.001, most)
}

func (c *check) health(where string, h *HealthConfig) {
	c.span(where+": fresh", h.Fresh, time.Second, time.Hour)
	c.figure(where+": evict_share", h.EvictShare, 0, 1)
	c.figure(where+": rise", float64(h.Rise), 1, 100)
	c.figure(where+": fall", float64(h.Fall), 1, 100)
	c.figure(where+": attack_rise", h.AttackRise, 1, 1e6)
	c.figure(where+": attack_floor", h.AttackFloor, 0, 1e9)
	c.span(where+": attack_calm", h.AttackCalm, time.Second, 24*time.Hour)
}

// span wants a duration of lo…hi.
func (c *check) span(where string, d Duration, lo, hi time.Duration) {
	if d < Duration(lo) || d > Duration(hi) {
		c.add(where, "%v must be between %v and %v", d, lo, hi)
	}
}
