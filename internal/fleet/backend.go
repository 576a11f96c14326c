package fleet

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/control"
)

var _ control.Backend = (*Fleet)(nil)

// counts are figures since the start.
type counts struct {
	beats       atomic.Uint64
	resends     atomic.Uint64
	paths       atomic.Uint64
	plans       atomic.Uint64
	took        atomic.Int64 // of the last plan, in ns
	storeErrors atomic.Uint64

	mu      sync.Mutex
	refused map[string]uint64 // heartbeats, by reason
}

func (c *counts) refuse(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused == nil {
		c.refused = map[string]uint64{}
	}
	c.refused[reason]++
}

// Heartbeat takes what a node says; see [control.Backend].
func (f *Fleet) Heartbeat(now time.Time, h *control.Heartbeat, from netip.Addr) (control.Ack, control.Refusal, error) {
	f.counts.beats.Add(1)
	t, why, err := f.nodes.take(now, h, from)
	if why != control.NotRefused {
		f.counts.refuse(why.String())
		f.Refused(now, h.Node, from, why, err.Error())
		return control.Ack{}, why, err
	}
	ack := control.Ack{Router: f.cfg.Router, Sequence: h.Sequence, Resend: t.resend, Interval: int(f.cfg.Interval.Milliseconds())}
	if t.resend {
		f.counts.resends.Add(1)
	}
	if t.unknown {
		return ack, control.NotRefused, nil
	}
	if !t.resend { // else all of that comes again
		f.learn(now, h, &ack)
	}
	if t.added || t.restarted || t.returned {
		f.nodeBack(now, back{id: h.Node, boot: h.Boot, sequence: h.Sequence, added: t.added, restarted: t.restarted})
	}
	ack.LeftOut = t.leftOut
	if p := f.Orders(h.Node); p != nil {
		ack.Orders = p.Token()
	}
	if in := f.bundles.in.Load(); in != nil {
		ack.Snapshot = in.bundle.Version.Token
	}
	return ack, control.NotRefused, nil
}

// learn takes what a node says of others: of links, players, and what happened.
func (f *Fleet) learn(now time.Time, h *control.Heartbeat, ack *control.Ack) {
	samples := f.scores.check(now, h.Node, h.Samples, f.nodes.known, ack)
	f.scores.queue(h.Node, samples, ack, true)
	if len(ack.Refused) > 0 {
		f.nodes.refusedSamples(h.Node, ack.Refused)
	}
	f.players.add(now, h.Node, h.Players, true)
	f.events.fromNode(now, h.Node, h.Boot, h.Events)
}

// Refused notes that a node, or whoever says that it is one, was refused, so that there is
// an event of it once in a while. Heartbeat does so itself; those who refuse before call it.
func (f *Fleet) Refused(now time.Time, node string, from netip.Addr, why control.Refusal, text string) {
	address := ""
	if from.IsValid() {
		address = from.String()
	}
	f.events.refuse(now, node, address, why.String(), text, isStranger(why)) // the server logs it
}

// isStranger reports whether a refusal is one of those that come before a signature has
// been found good.
func isStranger(why control.Refusal) bool {
	switch why {
	case control.Unsigned, control.BadSignature, control.BadRequest, control.TooBig:
		return true
	}
	return false
}
