package control

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"millrace/internal/auth"
)

// BeatConfig says whom a node tells of itself.
type BeatConfig struct {
	// Servers are the http:// or https:// URLs of routers. One is told at a time; when it
	// fails the next one is told at once.
	Servers []string
	// Every is the pause between heartbeats, unless the router wants another one.
	Every time.Duration
	// Timeout is how long a router may take to answer before another one is told. A node
	// that no router has heard of for three seconds counts as down.
	Timeout time.Duration
	// RetryMin and RetryMax are the pauses after all routers have failed: from the first,
	// twice as long each time, to the last, each shortened by chance by up to a half.
	RetryMin time.Duration
	RetryMax time.Duration
}

// DefaultBeatConfig tells nobody.
func DefaultBeatConfig() BeatConfig {
	return BeatConfig{Every: time.Second, Timeout: 1500 * time.Millisecond, RetryMin: 500 * time.Millisecond, RetryMax: 5 * time.Second}
}

// Validate checks every value. Its errors name the key and the accepted range.
func (c BeatConfig) Validate() error {
	errs := []error{checkServers(c.Servers)}
	for _, d := range []struct {
		key              string
		value, low, high time.Duration
	}{
		{"every", c.Every, 200 * time.Millisecond, time.Minute},
		{"timeout", c.Timeout, 100 * time.Millisecond, 30 * time.Second},
	} {
		if d.value < d.low || d.value > d.high {
			errs = append(errs, fmt.Errorf("%s is %v: use %v to %v", d.key, d.value, d.low, d.high))
		}
	}
	return errors.Join(append(errs, checkRetry(c.RetryMin, c.RetryMax))...)
}

// Beat tells a router of this node, again and again.
type Beat struct {
	// Fixed at construction.
	cfg    BeatConfig
	boot   string
	gather Gather
	client *client
	log    *slog.Logger
	packer *zstd.Encoder

	// Owned by Run.
	rota     rota
	begun    time.Time
	sequence uint64 // of the last heartbeat, taken or not
	taken    taken
	waiting  waiting
	interval time.Duration // between heartbeats, as the router wants it

	// Safe from any goroutine.
	status atomic.Pointer[BeatStatus]
	local  atomic.Pointer[netip.Addr] // the address of this node on the way to the router
	counts [outcomes]atomic.Uint64
	next   atomic.Pointer[[]string] // servers that take the place of those in rota

	hurry chan struct{} // capacity 1, never closed
}

// NewBeat returns a Beat for what gather tells of the node of that id. dial opens the
// connections, nil as net does; conf is for https and may be nil.
func NewBeat(cfg BeatConfig, gather Gather, node string, cluster *auth.Cluster, dial Dial, conf *tls.Config, log *slog.Logger) (*Beat, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(cfg.Servers) == 0 {
		return nil, errors.New("servers is empty: name at least one router")
	}
	packer, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, err
	}
	b := &Beat{
		cfg: cfg, boot: rand.Text(), gather: gather, log: log, packer: packer, interval: cfg.Every,
		rota: newRota(node, cfg.Servers, cfg.RetryMin, cfg.RetryMax), hurry: make(chan struct{}, 1),
	}
	b.client = newClient(node, cluster, b.watched(orNet(dial)), conf)
	b.status.Store(&BeatStatus{Server: b.rota.server(), Boot: b.boot, Interval: cfg.Every})
	return b, nil
}

// watched returns dial, and remembers from which address it has dialled.
func (b *Beat) watched(dial Dial) Dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err == nil {
			if a, ok := conn.LocalAddr().(*net.TCPAddr); ok {
				ip := a.AddrPort().Addr().Unmap().WithZone("")
				b.local.Store(&ip)
			}
		}
		return conn, err
	}
}

// Hurry has the next heartbeat sent soon, because something changed that routers should
// know at once: the node drains, or is full.
func (b *Beat) Hurry() {
	select {
	case b.hurry <- struct{}{}:
	default:
	}
}

// SetServers has other routers told, from now on.
func (b *Beat) SetServers(servers []string) error {
	servers, err := newServers(servers)
	if err != nil {
		return err
	}
	b.next.Store(&servers)
	b.Hurry()
	return nil
}

// hurryPause is how long after a heartbeat the next one may be sent, for whatever reason.
const hurryPause = 200 * time.Millisecond

// Run tells routers until ctx ends, and then returns nil.
func (b *Beat) Run(ctx context.Context) error {
	defer b.client.close()
	b.begun = time.Now()
	for {
		sent := time.Now()
		pause := b.beat(ctx, sent)
		timer := time.NewTimer(pause - time.Since(sent))
		select {
		case <-timer.C:
		case <-b.hurry:
			timer.Reset(hurryPause - time.Since(sent))
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// beat tells the router whose turn it is, and returns how long after now another one is
// to be told.
func (b *Beat) beat(ctx context.Context, now time.Time) time.Duration {
	if servers := b.next.Swap(nil); servers != nil {
		b.rota.change(*servers)
	}
	server := b.rota.server()
	h := b.compose(now, server)
	said := b.pack(mustJSON(h))
	ack, err := b.tell(ctx, server, said)
	if ctx.Err() != nil {
		return 0
	}
	s := b.Status()
	s.Sent++
	s.Bytes += uint64(len(said.bytes))
	if err != nil {
		outcome := outcomeOf(err)
		b.counts[outcome].Add(1)
		if level, tell := b.rota.failed(time.Now(), outcome); tell {
			b.log.Log(ctx, level, "a router does not take heartbeats", "server", server, "reason", outcome, "err", err)
		}
		s.Server, s.Error = b.rota.server(), fmt.Sprintf("%s: %v", outcome, err)
		b.status.Store(&s)
		if !b.rota.round() {
			return 0
		}
		rest := restOf(err)
		return max(b.rota.pause(), rest+jitter(rest), hurryPause)
	}
	b.counts[Answered].Add(1)
	if line := b.rota.welcome("heartbeats are taken"); line != "" {
		b.log.Info(line, "server", server, "router", ack.Router)
	}
	if ack.LeftOut != "" && ack.LeftOut != s.LeftOut {
		b.log.Warn("players are not sent to this node", "server", server, "reason", LeftOut, "err", ack.LeftOut)
	}
	b.remember(h, server, ack)
	b.interval = b.cfg.Every
	if ack.Interval > 0 {
		b.interval = max(time.Duration(ack.Interval)*time.Millisecond, hurryPause)
	}
	s.took(server, h, ack, b.interval, now, time.Since(now))
	s.Lost = b.waiting.lost
	b.status.Store(&s)
	switch {
	case ack.Resend:
		return jitter(b.interval / 2)
	case b.identityChanged(server):
		return hurryPause
	}
	return b.interval*19/20 + jitter(b.interval/10)
}

// tell sends a heartbeat and returns the answer.
func (b *Beat) tell(ctx context.Context, server string, said body) (*Ack, error) {
	short, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
	defer cancel()
	answer, err := b.client.tell(short, server, heartbeatPath, said, MaxAck)
	if err != nil {
		if errors.Is(short.Err(), context.DeadlineExceeded) {
			return nil, fail(Unreachable, "no answer within %v", b.cfg.Timeout)
		}
		return nil, err
	}
	ack, err := ParseAck(answer.body)
	if err == nil && ack.Sequence != b.sequence {
		err = fmt.Errorf("the router answers to heartbeat %d, sent was %d", ack.Sequence, b.sequence)
	}
	if err != nil {
		return nil, fail(Faulty, "%w", err)
	}
	return ack, nil
}
