package main

import (
	"errors"
	"slices"

	"millrace/internal/config"
)

// reload reads the settings again and puts those in force that can change while
// the node runs. No connection is touched. If anything is wrong, everything stays
// as it is.
func (n *node) reload() {
	loaded, err := config.Load(n.src)
	if err == nil {
		err = check(loaded)
	}
	var next config.Node
	var lowered []string
	if err == nil {
		next, lowered, err = fitDescriptors(loaded, n.rlimit)
	}
	if err == nil && n.admin != nil {
		// The only one that can refuse a valid section: it knows its listener.
		err = n.admin.SetConfig(next.Admin)
	}
	if err != nil {
		n.log.Error("reload refused, the old settings stay", "err", err)
		return
	}
	changes := config.Changes(n.cfg, next)
	next = config.Keep(n.cfg, next)
	if err := n.apply(next); err != nil {
		// Everything was validated, so this is a fault of ours.
		n.log.Error("reload is not complete", "err", err)
	}
	n.cfg = next
	for _, c := range changes {
		if c.Restart {
			n.log.Warn("changed, but only a restart puts it in force", "setting", c.Key, "old", c.Old, "new", c.New)
			continue
		}
		n.log.Info("changed", "setting", c.Key, "old", c.Old, "new", c.New)
	}
	for _, key := range lowered {
		if !slices.Contains(n.lowered, key) {
			n.tellLowered(key)
		}
	}
	n.lowered = lowered
	n.log.Info("reloaded", "changes", len(changes))
}

// apply puts cfg in force in every component.
func (n *node) apply(cfg config.Node) error {
	n.out.level.Set(cfg.Log.Level)
	setMemory(cfg.MemoryLimit, n.memory)
	n.private.Store(private(cfg))
	n.hub.SetConfig(cfg.Stream)
	n.fanout.SetConfig(cfg.HTTPFLV)
	errs := []error{n.gate.Reload(cfg.Auth)}
	for _, l := range n.listens {
		errs = append(errs, l.SetConfig(cfg.Listen))
	}
	for _, s := range n.rtmp {
		errs = append(errs, s.SetConfig(cfg.RTMP))
	}
	for _, s := range n.http {
		errs = append(errs, s.SetConfig(cfg.HTTPFLV))
	}
	if n.cert != nil {
		errs = append(errs, n.cert.Reload())
	}
	return errors.Join(errs...)
}
