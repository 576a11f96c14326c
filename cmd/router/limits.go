package main

import (
	"millrace/internal/config"
	"millrace/internal/run"
)

// fitDescriptors makes the settings fit a limit of descriptors. It returns the
// settings and what was lowered.
func fitDescriptors(l config.Loaded[config.Router], limit int) (config.Router, []run.Lowered, error) {
	cfg := l.Config
	lowered, err := run.FitDescriptors(limit, run.SpareDescriptors, []run.Capacity{
		l.Capacity("listen.max_connections", &cfg.Listen.MaxConnections),
	})
	return cfg, lowered, err
}
