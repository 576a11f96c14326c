package main

import (
	"errors"
	"slices"

	"millrace/internal/config"
)

// read reads the settings again.
func (n *node) read() config.Reading[config.Node] {
	return config.Read(config.DefaultNode(), n.src, check)
}

// reload puts in force what can change while the node runs. No connection is
// touched. If anything is wrong, everything stays as it is.
func (n *node) reload(next config.Reading[config.Node]) {
	if n.src.File == "" {
		n.log.Warn("no configuration file to read: --config names it when the node is started")
		if n.doors.Certificate() == nil {
			return
		}
	}
	config.Renewal[config.Node]{
		Log: n.log, Descriptors: n.rlimit, Fit: fitDescriptors, Apply: n.apply,
		// What can be refused though it is valid: the admin server knows its listener.
		Refuse: func(cfg config.Node) error { return n.admin.SetConfig(cfg.Admin.Config) },
	}.Renew(next, &n.cfg, &n.lowered)
}

// apply puts cfg in force in every component.
func (n *node) apply(cfg config.Node) error {
	n.out.Level.Set(cfg.Log.Level)
	setMemory(cfg.MemoryLimit, n.memory)
	n.private.Store(private(cfg))
	n.tellSpread(cfg)
	n.hub.SetConfig(cfg.Stream)
	n.fanout.SetConfig(cfg.HTTPFLV)
	errs := []error{n.gate.Reload(cfg.Auth), n.self.Cluster.Reload(cfg.Cluster), n.origin.SetConfig(cfg.Upstream), n.doors.Reload(cfg.Listen)}
	if servers := cfg.Router.Servers; !slices.Equal(servers, n.cfg.Router.Servers) {
		errs = append(errs, n.routing.setServers(servers))
		if n.followsRouters() {
			errs = append(errs, n.placing.setServers(servers))
		}
	}
	for _, s := range n.rtmp {
		errs = append(errs, s.SetConfig(cfg.RTMP))
	}
	for _, s := range n.http {
		errs = append(errs, s.SetConfig(cfg.HTTPFLV))
	}
	if n.api != nil {
		n.api.SetConfig(cfg.Admin)
	}
	return errors.Join(errs...)
}
