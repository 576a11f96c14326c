package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"millrace/internal/run"
)

const (
	// calm is how long nobody must have asked for a drain to be over before its
	// deadline: whoever sends traffic here has noticed.
	calm = 3 * time.Second
	// drainLook is how often it is looked whether somebody asks.
	drainLook = 100 * time.Millisecond
)

// Run runs the scheduler until a signal or a failure ends it.
func (s *scheduler) Run(sigs run.Signals) error {
	return run.Life{
		Parts: s.parts,
		Log:   s.log,
		Ready: s.announce,
		Read: func() func() {
			r := s.read()
			return func() { s.reload(r) }
		},
		Drain: func() (time.Time, func(context.Context, <-chan struct{})) {
			deadline := s.cfg.Drain.Deadline
			return time.Now().Add(deadline + run.HurryTime), func(ctx context.Context, hurry <-chan struct{}) {
				s.drain(ctx, deadline, hurry, s.questions)
			}
		},
		Hurry: func() { s.log.Info("ending at once") },
	}.Run(sigs)
}

// drain goes on answering as before, until nobody asks any more or the deadline is
// over. The answers keep their TTL: it is about the edges, which stay, and a shorter
// one would only bring everybody back sooner, to fewer schedulers.
func (s *scheduler) drain(ctx context.Context, deadline time.Duration, hurry <-chan struct{}, questions func() uint64) {
	s.draining.Store(true)
	s.log.Info("draining: health checks are told, and everybody is answered; a second signal ends at once",
		"reason", "draining", "deadline", deadline, "until_calm_for", calm)
	end, look := time.NewTimer(deadline), time.NewTicker(drainLook)
	defer end.Stop()
	defer look.Stop()
	asked, since := questions(), time.Now()
	for {
		select {
		case now := <-look.C:
			if n := questions(); n != asked {
				asked, since = n, now
			}
			if now.Sub(since) >= calm {
				s.log.Info("drained: nobody asks any more")
				return
			}
		case <-end.C:
			s.log.Info("the time of the drain is over")
			return
		case <-hurry:
			return
		case <-ctx.Done():
			return
		}
	}
}

// questions returns how often somebody has asked.
func (s *scheduler) questions() (n uint64) {
	if s.dns != nil {
		st := s.dns.Stats()
		n = st.UDP + st.TCP
	}
	for _, h := range s.http {
		for _, c := range h.Stats() {
			n += c.Count
		}
	}
	return n
}

// announce logs what runs where. "listening" with scheme and addr is what scripts
// wait for: by then questions are taken.
func (s *scheduler) announce() {
	s.doors.Tell()
	run.TellLowered(s.log, s.lowered, nil, s.rlimit)
	plan := s.decider.View().Plan
	s.log.Info("ready", "id", s.id, "version", run.VersionLine(version), "pid", os.Getpid(), "descriptors", s.rlimit,
		"nodes", len(plan.Nodes), "domains", len(plan.Domains), "zones", len(plan.Zones))
	if d := s.cfg.HTTP.DefaultDomain; d != "" && s.files != nil && plan.Domain(d) == nil {
		s.log.Warn("http.default_domain is no domain of the domains file: requests for other hosts are refused", "domain", d)
	}
	if !s.cluster.Enabled() {
		s.log.Warn("redirects carry no mark: without cluster.keys an edge cannot know that a player was sent to it; set the key that all nodes share")
	}
}

// Banner tells a person at a terminal what to do next.
func (s *scheduler) Banner(w io.Writer) {
	name := "NAME"
	if d := s.decider.View().Plan.Domains; len(d) > 0 {
		name = d[0].Name
	}
	fmt.Fprintln(w)
	for _, o := range s.doors.Opened() {
		addr := run.Reachable(o.Addr)
		switch o.Scheme {
		case "dns":
			host, port, _ := net.SplitHostPort(addr)
			fmt.Fprintf(w, "  dns       dig @%s -p %s %s\n", host, port, name)
		case "http":
			fmt.Fprintf(w, "  302       curl -i -H 'Host: %s' http://%s/live/NAME.flv\n", name, addr)
			fmt.Fprintf(w, "  http-dns  curl 'http://%s/v1/resolve?domain=%s'\n", addr, name)
		case "admin":
			fmt.Fprintf(w, "  operate   http://%s/v1/nodes   /v1/status   /v1/explain?domain=%s&ip=IP   /metrics\n", addr, name)
		}
	}
	fmt.Fprintln(w)
}
