package main

import (
	"errors"

	"millrace/internal/config"
)

// read reads the settings again.
func (r *router) read() config.Reading[config.Router] {
	return config.Read(config.DefaultRouter(), r.src, func(l config.Loaded[config.Router]) error {
		return config.CheckKeys(l.Config.TLS, l.Config.Cluster)
	})
}

// reload puts in force what can change while the router runs. If anything is wrong with
// the settings, all of them stay as they are.
func (r *router) reload(next config.Reading[config.Router]) {
	if r.src.File == "" && r.doors.Certificate() == nil {
		r.log.Info("no configuration file to read: --config names it when the router is started; documents are edited in the console")
		return
	}
	config.Renewal[config.Router]{
		Log: r.log, Descriptors: r.rlimit, Fit: fitDescriptors, Apply: r.apply,
		// What can be refused though it is valid: the admin server knows its listener.
		Refuse: func(cfg config.Router) error { return r.admin.SetConfig(cfg.Admin) },
	}.Renew(next, &r.cfg, &r.lowered)
}

// apply puts cfg in force in every component.
func (r *router) apply(cfg config.Router) error {
	r.out.Level.Set(cfg.Log.Level)
	r.deadline.Store(int64(cfg.Drain.Deadline))
	return errors.Join(r.cluster.Reload(cfg.Cluster), r.setConsole(cfg.Console), r.doors.Reload(cfg.Listen))
}
