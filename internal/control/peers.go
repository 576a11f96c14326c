package control

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"millrace/internal/auth"
	"millrace/internal/sched"
)

// PeersConfig says whose observations are taken over.
type PeersConfig struct {
	// Servers are the http:// or https:// URLs of other schedulers, or of routers. All of
	// them are followed at once: what one does not see another may.
	Servers []string
	// Every is how often each is asked. A report of 5,000 nodes is some 80 kB.
	Every time.Duration
	// Streams asks for what streams the nodes carry, too: for programs that place by
	// stream and do not probe. Such a report is about ten times as big.
	Streams bool
}

// DefaultPeersConfig follows nobody.
func DefaultPeersConfig() PeersConfig { return PeersConfig{Every: 2 * time.Second} }

// Validate checks every value. Its errors name the key and the accepted range.
func (c PeersConfig) Validate() error {
	errs := []error{checkServers(c.Servers)}
	if c.Every < 100*time.Millisecond || c.Every > time.Minute {
		errs = append(errs, fmt.Errorf("every is %v: use 100ms to 1m", c.Every))
	}
	return errors.Join(errs...)
}

// Peers follows what others have observed of the nodes.
type Peers struct {
	// Fixed at construction.
	cfg     PeersConfig
	client  *client
	observe func([]sched.Observation)
	log     *slog.Logger

	changed chan struct{} // capacity 1, never closed: there are other servers

	// Guarded by mu.
	mu     sync.Mutex
	status []PeerStatus // one of each server, in their order
}

// PeerStatus is what is known of one server.
type PeerStatus struct {
	Server   string    `json:"server"`
	Observer string    `json:"observer,omitempty"` // as it calls itself
	At       time.Time `json:"at,omitzero"`        // of its last report, by the clock here
	Nodes    int       `json:"nodes"`              // that it reports of
	Error    string    `json:"error,omitempty"`
}

// NewPeers returns a Peers for the program of that id. Each report is handed to
// observe, by several goroutines. dial opens the connections, nil as net does; conf is
// for https and may be nil.
func NewPeers(cfg PeersConfig, node string, cluster *auth.Cluster, dial Dial, conf *tls.Config, observe func([]sched.Observation), log *slog.Logger) (*Peers, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &Peers{cfg: cfg, client: newClient(node, cluster, dial, conf), observe: observe, log: log, changed: make(chan struct{}, 1)}
	return p, p.SetServers(cfg.Servers)
}

// SetServers has these servers followed, and no others, from now on.
func (p *Peers) SetServers(servers []string) error {
	if err := checkServers(servers); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var status []PeerStatus
	for _, server := range servers {
		if placeOf(status, server) < 0 {
			status = append(status, PeerStatus{Server: server})
			if i := placeOf(p.status, server); i >= 0 {
				status[len(status)-1] = p.status[i]
			}
		}
	}
	p.status = status
	select {
	case p.changed <- struct{}{}:
	default:
	}
	return nil
}

// placeOf returns where the server is in status, below 0 if it is not.
func placeOf(status []PeerStatus, server string) int {
	return slices.IndexFunc(status, func(s PeerStatus) bool { return s.Server == server })
}

// Status returns what is known of each server.
func (p *Peers) Status() []PeerStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.status)
}

// Run follows all servers until ctx ends, and then returns nil.
func (p *Peers) Run(ctx context.Context) error {
	defer p.client.close()
	var wg sync.WaitGroup
	defer wg.Wait()
	followed := map[string]context.CancelFunc{} // ends it
	defer func() {
		for _, end := range followed {
			end()
		}
	}()
	for {
		select {
		case <-p.changed:
		case <-ctx.Done():
			return nil
		}
		servers := p.Status()
		for server, end := range followed {
			if placeOf(servers, server) < 0 {
				end()
				delete(followed, server)
			}
		}
		for _, s := range servers {
			if followed[s.Server] == nil {
				one, end := context.WithCancel(ctx)
				followed[s.Server] = end
				wg.Go(func() { p.follow(one, s.Server) })
			}
		}
	}
}

// maxPeerPause is how long a server is left alone that does not answer.
const maxPeerPause = 10 * time.Second

// follow follows one server. It ends early when that is this program itself.
func (p *Peers) follow(ctx context.Context, server string) {
	token := ""
	pause, failing := p.cfg.Every, false
	begun, level := time.Now(), slog.LevelInfo // of the last line about a failure
	settled := false                           // it has reported
	known := map[seenKey]time.Time{}           // by the observer's clock
	for {
		report, next, err := p.ask(ctx, server, token)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			p.note(server, func(s *PeerStatus) { s.Error = fmt.Sprintf("%s: %v", outcomeOf(err), err) })
			now := slog.LevelWarn
			if !settled {
				now = severity(time.Since(begun))
			}
			if !failing || now > level {
				level = now
				p.log.Log(ctx, level, "no report from a peer", "server", server, "reason", outcomeOf(err), "err", err)
			}
			failing, pause = true, min(2*pause, max(maxPeerPause, p.cfg.Every))
		case report != nil && report.Observer == p.client.node:
			p.log.Info("a peer is this program itself: it is left out", "server", server)
			return
		default:
			if failing {
				p.log.Info("reports from a peer again", "server", server)
			}
			failing, settled, pause = false, true, p.cfg.Every
			p.note(server, func(s *PeerStatus) { s.Error = "" })
		}
		if report != nil {
			token = next
			now := time.Now()
			p.note(server, func(s *PeerStatus) {
				*s = PeerStatus{Server: server, Observer: report.Observer, At: now, Nodes: report.nodes()}
			})
			p.observe(report.news(now, known))
		}
		// By chance sooner or later, so that followers that began together do not stay so.
		if sleep(ctx, pause*9/10+rand.N(pause/5)) != nil {
			return
		}
	}
}

func (p *Peers) note(server string, change func(*PeerStatus)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := placeOf(p.status, server); i >= 0 { // else it was just taken off
		change(&p.status[i])
	}
}

// ask returns the report of a server, nil if it is still the one of that token.
func (p *Peers) ask(ctx context.Context, server, token string) (*Report, string, error) {
	q := url.Values{}
	if token != "" {
		q.Set("have", token)
	}
	if p.cfg.Streams {
		q.Set("streams", "1")
	}
	target := strings.TrimSuffix(statePath+"?"+q.Encode(), "?")
	said, err := p.client.ask(ctx, server, target, 0, MaxReport)
	if err != nil || said.unchanged {
		return nil, "", err
	}
	r, err := ParseReport(said.body)
	if err != nil {
		return nil, "", fail(Faulty, "%w", err)
	}
	return r, said.token, nil
}

// news returns the observations of r that are not known, with their times brought to
// the clock here, at now. One that was told before would count as another one that says
// the same. known is brought up to date; it then has what r has.
func (r *Report) news(now time.Time, known map[seenKey]time.Time) []sched.Observation {
	out := make([]sched.Observation, 0, len(r.Observations))
	told := make(map[seenKey]time.Time, len(r.Observations))
	for _, o := range r.Observations {
		key := seenKey{o.Node, o.Family}
		told[key] = o.At
		if before, ok := known[key]; ok && before.Equal(o.At) {
			continue
		}
		o.At = now.Add(-r.At.Sub(o.At))
		out = append(out, o)
	}
	clear(known)
	maps.Copy(known, told)
	return out
}

// nodes returns of how many nodes r tells.
func (r *Report) nodes() int {
	n, last := 0, ""
	for i := range r.Observations {
		if id := r.Observations[i].Node; id != last {
			n, last = n+1, id
		}
	}
	return n
}
