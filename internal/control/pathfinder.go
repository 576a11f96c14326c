package control

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"millrace/internal/auth"
	"millrace/internal/stream"
)

// PathConfig says whom a node asks where to pull a stream from.
type PathConfig struct {
	// Servers are the http:// or https:// URLs of routers. The one that answered last is
	// asked.
	Servers []string
	// Timeout is how long a reader waits for an answer: what comes later is for the next.
	Timeout time.Duration
	// Keep is how long an answer is used again. That nobody knows the stream is believed
	// for a second at most.
	Keep time.Duration
	// Rest is how long nobody is asked after no answer came in time.
	Rest time.Duration
}

// DefaultPathConfig asks nobody.
func DefaultPathConfig() PathConfig {
	return PathConfig{Timeout: 50 * time.Millisecond, Keep: 2 * time.Second, Rest: time.Second}
}

// Validate checks every value. Its errors name the key and the accepted range.
func (c PathConfig) Validate() error {
	errs := []error{checkServers(c.Servers)}
	for _, d := range []struct {
		key              string
		value, low, high time.Duration
	}{
		{"timeout", c.Timeout, time.Millisecond, time.Second},
		{"keep", c.Keep, 0, time.Minute},
		{"rest", c.Rest, 100 * time.Millisecond, time.Minute},
	} {
		if d.value < d.low || d.value > d.high {
			errs = append(errs, fmt.Errorf("%s is %v: use %v to %v", d.key, d.value, d.low, d.high))
		}
	}
	return errors.Join(errs...)
}

// ErrNoRoute is returned when no router tells: none answered in time, or none has
// lately. The node then does without.
var ErrNoRoute = errors.New("no router tells where to pull the stream from")

const (
	// askers is how many questions are asked at the same time. A node begins a few
	// streams a second.
	askers = 4
	// maxAsks is how many questions may wait for one that asks.
	maxAsks = 256
	// maxRoutes is how many answers are kept.
	maxRoutes = 4096
	// answerLate is how long an answer is waited for when its reader no longer does: it
	// is for the next one.
	answerLate = time.Second
	// keepNothing is how long it is believed at most that nobody knows a stream.
	keepNothing = time.Second
)

// Pathfinder asks routers where to pull streams from. All methods may be called from
// any goroutine.
type Pathfinder struct {
	// Fixed at construction.
	cfg    PathConfig
	client *client
	log    *slog.Logger

	asks chan *route // capacity maxAsks, never closed

	// Guarded by mu.
	mu      sync.Mutex
	routes  map[stream.Name]*route
	rota    rota      // whose turn it is; it does not say how long to rest
	failing bool      // no answer came in time, and none has since
	rest    time.Time // while failing: when one reader may try again
	status  PathStatus
	counts  [outcomes]uint64
}

// route is a question, and then its answer.
type route struct {
	// Fixed when it is made.
	name stream.Name
	late time.Time     // when its reader no longer waits
	done chan struct{} // closed when it is answered, or will not be

	// Written before done is closed, and not afterwards.
	answer Route
	err    error
	until  time.Time // when the answer is no longer used
}

// NewPathfinder returns a Pathfinder for the node of that id. dial opens the
// connections, nil as net does; conf is for https and may be nil.
func NewPathfinder(cfg PathConfig, node string, cluster *auth.Cluster, dial Dial, conf *tls.Config, log *slog.Logger) (*Pathfinder, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(cfg.Servers) == 0 {
		return nil, errors.New("servers is empty: name at least one router")
	}
	return &Pathfinder{
		cfg: cfg, client: newClient(node, cluster, dial, conf), log: log, rota: newRota(node, cfg.Servers, 0, 0),
		asks: make(chan *route, maxAsks), routes: map[stream.Name]*route{},
	}, nil
}

// SetServers has other routers asked, from now on.
func (p *Pathfinder) SetServers(servers []string) error {
	servers, err := newServers(servers)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rota.change(servers)
	p.rest = time.Time{} // they may answer
	return nil
}

// Route returns where to pull the stream from. It blocks for the timeout at most, and
// not at all while no router answers. Its error wraps [ErrNoRoute], or is that of ctx. A
// route without choices is an answer, too: its reason says why. What it returns is
// shared, and not to be changed.
func (p *Pathfinder) Route(ctx context.Context, n stream.Name) (Route, error) {
	now := time.Now()
	r, err := p.find(now, n)
	if err != nil {
		return Route{}, err
	}
	select {
	case <-r.done:
		return r.answer, r.err
	default:
	}
	timer := time.NewTimer(r.late.Sub(now))
	defer timer.Stop()
	select {
	case <-r.done:
		return r.answer, r.err
	case <-ctx.Done():
		return Route{}, ctx.Err()
	case <-timer.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.Late++
	p.tripLocked(time.Now(), fmt.Errorf("no answer within %v", p.cfg.Timeout))
	return Route{}, fmt.Errorf("%w: no answer within %v", ErrNoRoute, p.cfg.Timeout)
}

// find returns the question about n that is asked already, or was lately, or a new one
// that somebody will ask.
func (p *Pathfinder) find(now time.Time, n stream.Name) (*route, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.routes[n]; r != nil && r.usable(now) {
		p.status.Kept++
		return r, nil
	}
	if p.failing {
		if now.Before(p.rest) {
			p.status.Spared++
			return nil, fmt.Errorf("%w: none has answered lately", ErrNoRoute)
		}
		p.rest = now.Add(p.cfg.Rest) // this reader tries, others do not
	}
	r := &route{name: n, late: now.Add(p.cfg.Timeout), done: make(chan struct{})}
	select {
	case p.asks <- r:
	default:
		p.status.Spared++
		return nil, fmt.Errorf("%w: %d questions wait already", ErrNoRoute, maxAsks)
	}
	p.roomLocked(now)
	p.routes[n] = r
	return r, nil
}

// usable reports whether another reader may take the answer, or wait for it.
func (r *route) usable(now time.Time) bool {
	select {
	case <-r.done:
		return r.err == nil && now.Before(r.until)
	default:
		return now.Before(r.late)
	}
}

// roomLocked makes room for more answers: those that are used no longer go, and where
// that is not enough some others.
func (p *Pathfinder) roomLocked(now time.Time) {
	if len(p.routes) < maxRoutes {
		return
	}
	for n, r := range p.routes {
		if !r.usable(now) {
			delete(p.routes, n)
		}
	}
	for n := range p.routes {
		if len(p.routes) < maxRoutes*3/4 {
			return
		}
		delete(p.routes, n)
	}
}

// tripLocked notes that no answer came in time.
func (p *Pathfinder) tripLocked(now time.Time, err error) {
	if !p.failing {
		p.log.Warn("no router tells where to pull streams from, the pool is used", "server", p.rota.server(), "err", err)
	}
	p.failing, p.rest, p.status.Error = true, now.Add(p.cfg.Rest), err.Error()
}
