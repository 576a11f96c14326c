package control

import (
	"net/netip"
	"time"

	"millrace/internal/plan"
	"millrace/internal/stream"
)

// Bounds of a heartbeat, each checked before memory is given to it.
const (
	// MaxHeartbeat bounds the JSON of a heartbeat: 20,000 streams are about 3 MB.
	MaxHeartbeat = 8 << 20
	// MaxCarried is how many streams one node may carry.
	MaxCarried = 20_000
	// MaxPlayers is how many groups of players one heartbeat may tell of.
	MaxPlayers = 1024
	// MaxEvents is how many events one heartbeat may tell of. More follow in the next.
	MaxEvents = 256
)

// Identity is what a node says of itself and that rarely changes.
type Identity struct {
	ID         string       `json:"id"`
	Role       string       `json:"role"` // center, relay or edge
	Datacenter string       `json:"datacenter,omitempty"`
	Region     string       `json:"region,omitempty"`
	ISPs       []string     `json:"isps,omitempty"`      // "*": good from all of them (BGP, multi-homed)
	Domain     string       `json:"domain,omitempty"`    // what fails together; empty: its datacenter
	Groups     []string     `json:"groups,omitempty"`    // domains choose edges by them
	Addresses  []netip.Addr `json:"addresses,omitempty"` // where players reach it, the first of each family
	HTTPPort   uint16       `json:"http_port,omitempty"`
	HTTPSPort  uint16       `json:"https_port,omitempty"`
	Host       string       `json:"host,omitempty"`     // the name in its certificate
	URL        string       `json:"url"`                // where other nodes pull: http://HOST:PORT
	Push       string       `json:"push,omitempty"`     // where they push publishes to: rtmp://HOST:PORT
	Probe      string       `json:"probe,omitempty"`    // where it answers UDP probes: HOST:PORT
	Capacity   int64        `json:"capacity,omitempty"` // bytes/s that it can send; 0: not known
	Weight     float64      `json:"weight,omitempty"`   // 0: 1
	Price      float64      `json:"price,omitempty"`    // money per GB that it sends elsewhere
	Program    string       `json:"program,omitempty"`  // its version
}

// Heartbeat is what a node tells a router each second.
type Heartbeat struct {
	Node     string    `json:"node"`
	Boot     string    `json:"boot"`     // names this run of the program: 26 letters and digits
	Started  time.Time `json:"started"`  // when it began
	Sequence uint64    `json:"sequence"` // rises with every heartbeat of a run
	At       time.Time `json:"at"`
	// Identity is left out once a router has it.
	Identity *Identity `json:"identity,omitempty"`

	Load     int64  `json:"load"`    // bytes/s that it sends
	Pulled   int64  `json:"pulled"`  // bytes/s that it pulls
	Viewers  int    `json:"viewers"` // of all protocols
	Refused  uint64 `json:"refused"` // connections, since it started
	Draining bool   `json:"draining,omitempty"`
	Full     bool   `json:"full,omitempty"`

	Streams  Carrying      `json:"streams"`
	Samples  []plan.Sample `json:"samples,omitempty"` // of links to this node
	Players  []Players     `json:"players,omitempty"`
	Rechecks []Rechecked   `json:"rechecks,omitempty"` // since the start
	Events   []Event       `json:"events,omitempty"`
	Orders   string        `json:"orders,omitempty"` // the token of the orders in force
}

// Carrying is what streams a node has, as the change since a heartbeat that the router
// has taken.
type Carrying struct {
	Based uint64        `json:"based,omitempty"` // the sequence of that heartbeat; 0: Set is all
	Set   []Carried     `json:"set,omitempty"`   // new, or changed
	Gone  []stream.Name `json:"gone,omitempty"`
}

// Carried is a stream that a node has.
type Carried struct {
	Name    stream.Name `json:"name"`
	Source  bool        `json:"source,omitempty"`  // it is published here, by an encoder or by another node that pushes it
	Epoch   int64       `json:"epoch,omitempty"`   // of the publish
	From    string      `json:"from,omitempty"`    // the node that it is pulled from, or that pushes it here
	Bitrate int64       `json:"bitrate,omitempty"` // bytes/s
	Viewers int         `json:"viewers,omitempty"`
	Delay   float64     `json:"delay,omitempty"` // ms of the last hop
}

// Players is how the players of a region and ISP fared at a node since the last
// heartbeat. All are sums, so that they can be added up.
type Players struct {
	Region      string         `json:"region,omitempty"`
	ISP         string         `json:"isp,omitempty"`
	Started     int            `json:"started,omitempty"`      // viewers that got a first byte
	FirstByte   float64        `json:"first_byte,omitempty"`   // ms, of all of them
	Skips       int            `json:"skips,omitempty"`        // that the node made for slow viewers
	Closes      map[string]int `json:"closes,omitempty"`       // by reason
	Reports     int            `json:"reports,omitempty"`      // of players themselves
	FirstFrames int            `json:"first_frames,omitempty"` // reports that had one
	FirstFrame  float64        `json:"first_frame,omitempty"`  // ms, of all of those
	Stalls      int            `json:"stalls,omitempty"`       //
	Stalled     float64        `json:"stalled,omitempty"`      // ms
	Played      float64        `json:"played,omitempty"`       // seconds
	Delays      int            `json:"delays,omitempty"`       // reports that had one
	Delay       float64        `json:"delay,omitempty"`        // ms behind live, of all of those
}

// Rechecked counts what an edge found when it looked at players again.
type Rechecked struct {
	Region  string `json:"region,omitempty"`
	ISP     string `json:"isp,omitempty"`
	Way     string `json:"way"`
	Outcome string `json:"outcome"`
	Count   uint64 `json:"count"`
}

// Event is something that happened on a node.
type Event struct {
	Number  uint64         `json:"number"` // rises within a run of the program
	At      time.Time      `json:"at"`
	Kind    string         `json:"kind"`
	Stream  stream.Name    `json:"stream,omitempty"`
	From    string         `json:"from,omitempty"`
	To      string         `json:"to,omitempty"`
	Reason  string         `json:"reason,omitempty"`
	Detail  string         `json:"detail,omitempty"`
	Figures map[string]any `json:"figures,omitempty"`
}

// Ack is what a router answers to a heartbeat.
type Ack struct {
	Router   string `json:"router"`
	Sequence uint64 `json:"sequence"` // of the heartbeat that was taken
	// Resend asks for a heartbeat with everything: this router does not have what the
	// last one was based on, and has taken nothing of it.
	Resend bool `json:"resend,omitempty"`
	// Interval is when the next one is wanted, in ms.
	Interval int    `json:"interval"`
	Orders   string `json:"orders,omitempty"`   // token of the newest orders for the node
	Snapshot string `json:"snapshot,omitempty"` // token of the newest snapshot
	// LeftOut says why players are not sent to the node, and what to set on it; empty: they
	// may be, or it is no edge.
	LeftOut string `json:"left_out,omitempty"`
	// Refused counts samples that were not taken, by reason; the first of them are told.
	Refused map[string]int `json:"refused,omitempty"`
	First   []string       `json:"first,omitempty"`
}
