package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"

	"millrace/internal/config"
	"millrace/internal/control"
	"millrace/internal/probe"
	"millrace/internal/run"
	"millrace/internal/sched"
)

// buildKnowledge makes what the scheduler decides by: files or routers, probes, and who
// puts them together. The first view is there when it returns, though nobody has looked
// at an edge yet; but for a scheduler that has nothing from its routers so far.
func (s *scheduler) buildKnowledge() error {
	roots, err := run.Roots(s.cfg.CAFile)
	if err != nil {
		return fmt.Errorf("ca_file: %w", err)
	}
	source, err := s.buildSource(roots)
	if err != nil {
		return err
	}
	observe := func(o []sched.Observation) { s.keeper.Observe(o) }
	if s.probes, err = probe.New(s.cfg.Probe, s.id, s.cluster, nil, roots.Clone(), observe, s.log); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	listeners := []control.Listener{probed{s.probes}}
	if s.cfg.Address.Internal != "" {
		if s.server, err = control.NewServer(s.cfg.Control, s.cluster, s.log); err != nil {
			return fmt.Errorf("control: %w", err)
		}
		listeners = append(listeners, s.server)
	}
	cfg := control.DefaultKeeperConfig()
	cfg.Observer = s.id
	if s.keeper, err = control.NewKeeper(cfg, source, s.decider, s.log, listeners...); err != nil {
		return err
	}
	s.parts.Add("keeper", stageKnowledge, s.keeper.Run)
	s.parts.Add("probes", stageKnowledge, s.probes.Run)
	peers := s.cfg.Peers
	if peers.Servers = observers(s.cfg); len(peers.Servers) == 0 {
		return nil
	}
	if s.peers, err = control.NewPeers(peers, s.id, s.cluster, nil, roots.Clone(), observe, s.log); err != nil {
		return fmt.Errorf("peers: %w", err)
	}
	s.parts.Add("peers", stageKnowledge, s.peers.Run)
	return nil
}

// observers are the servers that tell what they see of the edges.
func observers(cfg config.Scheduler) []string {
	return slices.Concat(cfg.Peers.Servers, cfg.Router.Servers)
}

// setRouters has the routers of cfg followed. Without any before or from now on nothing
// changes: that needs a restart.
func (s *scheduler) setRouters(cfg config.Scheduler) error {
	if s.follower == nil {
		return nil
	}
	return errors.Join(s.follower.SetServers(cfg.Router.Servers), s.peers.SetServers(observers(cfg)))
}

// buildSource makes what nodes and domains come from, and decides by what it has at
// once: the files, or what was kept of a router.
func (s *scheduler) buildSource(roots *tls.Config) (control.Source, error) {
	if len(s.cfg.Router.Servers) > 0 {
		return s.buildFollower(roots)
	}
	var err error
	if s.files, err = control.NewFiles(s.cfg.Files, s.id, s.log); err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	first, err := s.files.Next(context.Background(), nil)
	if err != nil {
		return nil, err
	}
	return s.beginWith(s.files, first)
}

// buildFollower is buildSource for a scheduler that has routers. No router is asked yet.
func (s *scheduler) buildFollower(roots *tls.Config) (control.Source, error) {
	var err error
	if s.follower, err = control.NewFollower(s.cfg.Router.Follow(), s.id, s.cluster, nil, roots.Clone(), s.log); err != nil {
		return nil, fmt.Errorf("router: %w", err)
	}
	over, end := context.WithCancel(context.Background())
	end()
	kept, err := s.follower.Next(over, nil)
	if err != nil {
		return s.follower, nil // nothing is kept
	}
	return s.beginWith(s.follower, kept)
}

// beginWith decides by first until src has another one.
func (s *scheduler) beginWith(src control.Source, first *control.Bundle) (control.Source, error) {
	compiled, err := first.Compile(nil)
	if err != nil {
		return nil, err
	}
	s.decider.Swap(sched.NewView(compiled.Plan, compiled.Table, nil))
	return &begun{src, first}, nil
}

// begun is a source whose first bundle is there.
type begun struct {
	control.Source
	first *control.Bundle
}

// Next returns the first bundle, then what the source says from then on.
func (b *begun) Next(ctx context.Context, have *control.Bundle) (*control.Bundle, error) {
	if have == nil {
		return b.first, nil
	}
	return b.Source.Next(ctx, have)
}

// probed has the nodes of each bundle probed.
type probed struct{ by *probe.Prober }

// Bundle begins to ask the nodes of b, and no others.
func (p probed) Bundle(b *control.Bundle) { p.by.SetNodes(b.Snapshot.Nodes) }

// Report is of no interest here.
func (probed) Report(*control.Report) {}
