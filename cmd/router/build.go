package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"millrace/internal/admin"
	"millrace/internal/auth"
	"millrace/internal/config"
	"millrace/internal/console"
	"millrace/internal/control"
	"millrace/internal/fleet"
	"millrace/internal/frontend"
	"millrace/internal/run"
	"millrace/internal/sched"
)

// The stages of the run group: a higher one stops earlier.
const (
	stageAdmin   = iota
	stageState   // the last plan is published, and the lease given up, before it closes
	stageMind    // hears, plans, publishes
	stageServers // who asks
)

// router is a built router: its components, wired, with open listeners and nothing
// running.
type router struct {
	// Fixed at construction.
	src     config.Sources
	out     run.Output
	log     *slog.Logger
	id      string
	version string
	cluster *auth.Cluster
	state   state
	fleet   *fleet.Fleet
	decider *sched.Scheduler // for explanations: routers place nobody
	keeper  *control.Keeper
	server  *control.Server
	console *console.Console
	login   *firstLogin   // nil where the settings name somebody
	admin   *admin.Server // nil without an address
	doors   *run.Doors
	parts   run.Parts
	rlimit  int

	// Safe from any goroutine.
	draining atomic.Bool
	hurry    atomic.Bool
	deadline atomic.Int64 // of a drain, as a time.Duration

	// Owned by run.
	cfg     config.Router
	lowered []run.Lowered // defaults that the limit of descriptors does not allow
}

// check tells what build would refuse without opening anything.
func check(cfg config.Router) error {
	_, err := loadMMDB(cfg.MMDB)
	return errors.Join(config.CheckKeys(cfg.TLS, cfg.Cluster), err, checkSeeds(cfg))
}

// build makes a router of a configuration. Its state is read and its listeners open, so
// that what is wrong with either is told before anything runs.
func build(l config.Loaded[config.Router], src config.Sources, out run.Output) (*router, error) {
	r := &router{src: src, out: out, log: out.Log, decider: sched.New()}
	r.rlimit = run.RaiseDescriptors(r.log)
	var err error
	if r.cfg, r.lowered, err = fitDescriptors(l, r.rlimit); err != nil {
		return nil, err
	}
	r.deadline.Store(int64(r.cfg.Drain.Deadline))
	r.version, _ = run.Version(version)
	r.id = run.ID(r.cfg.ID, "router")
	if r.cluster, err = auth.NewCluster(r.cfg.Cluster); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	cert, err := r.cfg.TLS.Load()
	if err != nil {
		return nil, err
	}
	r.doors = run.NewDoors(r.cfg.Listen, nil, cert, r.log)
	if cert != nil {
		r.parts.Add("certificate", stageMind, r.doors.WatchCertificate)
	}
	if err = r.buildMind(); err == nil {
		err = errors.Join(r.buildConsole(), r.buildServers(), r.buildAdmin())
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// buildMind makes what the router keeps, knows and tells nodes and schedulers.
func (r *router) buildMind() error {
	seeds, err := loadSeeds(r.cfg.Seed)
	if err != nil {
		return err
	}
	cfg := r.cfg.Mind(r.id, r.version)
	if cfg.MMDB, err = loadMMDB(r.cfg.MMDB); err != nil {
		return err
	}
	if r.state, err = openState(r.cfg, r.log); err != nil {
		return err
	}
	r.parts.Add("state", stageState, func(ctx context.Context) error {
		return errors.Join(r.state.Run(ctx), r.state.Close())
	})
	if r.fleet, err = fleet.New(cfg, r.state, r.log); err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	if r.server, err = control.NewServer(r.cfg.Control, r.cluster, r.log); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	r.server.Fleet(r.fleet)
	keeping := control.DefaultKeeperConfig()
	keeping.Observer = r.id
	if r.keeper, err = control.NewKeeper(keeping, r.fleet.Source(), r.decider, r.log, r.server); err != nil {
		return err
	}
	r.fleet.Connect(heard{r})
	r.parts.Add("fleet", stageMind, r.fleet.Run)
	r.parts.Add("keeper", stageMind, r.keeper.Run)
	r.parts.Add("seeds", stageMind, func(ctx context.Context) error { return r.sow(ctx, seeds) })
	return nil
}

// heard hands on what the fleet has for others.
type heard struct{ r *router }

// OrdersChanged wakes the nodes that have new orders.
func (h heard) OrdersChanged(nodes []string) { h.r.server.OrdersChanged(nodes) }

// Observed lets schedulers and edges know how nodes are.
func (h heard) Observed(obs []sched.Observation) { h.r.keeper.Observe(obs) }

// buildConsole makes the page and the API of operators.
func (r *router) buildConsole() error {
	var err error
	if r.login, err = makeLogin(r.cfg); err != nil {
		return err
	}
	cfg := r.cfg.Console
	if r.login != nil {
		cfg = r.login.users()
	}
	r.console, err = console.New(cfg, console.Program{
		Router: r.id, Version: r.version, Logouts: r.state,
		Secrets: func() [][]byte { return r.cluster.Derive("console") },
		Explain: frontend.ExplainHandler(r.decider), Scheduler: r.decider,
	}, r.fleet, r.log)
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	r.parts.Add("console", stageMind, r.console.Run)
	if r.login != nil && r.cfg.Redis.URL != "" {
		r.parts.Add("login", stageMind, r.shareLogin)
	}
	return nil
}

// buildAdmin puts the operators' server on its listener.
func (r *router) buildAdmin() error {
	addr := r.cfg.Address.Admin
	if addr == "" {
		return nil
	}
	ln, err := r.doors.OpenAdmin(addr)
	if err != nil {
		return err
	}
	name, revision := run.Version(version)
	r.admin, err = admin.New(r.cfg.Admin, ln, admin.Program{
		Kind: "router", ID: r.id, Role: "router", Version: name, Revision: revision,
		Started: time.Now(), Draining: r.draining.Load, Figures: r.figures,
		API: admin.NewRouter(admin.RouterSources{
			Fleet: r.fleet, Keeper: r.keeper.Status, Server: r.server.Stats, Explain: frontend.ExplainHandler(r.decider),
		}),
	}, r.log)
	if err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	r.parts.Add("admin", stageAdmin, func(ctx context.Context) error { return r.admin.Run(ctx) })
	return nil
}

// close closes the listeners and the state of a router that will not run.
func (r *router) close() {
	r.doors.Close()
	if r.state != nil {
		_ = r.state.Close()
	}
}
