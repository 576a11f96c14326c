package probe

import (
	"container/heap"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"millrace/internal/sched"
)

// result is what came of a probe.
type result struct {
	of      *target
	at      time.Time
	outcome Outcome
	err     error
	note    string        // of an edge that is up, what is wrong all the same
	rtt     time.Duration // of opening the connection
	figures *sched.Figures
}

// Run probes until ctx ends and returns nil. All that it started has ended then.
func (p *Prober) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := time.Now()
		for p.underway < p.cfg.Concurrency && len(p.queue) > 0 && !p.queue[0].due.After(now) {
			t := heap.Pop(&p.queue).(*target)
			if now.Sub(t.due) > p.cfg.Interval {
				p.late.Add(1)
			}
			t.probing = true
			p.underway++
			wg.Go(func() { p.done <- p.probe(ctx, t) })
		}
		p.busy.Store(int64(p.underway))
		timer.Reset(p.nap(now))
		select {
		case <-ctx.Done():
			return nil
		case <-p.changed:
			p.take(time.Now())
		case r := <-p.done:
			p.finish(r)
		case <-timer.C:
			p.changes.flush(time.Now())
		}
	}
}

// nap returns how long there is nothing to do.
func (p *Prober) nap(now time.Time) time.Duration {
	d := time.Minute
	if len(p.queue) > 0 && p.underway < p.cfg.Concurrency {
		d = max(0, p.queue[0].due.Sub(now))
	}
	if p.changes.held > 0 {
		d = min(d, time.Second)
	}
	return d
}

// take makes what SetNodes was given the targets. New ones are due within half an
// interval, by chance, so that they are known soon and do not go in step.
func (p *Prober) take(now time.Time) {
	p.mu.Lock()
	wanted := p.wanted
	p.mu.Unlock()
	fresh := make(map[key]*target, len(wanted))
	for i := range wanted {
		w := &wanted[i]
		if fresh[w.key] != nil {
			continue // a snapshot that is valid has each node once
		}
		if old := p.targets[w.key]; old != nil && old.address == w.address {
			fresh[w.key] = old
			continue
		}
		w.due, w.index = now.Add(rand.N(p.cfg.Interval/2)), -1
		fresh[w.key] = w
		heap.Push(&p.queue, w)
	}
	for k, old := range p.targets {
		if fresh[k] == old {
			continue
		}
		old.gone = true
		if !old.probing {
			heap.Remove(&p.queue, old.index)
		}
	}
	p.targets = fresh
	p.known.Store(int64(len(fresh)))
}

// finish reports a probe and puts its target back into the queue.
func (p *Prober) finish(r result) {
	p.underway--
	t := r.of
	t.probing = false
	if t.gone {
		return
	}
	p.counts[r.outcome].Add(1)
	// One way to be down is as good as another: a dead machine has two in turn, as the
	// network finds out again and again that it has no such neighbour.
	changed := !t.asked || t.last != r.outcome && (t.last.Up() || r.outcome.Up())
	if changed {
		t.told = 0
	}
	if bit := uint32(1) << r.outcome; t.told&bit == 0 {
		t.told |= bit
		p.changes.note(r.at, t, r)
	}
	p.report(p.observations(&r))
	// A change is looked at again soon: it takes more than one probe to be believed.
	wait := p.cfg.Interval
	if changed && t.asked {
		wait /= 4
	}
	t.asked, t.last = true, r.outcome
	t.due = r.at.Add(wait*9/10 + rand.N(wait/5))
	heap.Push(&p.queue, t)
}

// observations returns what a probe says of each family that it speaks for.
func (p *Prober) observations(r *result) []sched.Observation {
	out := make([]sched.Observation, 0, 2)
	for _, family := range [...]sched.Families{sched.V4, sched.V6} {
		if r.of.family&family == 0 {
			continue
		}
		o := sched.Observation{
			Observer: p.observer, Node: r.of.node, Family: family, At: r.at, Up: r.outcome.Up(),
			RTT: sched.Duration(r.rtt), Draining: r.outcome == Draining || r.outcome == Full, Figures: r.figures,
		}
		if r.outcome != Up {
			o.Error = r.outcome.String()
		}
		out = append(out, o)
	}
	return out
}

// changeLog tells of edges that rise and fall: each in a line, but no more than some a
// second, because thousands fall at once when the network of the scheduler does.
type changeLog struct {
	log *slog.Logger

	since time.Time // the second that told counts in
	told  int
	held  int // changes that were not told
}

// changesPerSecond is how many lines a second there are at most.
const changesPerSecond = 20

func (c *changeLog) note(now time.Time, t *target, r result) {
	c.flush(now)
	if c.told >= changesPerSecond {
		c.held++
		return
	}
	c.told++
	level, text := slog.LevelWarn, "edge is down"
	switch {
	case r.outcome == Up:
		level, text = slog.LevelInfo, "edge is up"
	case r.outcome == NoFigures:
		text = "edge is up but does not say how it does"
	case r.outcome.Up():
		level, text = slog.LevelInfo, "edge takes no new viewers"
	}
	attrs := []any{"node", t.node, "peer", t.addr, "family", t.family, "reason", r.outcome}
	switch {
	case r.err != nil:
		attrs = append(attrs, "err", r.err)
	case r.note != "":
		attrs = append(attrs, "err", r.note)
	}
	c.log.Log(context.Background(), level, text, attrs...)
}

// flush tells of those that were held back, once their second is over.
func (c *changeLog) flush(now time.Time) {
	if now.Sub(c.since) < time.Second {
		return
	}
	if c.held > 0 {
		c.log.Warn("more edges have changed", "count", c.held)
	}
	c.since, c.told, c.held = now, 0, 0
}
