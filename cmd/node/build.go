package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"millrace/internal/admin"
	"millrace/internal/auth"
	"millrace/internal/config"
	"millrace/internal/httpflv"
	"millrace/internal/listen"
	"millrace/internal/rtmp"
	"millrace/internal/session"
	"millrace/internal/stream"
	"millrace/internal/watch"
)

const (
	// sweepEvery is how often streams are looked at whose grace time may be over.
	sweepEvery = 100 * time.Millisecond
	// certificateEvery is how often the files of the certificate are looked at.
	certificateEvery = time.Minute
	// collectPercent is how far the heap may grow beyond what lives before it is
	// collected, unless GOGC says otherwise. The heap is nearly all media bytes, which
	// the collector does not look into, so that collecting often is cheap: 100 streams
	// of 500 kbit/s take 107 MiB at Go's 100 % and about 90 MiB at 40 %.
	collectPercent = 40
)

// The stages of the run group: a higher one stops earlier.
const (
	stageAdmin = iota
	stageHousekeeping
	stagePublish
	stageViewers
	stageAccept
)

// node is a built node: its components, wired, with open listeners and nothing
// running.
type node struct {
	// Fixed at construction.
	src     config.Sources
	out     output
	log     *slog.Logger
	hub     *stream.Hub
	gate    *auth.Gate
	table   *session.Table
	fanout  *httpflv.Fanout
	rtmp    []*rtmp.Server
	http    []*httpflv.Server
	admin   *admin.Server // nil without an address
	cert    *listen.Certificate
	listens []*listen.Listener
	opened  []opened
	parts   []component
	rlimit  int
	memory  int64 // limit of the garbage collector that the environment asks for

	// Safe from any goroutine.
	draining atomic.Bool
	private  atomic.Bool // the names of streams are not for everybody

	// Owned by run.
	cfg     config.Node
	lowered []string // settings whose defaults the limit of descriptors does not allow
}

// opened is a listener that is open.
type opened struct {
	scheme string // rtmp, rtmps, http, https, admin
	ln     net.Listener
}

// check tells what build would refuse without opening anything.
func check(l config.Loaded) error {
	if l.TLS.CertFile != "" {
		if _, err := listen.LoadCertificate(l.TLS.CertFile, l.TLS.KeyFile); err != nil {
			return fmt.Errorf("tls: %w", err)
		}
	}
	_, err := auth.NewGate(l.Auth)
	return err
}

// build makes a node of a configuration. Its listeners are open, so that an address
// in use is told before anything runs.
func build(l config.Loaded, src config.Sources, out output) (*node, error) {
	n := &node{src: src, out: out, log: out.log, table: session.NewTable()}
	n.rlimit = raiseDescriptors(n.log)
	var err error
	if n.cfg, n.lowered, err = fitDescriptors(l, n.rlimit); err != nil {
		return nil, err
	}
	n.memory = debug.SetMemoryLimit(-1)
	setMemory(n.cfg.MemoryLimit, n.memory)
	n.private.Store(private(n.cfg))
	if n.hub, err = stream.NewHub(n.cfg.Stream); err != nil {
		return nil, err
	}
	if n.gate, err = auth.NewGate(n.cfg.Auth); err != nil {
		return nil, err
	}
	if n.fanout, err = httpflv.NewFanout(n.cfg.HTTPFLV, n.log); err != nil {
		return nil, err
	}
	if n.cfg.TLS.CertFile != "" {
		if n.cert, err = listen.LoadCertificate(n.cfg.TLS.CertFile, n.cfg.TLS.KeyFile); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
	}
	if err = n.buildServers(); err != nil {
		n.close()
		return nil, err
	}
	n.add("fan-out", stageViewers, n.fanout.Run)
	n.add("sweeper", stageHousekeeping, n.sweep)
	if n.cert != nil {
		n.add("certificate", stageHousekeeping, func(ctx context.Context) error {
			return n.cert.Run(ctx, certificateEvery, n.log)
		})
	}
	return n, nil
}

// setMemory tells the garbage collector what the node wants of it: limit, or
// otherwise without one.
func setMemory(limit, otherwise int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectPercent)
	}
	debug.SetMemoryLimit(cmp.Or(limit, otherwise))
}

// buildServers opens the listeners and puts a server on each.
func (n *node) buildServers() error {
	rtmpPort := 0
	for _, scheme := range []string{"rtmp", "rtmps"} {
		ln, err := n.open(scheme)
		if err != nil {
			return err
		}
		if ln == nil {
			continue
		}
		if a, ok := ln.Addr().(*net.TCPAddr); ok && scheme == "rtmp" {
			rtmpPort = a.Port
		}
		s, err := rtmp.New(n.cfg.RTMP, ln, n.hub, n.gate, n.table, n.log)
		if err != nil {
			return err
		}
		n.rtmp = append(n.rtmp, s)
		n.add(scheme, stagePublish, s.Run)
	}
	pages, err := watch.New(watch.Options{Streams: n.liveList(), RTMPPort: rtmpPort})
	if err != nil {
		return err
	}
	for _, scheme := range []string{"http", "https"} {
		ln, err := n.open(scheme)
		if err != nil {
			return err
		}
		if ln == nil {
			continue
		}
		s, err := httpflv.New(n.cfg.HTTPFLV, ln, n.fanout, n.hub, n.gate, n.table, pages.Handle, n.log)
		if err != nil {
			return err
		}
		n.http = append(n.http, s)
		n.add(scheme, stageAccept, s.Run)
	}
	return n.buildAdmin()
}

func (n *node) buildAdmin() error {
	ln, err := n.open("admin")
	if ln == nil || err != nil {
		return err
	}
	name, revision := versions()
	n.admin, err = admin.New(n.cfg.Admin, ln, admin.Node{
		Hub: n.hub, Table: n.table, Role: n.cfg.Role.String(), Version: name, Revision: revision,
		Started: time.Now(), Draining: n.draining.Load, Figures: n.figures,
	}, n.log)
	if err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	n.add("admin", stageAdmin, n.admin.Run)
	return nil
}

// open listens where the configuration says for scheme; nil when it says nothing.
func (n *node) open(scheme string) (net.Listener, error) {
	a := n.cfg.Address
	addr := map[string]string{"rtmp": a.RTMP, "rtmps": a.RTMPS, "http": a.HTTP, "https": a.HTTPS, "admin": a.Admin}[scheme]
	if addr == "" {
		return nil, nil
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("address.%s: %w", scheme, err)
	}
	n.opened = append(n.opened, opened{scheme, ln})
	if scheme == "admin" {
		return ln, nil
	}
	guarded, err := listen.New(n.cfg.Listen, ln, n.log)
	if err != nil {
		return nil, err
	}
	n.listens = append(n.listens, guarded)
	if scheme == "rtmps" || scheme == "https" {
		return tls.NewListener(guarded, n.cert.Config()), nil
	}
	return guarded, nil
}

func (n *node) add(name string, stage int, run func(context.Context) error) {
	n.parts = append(n.parts, component{name, stage, run})
}

// close closes the listeners of a node that will not run.
func (n *node) close() {
	for _, o := range n.opened {
		o.ln.Close()
	}
}

// sweep ends the streams whose grace time is over.
func (n *node) sweep(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			n.hub.Sweep(now)
		}
	}
}

// private reports whether play needs a signature: the names of private streams are
// private too.
func private(cfg config.Node) bool { return len(cfg.Auth.PlaySecrets) > 0 }

// liveList returns what the front page lists. There is no list on a node that is
// private when it starts, and an empty one after a reload that makes it so.
func (n *node) liveList() func() []watch.Live {
	if n.private.Load() {
		return nil
	}
	return func() []watch.Live {
		var live []watch.Live
		if n.private.Load() {
			return live
		}
		for _, s := range n.hub.Streams() {
			if s.State() != stream.Live {
				continue
			}
			st := n.hub.Stats(s, time.Now())
			w, h := admin.Resolution(st)
			x := watch.Live{
				Name: string(st.Name), Since: st.Since, Width: w, Height: h,
				FPS: st.FPS, Bitrate: st.Bitrate, Viewers: st.Readers,
			}
			if st.HasVideo {
				x.Video = st.VideoCodec.String()
			}
			if st.HasAudio {
				x.Audio = st.AudioCodec.String()
			}
			live = append(live, x)
		}
		return live
	}
}
