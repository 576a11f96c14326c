package control

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/auth"
)

// asker is what those have in common who ask servers for what is new, without end: whose
// turn it is, what came of each question, how long to wait after it. But for SetServers,
// Status and Counts, which are safe from any goroutine, it belongs to the one that asks.
type asker struct {
	// Fixed at construction.
	cfg    FollowerConfig
	client *client
	log    *slog.Logger
	what   string // is asked for, as the log has it: snapshots, orders

	rota     rota
	answered string // the server that did last. Whether another one answers at all is to be known soon: it is not asked to wait

	// Guarded by mu.
	mu        sync.Mutex
	servers   []string           // that take the place of those in rota; nil: none
	interrupt context.CancelFunc // ends the question under way, and the rest after it

	// Safe from any goroutine.
	status atomic.Pointer[SourceStatus]
	counts [outcomes]atomic.Uint64
}

// newAsker returns an asker for the node of that id. whom says what kind of servers it
// asks.
func newAsker(kind, what, whom string, cfg FollowerConfig, node string, cluster *auth.Cluster, dial Dial, conf *tls.Config, log *slog.Logger) (*asker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(cfg.Servers) == 0 {
		return nil, fmt.Errorf("servers is empty: name at least one %s to follow", whom)
	}
	a := &asker{
		cfg: cfg, client: newClient(node, cluster, dial, conf), log: log, what: what,
		rota: newRota(node, cfg.Servers, cfg.RetryMin, cfg.RetryMax),
	}
	a.status.Store(&SourceStatus{Kind: kind, From: a.rota.server()})
	return a, nil
}

// SetServers has other servers asked, from now on: a question under way is given up. What
// was taken from others stays in use.
func (a *asker) SetServers(servers []string) error {
	servers, err := newServers(servers)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.servers = servers
	if a.interrupt != nil {
		a.interrupt()
	}
	return nil
}

// turn begins a question to the server whose turn it is. Its context is over as well when
// other servers are to be asked; done ends it.
func (a *asker) turn(ctx context.Context) (question context.Context, done context.CancelFunc) {
	question, done = context.WithCancel(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.servers != nil {
		a.rota.change(a.servers)
		a.servers = nil
	}
	a.interrupt = done
	return question, done
}

// Status says whom is asked and what came of it. Its version is that of what is in use.
func (a *asker) Status() SourceStatus { return *a.status.Load() }

// Counts returns how often each outcome was met, by its word.
func (a *asker) Counts() map[string]uint64 {
	out := make(map[string]uint64, outcomes)
	for i := range a.counts {
		out[Outcome(i).String()] = a.counts[i].Load()
	}
	return out
}

// uses notes the version that is in use before anybody was asked.
func (a *asker) uses(v Version) {
	s := a.Status()
	s.Version = v
	a.status.Store(&s)
}

// note counts what came of a question to the server: v is in use after it, and news
// tells whether it came with the answer. After a failure it is the turn of the next
// server, and note reports whether that is worth a line in the log, and of which level.
func (a *asker) note(server string, v Version, news bool, err error) (level slog.Level, tell bool) {
	s := a.Status()
	s.From, s.Version, s.Error = server, v, ""
	outcome := Unchanged
	switch {
	case err != nil:
		outcome = outcomeOf(err)
		s.Error = fmt.Sprintf("%s: %v", outcome, err)
		level, tell = a.rota.failed(time.Now(), outcome)
	case news:
		outcome = Answered
	}
	a.counts[outcome].Add(1)
	if err == nil {
		a.answered = server
		if line := a.rota.welcome(a.what + " are followed"); line != "" {
			a.log.Info(line, "server", server)
		}
		s.At = time.Now()
	}
	a.status.Store(&s)
	return level, tell
}

// rest waits after a failure: shortly as long as there is another server to ask, then
// longer and longer. Its only error is that of ctx.
func (a *asker) rest(ctx context.Context) error {
	d := jitter(a.cfg.RetryMin / 2)
	if a.rota.round() {
		d = a.rota.pause()
	}
	return sleep(ctx, d)
}

// sleep waits for d or until ctx ends, and then returns its error.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
