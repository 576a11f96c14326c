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
	"millrace/internal/control"
	"millrace/internal/frontend"
	"millrace/internal/listen"
	"millrace/internal/probe"
	"millrace/internal/run"
	"millrace/internal/sched"
)

// The stages of the run group: a higher one stops earlier.
const (
	stageAdmin = iota
	stageKnowledge
	stageFaces
)

// scheduler is a built scheduler: its components, wired, with open listeners and
// nothing running.
type scheduler struct {
	// Fixed at construction.
	src      config.Sources
	out      run.Output
	log      *slog.Logger
	id       string
	cluster  *auth.Cluster
	decider  *sched.Scheduler
	files    *control.Files    // nil while routers are followed
	follower *control.Follower // of routers; nil with files
	keeper   *control.Keeper
	probes   *probe.Prober
	peers    *control.Peers   // nil without other schedulers
	server   *control.Server  // nil without an internal address
	dns      *frontend.DNS    // nil without an address
	http     []*frontend.HTTP // HTTP and HTTPS, those that have an address
	admin    *admin.Server    // nil without an address
	doors    *run.Doors
	parts    run.Parts
	rlimit   int

	// Safe from any goroutine.
	draining atomic.Bool

	// Owned by run.
	cfg     config.Scheduler
	lowered []run.Lowered // defaults that the limit of descriptors does not allow
}

// check tells what build would refuse without opening anything.
func check(l config.Loaded[config.Scheduler]) error {
	err := checkKeys(l)
	if len(l.Config.Router.Servers) > 0 {
		return err
	}
	_, unread := firstBundle(l.Config.Files)
	return errors.Join(err, unread)
}

// checkKeys is check for all but the files of nodes and domains.
func checkKeys(l config.Loaded[config.Scheduler]) error {
	_, err := run.Roots(l.Config.CAFile)
	if err != nil {
		err = fmt.Errorf("ca_file: %w", err)
	}
	return errors.Join(err, config.CheckKeys(l.Config.TLS, l.Config.Cluster))
}

// firstBundle reads the files as the scheduler would.
func firstBundle(cfg control.FilesConfig) (*control.Bundle, error) {
	files, err := control.NewFiles(cfg, "check", slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	return files.Next(context.Background(), nil)
}

// build makes a scheduler of a configuration. Its files are read and its listeners
// open, so that what is wrong with either is told before anything runs.
func build(l config.Loaded[config.Scheduler], src config.Sources, out run.Output) (*scheduler, error) {
	s := &scheduler{src: src, out: out, log: out.Log, decider: sched.New()}
	s.rlimit = run.RaiseDescriptors(s.log)
	var err error
	if s.cfg, s.lowered, err = fitDescriptors(l, s.rlimit); err != nil {
		return nil, err
	}
	s.id = run.ID(s.cfg.ID, "scheduler")
	if s.cluster, err = auth.NewCluster(s.cfg.Cluster); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if err = s.buildKnowledge(); err != nil {
		return nil, err
	}
	cert, err := s.cfg.TLS.Load()
	if err != nil {
		return nil, err
	}
	s.doors = run.NewDoors(s.cfg.Listen, listen.NewBudget(budget(&s.cfg, s.rlimit)), cert, s.log)
	if cert != nil {
		s.parts.Add("certificate", stageKnowledge, s.doors.WatchCertificate)
	}
	if err = errors.Join(s.buildFaces(), s.buildAdmin()); err != nil {
		s.doors.Close()
		return nil, err
	}
	return s, nil
}

// buildAdmin puts the operators' server on its listener.
func (s *scheduler) buildAdmin() error {
	addr := s.cfg.Address.Admin
	if addr == "" {
		return nil
	}
	ln, err := s.doors.OpenAdmin(addr)
	if err != nil {
		return err
	}
	name, revision := run.Version(version)
	s.admin, err = admin.New(s.cfg.Admin, ln, admin.Program{
		Kind: "scheduler", ID: s.id, Role: "scheduler", Version: name, Revision: revision,
		Started: time.Now(), Draining: s.draining.Load, Figures: s.figures,
		API: admin.NewScheduler(s.sources()),
	}, s.log)
	if err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	s.parts.Add("admin", stageAdmin, func(ctx context.Context) error { return s.admin.Run(ctx) })
	return nil
}

// sources are what operators look at.
func (s *scheduler) sources() admin.SchedulerSources {
	out := admin.SchedulerSources{
		View: s.decider.View, Keeper: s.keeper.Status, Probes: s.probes.Stats, Explain: frontend.ExplainHandler(s.decider),
	}
	if s.follower != nil {
		out.Questions = s.follower.Counts
	}
	if s.peers != nil {
		out.Peers = s.peers.Status
	}
	if s.server != nil {
		out.Server = s.server.Stats
	}
	return out
}
