package main

import (
	"context"
	"time"

	"millrace/internal/session"
)

// drainLook is how often it is looked whether the last viewer has left.
const drainLook = 100 * time.Millisecond

// drain lets the node run out: nobody new, and those who play may go on until
// deadline, the end of ctx, or an event on hurry. Publishers stay as long as
// there is somebody to see them.
func (n *node) drain(ctx context.Context, deadline time.Duration, hurry <-chan struct{}) {
	n.draining.Store(true)
	n.hub.Drain()
	for _, s := range n.rtmp {
		s.Drain()
	}
	for _, s := range n.http {
		s.Drain()
	}
	n.log.Info("draining: nobody new is let in; a second signal ends at once", "reason", session.Draining.String(), "viewers", n.viewers(), "deadline", deadline)

	end, look := time.NewTimer(deadline), time.NewTicker(drainLook)
	defer end.Stop()
	defer look.Stop()
	for n.viewers() > 0 {
		select {
		case <-look.C:
		case <-end.C:
			n.log.Info("the deadline of the drain is over: the remaining viewers are closed", "viewers", n.viewers())
			return
		case <-hurry:
			n.log.Info("ending at once", "viewers", n.viewers())
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
