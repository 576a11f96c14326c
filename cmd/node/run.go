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

// closeMargin is how long before the deadline of the drain the last viewer is closed:
// publishers, who are told and may take a second to hang up, come after.
const closeMargin = 2 * time.Second

// timetable is when what happens at the end.
type timetable struct {
	whole   time.Duration
	wait    time.Duration // for viewers to leave by themselves
	closeBy time.Time     // no viewer is left
	over    time.Time     // the node has ended, whatever has not stopped by then
}

// schedule plans the end of a node that begins to drain at now.
func schedule(now time.Time, deadline, spread time.Duration) timetable {
	wait := max(0, deadline-closeMargin)
	spread = min(spread, wait)
	return timetable{whole: deadline, wait: wait - spread, closeBy: now.Add(wait), over: now.Add(max(deadline, closeMargin))}
}

// Run runs the node until a signal or a failure ends it.
func (n *node) Run(sigs run.Signals) error {
	return run.Life{
		Parts: n.parts,
		Log:   n.log,
		Ready: n.announce,
		Read: func() func() {
			r := n.read()
			return func() { n.reload(r) }
		},
		Drain: func() (time.Time, func(context.Context, <-chan struct{})) {
			plan := schedule(time.Now(), n.cfg.Drain.Deadline, n.cfg.HTTPFLV.DrainSpread)
			return plan.over, func(ctx context.Context, hurry <-chan struct{}) { n.drain(ctx, plan, hurry) }
		},
		Hurry: func() {
			n.log.Info("ending at once", "viewers", n.viewers())
			n.fanout.CloseBy(time.Now())
		},
	}.Run(sigs)
}

// announce logs what runs where. "listening" with scheme and addr is what scripts
// wait for: by then connections are taken.
func (n *node) announce() {
	n.doors.Tell()
	run.TellLowered(n.log, n.lowered, nil, n.rlimit)
	n.log.Info("ready", "role", n.cfg.Role.String(), "version", run.VersionLine(version), "pid", os.Getpid(),
		"descriptors", n.rlimit, "max_viewers", n.cfg.HTTPFLV.MaxViewers)
	if up := n.cfg.Upstream; n.cfg.Role != config.Center && len(up.Pool) == 0 && len(up.Peers) == 0 && n.routing.beat == nil {
		n.log.Warn("this node fetches nothing: "+n.cfg.Role.String()+"s have upstreams; set upstream.pool or --upstream http://HOST:PORT, or --router http://HOST:PORT",
			"role", n.cfg.Role.String())
	}
	if n.routing.beat != nil && !n.self.Cluster.Enabled() {
		n.log.Warn("routers and other nodes are believed whatever they say: without cluster.keys nothing is signed; set the key that all share")
	}
	n.tellSpread(n.cfg)
	if n.gate.Open() && (n.cfg.Address.RTMP != "" || n.cfg.Address.RTMPS != "") {
		n.log.Warn("anyone may publish: no keys are configured; set auth.publish_keys or auth.publish_secrets before this node faces the internet")
	}
}

// tellSpread logs that viewers will be closed faster than asked for.
func (n *node) tellSpread(cfg config.Node) {
	fits := max(0, cfg.Drain.Deadline-closeMargin)
	if cfg.Drain.Deadline > 0 && cfg.HTTPFLV.DrainSpread > fits {
		n.log.Warn("httpflv.drain_spread does not fit into drain.deadline: viewers are closed faster",
			"deadline", cfg.Drain.Deadline, "drain_spread", cfg.HTTPFLV.DrainSpread, "used", fits)
	}
}

// Banner tells a person at a terminal what to do next.
func (n *node) Banner(w io.Writer) {
	addr := make(map[string]string)
	for _, o := range n.doors.Opened() {
		addr[o.Scheme] = run.Reachable(o.Addr)
	}
	fmt.Fprintln(w)
	if a := addr["rtmp"]; a != "" {
		fmt.Fprintf(w, "  publish   rtmp://%s/live  with the stream key  NAME   (OBS: server and key; ffmpeg: rtmp://%s/live/NAME)\n", a, a)
	}
	if a := addr["http"]; a != "" {
		fmt.Fprintf(w, "  watch     http://%s/watch/live/NAME\n", a)
		fmt.Fprintf(w, "  play      http://%s/live/NAME.flv   (ffplay, VLC, mpegts.js)\n", a)
	}
	if a := addr["admin"]; a != "" {
		fmt.Fprintf(w, "  operate   http://%s/v1/streams   /v1/sessions   /metrics\n", a)
	}
	fmt.Fprintln(w)
}
