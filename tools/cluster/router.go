package cluster

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"millrace/internal/auth"
	"millrace/internal/console"
)

// router is the role of routers in snapshots.
const router = "router"

// Router is one router. One alone keeps what it knows in a file; several need a Redis.
type Router struct {
	ID       string            `yaml:"id"`
	Settings map[string]string `yaml:"settings"` // any of the router's, by key
}

// Operator is somebody who may log in to the console.
type Operator struct {
	Name     string       `yaml:"name"`
	Password string       `yaml:"password"`
	Role     console.Role `yaml:"role"`
}

// Region says how far a region is from others.
type Region struct {
	Name string             `yaml:"name"`
	Near map[string]float64 `yaml:"near"` // ms one way, by region
}

// validateRouters checks what a router would refuse without a plain word.
func (t Topology) validateRouters() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	known := map[string]bool{SchedulerID: true}
	for _, n := range t.Nodes {
		known[n.ID] = true
	}
	for i, r := range t.Routers {
		switch {
		case !auth.ValidNodeID(r.ID):
			bad("routers: number %d has the id %q: use letters, digits, dots, underscores and hyphens", i+1, r.ID)
		case known[r.ID]:
			bad("routers: the id %s is that of somebody else", r.ID)
		}
		known[r.ID] = true
	}
	if len(t.Routers) > 1 && t.Redis == "" {
		bad("routers: there are %d, which need a redis that they share", len(t.Routers))
	}
	for i, o := range t.Operators {
		if o.Name == "" || o.Password == "" {
			bad("operators: number %d needs a name and a password", i+1)
		}
	}
	return errors.Join(errs...)
}

// planned returns the nodes that routers may have n pull from: all others.
func (t Topology) planned(n Node) (out []string) {
	if len(t.Routers) == 0 {
		return nil
	}
	for _, other := range t.Nodes {
		if other.ID != n.ID {
			out = append(out, other.ID)
		}
	}
	return out
}

// openPlanned opens relays for all that routers may have one node ask another.
func (c *Cluster) openPlanned(seed uint64) error {
	for _, n := range c.topology.Nodes {
		for _, id := range c.topology.planned(n) {
			to, _ := c.topology.node(id)
			targets := map[string]string{"http": c.ports[id].pull(), probes: c.ports[id].pull()}
			if to.Role == "center" {
				targets["rtmp"] = c.ports[id].RTMP
			}
			for _, scheme := range slices.Sorted(maps.Keys(targets)) {
				seed++
				if _, err := c.links[Pair{n.ID, id}].open(scheme, targets[scheme], seed); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// routerURLs returns where nodes and schedulers reach the routers.
func (c *Cluster) routerURLs() (out []string) {
	for _, r := range c.topology.Routers {
		out = append(out, "http://"+c.ports[r.ID].HTTP)
	}
	return out
}

// routing returns what a node tells routers of itself, and where it reaches others.
func (c *Cluster) routing(n Node, dir string) map[string]any {
	at := c.ports[n.ID]
	isps := n.ISPs
	if len(isps) == 0 {
		isps = []string{"*"}
	}
	return map[string]any{"router": map[string]any{
		"state_file": filepath.Join(dir, n.ID+".state"),
		"region":     regionOf(n), "isps": isps,
		"url": "http://" + at.pull(), "push": "rtmp://" + at.RTMP, "probe": at.pull(),
		"reach": c.reach(n),
	}}
}

// reach returns where a node reaches others: through its links.
func (c *Cluster) reach(n Node) map[string][]string {
	out := map[string][]string{}
	for _, id := range c.topology.planned(n) {
		l := c.links[Pair{n.ID, id}]
		for _, scheme := range slices.Sorted(maps.Keys(l.relay)) {
			out[id] = append(out[id], scheme+"://"+l.relay[scheme].Addr())
		}
	}
	return out
}

// seeds writes the documents that a router begins with, and returns them as flags.
func (c *Cluster) seeds(dir string) (args []string, err error) {
	network, err := yaml.Marshal(map[string]any{"regions": c.topology.Regions})
	if err != nil {
		return nil, err
	}
	files := map[string]string{"network.yaml": string(network)}
	if c.topology.Scheduler != nil {
		files["domains.yaml"], files["coverage.txt"] = c.topology.domains(), c.topology.coverage()
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(files[name]), 0o644); err != nil {
			return nil, err
		}
		key, _, _ := strings.Cut(name, ".")
		args = append(args, "--set", "seed."+key+"="+path)
	}
	return args, nil
}

// startRouters starts the routers. They are asked later whether they answer.
func (c *Cluster) startRouters(opt Options, listen map[string]Ports) error {
	if len(c.topology.Routers) == 0 {
		return nil
	}
	seeds, err := c.seeds(opt.Logs)
	if err != nil {
		return err
	}
	users := []map[string]string{}
	for _, o := range c.topology.Operators {
		hash, err := console.Hash(o.Password)
		if err != nil {
			return fmt.Errorf("operators: %s: %w", o.Name, err)
		}
		users = append(users, map[string]string{"name": o.Name, "password_hash": hash, "role": o.Role.String()})
	}
	for _, r := range c.topology.Routers {
		at := listen[r.ID]
		c.settings[r.ID] = map[string]any{"console": map[string]any{"users": users}}
		args := []string{
			"--id", r.ID, "--http", at.HTTP, "--admin", at.Admin, "--log-format", "text", "--set", "drain.deadline=1s",
			"--state", filepath.Join(opt.Logs, r.ID+".state"),
		}
		if c.topology.Redis != "" {
			args = append(args, "--redis", c.topology.Redis)
		}
		args = append(args, seeds...)
		for _, key := range slices.Sorted(maps.Keys(r.Settings)) {
			args = append(args, "--set", key+"="+r.Settings[key])
		}
		if err := c.startProcess(r.ID, opt.Router, opt.Logs, args); err != nil {
			return err
		}
	}
	return nil
}
