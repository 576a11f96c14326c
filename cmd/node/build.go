package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"millrace/internal/admin"
	"millrace/internal/auth"
	"millrace/internal/config"
	"millrace/internal/httpflv"
	"millrace/internal/listen"
	"millrace/internal/quality"
	"millrace/internal/rtmp"
	"millrace/internal/run"
	"millrace/internal/session"
	"millrace/internal/stream"
	"millrace/internal/upstream"
)

const (
	// sweepEvery is how often streams are looked at whose grace time may be over.
	sweepEvery = 100 * time.Millisecond
	// collectPercent is how far the heap may grow beyond what lives before it is
	// collected, unless GOGC says otherwise. The heap is nearly all media bytes, which
	// the collector does not look into, so that collecting often is cheap: 100 streams
	// of 500 kbit/s take 107 MiB at Go's 100 %, 96 MiB at 40 % and 91 MiB at 30 %.
	collectPercent = 30
)

// The stages of the run group: a higher one stops earlier.
const (
	stageAdmin = iota
	stageHousekeeping
	stageUpstream
	stagePublish
	stageViewers
)

// node is a built node: its components, wired, with open listeners and nothing
// running.
type node struct {
	// Fixed at construction.
	src     config.Sources
	out     run.Output
	log     *slog.Logger
	hub     *stream.Hub
	gate    *auth.Gate
	table   *session.Table
	fanout  *httpflv.Fanout
	self    httpflv.Identity
	origin  *upstream.Origin
	placing placing
	routing routing
	quality *quality.Book
	rtmp    []*rtmp.Server
	http    []*httpflv.Server
	admin   *admin.Server // nil without an address
	api     *admin.Node
	doors   *run.Doors
	parts   run.Parts
	rlimit  int
	memory  int64 // limit of the garbage collector that the environment asks for

	// Safe from any goroutine.
	draining atomic.Bool
	private  atomic.Bool // the names of streams are not for everybody

	// Owned by run.
	cfg     config.Node
	lowered []run.Lowered // defaults that the limit of descriptors does not allow
}

// check tells what build would refuse without opening anything.
func check(l config.Loaded[config.Node]) error {
	cfg := l.Config
	if _, err := cfg.TLS.Load(); err != nil {
		return err
	}
	if _, err := run.Roots(cfg.Upstream.CAFile); err != nil {
		return fmt.Errorf("upstream.ca_file: %w", err)
	}
	_, err := auth.NewGate(cfg.Auth)
	return err
}

// build makes a node of a configuration. Its listeners are open, so that an address
// in use is told before anything runs.
func build(l config.Loaded[config.Node], src config.Sources, out run.Output) (*node, error) {
	n := &node{src: src, out: out, log: out.Log, table: session.NewTable()}
	n.rlimit = run.RaiseDescriptors(n.log)
	var err error
	if n.cfg, n.lowered, err = fitDescriptors(l, n.rlimit); err != nil {
		return nil, err
	}
	n.memory = debug.SetMemoryLimit(-1)
	setMemory(n.cfg.MemoryLimit, n.memory)
	n.private.Store(private(n.cfg))
	if n.hub, err = stream.NewHub(n.cfg.Stream); err != nil {
		return nil, err
	}
	if n.gate, err = auth.NewGate(n.cfg.Auth); err != nil {
		return nil, err
	}
	if err = n.buildOrigin(); err != nil {
		return nil, err
	}
	if err = n.buildPlacing(); err != nil {
		return nil, err
	}
	n.quality = quality.New(n.placing.locate)
	n.self.Quality = n.quality
	if n.fanout, err = httpflv.NewFanout(n.cfg.HTTPFLV, n.log); err != nil {
		return nil, err
	}
	cert, err := n.cfg.TLS.Load()
	if err != nil {
		return nil, err
	}
	n.doors = run.NewDoors(n.cfg.Listen, listen.NewBudget(n.rlimit-spare(&n.cfg, n.rlimit)), cert, n.log)
	if err = n.buildServers(); err != nil {
		n.doors.Close()
		return nil, err
	}
	n.parts.Add("fan-out", stageViewers, n.fanout.Run)
	n.parts.Add("sweeper", stageHousekeeping, n.sweep)
	if cert != nil {
		n.parts.Add("certificate", stageHousekeeping, n.doors.WatchCertificate)
	}
	return n, nil
}

// buildOrigin makes what fetches streams from other nodes.
func (n *node) buildOrigin() error {
	cluster, err := auth.NewCluster(n.cfg.Cluster)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	id := run.ID(n.cfg.ID, "node")
	n.self = httpflv.Identity{ID: id, Cluster: cluster, Refused: n.closedEarly}
	roots, err := run.Roots(n.cfg.Upstream.CAFile)
	if err != nil {
		return fmt.Errorf("upstream.ca_file: %w", err)
	}
	route, err := n.buildRoutes(roots)
	if err != nil {
		return err
	}
	n.origin, err = upstream.New(n.cfg.Upstream, upstream.Options{
		Self: id, Hub: n.hub, Gate: n.gate, Cluster: cluster, Grace: n.cfg.Stream.Grace, TLS: roots, Route: route, Log: n.log,
		Load: func() float64 { return n.fanout.Load() }, Capacity: n.cfg.Scheduling.Capacity,
	})
	if err != nil {
		return fmt.Errorf("upstream: %w", err)
	}
	n.self.Ring = n.origin
	n.hub.SetSource(n.origin)
	n.parts.Add("upstream", stageUpstream, n.origin.Run)
	return nil
}

// setMemory tells the garbage collector what the node wants of it: limit, or
// otherwise without one.
func setMemory(limit, otherwise int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectPercent)
	}
	debug.SetMemoryLimit(cmp.Or(limit, otherwise))
}

// sweep ends the streams whose grace time is over, and gives back the memory that much
// of that leaves.
func (n *node) sweep(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	var memory thrift
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			n.hub.Sweep(now)
			if memory.due(now, n.hub.Cleared()) {
				debug.FreeOSMemory()
			}
		}
	}
}
