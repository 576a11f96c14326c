// Package cluster runs a tree of nodes on this machine: real processes on loopback,
// every connection between two of them through a link of package faultnet, and
// publishers. localcluster is its face; tests can use it without one.
//
//	publisher ──▶ center ◀══ relay ◀══ edge ◀── players
//	                      ▲         ▲
//	                      links: delay, loss, rate, and what commands do to them
//
// A [Topology] says what there is, [Start] makes it run, [Cluster.Do] breaks and
// mends it, [Cluster.Observe] asks the nodes what they see, and [Cluster.Close] ends
// all of it. Players and publishers reach nodes directly; only nodes' connections to
// one another go through links.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Options say how a topology is run.
type Options struct {
	Program string // the node
	// Scheduler is the program that is in front of the edges. Without it there is none,
	// whatever the topology says. The same holds for Router.
	Scheduler string
	Router    string
	Logs      string // directory for what nodes write, a file each; it must exist
	// Port is the first of the ports that nodes listen on, four each in the order of
	// the topology: HTTP, RTMP, admin, internal. The scheduler has the four after the
	// last node, HTTP, DNS, admin, internal, and then the routers have theirs. 0 takes
	// what is free.
	Port int
	// At says where some nodes listen instead, by id; what is empty there is as above.
	At map[string]Ports
}

// Cluster is a running topology. Do is for one goroutine at a time; the other
// methods may be called from any.
type Cluster struct {
	// Fixed at construction.
	topology Topology
	ports    map[string]Ports // where they are reached
	began    time.Time
	cancel   context.CancelFunc // ends the publishers
	wg       sync.WaitGroup
	feeds    []*publisher
	nodes    map[string]*process
	pairs    []Pair                    // keys of links, sorted
	reserved reservations              // of ports, until Close
	private  string                    // directory of the programs' configuration files; empty without any
	settings map[string]map[string]any // in these files, beside the keys of the cluster

	// Guarded by mu.
	mu     sync.Mutex
	links  map[Pair]*link
	memory map[string]*memory
	looked time.Time // when Observe was last called
}

// startTime is how long a node may take to answer; a loaded machine may need some.
const startTime = time.Minute

// Start runs a topology and returns when every node answers. After an error nothing
// is left running. A [TakenError] says that nothing was started at all.
func Start(ctx context.Context, t Topology, opt Options) (*Cluster, error) {
	if opt.Scheduler == "" {
		t.Scheduler = nil
	}
	if opt.Router == "" {
		t.Routers = nil
	}
	if err := t.Validate(); err != nil {
		return nil, err
	}
	c := &Cluster{
		topology: t, ports: map[string]Ports{}, began: time.Now(), nodes: map[string]*process{}, pairs: t.Pairs(),
		links: map[Pair]*link{}, memory: map[string]*memory{}, settings: map[string]map[string]any{},
	}
	publishing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	if err := c.start(ctx, opt); err != nil {
		c.Close()
		return nil, err
	}
	for i, f := range t.Streams {
		p := &publisher{feed: f, id: uint32(i), addr: func(id string) string { return c.ports[id].RTMP }}
		c.feeds = append(c.feeds, p)
		c.wg.Go(func() { p.run(publishing) })
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, opt Options) error {
	listen, err := c.topology.pick(opt, &c.reserved)
	if err != nil {
		return err
	}
	for id, p := range listen {
		c.ports[id] = p.reachable()
	}
	if err := c.openLinks(); err != nil {
		return err
	}
	if c.topology.ClusterKey != "" || len(c.topology.Routers) > 0 {
		if c.private, err = os.MkdirTemp("", "cluster-"); err != nil {
			return err
		}
	}
	for _, start := range []func(Options, map[string]Ports) error{c.startRouters, c.startScheduler, c.startNodes} {
		if err := start(opt, listen); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for _, n := range c.members() {
		if err := c.ready(ctx, n.ID); err != nil {
			return err
		}
	}
	return nil
}

// openLinks opens a relay for everything that one node may ask another.
func (c *Cluster) openLinks() error {
	for _, p := range c.pairs {
		c.links[p] = &link{pair: p, base: c.topology.fault(p), relay: map[string]relay{}}
	}
	seed := c.topology.Seed
	for _, n := range c.topology.Nodes {
		for _, to := range slices.Concat(n.Upstreams, c.topology.peers(n)) {
			if foreign(to) {
				continue
			}
			seed++
			if _, err := c.links[Pair{n.ID, to}].open("http", c.ports[to].pull(), seed); err != nil {
				return err
			}
		}
		for _, to := range n.Centers {
			seed++
			if _, err := c.links[Pair{n.ID, to}].open("rtmp", c.ports[to].RTMP, seed); err != nil {
				return err
			}
		}
	}
	return c.openPlanned(seed)
}

// linkAddr returns where a link listens for a protocol.
func (c *Cluster) linkAddr(p Pair, scheme string) string { return c.links[p].relay[scheme].Addr() }

// ready waits until a node answers.
func (c *Cluster) ready(ctx context.Context, id string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if state, _ := c.nodes[id].now(); state == Ended {
			return fmt.Errorf("%s has ended at once: %s", id, c.nodes[id].lastLine())
		}
		if get(ctx, "http://"+c.ports[id].Admin+"/healthz", nil) == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("%s did not answer within %v: see %s", id, startTime, c.nodes[id].log)
			}
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Ports returns where a node is reached.
func (c *Cluster) Ports(id string) Ports { return c.ports[id] }

// PID returns the process id of a node, 0 when it does not run.
func (c *Cluster) PID(id string) int {
	_, pid := c.nodes[id].now()
	return pid
}

// Do carries out a command that [Topology.Parse] gave. It returns when that is done,
// and for a restart when the node answers.
func (c *Cluster) Do(ctx context.Context, cmd Command) error {
	if cmd.To != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.doLink(cmd, c.links[cmd.link()])
	}
	p := c.nodes[cmd.From]
	switch cmd.Verb {
	case Kill:
		p.kill()
	case Freeze:
		return p.freeze()
	case Slow:
		return c.linksOf(cmd.From, func(l *link) error {
			if l.pair.To == cmd.From {
				return l.slow(0, cmd.Kbps*125)
			}
			return l.slow(cmd.Kbps*125, 0)
		})
	case Heal:
		return errors.Join(c.linksOf(cmd.From, (*link).heal), p.thaw())
	case Restart:
		p.end()
		if err := p.start(); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, startTime)
		defer cancel()
		return c.ready(ctx, cmd.From)
	}
	return nil
}

func (c *Cluster) doLink(cmd Command, l *link) error {
	switch cmd.Verb {
	case Kill:
		return l.kill()
	case Freeze:
		return l.freeze()
	case Slow:
		return l.slow(cmd.Kbps*125, cmd.Kbps*125)
	case Delay:
		return l.delay(time.Duration(cmd.Ms) * time.Millisecond)
	case HalfOpen:
		return l.halfOpen()
	case Restart:
		return errors.Join(l.reset(), l.heal())
	case Heal:
		return l.heal()
	}
	return nil
}

// linksOf does something to all links from and to a node.
func (c *Cluster) linksOf(id string, do func(*link) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, p := range c.pairs {
		if p.From == id || p.To == id {
			errs = append(errs, do(c.links[p]))
		}
	}
	return errors.Join(errs...)
}

// Close ends publishers, nodes and links, and returns when all have ended. Further
// calls do nothing.
func (c *Cluster) Close() error {
	c.cancel()
	c.wg.Wait()
	var nodes sync.WaitGroup
	for _, p := range c.nodes {
		nodes.Go(p.end)
	}
	nodes.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, l := range c.links {
		errs = append(errs, l.each(relay.Close))
	}
	c.reserved.close()
	if c.private != "" {
		errs = append(errs, os.RemoveAll(c.private))
	}
	return errors.Join(errs...)
}
