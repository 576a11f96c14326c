package main

import (
	"millrace/internal/config"
	"millrace/internal/run"
)

// upstreamShare is which part of all descriptors a node that fetches streams keeps for
// that: each stream has a connection to an upstream, and two more while others are
// tried.
const upstreamShare = 8

// spare returns how many descriptors of limit are not for those who connect.
func spare(n *config.Node, limit int) int {
	if up := &n.Upstream; len(up.Pool)+len(up.Peers)+len(up.Centers)+len(n.Router.Servers) > 0 {
		return run.SpareDescriptors + limit/upstreamShare
	}
	return run.SpareDescriptors
}

// fitDescriptors makes the settings fit a limit of descriptors. It returns the
// settings and what was lowered.
func fitDescriptors(l config.Loaded[config.Node], limit int) (config.Node, []run.Lowered, error) {
	n := l.Config
	lowered, err := run.FitDescriptors(limit, spare(&n, limit), []run.Capacity{
		l.Capacity("httpflv.max_viewers", &n.HTTPFLV.MaxViewers),
		l.Capacity("listen.max_connections", &n.Listen.MaxConnections),
	})
	return n, lowered, err
}
