package sched

import (
	"net/netip"
	"time"

	"millrace/internal/stream"
)

// Snapshot is what the scheduler works from: what files hold, and what a router
// sends. It changes slowly. Keys in JSON and YAML are those of the json tags.
type Snapshot struct {
	Version   uint64       `json:"version"` // higher is newer
	Nodes     []Node       `json:"nodes"`
	Regions   []Region     `json:"regions,omitempty"`
	Zones     []Zone       `json:"zones,omitempty"`
	Domains   []Domain     `json:"domains,omitempty"`
	Overrides []Override   `json:"overrides,omitempty"`
	Quality   []Quality    `json:"quality,omitempty"`
	Costs     Costs        `json:"costs,omitzero"`  // zero: DefaultCosts
	Health    HealthConfig `json:"health,omitzero"` // zero: DefaultHealth
}

// Node is a node of the CDN. Only those with the role edge are offered to players.
type Node struct {
	ID         string       `json:"id"`
	Role       string       `json:"role"` // center, relay or edge
	Datacenter string       `json:"datacenter,omitempty"`
	Region     string       `json:"region"`
	ISPs       []string     `json:"isps,omitempty"` // "*": good from all of them (BGP, multi-homed)
	Addresses  []netip.Addr `json:"addresses"`      // the first of each family is given to players
	HTTPPort   uint16       `json:"http_port,omitempty"`
	HTTPSPort  uint16       `json:"https_port,omitempty"` // 0: it has no HTTPS
	Host       string       `json:"host,omitempty"`       // the name in its certificate; empty: its address
	Capacity   int64        `json:"capacity"`             // bytes/s that it can send
	Weight     float64      `json:"weight,omitempty"`     // corrects the share that capacity gives; 0: 1
	Groups     []string     `json:"groups,omitempty"`     // domains choose nodes by them
	// Drain and UnderAttack are marks of an operator: no new viewers.
	Drain       bool `json:"drain,omitempty"`
	UnderAttack bool `json:"under_attack,omitempty"`
	// Probe is the base of the URLs that probes ask, such as http://1.2.3.4:8080;
	// empty: http, each of Addresses and HTTPPort.
	Probe string `json:"probe,omitempty"`
}

// Region is an area with a place on the map. How far two regions are apart is the
// smaller of what the two say in Near, else what the map says.
type Region struct {
	Name string             `json:"name"`
	Lat  *float64           `json:"lat,omitempty"` // degrees; nil: not on the map
	Lon  *float64           `json:"lon,omitempty"`
	Near map[string]float64 `json:"near,omitempty"` // ms to other regions
}

// Zone is a DNS zone that the scheduler is authoritative for.
type Zone struct {
	Name    string       `json:"name"`
	NS      []NameServer `json:"ns"`
	Mbox    string       `json:"mbox,omitempty"`    // of the SOA; empty: hostmaster.NAME
	Serial  uint32       `json:"serial,omitempty"`  // 0: the version of the snapshot
	Refresh Duration     `json:"refresh,omitempty"` // 0: 1h
	Retry   Duration     `json:"retry,omitempty"`   // 0: 10m
	Expire  Duration     `json:"expire,omitempty"`  // 0: 168h
	Minimum Duration     `json:"minimum,omitempty"` // of negative answers; 0: 60s
	TTL     Duration     `json:"ttl,omitempty"`     // of SOA, NS and CAA; 0: 1h
	CAA     []string     `json:"caa,omitempty"`     // each "FLAG TAG VALUE", such as "0 issue letsencrypt.org"
}

// NameServer is a name server of a zone. Addresses are its glue.
type NameServer struct {
	Host      string       `json:"host"`
	Addresses []netip.Addr `json:"addresses,omitempty"`
}

// Domain is a name that players ask for.
type Domain struct {
	Name        string   `json:"name"` // "*.live.example.com" serves all names below
	Zone        string   `json:"zone,omitempty"`
	Groups      []string `json:"groups,omitempty"`       // of nodes; empty: all edges
	TTL         Duration `json:"ttl,omitempty"`          // 0: 60s
	DegradedTTL Duration `json:"degraded_ttl,omitempty"` // 0: 5s
	Answers     int      `json:"answers,omitempty"`      // addresses in a DNS answer at most; 0: 3
	ECS         bool     `json:"ecs,omitempty"`          // use the client subnet that resolvers send
	// Spread4 and Spread6 are how many bits of an address tell clients of one place
	// apart when they are spread over its edges; 0: 24 and 56.
	Spread4  int     `json:"spread4,omitempty"`
	Spread6  int     `json:"spread6,omitempty"`
	Redirect bool    `json:"redirect,omitempty"` // served by 302
	HTTPDNS  bool    `json:"httpdns,omitempty"`  // served by HTTP-DNS
	Recheck  float64 `json:"recheck,omitempty"`  // ms that another edge must be better for an edge to send a viewer there; 0: it never does
	Scheme   string  `json:"scheme,omitempty"`   // http or https for Locations; empty: that of the request
}

// Override is a decision of an operator that comes before all others.
type Override struct {
	ID      string    `json:"id"`
	When    When      `json:"when,omitzero"`
	Pin     []string  `json:"pin,omitempty"` // node ids, or dc:NAME for all of a datacenter
	Ban     []string  `json:"ban,omitempty"`
	Until   time.Time `json:"until,omitzero"` // zero: for good
	Comment string    `json:"comment,omitempty"`
	Author  string    `json:"author,omitempty"`
}

// When says which queries an Override is for; an empty field matches all.
type When struct {
	Domain string       `json:"domain,omitempty"`
	Stream stream.Name  `json:"stream,omitempty"`
	Region string       `json:"region,omitempty"`
	ISP    string       `json:"isp,omitempty"`
	Access Access       `json:"access,omitempty"`
	Prefix netip.Prefix `json:"prefix,omitzero"`
}

// Quality is how players of a region and ISP were served lately by a node, or by
// the nodes of a datacenter. An empty ISP stands for all that have no row of their own.
type Quality struct {
	Region     string    `json:"region"`
	ISP        string    `json:"isp,omitempty"`
	Access     Access    `json:"access,omitempty"` // unknown: of all kinds
	Node       string    `json:"node,omitempty"`   // either this or Datacenter
	Datacenter string    `json:"datacenter,omitempty"`
	FirstFrame float64   `json:"first_frame,omitempty"` // ms
	Delay      float64   `json:"delay,omitempty"`       // ms, round trip
	Stalls     float64   `json:"stalls,omitempty"`      // per hour of playing
	Loss       float64   `json:"loss,omitempty"`        // 0…1
	Samples    int       `json:"samples"`
	At         time.Time `json:"at"`
}
