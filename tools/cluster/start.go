package cluster

import (
	"maps"
	"path/filepath"
	"slices"
)

// startNodes starts the nodes. They are asked later whether they answer.
func (c *Cluster) startNodes(opt Options, listen map[string]Ports) error {
	for _, n := range c.topology.Nodes {
		args := c.topology.args(n, listen[n.ID], c.linkAddr, listen[SchedulerID].Internal, c.routerURLs())
		if len(c.topology.Routers) > 0 {
			c.settings[n.ID] = c.routing(n, opt.Logs)
		}
		if err := c.startProcess(n.ID, opt.Program, opt.Logs, args); err != nil {
			return err
		}
	}
	return nil
}

// startProcess runs a program that reads its settings and the cluster's key from a file
// of its own.
func (c *Cluster) startProcess(id, program, logs string, args []string) error {
	if c.private != "" {
		if err := c.writeKeys(id, c.topology.keys()); err != nil {
			return err
		}
		args = append(args, "--config", c.file(id))
	}
	p := &process{program: program, log: filepath.Join(logs, id+".log"), args: args}
	c.nodes[id], c.memory[id] = p, &memory{}
	return p.start()
}

// args returns the command line of a node, given where it listens, where its links
// do, where the scheduler takes followers, "" for nowhere, and the URLs of routers.
func (t Topology) args(n Node, at Ports, link func(p Pair, scheme string) string, scheduler string, routers []string) []string {
	out := []string{
		"--id", n.ID, "--role", n.Role, "--rtmp", at.RTMP, "--http", at.HTTP, "--admin", at.Admin,
		"--log-format", "text", "--set", "drain.deadline=1s", "--set", "httpflv.drain_spread=0s",
	}
	if at.Internal != "" {
		out = append(out, "--internal", at.Internal)
	}
	if n.Datacenter != "" {
		out = append(out, "--datacenter", n.Datacenter)
	}
	for _, u := range n.Upstreams {
		if !foreign(u) {
			u = "http://" + link(Pair{n.ID, u}, "http")
		}
		out = append(out, "--upstream", u)
	}
	for _, p := range t.peers(n) {
		out = append(out, "--peer", p+"=http://"+link(Pair{n.ID, p}, "http"))
	}
	for _, c := range n.Centers {
		out = append(out, "--center", "rtmp://"+link(Pair{n.ID, c}, "rtmp"))
	}
	for _, url := range routers {
		out = append(out, "--router", url)
	}
	if n.Role == edge && t.Scheduler != nil && (scheduler != "" || len(routers) > 0) {
		out = append(out, "--set", "scheduling.default_domain="+t.Scheduler.Domain)
		if len(routers) == 0 { // else it follows these
			out = append(out, "--set", "scheduling.from=http://"+scheduler)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(n.Settings)) {
		out = append(out, "--set", key+"="+n.Settings[key])
	}
	return out
}
