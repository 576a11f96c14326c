package measure

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"millrace/internal/auth"
	"millrace/internal/plan"
	"millrace/internal/upstream"
)

// Pulls has the figures of pulls; it is an [upstream.Origin].
type Pulls interface {
	Links() []upstream.LinkFigures
}

// Probes has the results of probes; it is a [Prober].
type Probes interface {
	Results() []Result
}

const (
	// probedLately is for how long after a probe was answered the round trips of TCP are
	// left out: they are the least of some minutes, so they would hide that a way has
	// become slow.
	probedLately = 20 * time.Second
	// tooOld is when a sample is not worth being sent any more.
	tooOld = 30 * time.Second
)

// Collector makes samples of what pulls and probes have shown. All methods may be called
// from any goroutine.
type Collector struct {
	// Fixed at construction.
	self   string
	pulls  Pulls
	probes Probes

	// Guarded by mu.
	mu      sync.Mutex
	pending []plan.Sample // the oldest first
	history map[string]*history
}

// NewCollector returns a Collector for the node self. probes may be nil.
func NewCollector(self string, pulls Pulls, probes Probes) *Collector {
	return &Collector{self: self, pulls: pulls, probes: probes, history: make(map[string]*history)}
}

// Samples returns what was measured since the last call, at most one sample for each
// node, after those that were returned before: at most limit of all. What is left comes
// with the next call.
func (c *Collector) Samples(now time.Time, limit int) []plan.Sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh := c.collect(now)
	c.pending = append(c.pending, fresh...)
	c.trim(now)
	n := max(0, min(limit, len(c.pending)))
	out := slices.Clone(c.pending[:n])
	c.pending = slices.Delete(c.pending, 0, n)
	return out
}

// trim drops what is old, or too much. mu is held.
func (c *Collector) trim(now time.Time) {
	c.pending = slices.DeleteFunc(c.pending, func(s plan.Sample) bool { return now.Sub(s.At) >= tooOld })
	if n := len(c.pending) - plan.MaxSamples; n > 0 {
		c.pending = slices.Delete(c.pending, 0, n)
	}
}

// collect makes samples of what is new. mu is held.
func (c *Collector) collect(now time.Time) []plan.Sample {
	by := make(map[string]*draft)
	of := func(node string) *draft {
		if node == c.self || !auth.ValidNodeID(node) {
			return nil // a foreign server, or one that nobody can speak of
		}
		d := by[node]
		if d == nil {
			d = &draft{Sample: plan.Sample{From: node, To: c.self, At: now}}
			by[node] = d
		}
		return d
	}
	if c.probes != nil {
		for _, r := range c.probes.Results() {
			if d := of(r.Node); d != nil {
				d.probed(&r)
				if r.RTT > 0 {
					c.historyOf(r.Node).probed = now
				}
			}
		}
	}
	for _, f := range c.pulls.Links() {
		if d := of(f.Node); d != nil {
			d.pulled(&f)
			c.historyOf(f.Node).add(now, &f)
		}
	}
	out := make([]plan.Sample, 0, len(by))
	for node, d := range by {
		h := c.historyOf(node)
		if d.RTT == 0 && now.Sub(h.probed) >= probedLately {
			d.RTT = d.trip
		}
		if d.Pulled {
			d.Stalls, d.Switches = h.rates(now)
		}
		d.OK = d.good || !d.bad
		if d.good || d.bad {
			out = append(out, d.Sample)
		}
	}
	for node, h := range c.history {
		if h.idle(now) {
			delete(c.history, node)
		}
	}
	slices.SortFunc(out, func(a, b plan.Sample) int { return cmp.Compare(a.From, b.From) })
	return out
}

func (c *Collector) historyOf(node string) *history {
	h := c.history[node]
	if h == nil {
		h = new(history)
		c.history[node] = h
	}
	return h
}

// draft is a sample that is being made.
type draft struct {
	plan.Sample
	trip      time.Duration // as TCP has it
	weight    int           // streams that the averages are made of
	good, bad bool          // the upstream has answered; it has not
}

// probed takes in what a probe has shown. Of two in one second the newer one counts, but
// for what was lost.
func (d *draft) probed(r *Result) {
	if r.RTT > 0 {
		d.RTT = r.RTT
	}
	if r.Connect > 0 {
		d.Connect = r.Connect
	}
	if n := d.Probes + r.Sent; n > 0 {
		d.Loss = (d.Loss*float64(d.Probes) + float64(r.Lost)) / float64(n)
		d.Probes = n
	}
	switch {
	case r.Refused: // what answers probes and takes no connection is no upstream
		d.bad = true
	case r.RTT > 0 || r.Connect > 0:
		d.good = true
	default:
		d.bad = true
	}
}

// pulled takes in what pulls have shown, of one of the URLs of the node.
func (d *draft) pulled(f *upstream.LinkFigures) {
	if f.Connect > 0 {
		d.Connect = f.Connect
	}
	if f.RTT > 0 && (d.trip == 0 || f.RTT < d.trip) {
		d.trip = f.RTT
	}
	if f.FirstFrame > 0 {
		d.FirstFrame = f.FirstFrame
	}
	d.Rate += f.Rate
	if f.Streams > 0 {
		share := float64(f.Streams) / float64(d.weight+f.Streams)
		d.Retransmits += (f.Retransmits - d.Retransmits) * share
		d.weight += f.Streams
	}
	d.Delay = max(d.Delay, f.Delay)
	// Of the end of the last stream it must be told too.
	d.Pulled = d.Pulled || f.Streams > 0 || f.Switches > 0 || f.Stalls > 0
	d.good = d.good || f.Streams > 0 || f.Opened > 0
	d.bad = d.bad || f.Failed > 0
}
