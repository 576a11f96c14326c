package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"

	"millrace/internal/admin"
	"millrace/internal/config"
	"millrace/internal/control"
	"millrace/internal/measure"
	"millrace/internal/run"
	"millrace/internal/stream"
	"millrace/internal/upstream"
)

// routing is how a node works with routers. Without any it is zero, and the node goes by
// its settings alone.
//
//	routers ◀─ heartbeats ── beat ◀── gatherer ◀── hub, origin, viewers, measurements
//	        ── orders ─────▶ follower ─▶ origin, prober
//	        ── paths ──────▶ finder ───▶ origin
//	other nodes ◀── trains ──▶ prober, responder
type routing struct {
	beat      *control.Beat
	follower  *control.OrdersFollower
	finder    *control.Pathfinder
	prober    *measure.Prober
	responder *measure.Responder // nil where no probes are answered
	collector *measure.Collector
	where     *whereabouts
	ways      ways

	// Safe from any goroutine.
	orders atomic.Pointer[control.Orders] // in force; nil before the first
}

// buildRoutes makes what the origin asks for paths. It comes before the origin.
func (n *node) buildRoutes(roots *tls.Config) (upstream.Router, error) {
	servers := n.cfg.Router.Servers
	if len(servers) == 0 {
		return nil, nil
	}
	n.routing.ways = n.cfg.Router.Reach
	cfg := control.DefaultPathConfig()
	cfg.Servers = servers
	var err error
	if n.routing.finder, err = control.NewPathfinder(cfg, n.self.ID, n.self.Cluster, nil, roots.Clone(), n.log); err != nil {
		return nil, fmt.Errorf("router: %w", err)
	}
	n.parts.Add("paths", stageUpstream, n.routing.finder.Run)
	return n.route, nil
}

// route asks where a stream should be pulled from, if routers want to be asked.
func (n *node) route(ctx context.Context, name stream.Name) ([]upstream.Upstream, error) {
	if o := n.routing.orders.Load(); o == nil || !o.Paths {
		return nil, nil
	}
	r, err := n.routing.finder.Route(ctx, name)
	if err != nil {
		return nil, err
	}
	return upstreamsOf(n.routing.ways.targets(r.Choices)), nil
}

// buildRouting makes the rest of what works with routers. It comes when the listeners
// are open: what a node says of itself has their ports.
func (n *node) buildRouting() error {
	cfg, r := n.cfg.Router, &n.routing
	if len(cfg.Servers) == 0 {
		return nil
	}
	roots, err := run.Roots(n.cfg.Upstream.CAFile)
	if err != nil {
		return fmt.Errorf("upstream.ca_file: %w", err)
	}
	if err := n.buildProbes(); err != nil {
		return err
	}
	follow := control.DefaultFollowerConfig()
	follow.Servers, follow.File = cfg.Servers, cfg.StateFile
	beat := control.DefaultBeatConfig()
	beat.Servers, beat.Every = cfg.Servers, cfg.Every
	r.where = newWhereabouts(cfg.Servers)
	var errs [2]error
	r.follower, errs[0] = control.NewOrdersFollower(follow, n.self.ID, n.self.Cluster, nil, roots.Clone(), n.obey, n.log)
	r.beat, errs[1] = control.NewBeat(beat, &gatherer{n, n.cfg}, n.self.ID, n.self.Cluster, nil, roots.Clone(), n.log)
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("router: %w", err)
	}
	n.parts.Add("whereabouts", stageHousekeeping, r.where.run)
	n.parts.Add("orders", stageUpstream, r.follower.Run)
	needsLocal := n.needsLocal()
	n.parts.Add("heartbeats", stageHousekeeping, func(ctx context.Context) error {
		if needsLocal && !r.where.await(ctx) {
			return nil
		}
		return r.beat.Run(ctx)
	})
	return nil
}

// buildProbes makes what measures the ways to other nodes, and what answers them.
func (n *node) buildProbes() error {
	r := &n.routing
	var err error
	r.prober, err = measure.NewProber(measure.DefaultProberConfig(), measure.ProberOptions{Self: n.self.ID, Cluster: n.self.Cluster})
	if err != nil {
		return fmt.Errorf("router: %w", err)
	}
	r.collector = measure.NewCollector(n.self.ID, n.origin, r.prober)
	n.parts.Add("probes", stageHousekeeping, r.prober.Run)
	at := n.cfg.Router.Probe
	switch at {
	case config.ProbesOff:
		return nil
	case "":
		at = n.probeAddress()
	}
	if r.responder, err = measure.NewResponder(measure.DefaultResponderConfig(), n.self.ID, n.self.Cluster, n.log); err != nil {
		return fmt.Errorf("router: %w", err)
	}
	addr, err := net.ResolveUDPAddr("udp", at)
	if err != nil {
		return fmt.Errorf("router.probe: %w", err)
	}
	conn, err := net.ListenUDP("udp", addr)
	if err != nil {
		return fmt.Errorf("router.probe: %w: set it to another port, or to off", err)
	}
	n.doors.Add(run.Opened{Scheme: "probe", Addr: conn.LocalAddr(), Close: conn.Close})
	n.parts.Add("probe", stageHousekeeping, func(ctx context.Context) error { return r.responder.Run(ctx, conn) })
	return nil
}

// pullSchemes are the listeners where other nodes pull, the best first.
var pullSchemes = []string{"internal", "http", "https"}

// probeAddress returns where probes are answered if nothing else is said: at the port
// where other nodes pull, so that a firewall has one number for both.
func (n *node) probeAddress() string {
	b, _ := n.boundOf(pullSchemes...)
	host := ""
	if b.addr.IsValid() {
		host = b.addr.String()
	}
	port := b.port
	if _, asked, err := net.SplitHostPort(map[string]string{
		"internal": n.cfg.Address.Internal, "http": n.cfg.Address.HTTP, "https": n.cfg.Address.HTTPS,
	}[b.scheme]); err == nil && asked == "0" {
		port = 0 // the kernel chose one that may be taken over UDP
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// obey puts orders in force, with the ways to others that the settings know better.
func (n *node) obey(o *control.Orders) {
	o = n.routing.ways.orders(o)
	orders := &upstream.Orders{
		Pool: upstreamsOf(o.Pool), Peers: upstreamsOf(o.Peers), Weight: o.Weight, Capacity: o.Capacity,
	}
	for _, c := range o.Centers {
		orders.Centers = append(orders.Centers, upstream.Upstream{Node: c.Node, URL: c.Push, Weight: c.Weight, Capacity: c.Capacity})
	}
	if err := n.origin.SetOrders(orders); err != nil {
		n.log.Error("orders of the router are of no use, those before stay in force", "version", o.Version, "err", err)
		return
	}
	targets := make([]measure.Target, 0, len(o.Measure))
	for _, t := range o.Measure {
		targets = append(targets, measure.Target{Node: t.Node, Probe: t.Probe, URL: t.URL})
	}
	n.routing.prober.SetTargets(targets)
	n.routing.orders.Store(o)
	n.log.Info("orders in force", "version", o.Version, "pool", nodesOf(o.Pool), "peers", nodesOf(o.Peers), "centers", nodesOf(o.Centers), "paths", o.Paths)
}

// upstreamsOf returns targets as the origin takes them.
func upstreamsOf(targets []control.Target) []upstream.Upstream {
	out := make([]upstream.Upstream, 0, len(targets))
	for _, t := range targets {
		out = append(out, upstream.Upstream{Node: t.Node, URL: t.URL, Weight: t.Weight, Capacity: t.Capacity})
	}
	return out
}

// nodesOf returns the ids of targets, for the log.
func nodesOf(targets []control.Target) []string {
	out := make([]string, 0, len(targets))
	for _, t := range targets {
		out = append(out, t.Node)
	}
	return out
}

// setServers has other routers asked and told. Without any before or from now on nothing
// changes: that needs a restart.
func (r *routing) setServers(servers []string) error {
	if r.beat == nil || len(servers) == 0 {
		return nil
	}
	r.where.servers.Store(&servers)
	return errors.Join(r.beat.SetServers(servers), r.follower.SetServers(servers), r.finder.SetServers(servers))
}

// hurry has the routers told at once.
func (r *routing) hurry() {
	if r.beat != nil {
		r.beat.Hurry()
	}
}

// status is what the admin port shows of it.
func (r *routing) status() admin.Routing {
	out := admin.Routing{
		Heartbeats: r.beat.Status(), Orders: r.follower.Status(), InForce: r.orders.Load(), Paths: r.finder.Status(),
		Probes: admin.Probes{Sent: r.prober.Stats()},
	}
	if r.responder != nil {
		out.Probes.Answered = new(r.responder.Stats())
	}
	return out
}

// needsLocal reports whether where others reach this node has to be found out.
func (n *node) needsLocal() bool {
	pull, _ := n.boundOf(pullSchemes...)
	return n.cfg.Router.URL == "" && pull.hostOf(n.cfg.Router.Addresses, netip.Addr{}) == ""
}
