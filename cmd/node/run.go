package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// closeMargin is how long before the deadline of the drain what is left is closed,
// besides the time over which viewers are spread.
const closeMargin = time.Second

// run runs the node until a signal or a failure ends it. SIGHUP reads the settings
// again; SIGTERM and SIGINT drain, a second one ends at once.
func (n *node) run(sigs signals) error {
	ctx, cancel := context.WithCancel(context.Background())
	var drains sync.WaitGroup
	defer drains.Wait()
	defer cancel()
	over := make(chan error, 1)
	go func() { over <- runGroup(ctx, n.parts, n.log) }()
	n.announce()

	hurry := make(chan struct{})
	drained := make(chan struct{})
	ending := 0
	for {
		select {
		case err := <-over:
			return err
		case <-drained:
			cancel()
			drained = nil
		case <-sigs.reload:
			n.reload()
		case s := <-sigs.end:
			switch ending++; ending {
			case 1:
				n.log.Info("ending", "signal", s.String())
				deadline := max(0, n.cfg.Drain.Deadline-n.cfg.HTTPFLV.DrainSpread-closeMargin)
				drains.Go(func() {
					defer close(drained)
					n.drain(ctx, deadline, hurry)
				})
			case 2:
				close(hurry)
			}
		}
	}
}

// announce logs what runs where. "listening" with scheme and addr is what scripts
// wait for: by then connections are taken.
func (n *node) announce() {
	for _, o := range n.opened {
		n.log.Info("listening", "scheme", o.scheme, "addr", o.ln.Addr().String())
	}
	n.log.Info("ready", "role", n.cfg.Role.String(), "version", versionLine(), "pid", os.Getpid(),
		"descriptors", n.rlimit, "max_viewers", n.cfg.HTTPFLV.MaxViewers)
	for _, key := range n.lowered {
		n.tellLowered(key)
	}
	if n.gate.Open() {
		n.log.Warn("anyone may publish: no keys are configured; set auth.publish_keys or auth.publish_secrets before this node faces the internet")
	}
}

// tellLowered logs that a default is above what the limit of descriptors allows.
func (n *node) tellLowered(key string) {
	n.log.Info("lowered to what the limit of file descriptors allows: raise it with ulimit -n or LimitNOFILE=", "setting", key, "descriptors", n.rlimit)
}

// banner tells a person at a terminal what to do next.
func (n *node) banner(w io.Writer) {
	addr := make(map[string]string)
	for _, o := range n.opened {
		addr[o.scheme] = reachable(o.ln.Addr())
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

// reachable returns an address that a person on this machine can type.
func reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
