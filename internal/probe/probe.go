// Package probe asks edges whether they take viewers, from where the scheduler stands
// and over each address family, because that is what its answers lead players to.
//
// A probe opens a connection of its own, which shows what a player would meet and how
// long it takes, and asks GET /healthz. With a cluster key it asks on, signed, for
// GET /.well-known/millrace: who it is that answers there, and its load, viewers and
// streams. Each probe ends in one [Outcome] and one sched.Observation.
//
//	targets ──▶ queue by time ──▶ probes, so many at a time ──▶ observations
//	   ▲                              │
//	SetNodes                       due again: interval ± 10 %, soon after a change
//
// [Prober.Run] owns the queue; a probe is one goroutine, one connection and one
// deadline. What a node says is bounded and checked: a hostile one costs its deadline
// and nothing else. Policy (how many bad probes make a node down) is in sched.
package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/auth"
	"millrace/internal/sched"
)

// Config says how edges are probed.
type Config struct {
	// Interval is from one probe of an edge over a family to the next. Short sees a fall
	// sooner; an edge is asked once per interval, family and scheduler.
	Interval time.Duration
	// Timeout is how long a probe may take in all. A longer one forgives far edges, a
	// shorter one finds dead ones sooner.
	Timeout time.Duration
	// Concurrency is how many probes may be under way. Each costs a goroutine and a
	// descriptor; when most edges hang, the others are still asked in time as long as
	// edges × families × timeout / interval is less.
	Concurrency int
}

// DefaultConfig finds a dead edge in about four seconds.
func DefaultConfig() Config {
	return Config{Interval: 2 * time.Second, Timeout: 1500 * time.Millisecond, Concurrency: 512}
}

// Validate checks every value. Its errors name the key and the accepted range.
func (c Config) Validate() error {
	var errs []error
	if c.Interval < 200*time.Millisecond || c.Interval > 5*time.Minute {
		errs = append(errs, fmt.Errorf("interval is %v: use 200ms to 5m", c.Interval))
	}
	if c.Timeout < 50*time.Millisecond || c.Timeout > time.Minute {
		errs = append(errs, fmt.Errorf("timeout is %v: use 50ms to 1m", c.Timeout))
	}
	if c.Concurrency < 1 || c.Concurrency > 20_000 {
		errs = append(errs, fmt.Errorf("concurrency is %d: use 1 to 20000", c.Concurrency))
	}
	return errors.Join(errs...)
}

// Dial opens a connection, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// Prober probes edges. SetNodes and Stats may be called from any goroutine.
type Prober struct {
	// Fixed at construction.
	cfg      Config
	observer string
	cluster  *auth.Cluster
	dial     Dial
	tls      *tls.Config
	report   func([]sched.Observation)
	log      *slog.Logger

	changed chan struct{} // capacity 1, never closed: wanted is new
	done    chan result   // capacity Concurrency, never closed

	// Owned by Run.
	queue    queue
	targets  map[key]*target
	underway int
	changes  changeLog

	// Guarded by mu.
	mu     sync.Mutex
	wanted []target

	// Safe from any goroutine.
	counts [outcomes]atomic.Uint64
	late   atomic.Uint64
	known  atomic.Int64
	busy   atomic.Int64
}

// New returns a Prober. observer is the id of this program, under which it signs and
// observes; report takes the observations, in Run's goroutine, and must not keep the
// slice. dial opens the connections, nil as net does; conf is for edges with https
// alone and may be nil.
func New(cfg Config, observer string, cluster *auth.Cluster, dial Dial, conf *tls.Config, report func([]sched.Observation), log *slog.Logger) (*Prober, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if !auth.ValidNodeID(observer) {
		return nil, fmt.Errorf("the id of the observer is %.80q: use letters, digits, dots, underscores and hyphens, at most %d", observer, auth.MaxNodeID)
	}
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: -1}).DialContext
	}
	return &Prober{
		cfg: cfg, observer: observer, cluster: cluster, dial: dial, tls: conf, report: report, log: log,
		changed: make(chan struct{}, 1), done: make(chan result, cfg.Concurrency), targets: map[key]*target{},
		changes: changeLog{log: log},
	}, nil
}

// SetNodes makes the edges among nodes what is probed from now on. Those that were
// probed already keep their turn. It does not keep nodes.
func (p *Prober) SetNodes(nodes []sched.Node) {
	var wanted []target
	for i := range nodes {
		wanted = append(wanted, targetsOf(&nodes[i])...)
	}
	p.mu.Lock()
	p.wanted = wanted
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default: // Run will look
	}
}

// Stats are the figures of a Prober.
type Stats struct {
	Targets  int               `json:"targets"`  // edges, once for each family
	Underway int               `json:"underway"` // probes
	Late     uint64            `json:"late"`     // probes that began more than an interval late: concurrency is too low
	Outcomes map[string]uint64 `json:"outcomes"` // probes by their outcome
}

// Stats returns the figures.
func (p *Prober) Stats() Stats {
	s := Stats{
		Targets: int(p.known.Load()), Underway: int(p.busy.Load()), Late: p.late.Load(),
		Outcomes: make(map[string]uint64, outcomes),
	}
	for i := range p.counts {
		s.Outcomes[Outcome(i).String()] = p.counts[i].Load()
	}
	return s
}
