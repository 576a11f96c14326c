package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"millrace/internal/admin"
	"millrace/internal/config"
	"millrace/internal/control"
	"millrace/internal/frontend"
	"millrace/internal/httpflv"
	"millrace/internal/quality"
	"millrace/internal/run"
	"millrace/internal/sched"
	"millrace/internal/stream"
)

// observeEvery is how often an edge looks at itself.
const observeEvery = time.Second

// placing is how an edge knows which edge suits a player. Without schedulers or routers
// to follow there is nothing in it but the region.
//
//	schedulers ─ snapshot ─▶ follower ─▶ keeper ─▶ decider ─▶ recheck ─▶ httpflv
//	           ─ reports ──▶ peers ────────▲
//	this node ─ its own figures ───────────┘
type placing struct {
	region   string // of this node: where players are of whom nothing is known
	decider  *sched.Scheduler
	follower *control.Follower
	peers    *control.Peers
	keeper   *control.Keeper
	recheck  *frontend.Recheck // nil: nobody is sent on
}

// buildPlacing makes what n.self needs to place players.
func (n *node) buildPlacing() error {
	cfg, p, id := n.cfg.Scheduling, &n.placing, n.self.ID
	n.self.Capacity, p.region = cfg.Capacity, n.cfg.Router.Region
	if n.followsRouters() {
		cfg.From = n.cfg.Router.Servers
		if cfg.StateFile == "" && n.cfg.Router.StateFile != "" {
			cfg.StateFile = n.cfg.Router.StateFile + ".snapshot"
		}
	}
	if len(cfg.From) == 0 {
		return nil
	}
	roots, err := run.Roots(n.cfg.Upstream.CAFile)
	if err != nil {
		return fmt.Errorf("upstream.ca_file: %w", err)
	}
	p.decider = sched.New()
	if p.follower, err = control.NewFollower(cfg.Follow(), id, n.self.Cluster, nil, roots, n.log); err != nil {
		return fmt.Errorf("scheduling: %w", err)
	}
	keep := control.DefaultKeeperConfig()
	keep.Observer = id
	if p.keeper, err = control.NewKeeper(keep, p.follower, p.decider, n.log, mirror{n}); err != nil {
		return err
	}
	if p.peers, err = control.NewPeers(cfg.Reports(), id, n.self.Cluster, nil, roots.Clone(), p.keeper.Observe, n.log); err != nil {
		return fmt.Errorf("scheduling: %w", err)
	}
	if cfg.Recheck {
		if p.recheck, err = frontend.NewRecheck(cfg.Judge(id), p.decider, n.self.Cluster); err != nil {
			return fmt.Errorf("scheduling: %w", err)
		}
		n.self.Placer = p.recheck
	}
	n.parts.Add("snapshot", stageHousekeeping, p.keeper.Run)
	n.parts.Add("reports", stageHousekeeping, p.peers.Run)
	n.parts.Add("own figures", stageHousekeeping, n.observeSelf)
	return nil
}

// followsRouters reports whether the node places players by what its routers know.
func (n *node) followsRouters() bool {
	return len(n.cfg.Scheduling.From) == 0 && n.cfg.Role == config.Edge && len(n.cfg.Router.Servers) > 0
}

// setServers has other schedulers or routers followed.
func (p *placing) setServers(servers []string) error {
	return errors.Join(p.follower.SetServers(servers), p.peers.SetServers(servers))
}

// locate returns where a player is: what the snapshot says, and of players that it does
// not know that they are near this node.
func (p *placing) locate(player netip.Addr) quality.Place {
	at := quality.Place{Region: p.region}
	if p.decider == nil || !player.IsValid() {
		return at
	}
	geo := p.decider.View().Geo
	if geo == nil {
		return at
	}
	found := geo.Locate(netip.PrefixFrom(player, player.BitLen()))
	at.ISP = found.ISP
	if found.Region != "" {
		at.Region = found.Region
	}
	return at
}

// observeSelf tells the keeper again and again how this node does.
func (n *node) observeSelf(ctx context.Context) error {
	tick := time.NewTicker(observeEvery)
	defer tick.Stop()
	for {
		n.observe(time.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// observe tells the keeper how this node does: nobody knows that sooner.
func (n *node) observe(now time.Time) {
	if n.placing.keeper != nil && len(n.http) > 0 {
		n.placing.keeper.Observe(observed(n.http[0].Figures(true), now))
	}
}

// mirror shows a node to its keeper whenever there is a new bundle: before the first one
// nothing is taken in, and an edge that does not know that it is up sends all away.
type mirror struct{ node *node }

// Bundle shows the node.
func (m mirror) Bundle(*control.Bundle) { m.node.observe(time.Now()) }

// Report is of no interest here.
func (mirror) Report(*control.Report) {}

// observed makes observations of what a node says of itself. They are over both
// families: whoever comes to a node has reached it over the one that counts.
func observed(f httpflv.Figures, at time.Time) []sched.Observation {
	if f.Streams == nil {
		f.Streams = []stream.Name{} // it carries none, and says so
	}
	o := sched.Observation{
		Observer: f.Node, Node: f.Node, At: at, Up: !f.Draining && !f.Full, Draining: f.Draining,
		Figures: &sched.Figures{Load: f.Load, Viewers: f.Viewers, Refused: f.Refused, Streams: f.Streams},
	}
	v4, v6 := o, o
	v4.Family, v6.Family = sched.V4, sched.V6
	return []sched.Observation{v4, v6}
}

// figures are the metrics, read at each scrape.
func (p *placing) figures(f *admin.Figures) {
	if p.keeper == nil {
		return
	}
	now, keeper := time.Now(), p.keeper.Status()
	f.Gauge("millrace_sched_snapshot_version", "Version of the snapshot in use; it rises with every change.", float64(keeper.Version.Number))
	if !keeper.Made.IsZero() {
		f.Gauge("millrace_sched_snapshot_age_seconds", "Time since the snapshot in use was made.", now.Sub(keeper.Made).Seconds())
	}
	admin.FollowingFigures(f, now, p.follower.Counts(), p.peers.Status())
	if p.recheck == nil {
		return
	}
	for _, c := range p.recheck.Stats() {
		f.Counter("millrace_recheck_players_total", "Players that were looked at again, by where they are, the way they came and what came of it.",
			c.Count, "region", c.Region, "isp", c.ISP, "way", c.Way.String(), "outcome", c.Outcome.String())
	}
}
