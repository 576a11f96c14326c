package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"millrace/internal/admin"
	"millrace/internal/auth"
	"millrace/internal/document"
	"millrace/internal/httpflv"
	"millrace/internal/listen"
	"millrace/internal/rtmp"
	"millrace/internal/stream"
	"millrace/internal/upstream"
)

// Role is the tier of a node.
type Role uint8

// The roles of a node.
const (
	Center Role = iota // takes publishers in
	Relay              // forwards between centers and edges
	Edge               // serves viewers
)

var roleWords = []string{"center", "relay", "edge"}

// String returns the word of r.
func (r Role) String() string { return roleWords[r] }

// MarshalText returns the word of r.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a word.
func (r *Role) UnmarshalText(b []byte) error {
	i := slices.Index(roleWords, string(b))
	if i < 0 {
		return fmt.Errorf("%q is not a role: use center, relay or edge", b)
	}
	*r = Role(i)
	return nil
}

// Node is the whole configuration of one node.
type Node struct {
	Role Role
	// ID is the name of this node in paths, logs and the lists of others. Empty makes
	// one up at each start, which does for a node that no other one names.
	ID string
	// Datacenter is where the node stands.
	Datacenter string
	// MemoryLimit is where the garbage collector begins to work hard to stay
	// below. Zero leaves it to the GOMEMLIMIT variable.
	MemoryLimit int64

	Address Address
	TLS     TLS
	Log     Log
	Drain   Drain

	Stream  stream.Config
	Auth    auth.Config
	Listen  listen.Config
	RTMP    rtmp.Config
	HTTPFLV httpflv.Config
	Admin   admin.NodeConfig

	Cluster    auth.ClusterConfig
	Upstream   upstream.Config
	Scheduling Scheduling
	Router     Routing
}

// Address is where the node listens, as host:port. An empty one is not opened.
type Address struct {
	RTMP  string
	RTMPS string
	HTTP  string
	HTTPS string
	// Internal is for other nodes alone: what is not signed with the cluster's key is
	// refused.
	Internal string
	Admin    string
}

// DefaultNode returns a stand-alone center.
func DefaultNode() Node {
	return Node{
		Address: Address{RTMP: ":1935", HTTP: ":8080", Admin: "127.0.0.1:9090"},
		Log:     Log{Format: "auto"},
		Drain:   Drain{Deadline: 25 * time.Second},
		Stream:  stream.DefaultConfig(),
		Auth:    auth.DefaultConfig(),
		Listen:  listen.DefaultConfig(),
		RTMP:    rtmp.DefaultConfig(),
		HTTPFLV: httpflv.DefaultConfig(),
		Admin:   admin.DefaultNodeConfig(),

		Cluster:    auth.DefaultClusterConfig(),
		Upstream:   upstream.DefaultConfig(),
		Scheduling: DefaultScheduling(),
		Router:     DefaultRouting(),
	}
}

// Validate checks every section and what sections must agree on.
func (n Node) Validate() error { return join(n.problems()) }

// restart are the sections and keys that a reload leaves as they are: what was
// opened, sized or started with them stays.
func (n Node) restart() []string {
	out := []string{
		"role", "id", "datacenter", "upstream.ca_file", "address", "tls", "log.format", "httpflv.shards", "httpflv.read_timeout", "httpflv.idle_timeout",
		"scheduling", "router.state_file", "router.every", "router.region", "router.isps", "router.domain", "router.groups", "router.addresses",
		"router.url", "router.push", "router.probe", "router.reach", "router.price", "router.weight",
	}
	return append(out, noServers(n.Router.Servers)...)
}

func (n Node) problems() []problem {
	return findings([]check{
		{"", n.validateTop},
		{"address", n.Address.Validate},
		{"tls", n.TLS.Validate},
		{"log", n.Log.Validate},
		{"drain", n.Drain.Validate},
		{"stream", n.Stream.Validate},
		{"auth", n.Auth.Validate},
		{"listen", n.Listen.Validate},
		{"rtmp", n.RTMP.Validate},
		{"httpflv", n.HTTPFLV.Validate},
		{"admin", n.Admin.Validate},
		{"cluster", n.Cluster.Validate},
		{"upstream", n.Upstream.Validate},
		{"scheduling", n.Scheduling.Validate},
		{"router", n.Router.Validate},
	}, n.relations())
}

func (n Node) validateTop() error {
	var errs []error
	if n.MemoryLimit != 0 && n.MemoryLimit < 64<<20 || n.MemoryLimit == math.MaxInt64 {
		errs = append(errs, fmt.Errorf("memory_limit is %s: use 64MiB or more, or 0 for none", document.FormatSize(n.MemoryLimit)))
	}
	return errors.Join(append(errs, checkName("id", n.ID), checkName("datacenter", n.Datacenter))...)
}

// Validate checks that each address can be listened on.
func (a Address) Validate() error { return validateAddresses(a.all()) }

func (a Address) all() []listener {
	return []listener{{"rtmp", a.RTMP}, {"rtmps", a.RTMPS}, {"http", a.HTTP}, {"https", a.HTTPS}, {"internal", a.Internal}, {"admin", a.Admin}}
}

// relations checks what sections must agree on. Its errors name whole keys.
func (n Node) relations() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	errs = append(errs, needsCertificate("rtmps", n.Address.RTMPS, n.TLS), needsCertificate("https", n.Address.HTTPS, n.TLS))
	if n.Address.Internal != "" && len(n.Cluster.Keys) == 0 {
		bad("address.internal refuses what is not signed: set cluster.keys to the key that all nodes share")
	}
	if len(n.Upstream.Peers) > 0 && n.ID == "" {
		bad("upstream.peers needs an id: set id to the name that the other nodes have for this one")
	}
	if n.Address.RTMP == "" && n.Address.RTMPS == "" && n.Address.HTTP == "" && n.Address.HTTPS == "" && n.Address.Internal == "" {
		bad("address.rtmp, address.rtmps, address.http and address.https are all empty: the node would serve nobody")
	}
	errs = append(errs, n.Scheduling.relations(n)...)
	errs = append(errs, n.Router.relations(n)...)
	errs = append(errs, needsToken(n.Address.Admin, n.Admin.Token))
	return append(errs, sharedPorts(n.Address.all())...)
}
