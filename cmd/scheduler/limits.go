package main

import (
	"millrace/internal/config"
	"millrace/internal/run"
)

// budget returns for how many connections over HTTP there is room: what DNS and probes
// may have is kept for them, but half of all descriptors if the limit is that low.
func budget(cfg *config.Scheduler, limit int) int {
	room := limit - run.SpareDescriptors
	return max(room/2, room-cfg.DNS.MaxConnections-cfg.Probe.Concurrency)
}

// fitDescriptors makes the settings fit a limit of descriptors. It returns the
// settings and what was lowered.
func fitDescriptors(l config.Loaded[config.Scheduler], limit int) (config.Scheduler, []run.Lowered, error) {
	cfg := l.Config
	lowered, err := run.FitDescriptors(limit, run.SpareDescriptors, []run.Capacity{
		l.Capacity("listen.max_connections", &cfg.Listen.MaxConnections),
		l.Capacity("dns.max_connections", &cfg.DNS.MaxConnections),
		l.Capacity("probe.concurrency", &cfg.Probe.Concurrency),
	})
	return cfg, lowered, err
}
