package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// SchedulerID is the id of the scheduler in commands and snapshots.
const SchedulerID = "scheduler"

// edge is the role of nodes that players are sent to.
const edge = "edge"

// Scheduler says which names players ask for and where they are.
type Scheduler struct {
	Domain  string   `yaml:"domain"`
	Clients []Client `yaml:"clients"`
}

// Client is a network of players.
type Client struct {
	Prefix netip.Prefix `yaml:"prefix"`
	Region string       `yaml:"region"`
}

// Address returns one of the players.
func (c Client) Address() netip.Addr {
	a := c.Prefix.Masked().Addr()
	for range 7 {
		if next := a.Next(); c.Prefix.Contains(next) {
			a = next
		}
	}
	return a
}

// validate checks what the scheduler would refuse without a plain word.
func (s *Scheduler) validate(nodes []Node) error {
	if s == nil {
		return nil
	}
	var errs []error
	if strings.Trim(s.Domain, ".") == "" || strings.ContainsAny(s.Domain, "/: *") {
		errs = append(errs, fmt.Errorf("scheduler: domain is %q: use a name such as play.test", s.Domain))
	}
	edges := 0
	for _, n := range nodes {
		if n.ID == SchedulerID {
			errs = append(errs, fmt.Errorf("nodes: the id %s is for the scheduler", n.ID))
		}
		if n.Role == edge {
			edges++
		}
	}
	if edges == 0 {
		errs = append(errs, errors.New("scheduler: there is no edge to send players to"))
	}
	for i, c := range s.Clients {
		if !c.Prefix.IsValid() || c.Region == "" {
			errs = append(errs, fmt.Errorf("scheduler: clients: number %d needs a prefix and a region", i+1))
		}
	}
	return errors.Join(errs...)
}

// regionOf returns where a node is; those that say nothing are together.
func regionOf(n Node) string {
	if n.Region == "" {
		return "here"
	}
	return n.Region
}

// files returns the files of the scheduler, by name, given where nodes are reached.
func (t Topology) files(ports map[string]Ports) (map[string]string, error) {
	var nodes strings.Builder
	nodes.WriteString("nodes:\n")
	for _, n := range t.Nodes {
		if n.Role != edge {
			continue
		}
		host, port, err := net.SplitHostPort(ports[n.ID].HTTP)
		if err != nil {
			return nil, err
		}
		if host == "localhost" {
			host = "127.0.0.1"
		}
		fmt.Fprintf(&nodes, "  - {id: %q, role: edge, region: %q, isps: [\"*\"], addresses: [%q], http_port: %s, capacity: 125MB}\n",
			n.ID, regionOf(n), host, port)
	}
	return map[string]string{"nodes.yaml": nodes.String(), "domains.yaml": t.domains(), "coverage.txt": t.coverage()}, nil
}

// domains returns what players ask for, as a scheduler and a router read it.
func (t Topology) domains() string {
	return fmt.Sprintf(`zones:
  - {name: %[1]q, ns: [{host: %[2]q, addresses: [127.0.0.1]}]}
domains:
  - {name: %[1]q, zone: %[1]q, ttl: 5s, degraded_ttl: 1s, answers: 1, ecs: true, redirect: true, httpdns: true, recheck: 20}
`, t.Scheduler.Domain, "ns1."+t.Scheduler.Domain)
}

// coverage returns where players are.
func (t Topology) coverage() string {
	var out strings.Builder
	for _, c := range t.Scheduler.Clients {
		fmt.Fprintf(&out, "%s %s *\n", c.Prefix, c.Region)
	}
	return out.String()
}

// startScheduler starts the scheduler, where there is one. Its files are written first,
// unless it follows routers.
func (c *Cluster) startScheduler(opt Options, listen map[string]Ports) error {
	if c.topology.Scheduler == nil {
		return nil
	}
	at := listen[SchedulerID]
	args := []string{
		"--id", SchedulerID, "--dns", at.DNS, "--http", at.HTTP, "--admin", at.Admin, "--log-format", "text",
		"--set", "drain.deadline=0s", "--set", "http.default_domain=" + c.topology.Scheduler.Domain,
		// Whoever asks from this machine may pretend to be elsewhere.
		"--set", "http.trusted_proxies=127.0.0.1",
	}
	if at.Internal != "" {
		args = append(args, "--internal", at.Internal)
	}
	if len(c.topology.Routers) > 0 {
		for _, url := range c.routerURLs() {
			args = append(args, "--router", url)
		}
		args = append(args, "--set", "router.state_file="+filepath.Join(opt.Logs, SchedulerID+".state"))
		return c.startProcess(SchedulerID, opt.Scheduler, opt.Logs, args)
	}
	files, err := c.topology.files(c.ports)
	if err != nil {
		return err
	}
	for flag, name := range map[string]string{"--nodes": "nodes.yaml", "--domains": "domains.yaml", "--coverage": "coverage.txt"} {
		path := filepath.Join(opt.Logs, name)
		if err := os.WriteFile(path, []byte(files[name]), 0o644); err != nil {
			return err
		}
		args = append(args, flag, path)
	}
	return c.startProcess(SchedulerID, opt.Scheduler, opt.Logs, args)
}

// members returns the programs that run: the nodes, and the scheduler and the routers
// where there are some.
func (c *Cluster) members() []Node {
	out := slices.Clone(c.topology.Nodes)
	if c.topology.Scheduler != nil {
		out = append(out, Node{ID: SchedulerID, Role: SchedulerID})
	}
	for _, r := range c.topology.Routers {
		out = append(out, Node{ID: r.ID, Role: router})
	}
	return out
}

// askHealth asks a scheduler or a router whether it is well.
func askHealth(ctx context.Context, admin string) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return get(ctx, "http://"+admin+"/healthz", nil)
}

// loopbackOf is the address of 127.0.0.0/8 at which the nth edge listens, from 0:
// each has its own, because what DNS tells players apart by are addresses.
func loopbackOf(nth int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, byte(1 + nth)}) }
