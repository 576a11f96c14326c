package main

import (
	"strings"
	"testing"

	"millrace/tools/cluster"
)

const wantGuide = `Open it in a browser, or with a player such as ffplay, VLC or mpv:
  edge-1  http://localhost:8080/watch/live/demo
          http://localhost:8080/live/demo.flv  rtmp://localhost/live/demo
  edge-2  http://edge-2:80/watch/live/demo
          http://edge-2:80/live/demo.flv  rtmp://edge-2:35/live/demo
  edge-3  http://edge-3:80/watch/live/demo
          http://edge-3:80/live/demo.flv  rtmp://edge-3:35/live/demo
How it comes here, and why from there:
  http://127.0.0.1:9090/v1/streams/live/demo/path
  http://127.0.0.1:9090/v1/events
Ask the scheduler for an edge, as a resolver, as a player; and why that one:
  dig @127.0.0.1 -p 21029 play.test +short +subnet=203.0.113.7
  curl -i http://127.0.0.1:21028/live/demo.flv -H X-Forwarded-For:203.0.113.7
  http://127.0.0.1:21030/v1/explain?domain=play.test&ip=203.0.113.7
See the network, and steer it, in the console of the router:
  http://127.0.0.1:21032/
  log in as operator with for-this-machine-only (operator)
  log in as guest with only-to-look-around (read-only)
Publish something of your own, from OBS or with ffmpeg; watch it at any edge:
  ffmpeg -re -i film.mp4 -c:v libx264 -c:a aac -f flv rtmp://localhost/live/mine
Type a command, and look whether the picture stops; FROM says whom to break:
  kill relay-1   restart relay-1   freeze edge-1>relay-1   heal edge-1>relay-1
  delay edge-1>relay-1   heal edge-1>relay-1: the plan goes round it
  kill router-1   restart router-1: nobody who watches notices
  slow relay-1   heal relay-1   help: more   urls: this text   quit: the end
`

func TestGuide(t *testing.T) {
	at := func(id string) cluster.Ports {
		switch id {
		case cluster.SchedulerID:
			return cluster.Ports{HTTP: "127.0.0.1:21028", DNS: "127.0.0.1:21029", Admin: "127.0.0.1:21030"}
		case "router-1":
			return cluster.Ports{HTTP: "127.0.0.1:21032"}
		case "edge-1":
			return cluster.Ports{HTTP: "localhost:8080", RTMP: "localhost:1935", Admin: "127.0.0.1:9090"}
		}
		return cluster.Ports{HTTP: id + ":80", RTMP: id + ":35", Admin: id + ":90"}
	}
	top, err := cluster.Default()
	if err != nil {
		t.Fatal(err)
	}
	if got := guide(top, at); got != wantGuide {
		t.Errorf("got\n%s\nwant\n%s", got, wantGuide)
	}
	for line := range strings.Lines(wantGuide) {
		if len(line) > 81 {
			t.Errorf("%q is wider than a terminal", line)
		}
	}
	// A tree of one node, without a stream.
	got := guide(cluster.Topology{Nodes: []cluster.Node{{ID: "c", Role: "center"}}}, func(id string) cluster.Ports {
		if id == cluster.SchedulerID {
			return cluster.Ports{}
		}
		return at(id)
	})
	if !strings.Contains(got, "rtmp://c:35/live/mine") || strings.Contains(got, "Open it") || strings.Contains(got, "kill") {
		t.Errorf("of one center: %s", got)
	}
}
