package main

import (
	"context"
	"time"

	"millrace/internal/session"
)

// drainLook is how often it is looked whether the last viewer has left.
const drainLook = 100 * time.Millisecond

// drain lets the node run out: nobody new, and those who play may go on for as long
// as the plan has it, until the end of ctx, or an event on hurry. Publishers stay as
// long as there is somebody to see them.
func (n *node) drain(ctx context.Context, plan timetable, hurry <-chan struct{}) {
	n.draining.Store(true)
	n.hub.Drain()
	for _, s := range n.rtmp {
		s.Drain()
	}
	for _, s := range n.http {
		s.Drain()
	}
	n.observe(time.Now())
	n.routing.hurry()
	n.log.Info("draining: nobody new is let in; a second signal ends at once", "reason", session.Draining.String(), "viewers", n.viewers(),
		"deadline", plan.whole, "viewers_until", plan.wait)

	end, look := time.NewTimer(plan.wait), time.NewTicker(drainLook)
	defer end.Stop()
	defer look.Stop()
	for n.viewers() > 0 {
		select {
		case <-look.C:
		case <-end.C:
			n.log.Info("the time of the viewers is over: those who remain are closed", "viewers", n.viewers())
			n.fanout.CloseBy(plan.closeBy)
			return
		case <-hurry:
			return
		case <-ctx.Done():
			return
		}
	}
	n.log.Info("drained: no viewer is left")
}

// viewers returns how many play, or wait to.
func (n *node) viewers() int {
	playing := 0
	for _, c := range n.table.Counts() {
		if c.Action == session.Play {
			playing += int(c.Open)
		}
	}
	return max(playing, n.fanout.Stats().Viewers)
}
