package config

import (
	"errors"
	"fmt"
	"time"

	"millrace/internal/admin"
	"millrace/internal/auth"
	"millrace/internal/console"
	"millrace/internal/control"
	"millrace/internal/document"
	"millrace/internal/fleet"
	"millrace/internal/listen"
	"millrace/internal/plan"
	"millrace/internal/store"
)

// Router is the whole configuration of one router.
type Router struct {
	// ID is the name of this router for nodes, other routers and people. Empty makes one
	// up at each start.
	ID string
	// StateFile keeps what operators have edited, and the last plan. With Redis it has a
	// copy of what is there.
	StateFile string
	// URL is where operators reach the console of this router, for other routers to show.
	URL string
	// MMDB are files with places of addresses, asked in this order for what the coverage
	// document does not say.
	MMDB []string

	Address RouterAddress
	TLS     TLS
	Log     Log
	Drain   Drain

	Redis   store.RedisConfig
	Seed    Seed
	Fleet   Fleet
	Plan    Planning
	Console console.Config
	Control control.ServerConfig
	Listen  listen.Config
	Admin   admin.Config
	Cluster auth.ClusterConfig
}

// ErrNoState says that a router has nowhere to keep what operators edit.
var ErrNoState = errors.New("state_file is missing: name a file to keep what operators edit and the last plan in, with --state FILE, or with --redis URL a Redis that several routers share")

// RouterAddress is where the router listens, as host:port. An empty one is not opened.
type RouterAddress struct {
	HTTP  string // nodes, schedulers and the console
	HTTPS string // the same inside TLS
	Admin string
}

// Seed names files that become documents of operators where there is none yet. Later they
// are not looked at.
type Seed struct {
	Network  string // YAML: regions, costs, health, quality, geo
	Domains  string // YAML: zones, domains, overrides
	Coverage string // lines of CIDR REGION ISP
}

// Fleet says how nodes are minded.
type Fleet struct {
	// Alive is how long a node counts as alive after its last heartbeat, Grace the same
	// for those whose router has gone, Forget how long one is remembered that is silent.
	Alive  time.Duration
	Grace  time.Duration
	Forget time.Duration
	// Lease is how long the router that plans may be silent before another one does.
	Lease time.Duration
	// Interval is when the next heartbeat of a node is wanted.
	Interval time.Duration
	// Capacity is that of a node that says none.
	Capacity   int64
	MaxNodes   int
	MaxStreams int
}

// Planning says how plans are made, and how often.
type Planning struct {
	Every time.Duration
	// Paths has nodes ask where to pull each stream from, beside their pools.
	Paths bool
	plan.Config
}

// DefaultRouter returns a router for one machine. It is complete with a state file.
func DefaultRouter() Router {
	f := fleet.DefaultConfig()
	return Router{
		Address: RouterAddress{HTTP: ":8082", Admin: "127.0.0.1:9092"},
		Log:     Log{Format: "auto"},
		Drain:   Drain{Deadline: 5 * time.Second},
		Redis:   store.DefaultRedisConfig(),
		Fleet: Fleet{
			Alive: f.Alive, Grace: f.Grace, Forget: f.Forget, Lease: f.Lease, Interval: f.Interval,
			Capacity: f.Capacity, MaxNodes: f.MaxNodes, MaxStreams: f.MaxStreams,
		},
		Plan:    Planning{f.Every, f.Paths, f.Plan},
		Console: console.DefaultConfig(),
		Control: control.DefaultServerConfig(),
		Listen:  listen.DefaultConfig(),
		Admin:   admin.DefaultConfig(),
		Cluster: auth.DefaultClusterConfig(),
	}
}

// Mind returns how the fleet of a router of that id and version is minded.
func (r Router) Mind(id, version string) fleet.Config {
	f := r.Fleet
	return fleet.Config{
		Router: id, Program: version, URL: r.URL, Plan: r.Plan.Config, Every: r.Plan.Every, Paths: r.Plan.Paths,
		Alive: f.Alive, Grace: f.Grace, Forget: f.Forget, Lease: f.Lease, Interval: f.Interval,
		Capacity: f.Capacity, MaxNodes: f.MaxNodes, MaxStreams: f.MaxStreams,
	}
}

// Validate checks every section and what sections must agree on.
func (r Router) Validate() error { return join(r.problems()) }

// restart are the sections and keys that a reload leaves as they are.
func (Router) restart() []string {
	return []string{
		"id", "state_file", "url", "mmdb", "address", "tls", "log.format", "redis", "seed", "fleet", "plan", "control",
	}
}

func (r Router) problems() []problem {
	return findings([]check{
		{"", r.validateTop},
		{"address", r.Address.Validate},
		{"tls", r.TLS.Validate},
		{"log", r.Log.Validate},
		{"drain", r.Drain.Validate},
		{"redis", r.validateRedis},
		{"fleet", r.Fleet.Validate},
		{"plan", r.Plan.Validate},
		{"console", r.Console.Validate},
		{"control", r.Control.Validate},
		{"listen", r.Listen.Validate},
		{"admin", r.Admin.Validate},
		{"cluster", r.Cluster.Validate},
	}, r.relations())
}

func (r Router) validateTop() error {
	var errs []error
	if r.StateFile == "" && r.Redis.URL == "" {
		errs = append(errs, ErrNoState)
	}
	if len(r.MMDB) > control.MaxMMDB {
		errs = append(errs, fmt.Errorf("mmdb has %d files: use at most %d", len(r.MMDB), control.MaxMMDB))
	}
	return errors.Join(append(errs, checkName("id", r.ID), checkReach("url", r.URL, "http", "https"))...)
}

// validateRedis checks the section of a router that has a Redis, and of another one what
// would be wrong if it had.
func (r Router) validateRedis() error {
	c := r.Redis
	if c.URL == "" {
		c.URL = "redis://localhost"
	}
	return c.Validate()
}

// Validate checks every value.
func (f Fleet) Validate() error {
	var errs []error
	span := func(key string, v, lo, hi time.Duration) {
		if v < lo || v > hi {
			errs = append(errs, fmt.Errorf("%s is %s: use %s to %s", key, formatDuration(v), formatDuration(lo), formatDuration(hi)))
		}
	}
	span("alive", f.Alive, max(time.Second, 2*f.Interval), time.Minute)
	span("grace", f.Grace, f.Alive, 10*time.Minute)
	span("forget", f.Forget, f.Grace, 7*24*time.Hour)
	span("lease", f.Lease, time.Second, time.Minute)
	span("interval", f.Interval, 100*time.Millisecond, 30*time.Second)
	if f.Capacity < 1 || f.Capacity > maxCapacity {
		errs = append(errs, fmt.Errorf("capacity is %s: use the bytes a second that a node can send, up to %s", document.FormatSize(f.Capacity), document.FormatSize(maxCapacity)))
	}
	count := func(key string, v, hi int) {
		if v < 1 || v > hi {
			errs = append(errs, fmt.Errorf("%s is %d: use 1 to %d", key, v, hi))
		}
	}
	count("max_nodes", f.MaxNodes, 100_000)
	count("max_streams", f.MaxStreams, 10_000_000)
	return errors.Join(errs...)
}

// Validate checks every value.
func (p Planning) Validate() error {
	var errs []error
	if p.Every < 100*time.Millisecond || p.Every > time.Minute {
		errs = append(errs, fmt.Errorf("every is %s: use 100ms to 1m", formatDuration(p.Every)))
	}
	return errors.Join(append(errs, p.Config.Validate())...)
}

// Validate checks that each address can be listened on.
func (a RouterAddress) Validate() error { return validateAddresses(a.all()) }

func (a RouterAddress) all() []listener {
	return []listener{{"http", a.HTTP}, {"https", a.HTTPS}, {"admin", a.Admin}}
}

// relations checks what sections must agree on. Its errors name whole keys.
func (r Router) relations() []error {
	a := r.Address
	errs := []error{needsCertificate("https", a.HTTPS, r.TLS), needsToken(a.Admin, r.Admin.Token)}
	if a.HTTP == "" && a.HTTPS == "" {
		errs = append(errs, errors.New("address.http and address.https are both empty: the router would hear no node"))
	}
	return append(errs, sharedPorts(a.all())...)
}
