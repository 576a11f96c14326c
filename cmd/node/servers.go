package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"millrace/internal/admin"
	"millrace/internal/config"
	"millrace/internal/httpflv"
	"millrace/internal/rtmp"
	"millrace/internal/run"
	"millrace/internal/stream"
	"millrace/internal/watch"
)

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
		s, err := rtmp.New(n.cfg.RTMP, ln, n.hub, n.gate, n.origin, n.table, n.log)
		if err != nil {
			return err
		}
		if len(n.rtmp) > 0 {
			s.Share(n.rtmp[0])
		}
		n.rtmp = append(n.rtmp, s)
		n.parts.Add(scheme, stagePublish, s.Run)
	}
	pages, err := watch.New(watch.Options{Streams: n.liveList(), RTMPPort: rtmpPort, Elsewhere: n.self.Placer != nil})
	if err != nil {
		return err
	}
	for _, scheme := range []string{"http", "https", "internal"} {
		ln, err := n.open(scheme)
		if err != nil {
			return err
		}
		if ln == nil {
			continue
		}
		self := n.self
		self.NodesOnly = scheme == "internal"
		s, err := httpflv.New(n.cfg.HTTPFLV, ln, n.fanout, n.hub, n.gate, n.table, self, pages.Handle, n.log)
		if err != nil {
			return err
		}
		n.http = append(n.http, s)
		n.parts.Add(scheme, stageViewers, s.Run)
	}
	if err := n.buildRouting(); err != nil {
		return err
	}
	return n.buildAdmin()
}

func (n *node) buildAdmin() error {
	ln, err := n.open("admin")
	if ln == nil || err != nil {
		return err
	}
	name, revision := run.Version(version)
	n.api = admin.NewNode(n.cfg.Admin, n.self.ID, n.hub, n.table, n.origin, n.log)
	if n.routing.beat != nil {
		n.api.ShowRouting(n.routing.status)
	}
	n.admin, err = admin.New(n.cfg.Admin.Config, ln, admin.Program{
		Kind: "node", ID: n.self.ID, Role: n.cfg.Role.String(), Version: name, Revision: revision,
		Started: time.Now(), Draining: n.draining.Load, API: n.api, Figures: n.figures,
	}, n.log)
	if err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	n.parts.Add("admin", stageAdmin, func(ctx context.Context) error { return n.admin.Run(ctx) })
	return nil
}

// open listens where the configuration says for scheme; nil when it says nothing.
func (n *node) open(scheme string) (net.Listener, error) {
	a := n.cfg.Address
	addr := map[string]string{"rtmp": a.RTMP, "rtmps": a.RTMPS, "http": a.HTTP, "https": a.HTTPS, "internal": a.Internal, "admin": a.Admin}[scheme]
	if addr == "" {
		return nil, nil
	}
	if scheme == "admin" {
		return n.doors.OpenAdmin(addr)
	}
	return n.doors.Open(scheme, addr)
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
