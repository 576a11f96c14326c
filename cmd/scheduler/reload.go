package main

import (
	"errors"
	"slices"

	"millrace/internal/config"
)

// read reads the settings again, but not the files that they name: those have a reader
// of their own, which is told to look.
func (s *scheduler) read() config.Reading[config.Scheduler] {
	if s.files != nil {
		s.files.Reload()
	}
	return config.Read(config.DefaultScheduler(), s.src, checkKeys)
}

// reload puts in force what can change while the scheduler runs. If anything is wrong
// with the settings, all of them stay as they are; the files of nodes and domains
// stand on their own.
func (s *scheduler) reload(next config.Reading[config.Scheduler]) {
	if s.src.File == "" {
		text := "no configuration file to read: --config names it when the scheduler is started"
		if s.files != nil {
			text = "no configuration file to read, --config names it when the scheduler is started: the files of nodes and domains are looked at"
		}
		s.log.Info(text)
		if s.doors.Certificate() == nil {
			return
		}
	}
	config.Renewal[config.Scheduler]{
		Log: s.log, Descriptors: s.rlimit, Fit: fitDescriptors, Apply: s.apply,
		// What can be refused though it is valid: the admin server knows its listener.
		Refuse: func(cfg config.Scheduler) error { return s.admin.SetConfig(cfg.Admin) },
	}.Renew(next, &s.cfg, &s.lowered)
}

// apply puts cfg in force in every component.
func (s *scheduler) apply(cfg config.Scheduler) error {
	s.out.Level.Set(cfg.Log.Level)
	errs := []error{s.cluster.Reload(cfg.Cluster), s.doors.Reload(cfg.Listen)}
	if !slices.Equal(cfg.Router.Servers, s.cfg.Router.Servers) {
		errs = append(errs, s.setRouters(cfg))
	}
	for _, h := range s.http {
		errs = append(errs, h.SetConfig(cfg.HTTP))
	}
	if s.dns != nil {
		errs = append(errs, s.dns.SetConfig(cfg.DNS))
	}
	return errors.Join(errs...)
}
