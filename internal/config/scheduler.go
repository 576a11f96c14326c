package config

import (
	"errors"
	"fmt"
	"time"

	"millrace/internal/admin"
	"millrace/internal/auth"
	"millrace/internal/control"
	"millrace/internal/frontend"
	"millrace/internal/listen"
	"millrace/internal/probe"
)

// Scheduler is the whole configuration of one scheduler.
type Scheduler struct {
	// ID is the name of this scheduler in logs and explanations. Empty makes one up at
	// each start.
	ID string
	// CAFile has the certificates, in PEM, that routers, other schedulers and edges are
	// verified with where they are asked over https. Empty is those of the system.
	CAFile string

	Address SchedulerAddress
	TLS     TLS
	Log     Log
	Drain   Drain

	Files   control.FilesConfig
	Router  Following
	DNS     frontend.DNSConfig
	HTTP    frontend.HTTPConfig
	Listen  listen.Config
	Probe   probe.Config
	Peers   control.PeersConfig
	Control control.ServerConfig
	Admin   admin.Config
	Cluster auth.ClusterConfig
}

// ErrNoFiles says that a scheduler has nothing to place by.
var ErrNoFiles = errors.New("nodes and domains are missing: name the files that list them, with --nodes and --domains or in the file of settings, " +
	"or a router that has them, with --router")

// SchedulerAddress is where the scheduler listens, as host:port. An empty one is not
// opened.
type SchedulerAddress struct {
	DNS   string // UDP and TCP
	HTTP  string
	HTTPS string
	// Internal is for edges that follow the snapshot: what is not signed with the
	// cluster's key is refused.
	Internal string
	Admin    string
}

// DefaultScheduler returns a scheduler for one machine. It is complete with the files
// of nodes and domains.
func DefaultScheduler() Scheduler {
	return Scheduler{
		Address: SchedulerAddress{DNS: ":8053", HTTP: ":8081", Admin: "127.0.0.1:9091"},
		Log:     Log{Format: "auto"},
		Drain:   Drain{Deadline: 25 * time.Second},
		Router:  DefaultFollowing(),
		DNS:     frontend.DefaultDNSConfig(),
		HTTP:    frontend.DefaultHTTPConfig(),
		Listen:  listen.DefaultConfig(),
		Probe:   probe.DefaultConfig(),
		Peers:   control.DefaultPeersConfig(),
		Control: control.DefaultServerConfig(),
		Admin:   admin.DefaultConfig(),
		Cluster: auth.DefaultClusterConfig(),
	}
}

// Validate checks every section and what sections must agree on.
func (s Scheduler) Validate() error { return join(s.problems()) }

// restart are the sections and keys that a reload leaves as they are.
func (s Scheduler) restart() []string {
	out := []string{
		"id", "ca_file", "address", "tls", "log.format", "files", "router.state_file", "router.wait", "dns.workers", "dns.rate_table", "http.read_timeout", "http.idle_timeout",
		"probe", "peers", "control",
	}
	return append(out, noServers(s.Router.Servers)...)
}

func (s Scheduler) problems() []problem {
	return findings([]check{
		{"", func() error { return checkName("id", s.ID) }},
		{"address", s.Address.Validate},
		{"tls", s.TLS.Validate},
		{"log", s.Log.Validate},
		{"drain", s.Drain.Validate},
		{"files", s.validateFiles},
		{"router", s.Router.Validate},
		{"dns", s.DNS.Validate},
		{"http", s.HTTP.Validate},
		{"listen", s.Listen.Validate},
		{"probe", s.Probe.Validate},
		{"peers", s.Peers.Validate},
		{"control", s.Control.Validate},
		{"admin", s.Admin.Validate},
		{"cluster", s.Cluster.Validate},
	}, s.relations())
}

func (s Scheduler) validateFiles() error {
	if len(s.Router.Servers) > 0 {
		return nil
	}
	if s.Files.Nodes == "" && s.Files.Domains == "" {
		return ErrNoFiles
	}
	return s.Files.Validate()
}

// maxPeers is how many programs a scheduler takes observations from.
const maxPeers = 16

// oneSource returns what is wrong with files, or too many peers, beside routers.
func (s Scheduler) oneSource() error {
	if n := len(s.Peers.Servers) + len(s.Router.Servers); len(s.Router.Servers) > 0 && n > maxPeers {
		return fmt.Errorf("peers.servers and router.servers are %d together, and at most %d are asked how the edges do: remove some of peers.servers", n, maxPeers)
	}
	if f := s.Files; len(s.Router.Servers) > 0 && (f.Nodes != "" || f.Domains != "" || f.Coverage != "" || len(f.MMDB) > 0) {
		return errors.New("router.servers and files are both set, and nodes and domains come from one of them: remove files.nodes, files.domains, " +
			"files.coverage and files.mmdb, which the routers have, or router.servers")
	}
	return nil
}

// Validate checks that each address can be listened on.
func (a SchedulerAddress) Validate() error { return validateAddresses(a.all()) }

func (a SchedulerAddress) all() []listener {
	return []listener{{"dns", a.DNS}, {"http", a.HTTP}, {"https", a.HTTPS}, {"internal", a.Internal}, {"admin", a.Admin}}
}

// relations checks what sections must agree on. Its errors name whole keys.
func (s Scheduler) relations() []error {
	a := s.Address
	errs := []error{s.oneSource(), needsCertificate("https", a.HTTPS, s.TLS), needsToken(a.Admin, s.Admin.Token)}
	if a.DNS == "" && a.HTTP == "" && a.HTTPS == "" {
		errs = append(errs, errors.New("address.dns, address.http and address.https are all empty: the scheduler would answer nobody"))
	}
	if a.Internal != "" && len(s.Cluster.Keys) == 0 {
		errs = append(errs, errors.New("address.internal refuses what is not signed: set cluster.keys to the key that all nodes share"))
	}
	return append(errs, sharedPorts(a.all())...)
}
