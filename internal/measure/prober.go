package measure

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"millrace/internal/auth"
	"millrace/internal/setting"
)

// Target is a node to measure the way to.
type Target struct {
	Node  string `json:"node"`
	Probe string `json:"probe,omitempty"` // HOST:PORT where it answers probes over UDP; empty: it does not
	URL   string `json:"url,omitempty"`   // where it serves streams, for the time that a TCP connection takes
}

// ProberConfig says how much a [Prober] sends. Start from [DefaultProberConfig].
type ProberConfig struct {
	// Every is how often each target gets a train.
	Every time.Duration
	// Packets and Gap are how many packets a train has, and their distance.
	Packets int
	Gap     time.Duration
	// Wait is how long the answer to a packet may take.
	Wait time.Duration
	// Budget is how many packets a second go out at most, to all targets together. With
	// too many targets each gets a train less often.
	Budget int
	// ConnectEvery is how often a TCP connection is opened to each target.
	ConnectEvery time.Duration
}

// DefaultProberConfig measures each target every five seconds: 25 targets take 50 packets
// a second, 5 kB/s in each direction.
func DefaultProberConfig() ProberConfig {
	return ProberConfig{
		Every: 5 * time.Second, Packets: 10, Gap: 20 * time.Millisecond, Wait: time.Second,
		Budget: 50, ConnectEvery: 30 * time.Second,
	}
}

// Validate checks every value. Its errors name the key and the accepted range.
func (c ProberConfig) Validate() error {
	return errors.Join(
		setting.Within("every", c.Every, 100*time.Millisecond, time.Hour),
		setting.Within("gap", c.Gap, time.Millisecond, time.Second),
		setting.Within("wait", c.Wait, 10*time.Millisecond, 10*time.Second),
		setting.Within("connect_every", c.ConnectEvery, time.Second, time.Hour),
		setting.Within("packets", c.Packets, 1, maxPackets),
		setting.Within("budget", c.Budget, 1, 10_000),
	)
}

// ProberOptions are what a [Prober] works with.
type ProberOptions struct {
	Self    string // id of this node
	Cluster *auth.Cluster
	// Dial opens TCP connections; nil uses a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

const (
	// maxTrains is how many trains are under way at once.
	maxTrains = 16
	// maxResults bounds what nobody asks for.
	maxResults = 1024
	// muteAfter is after how many trains without an answer a target is asked seldom, and, if
	// TCP reaches it, taken not to answer probes, rather than to lose them.
	muteAfter = 3
)

// Prober measures the ways to other nodes. All methods may be called from any goroutine.
type Prober struct {
	// Fixed at construction.
	cfg     ProberConfig
	opt     ProberOptions
	changed chan struct{} // capacity 1, never closed: there are other targets, or a train is over

	// Guarded by mu.
	mu      sync.Mutex
	targets []*target
	under   int // trains under way
	results []Result
	sent    uint64
	lost    uint64
}

// target is one that is measured. It is guarded by Prober.mu.
type target struct {
	Target
	due      time.Time // the next train
	connect  time.Time // the next TCP connection
	under    bool      // it is being measured
	answered bool      // it has answered a probe
	mute     int       // trains in a row without an answer
	last     Result
}

// NewProber returns a Prober without targets. It starts nothing.
func NewProber(cfg ProberConfig, opt ProberOptions) (*Prober, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if !auth.ValidNodeID(opt.Self) {
		return nil, fmt.Errorf("%q is not the id of a node", opt.Self)
	}
	if opt.Dial == nil {
		opt.Dial = new(net.Dialer).DialContext
	}
	return &Prober{cfg: cfg, opt: opt, changed: make(chan struct{}, 1)}, nil
}

// SetTargets replaces whom it measures. What is known of those that stay is kept.
func (p *Prober) SetTargets(targets []Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.rouse()
	now := time.Now()
	next := make([]*target, 0, len(targets))
	for _, t := range targets {
		same := func(o *target) bool { return o.Node == t.Node }
		if t.Node == p.opt.Self || slices.ContainsFunc(next, same) {
			continue
		}
		i := slices.IndexFunc(p.targets, func(o *target) bool { return o.Target == t })
		if i >= 0 {
			next = append(next, p.targets[i])
			continue
		}
		next = append(next, &target{Target: t, due: now, connect: now.Add(rand.N(p.cfg.Every))})
	}
	p.targets = next
}

func (p *Prober) rouse() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// Run measures until ctx ends. It has then ended all that it began.
func (p *Prober) Run(ctx context.Context) error {
	var trains sync.WaitGroup
	defer trains.Wait()
	pace := time.Duration(p.cfg.Packets) * time.Second / time.Duration(p.cfg.Budget)
	next := time.Now() // when the budget has room for a train
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-p.changed:
		}
		now := time.Now()
		wait := next.Sub(now)
		if wait <= 0 {
			var t *target
			if t, wait = p.pick(now); t != nil {
				trains.Go(func() { p.measure(ctx, t) })
				next, wait = now.Add(pace), pace
			}
		}
		timer.Reset(wait)
	}
}

// pick returns the target whose turn it is, or nil and how long nobody's is.
func (p *Prober) pick(now time.Time) (*target, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.under >= maxTrains {
		return nil, time.Minute // the end of one of them wakes
	}
	var first *target
	for _, t := range p.targets {
		if !t.under && (first == nil || t.due.Before(first.due)) {
			first = t
		}
	}
	if first == nil {
		return nil, time.Minute
	}
	if wait := first.due.Sub(now); wait > 0 {
		return nil, wait
	}
	first.under = true
	p.under++
	every := p.cfg.Every
	if first.mute >= muteAfter { // it has had its chance
		every = max(every, p.cfg.ConnectEvery)
	}
	// Nodes that have begun together must not measure together.
	first.due = now.Add(every*9/10 + rand.N(every/5+1))
	return first, 0
}

// Result is what a train, a connection, or both have shown of the way to a node.
type Result struct {
	Node    string        `json:"-"`
	At      time.Time     `json:"at,omitzero"`
	RTT     time.Duration `json:"rtt_ns"`    // median of the answers; 0: there was none
	Least   time.Duration `json:"least_ns"`  // the shortest
	Jitter  time.Duration `json:"jitter_ns"` // mean difference between answers that follow one another
	Sent    int           `json:"sent"`      // packets, if the target answers probes at all
	Lost    int           `json:"lost"`
	Connect time.Duration `json:"connect_ns"` // of a TCP connection; 0: none was opened
	Refused bool          `json:"refused"`    // a TCP connection was tried, in vain
}

// Results returns what was measured since the last call. It has one caller.
func (p *Prober) Results() []Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.results
	p.results = nil
	return out
}

// ProberStats is a copy of the figures of a [Prober].
type ProberStats struct {
	Sent    uint64        `json:"sent"` // packets, since the start
	Lost    uint64        `json:"lost"` // of these, as far as targets answer probes at all
	Targets []TargetStats `json:"targets"`
}

// TargetStats is what is known of one target.
type TargetStats struct {
	Target
	Mute bool   `json:"mute"` // it answers no probes for a while: it is down, or UDP is shut on the way
	Last Result `json:"last"` // the zero value before the first
}

// Stats returns the figures of now.
func (p *Prober) Stats() ProberStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := ProberStats{Sent: p.sent, Lost: p.lost, Targets: make([]TargetStats, 0, len(p.targets))}
	for _, t := range p.targets {
		st.Targets = append(st.Targets, TargetStats{t.Target, t.mute >= muteAfter, t.last})
	}
	return st
}
