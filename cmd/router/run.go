package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"millrace/internal/config"
	"millrace/internal/run"
)

// Run runs the router until a signal or a failure ends it.
func (r *router) Run(sigs run.Signals) error {
	return run.Life{
		Parts: r.parts,
		Log:   r.log,
		Ready: r.announce,
		Read: func() func() {
			next := r.read()
			return func() { r.reload(next) }
		},
		Drain: func() (time.Time, func(context.Context, <-chan struct{})) {
			r.draining.Store(true)
			deadline := r.cfg.Drain.Deadline
			r.log.Info("draining: who waits is answered and goes to another router; a second signal ends at once",
				"reason", "draining", "deadline", deadline)
			// There is nothing to wait for: nodes find another router within a second, and
			// go on with what they have where there is none.
			return time.Now().Add(deadline + run.HurryTime), func(context.Context, <-chan struct{}) {}
		},
		Hurry: func() {
			r.hurry.Store(true)
			r.log.Info("ending at once")
		},
	}.Run(sigs)
}

// patience returns how long answers may take that are under way at the end.
func (r *router) patience() time.Duration {
	if r.hurry.Load() {
		return 0
	}
	return time.Duration(r.deadline.Load())
}

// announce logs what runs where. "listening" with scheme and addr is what scripts
// wait for: by then questions are taken.
func (r *router) announce() {
	r.doors.Tell()
	run.TellLowered(r.log, r.lowered, nil, r.rlimit)
	kept := "redis"
	if r.cfg.Redis.URL == "" {
		kept = r.cfg.StateFile
	}
	r.log.Info("ready", "id", r.id, "version", run.VersionLine(version), "pid", os.Getpid(), "descriptors", r.rlimit, "state_in", kept)
	if !r.cluster.Enabled() {
		r.log.Warn("without cluster.keys everybody who reaches this router can say that it is a node: set the key that all nodes share")
	}
	switch {
	case r.login != nil && r.cfg.Redis.URL != "": // it is told when the routers have agreed on a password
	case r.login != nil:
		r.log.Warn(madeUp, "user", firstUser, "password_in", r.login.file)
	case len(r.cfg.Console.Users) == 0:
		r.log.Warn("nobody can log in to the console with a password: set console.users (router hash-password)")
	}
	if r.plainLogins() {
		r.log.Warn("passwords for the console travel in the clear: use address.https, or a proxy that ends TLS")
	}
}

// Banner tells a person at a terminal what to do next.
func (r *router) Banner(w io.Writer) {
	key, internal := "", ""
	if len(r.cfg.Cluster.Keys) > 0 {
		key, internal = " --cluster-key KEY", " --internal :8090"
	}
	fmt.Fprintln(w)
	for _, o := range r.doors.Opened() {
		addr := run.Reachable(o.Addr)
		switch o.Scheme {
		case "http", "https":
			fmt.Fprintf(w, "  console   %s://%s/\n", o.Scheme, addr)
			switch {
			case r.login != nil && r.cfg.Redis.URL != "":
				fmt.Fprintf(w, "            log in as %s, the log says where the password is\n", firstUser)
			case r.login != nil:
				fmt.Fprintf(w, "            log in as %s, the password is in %s\n", firstUser, r.login.file)
			}
			fmt.Fprintf(w, "  nodes     node --id NAME --role edge%s%s --router %s://%s\n", internal, key, o.Scheme, addr)
			fmt.Fprintf(w, "  scheduler scheduler%s --router %s://%s\n", key, o.Scheme, addr)
		case "admin":
			fmt.Fprintf(w, "  operate   http://%s/v1/status   /v1/network   /v1/plan   /metrics\n", addr)
		}
	}
	fmt.Fprintln(w)
}

// plainLogins reports whether people on other machines would log in without TLS.
func (r *router) plainLogins() bool {
	return r.cfg.Address.HTTP != "" && r.cfg.Address.HTTPS == "" && !r.cfg.Console.Secure && !config.Loopback(r.cfg.Address.HTTP)
}
