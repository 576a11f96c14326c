package upstream

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"millrace/internal/auth"
	"millrace/internal/failover"
	"millrace/internal/httpflv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

const (
	// maxMissing bounds how many names are remembered that nobody has.
	maxMissing = 10_000
	// sweepEvery is how often what is remembered is looked through.
	sweepEvery = 100 * time.Millisecond
	// maxSearches is how many streams are looked for at once that nobody here has had
	// yet. More wait their turn, so that asking for thousands of names that are nowhere
	// does not drown the upstreams in questions, each of which is then answered too late.
	maxSearches = 128
	// lateFail is after how long the readers are told once more that a stream will not
	// come: those that attached while the session was ending.
	lateFail = 50 * time.Millisecond
)

// Options are what an [Origin] works with.
type Options struct {
	Self    string // id of this node
	Hub     *stream.Hub
	Gate    *auth.Gate
	Cluster *auth.Cluster
	// Grace is how long a stream is kept whose upstreams are all gone.
	Grace time.Duration
	// TLS is used for https and rtmps; nil verifies servers by the host of the URL.
	TLS *tls.Config
	// Dial opens TCP connections; nil uses a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Load returns what this node sends, in bytes/s; nil where nobody measures it. Capacity
	// is what it can send where the orders do not say; 0: not known.
	Load     func() float64
	Capacity int64
	// Route is asked where to pull a stream from; nil asks nobody.
	Route Router
	Log   *slog.Logger

	calm *calm // nil is the default
}

// Origin brings streams from upstreams. It is the [stream.Source] of a hub. All
// methods may be called from any goroutine.
type Origin struct {
	// Fixed at construction.
	opt     Options
	members *members
	prober  *httpflv.Prober
	trunks  *httpflv.Trunks
	journal journal
	// turns hold one for each search, at most maxSearches: those for this node and the
	// ones below it, and those for others of its datacenter. Those wait for nobody in it,
	// while the first do: with common turns two nodes could hold all for each other.
	turns, peerTurns *turns

	// Safe from any goroutine.
	cfg    atomic.Pointer[Config]
	orders atomic.Pointer[Orders]

	changes atomic.Uint64 // of the orders

	settle sync.Mutex // held while settings or orders are put in force

	// Guarded by mu.
	mu        sync.Mutex
	ctx       context.Context // of Run; nil before it and after
	sessions  map[stream.Name]*Session
	missing   map[stream.Name]miss
	pool      *failover.Pool
	places    places
	moves     *rate.Limiter        // leave of sessions to move because of the plan
	homeMoves *rate.Limiter        // and to the owner in the datacenter
	heard     map[string]*heard    // upstreams by URL
	mute      map[string]time.Time // centers that did not answer, and until when they are asked last

	// Guarded by inletsMu, which is held before Hub.mu and inlet.mu.
	inletsMu sync.Mutex
	inlets   map[stream.Name]*inlet

	links links

	running sync.WaitGroup // one for each session and feed
}

// miss is what is remembered of a stream that nobody has.
type miss struct {
	until  time.Time
	reason session.Reason
}

// New returns an Origin. It starts nothing.
func New(cfg Config, opt Options) (*Origin, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if !auth.ValidNodeID(opt.Self) {
		return nil, fmt.Errorf("%q is not the id of a node", opt.Self)
	}
	if opt.Dial == nil {
		opt.Dial = new(net.Dialer).DialContext
	}
	o := &Origin{
		opt: opt, members: newMembers(opt.Self, opt.Capacity), prober: httpflv.NewProber(opt.TLS, opt.Dial),
		sessions: make(map[stream.Name]*Session), missing: make(map[stream.Name]miss),
		inlets: make(map[stream.Name]*inlet), mute: make(map[string]time.Time), heard: make(map[string]*heard),
		turns: newTurns(maxSearches), peerTurns: newTurns(maxSearches),
		pool: failover.NewPool(nil, chance()), places: newPlaces(), links: newLinks(time.Now()),
	}
	if o.opt.calm == nil {
		o.opt.calm = &defaultCalm
	}
	c := o.opt.calm
	o.moves, o.homeMoves = rate.NewLimiter(rate.Every(c.every), c.burst), rate.NewLimiter(rate.Every(c.home), c.homeBurst)
	o.cfg.Store(&cfg)
	o.trunks = httpflv.NewTrunks(httpflv.TrunkConfig{
		Streams: func() int { return o.cfg.Load().TrunkStreams },
		Timeout: func() time.Duration { return o.cfg.Load().DialTime },
		Sign:    o.askTrunk, TLS: opt.TLS, Dial: opt.Dial, Agent: agent,
	})
	o.apply()
	return o, nil
}

// chance returns a random source of its own.
func chance() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }

// SetConfig changes the settings. Running sessions move to where their streams now
// belong. If cfg is not valid, the old one stays.
func (o *Origin) SetConfig(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	o.settle.Lock()
	defer o.settle.Unlock()
	o.cfg.Store(&cfg)
	o.apply()
	return nil
}

// Run brings streams until ctx ends. It has then ended all sessions.
func (o *Origin) Run(ctx context.Context) error {
	o.mu.Lock()
	o.ctx = ctx
	o.mu.Unlock()
	o.running.Go(func() { o.watchMembers(ctx) })
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case now := <-tick.C:
			o.sweep(now)
			o.trunks.Sweep()
			for k, n := range o.journal.left(now) {
				if n > 0 {
					o.opt.Log.Info("upstream", "event", EventKind(k).String(), "count", n, "detail", "more streams that were looked for")
				}
			}
			o.watchInlets(now)
		}
	}
	o.mu.Lock()
	o.ctx = nil
	o.mu.Unlock()
	o.running.Wait()
	o.prober.Close()
	o.trunks.Close()
	return nil
}

// idle reports whether there is nowhere to look.
func (o *Origin) idle() bool {
	if o.opt.Route != nil {
		return false
	}
	r := o.orders.Load()
	return len(o.cfg.Load().Pool) == 0 && (r == nil || len(r.Pool) == 0) && o.members.len() == 0
}

// Want implements [stream.Source].
func (o *Origin) Want(s *stream.Stream, d stream.Demand) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if x := o.sessions[s.Name()]; x != nil {
		x.wanted(true)
		return
	}
	if o.ctx == nil || o.idle() || s.State() == stream.Live {
		return
	}
	if s.State() == stream.Grace && time.Now().Before(o.missing[s.Name()].until) {
		return // it will be asked for again
	}
	o.startLocked(s, d)
}

func (o *Origin) startLocked(s *stream.Stream, d stream.Demand) {
	x, ctx := newSession(o, s, d), o.ctx
	o.sessions[s.Name()] = x
	o.running.Go(func() { x.run(ctx) })
}

// Unwant implements [stream.Source].
func (o *Origin) Unwant(s *stream.Stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if x := o.sessions[s.Name()]; x != nil {
		x.wanted(false)
	}
}

// Brings implements [stream.Source].
func (o *Origin) Brings(s *stream.Stream) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	x := o.sessions[s.Name()]
	return x != nil && x.stream == s
}

// Outlook implements [stream.Source].
func (o *Origin) Outlook(n stream.Name) stream.Outlook {
	o.mu.Lock()
	defer o.mu.Unlock()
	wait := o.cfg.Load().LocateTime
	if x := o.sessions[n]; x != nil {
		return stream.Outlook{Wait: wait, Path: x.path()}
	}
	if o.ctx == nil || o.idle() {
		return stream.Outlook{Why: session.NotFound}
	}
	if m, ok := o.missing[n]; ok && time.Now().Before(m.until) {
		return stream.Outlook{Why: m.reason}
	}
	return stream.Outlook{Wait: wait}
}

// remove takes out a session that has ended for the reason r. Who came while it was
// ending starts a new one, or is told that the stream will not come.
func (o *Origin) remove(x *Session, r session.Reason) {
	o.mu.Lock()
	n := x.stream.Name()
	delete(o.sessions, n)
	switch r {
	case session.Idle:
		if x.isWanted() && o.ctx != nil {
			o.startLocked(x.stream, stream.Demand{})
		}
	case session.NotFound, session.UpstreamLost, session.Loop:
		if len(o.missing) < maxMissing {
			o.missing[n] = miss{time.Now().Add(o.cfg.Load().MissTime), r}
		}
	}
	o.mu.Unlock()
	if r == session.Idle || r == session.Displaced {
		return
	}
	x.stream.Fail(r)
	// Once more for those who attached in the meantime.
	t := time.NewTimer(lateFail)
	defer t.Stop()
	<-t.C
	o.mu.Lock()
	again := o.sessions[n]
	o.mu.Unlock()
	if again == nil {
		x.stream.Fail(r)
	}
}

func (o *Origin) sweep(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for n, m := range o.missing {
		if now.After(m.until) {
			delete(o.missing, n)
		}
	}
	o.places.sweep(now)
}
