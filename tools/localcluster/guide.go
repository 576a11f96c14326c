package main

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"millrace/tools/cluster"
)

// doors returns the nodes that players go to: the edges, or all where there are none.
func doors(t cluster.Topology) (out []cluster.Node) {
	for _, n := range t.Nodes {
		if n.Role == "edge" {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		return t.Nodes
	}
	return out
}

// guide returns what can be done with a tree that runs, for people who see it for the
// first time. Lines fit a terminal of 80 columns.
func guide(t cluster.Topology, at func(id string) cluster.Ports) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	doors := doors(t)
	first := at(doors[0].ID)
	if len(t.Streams) > 0 {
		name := t.Streams[0].Name
		say("Open it in a browser, or with a player such as ffplay, VLC or mpv:")
		for _, n := range doors {
			p := at(n.ID)
			say("  %s  http://%s/watch/%s", n.ID, p.HTTP, name)
			say("  %s  http://%s/%s.flv  %s/%s", strings.Repeat(" ", len(n.ID)), p.HTTP, name, rtmp(p), name)
		}
		say("How it comes here, and why from there:")
		say("  http://%s/v1/streams/%s/path", first.Admin, name)
		say("  http://%s/v1/events", first.Admin)
	}
	if at := at(cluster.SchedulerID); at.DNS != "" && len(t.Streams) > 0 {
		scheduler(say, t, at)
	}
	if len(t.Routers) > 0 {
		console(say, t, at)
	}
	say("Publish something of your own, from OBS or with ffmpeg; watch it at any edge:")
	say("  ffmpeg -re -i film.mp4 -c:v libx264 -c:a aac -f flv %s/live/mine", rtmp(first))
	say("Type a command, and look whether the picture stops; FROM says whom to break:")
	more := ""
	if ups := doors[0].Upstreams; len(ups) > 0 {
		if up, link := ups[0], (cluster.Pair{From: doors[0].ID, To: ups[0]}); slices.Contains(t.Pairs(), link) {
			say("  kill %s   restart %s   freeze %v   heal %v", up, up, link, link)
			more = fmt.Sprintf("slow %s   heal %s   ", up, up)
			if len(t.Routers) > 0 {
				say("  delay %v   heal %v: the plan goes round it", link, link)
			}
		}
	}
	for _, r := range t.Routers {
		say("  kill %s   restart %s: nobody who watches notices", r.ID, r.ID)
	}
	say("  %shelp: more   urls: this text   quit: the end", more)
	return b.String()
}

// scheduler says how to ask the scheduler for an edge.
func scheduler(say func(string, ...any), t cluster.Topology, at cluster.Ports) {
	s, name := t.Scheduler, t.Streams[0].Name
	host, port, _ := net.SplitHostPort(at.DNS) // it listens there
	say("Ask the scheduler for an edge, as a resolver, as a player; and why that one:")
	if len(s.Clients) == 0 {
		say("  dig @%s -p %s %s", host, port, s.Domain)
		say("  curl -i http://%s/%s.flv", at.HTTP, name)
		say("  http://%s/v1/explain?domain=%s", at.Admin, s.Domain)
		return
	}
	client := s.Clients[len(s.Clients)-1].Address()
	say("  dig @%s -p %s %s +short +subnet=%v", host, port, s.Domain, client)
	say("  curl -i http://%s/%s.flv -H X-Forwarded-For:%v", at.HTTP, name, client)
	say("  http://%s/v1/explain?domain=%s&ip=%v", at.Admin, s.Domain, client)
}

// console says where operators look and steer.
func console(say func(string, ...any), t cluster.Topology, at func(id string) cluster.Ports) {
	say("See the network, and steer it, in the console of the router:")
	for _, r := range t.Routers {
		say("  http://%s/", at(r.ID).HTTP)
	}
	for _, o := range t.Operators {
		say("  log in as %s with %s (%s)", o.Name, o.Password, o.Role)
	}
}

// rtmp returns where a node takes publishers and players.
func rtmp(p cluster.Ports) string { return "rtmp://" + strings.TrimSuffix(p.RTMP, ":1935") }
