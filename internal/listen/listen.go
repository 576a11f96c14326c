// Package listen stands between a listening socket and a server: it hands out
// connections that carry the real client's address, within limits, with dead
// peers being noticed.
//
//	socket ─▶ pump ──┬─ limits ───────────────────────────────▶ Accept
//	          │      └─ from a trusted proxy: PROXY header ─ limits ─┘
//	          └ back-off while the system has no descriptors or memory
//
// The PROXY protocol (versions 1 and 2) is spoken by the addresses that the
// configuration names and by nobody else; from them a header is required. Each
// header is read beside the pump, in bounded time and number, so that a peer that
// connects and says nothing holds up nobody, and RemoteAddr never blocks.
//
// At the other end, [Linger] has a connection close so that its last answer arrives.
//
// The package knows nothing of what is spoken on a connection.
package listen

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/address"
	"millrace/internal/session"
	"millrace/internal/setting"
)

// Config is for one listener.
type Config struct {
	// MaxConnections is how many may be open at once; more are closed at once. A
	// [Budget] may allow fewer.
	MaxConnections int
	// MaxPerAddress is how many of them one address (IPv6: one /64) may have. 0 is
	// no limit. Many viewers can stand behind one address.
	MaxPerAddress int
	// ProxyProtocol are the addresses, single or CIDR, that must begin each
	// connection with a PROXY header and are believed.
	ProxyProtocol []string
	// ProxyTimeout is how long the header may take.
	ProxyTimeout time.Duration
	// KeepAlive is after how much silence, and then how often, an idle peer is asked
	// whether it still lives; three missing answers end the connection.
	KeepAlive time.Duration
	// UserTimeout is how long sent data may stay unacknowledged, or a peer take
	// nothing, before the kernel ends the connection (RFC 5482). It should be longer
	// than the stall times of the servers, which know a better reason. 0 leaves it to
	// the kernel, which waits about 15 minutes.
	UserTimeout time.Duration
}

// DefaultConfig returns limits for a node with a few thousand viewers.
func DefaultConfig() Config {
	return Config{
		MaxConnections: 20_000,
		MaxPerAddress:  5_000,
		ProxyTimeout:   5 * time.Second,
		KeepAlive:      15 * time.Second,
		UserTimeout:    45 * time.Second,
	}
}

// Validate checks every value. Its errors name the key and the accepted range.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.MaxPerAddress < 0 || c.MaxPerAddress > 1_000_000 {
		bad("max_per_address: is %d, must be 1 to 1000000, or 0 for no limit", c.MaxPerAddress)
	}
	if _, err := address.ParsePrefixes(c.ProxyProtocol); err != nil {
		bad("proxy_protocol: %w", err)
	}
	if d := c.UserTimeout; d != 0 && (d < time.Second || d > time.Hour) {
		bad("user_timeout: is %v, must be %v to %v, or 0 for the kernel's", d, time.Second, time.Hour)
	}
	errs = append(errs,
		setting.Within("max_connections", c.MaxConnections, 1, 1_000_000),
		setting.Within("proxy_timeout", c.ProxyTimeout, 100*time.Millisecond, time.Minute),
		setting.Within("keep_alive", c.KeepAlive, time.Second, time.Hour))
	return errors.Join(errs...)
}

// settings is a validated Config in the form that is quick to ask. It is immutable.
type settings struct {
	Config
	proxies []netip.Prefix
}

func newSettings(cfg Config) (*settings, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	proxies, err := address.ParsePrefixes(cfg.ProxyProtocol)
	return &settings{Config: cfg, proxies: proxies}, err
}

// trusts reports whether a must speak the PROXY protocol.
func (s *settings) trusts(a netip.Addr) bool {
	for _, p := range s.proxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// Listener is a net.Listener. Its connections are of type *[Conn].
type Listener struct {
	// Fixed at construction.
	inner net.Listener
	log   *slog.Logger
	ready chan *Conn    // no capacity, never closed
	done  chan struct{} // closed by finish

	// Safe from any goroutine.
	settings     atomic.Pointer[settings]
	accepted     atomic.Uint64
	acceptErrors atomic.Uint64
	refused      [refusals]atomic.Uint64
	limits       limits
	warnings     throttle
	workers      sync.WaitGroup // the pump, the readers of PROXY headers, and who lingers
	begin        sync.Once
	end          sync.Once
	err          error // set before done is closed

	// Guarded by mu.
	mu        sync.Mutex
	pending   map[net.Conn]struct{} // waiting for their PROXY header
	lingering map[net.Conn]struct{} // closing, see Linger
	closed    bool
}

// New returns a Listener on top of ln, which it owns from now on. It starts
// nothing: the first Accept does, and Close ends what that started.
func New(cfg Config, ln net.Listener, log *slog.Logger) (*Listener, error) {
	s, err := newSettings(cfg)
	if err != nil {
		return nil, err
	}
	l := &Listener{
		inner: ln, log: log, ready: make(chan *Conn), done: make(chan struct{}),
		pending: make(map[net.Conn]struct{}), lingering: make(map[net.Conn]struct{}),
	}
	l.limits.perAddress = make(map[netip.Addr]int)
	l.settings.Store(s)
	return l, nil
}

// Share has the connections of l count in b too. It is called before the first
// Accept.
func (l *Listener) Share(b *Budget) { l.limits.shared = b }

// SetConfig changes the configuration for connections that come from now on. If
// cfg is not valid, the old one stays. No open connection is closed.
func (l *Listener) SetConfig(cfg Config) error {
	s, err := newSettings(cfg)
	if err != nil {
		return err
	}
	l.settings.Store(s)
	return nil
}

// Accept returns the next connection. It fails when the listener is closed, or
// broken beyond what waiting could mend.
func (l *Listener) Accept() (net.Conn, error) {
	l.begin.Do(func() { l.workers.Go(l.pump) })
	select {
	case <-l.done:
		return nil, l.err
	default:
	}
	select {
	case c := <-l.ready:
		l.accepted.Add(1)
		return c, nil
	case <-l.done:
		return nil, l.err
	}
}

// Close stops accepting, ends connections that wait for their PROXY header or linger,
// and waits for the goroutines of the listener. Others that were handed out stay.
func (l *Listener) Close() error {
	l.finish(net.ErrClosed)
	l.begin.Do(func() {}) // from now on nothing can start
	err := l.inner.Close()
	l.mu.Lock()
	l.closed = true
	for c := range l.pending {
		_ = c.Close()
	}
	for c := range l.lingering {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // whoever closes it goes on
	}
	l.mu.Unlock()
	l.workers.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (l *Listener) finish(err error) {
	l.end.Do(func() {
		l.err = err
		close(l.done)
	})
}

// Addr returns the address that is listened on.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Stats are the figures of a listener.
type Stats struct {
	Open         int    // connections open now, with those that wait for a PROXY header
	Addresses    int    // that these come from
	Accepted     uint64 // handed out
	AcceptErrors uint64 // the system refused to accept, mostly for lack of descriptors
	Refused      map[session.Reason]uint64
}

// Stats returns the figures.
func (l *Listener) Stats() Stats {
	s := Stats{
		Accepted: l.accepted.Load(), AcceptErrors: l.acceptErrors.Load(),
		Refused: make(map[session.Reason]uint64),
	}
	s.Open, s.Addresses = l.limits.count()
	for i, r := range refusalReasons {
		if n := l.refused[i].Load(); n > 0 {
			s.Refused[r] = n
		}
	}
	return s
}
