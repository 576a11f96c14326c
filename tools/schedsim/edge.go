package main

import (
	"time"

	"millrace/internal/frontend"
	"millrace/internal/sched"
	"millrace/internal/stream"
)

// edge is an edge in the simulation: what is true of it.
type edge struct {
	node     *sched.Node
	recheck  *frontend.Recheck
	up       bool
	draining bool
	load     int64
	viewers  []*player
	carried  map[stream.Name]int // viewers by stream
}

// has reports whether e takes one more viewer.
func (e *edge) has() bool { return e.up && !e.draining && e.load+bitrate <= e.node.Capacity }

func (e *edge) add(p *player) {
	p.edge, p.seat = e, len(e.viewers)
	e.viewers = append(e.viewers, p)
	e.load += bitrate
	e.carried[p.stream]++
}

func (e *edge) remove(p *player) {
	last := e.viewers[len(e.viewers)-1]
	e.viewers[p.seat], last.seat = last, p.seat
	e.viewers = e.viewers[:len(e.viewers)-1]
	e.load -= bitrate
	if e.carried[p.stream]--; e.carried[p.stream] == 0 {
		delete(e.carried, p.stream)
	}
	p.edge = nil
}

// observe returns what a probe over one family sees.
func (e *edge) observe(now time.Time, f sched.Families, streams []stream.Name) *sched.Observation {
	o := &sched.Observation{Observer: "schedsim", Node: e.node.ID, Family: f, At: now, Up: e.up, RTT: sched.Duration(20 * time.Millisecond)}
	if e.up {
		o.Draining = e.draining
		// That it turns away players because it is full is no sign of an attack, and nodes
		// do not count it as one: Refused stays 0.
		o.Figures = &sched.Figures{Load: e.load, Viewers: len(e.viewers), Streams: streams}
	} else {
		o.Error = "no answer"
	}
	return o
}

// state returns what is true of e.
func (e *edge) state(now time.Time, streams []stream.Name) sched.NodeState {
	h := sched.Health{Status: sched.Down, At: now}
	if e.up {
		h.Status, h.Up = sched.Up, now
	}
	return sched.NodeState{
		ID: e.node.ID, Load: e.load, Viewers: len(e.viewers), Draining: e.draining, V4: h, V6: h, Streams: streams,
	}
}
