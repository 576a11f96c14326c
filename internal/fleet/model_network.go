package fleet

import (
	"net/netip"
	"time"

	"millrace/internal/plan"
	"millrace/internal/stream"
)

// NodeState is how a node is. Its word is the same in the API, logs, metrics and events.
type NodeState string

// The states of a node.
const (
	NodeUp       NodeState = "up"
	NodeDraining NodeState = "draining" // by itself, or by an operator
	NodeFull     NodeState = "full"     // it says that it takes no more
	NodeDown     NodeState = "down"     // nobody hears it
)

// Grade is how a link does, in a word.
type Grade string

// The grades of a link, by what it costs beyond what the distance promises.
const (
	GradeGood    Grade = "good"
	GradeFair    Grade = "fair"
	GradePoor    Grade = "poor"
	GradeUnknown Grade = "unknown" // it was not measured
)

// Network is the map: nodes, links in use, datacenters and routers at one time.
type Network struct {
	At          time.Time    `json:"at"`
	Router      string       `json:"router"`     // that says this
	Plan        uint64       `json:"plan"`       // the version of the plan in force
	Store       bool         `json:"store"`      // the store can be reached
	Nodes       []NodeRow    `json:"nodes"`      // by id
	Links       []LinkRow    `json:"links"`      // by to, place and from
	LinksLeft   int          `json:"links_left"` // that were left out, because there are so many
	Datacenters []Datacenter `json:"datacenters"`
	Regions     []RegionRow  `json:"regions"`
	Domains     int          `json:"domains"` // names of players that operators have written down; 0: players are sent nowhere
	Routers     []RouterRow  `json:"routers"`
	Totals      Totals       `json:"totals"`
}

// NodeRow is a node on the map.
type NodeRow struct {
	ID         string    `json:"id"`
	Role       string    `json:"role"` // center, relay or edge
	Datacenter string    `json:"datacenter"`
	Region     string    `json:"region"`
	ISPs       []string  `json:"isps"`
	State      NodeState `json:"state"`
	Heard      time.Time `json:"heard,omitzero"` // zero: not since this router began
	Silent     float64   `json:"silent"`         // s since the last heartbeat
	Router     string    `json:"router"`         // that hears it
	Load       int64     `json:"load"`           // bytes/s that it sends
	Capacity   int64     `json:"capacity"`       // bytes/s, with the edits applied
	Use        float64   `json:"use"`            // load as a share of capacity, 0…
	Pulled     int64     `json:"pulled"`         // bytes/s
	Viewers    int       `json:"viewers"`
	Streams    int       `json:"streams"`  // that it carries
	Sources    int       `json:"sources"`  // of them, those published there
	Upstream   string    `json:"upstream"` // first of its pool
	Edited     bool      `json:"edited"`   // an edit of operators names it
	Program    string    `json:"program"`
	LeftOut    string    `json:"left_out,omitempty"` // why players are not sent to it, and what to set on it
	Denied     *Denied   `json:"denied,omitempty"`   // heartbeats under its name are refused: its own if it is down, else those of another program
}

// Denied says that heartbeats are refused.
type Denied struct {
	Reason string `json:"reason"` // a word of control.Refusal
	From   string `json:"from"`   // address, in words if it is not known
}

// LinkRow is a link that is in use, or first in a pool.
type LinkRow struct {
	From     string  `json:"from"`
	To       string  `json:"to"`
	Streams  int     `json:"streams"`  // that it carries now
	Rate     int64   `json:"rate"`     // bytes/s, by the bitrates of the streams
	Place    int     `json:"place"`    // of From in the pool of To, from 1; 0: it is not in it
	Cost     float64 `json:"cost"`     // ms, for its quality
	Promised float64 `json:"promised"` // ms, by distance and ISPs
	RTT      float64 `json:"rtt"`      // ms; 0: not measured
	Loss     float64 `json:"loss"`     // 0…1, of probes or of what was sent again
	Grade    Grade   `json:"grade"`
	Crosses  bool    `json:"crosses"` // between regions or ISPs
}

// Datacenter sums up nodes of one place. Those without one stand under "".
type Datacenter struct {
	Name     string `json:"name"`
	Region   string `json:"region"`
	Nodes    int    `json:"nodes"`
	Up       int    `json:"up"`
	Viewers  int    `json:"viewers"`
	Load     int64  `json:"load"`
	Capacity int64  `json:"capacity"`
}

// RegionRow is a region that operators have placed on the map.
type RegionRow struct {
	Name string   `json:"name"`
	Lat  *float64 `json:"lat,omitempty"`
	Lon  *float64 `json:"lon,omitempty"`
}

// RouterRow is one of the routers.
type RouterRow struct {
	ID      string    `json:"id"`
	Leader  bool      `json:"leader"` // it plans
	Self    bool      `json:"self"`   // it says this
	Up      bool      `json:"up"`
	Seen    time.Time `json:"seen"`
	Started time.Time `json:"started"`
	Nodes   int       `json:"nodes"` // that it hears
	Plan    uint64    `json:"plan"`  // the version that it serves
	Program string    `json:"program"`
	URL     string    `json:"url,omitempty"`
}

// Totals sum up the network.
type Totals struct {
	Nodes    int   `json:"nodes"`
	Up       int   `json:"up"`
	Viewers  int   `json:"viewers"`
	Streams  int   `json:"streams"`  // different ones
	Load     int64 `json:"load"`     // bytes/s that all nodes send
	Backhaul int64 `json:"backhaul"` // bytes/s that nodes pull from one another
	Crossing int64 `json:"crossing"` // of them, those between regions or ISPs
}

// Node is all there is to know of a node.
type Node struct {
	NodeRow
	Domain     string               `json:"domain"`
	Groups     []string             `json:"groups"`
	Addresses  []netip.Addr         `json:"addresses"`
	HTTPPort   uint16               `json:"http_port"`
	HTTPSPort  uint16               `json:"https_port"`
	Host       string               `json:"host"`
	URL        string               `json:"url"`
	Push       string               `json:"push"`
	Probe      string               `json:"probe"`
	Price      float64              `json:"price"`
	Weight     float64              `json:"weight"`
	Started    time.Time            `json:"started,omitzero"`
	Refused    uint64               `json:"refused"`     // connections, since it started
	OrdersDue  bool                 `json:"orders_due"`  // it does not yet follow the newest orders
	Samples    map[string]int       `json:"samples"`     // refused lately, by reason
	Why        plan.NodeExplanation `json:"why"`         // its pool, with the parts of each cost
	In         []LinkRow            `json:"in"`          // links that it pulls over
	Out        []LinkRow            `json:"out"`         // links that others pull from it over
	Carried    []CarriedRow         `json:"carried"`     // the most viewed streams
	CarriedAll int                  `json:"carried_all"` // how many there are
	Quality    []QualityRow         `json:"quality"`     // of its players, by region and ISP
	Events     []Event              `json:"events"`      // the newest of its events, the newest first
	Trend      []NodePoint          `json:"trend"`       // of the last ten minutes
}

// CarriedRow is a stream that a node has.
type CarriedRow struct {
	Name    stream.Name `json:"name"`
	Source  bool        `json:"source"`
	From    string      `json:"from"`
	Bitrate int64       `json:"bitrate"` // bytes/s
	Viewers int         `json:"viewers"`
	Delay   float64     `json:"delay"` // ms of the last hop
}

// NodePoint is a node at one time.
type NodePoint struct {
	At      time.Time `json:"at"`
	Load    int64     `json:"load"`
	Pulled  int64     `json:"pulled"`
	Viewers int       `json:"viewers"`
}

// Link is all there is to know of a link.
type Link struct {
	LinkRow
	Why     plan.LinkExplanation `json:"why"`
	Trend   []LinkPoint          `json:"trend"`   // of the last ten minutes; empty unless it is in use
	Carried []CarriedRow         `json:"carried"` // streams that go over it, the most viewed first
	Events  []Event              `json:"events"`  // of the link, the newest first
}

// LinkPoint is how a link was at one time.
type LinkPoint struct {
	At   time.Time `json:"at"`
	Cost float64   `json:"cost"` // ms
	RTT  float64   `json:"rtt"`  // ms
	Loss float64   `json:"loss"` // 0…1
	Rate int64     `json:"rate"` // bytes/s
}
