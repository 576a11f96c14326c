package frontend

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// DNS is the name server of the scheduler. Listen opens its sockets, Run serves them.
type DNS struct {
	// Fixed at construction.
	decider Decider
	log     *slog.Logger
	rates   *rateLimiter
	stale   chan struct{} // capacity 1, never closed: the plan is newer than zones

	// Fixed when Run begins.
	udp []*udpSocket
	tcp []net.Listener

	// Safe from any goroutine.
	settings atomic.Pointer[dnsSettings]
	zones    atomic.Pointer[zones]
	own      atomic.Pointer[secrets] // drawn by this process, the newest first
	conns    connTable
}

// NewDNS returns a DNS that answers what d decides. It starts nothing.
func NewDNS(cfg DNSConfig, d Decider, log *slog.Logger) (*DNS, error) {
	s, err := newDNSSettings(cfg)
	if err != nil {
		return nil, err
	}
	f := &DNS{decider: d, log: log, rates: newRateLimiter(cfg.RateTable), stale: make(chan struct{}, 1)}
	f.settings.Store(s)
	f.conns.open = make(map[netip.Addr]int)
	f.drawSecret()
	f.readPlan()
	return f, nil
}

// SetConfig changes the configuration for messages that come from now on. If cfg is
// not valid, the old one stays. The number of workers and the size of the table of
// rates stay as they are.
func (d *DNS) SetConfig(cfg DNSConfig) error {
	s, err := newDNSSettings(cfg)
	if err != nil {
		return err
	}
	d.settings.Store(s)
	return nil
}

// Listen opens sockets at addr, HOST:PORT, for UDP and TCP. Without a host they are
// for all addresses of the machine, and each reply leaves from the one that was asked.
// It may be called for several addresses, before Run.
func (d *DNS) Listen(ctx context.Context, addr string) error {
	const tries = 20 // a port from the kernel may be free for TCP and not for UDP
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen for DNS: %q must be HOST:PORT, such as :53 or 192.0.2.1:53: %w", addr, err)
	}
	for try := 1; ; try++ {
		if err = d.listen(ctx, addr); err == nil || port != "0" || try == tries {
			return err
		}
	}
}

func (d *DNS) listen(ctx context.Context, addr string) error {
	// TCP first, because it tells when another process has the port: sockets for UDP
	// share it with whoever has the same user.
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen for DNS over TCP: %w", err)
	}
	workers := d.settings.Load().Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var sockets []*udpSocket
	for range workers {
		s, err := openUDP(ctx, ln.Addr().(*net.TCPAddr), addr)
		if err != nil {
			closeAll(ln, sockets)
			return fmt.Errorf("listen for DNS over UDP: %w", err)
		}
		sockets = append(sockets, s)
	}
	d.tcp = append(d.tcp, ln)
	d.udp = append(d.udp, sockets...)
	return nil
}

func closeAll(ln net.Listener, sockets []*udpSocket) {
	_ = ln.Close()
	for _, s := range sockets {
		_ = s.conn.Close()
	}
}

// Addrs returns what is listened on, UDP and TCP alike.
func (d *DNS) Addrs() []netip.AddrPort {
	out := make([]netip.AddrPort, len(d.tcp))
	for i, ln := range d.tcp {
		out[i] = ln.Addr().(*net.TCPAddr).AddrPort()
	}
	return out
}

// Run answers until ctx ends, or a socket fails, and closes the sockets. It returns nil
// if ctx ended it.
func (d *DNS) Run(ctx context.Context) error {
	d.readPlan() // the one that New has seen may be long gone
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range d.udp {
		w := newUDPWorker(d, s)
		g.Go(func() error { return w.run(ctx) })
	}
	for _, ln := range d.tcp {
		g.Go(func() error { return d.accept(ctx, ln) })
	}
	g.Go(func() error { d.keep(ctx); return nil })
	return g.Wait()
}

// Close closes the sockets of a DNS that was never run.
func (d *DNS) Close() error {
	var errs []error
	for _, ln := range d.tcp {
		errs = append(errs, ln.Close())
	}
	for _, s := range d.udp {
		errs = append(errs, s.conn.Close())
	}
	return errors.Join(errs...)
}

// keep does what is done beside the questions, until ctx ends.
func (d *DNS) keep(ctx context.Context) {
	second, day := time.NewTicker(time.Second), time.NewTicker(secretLife)
	defer second.Stop()
	defer day.Stop()
	var told uint64
	for {
		select {
		case <-d.stale:
			d.readPlan()
		case <-second.C:
			d.readPlan() // also when nobody asks: who asks first shall not get what is old
			told = d.tellLimited(told)
		case <-day.C:
			d.drawSecret()
		case <-ctx.Done():
			d.tellLimited(told)
			return
		}
	}
}

// current returns the zones to answer from. If the plan has changed they are those
// of the one before, until keep has read the new one.
func (d *DNS) current() *zones {
	z := d.zones.Load()
	if z.plan != d.decider.View().Plan {
		select {
		case d.stale <- struct{}{}:
		default:
		}
	}
	return z
}

// readPlan makes the zones of the newest plan.
func (d *DNS) readPlan() {
	plan := d.decider.View().Plan
	if z := d.zones.Load(); z != nil && z.plan == plan {
		return
	}
	z, err := newZones(plan)
	if err != nil {
		d.log.Error("some of the plan is not served over DNS", "version", plan.Version, "err", err)
	}
	d.zones.Store(z)
}

// cookieSecrets returns the configured ones, else those of this process.
func (d *DNS) cookieSecrets(s *dnsSettings) secrets {
	if len(s.secrets) > 0 {
		return s.secrets
	}
	return *d.own.Load()
}

// drawSecret makes a new secret of this process the first one, and forgets all but
// the one before.
func (d *DNS) drawSecret() {
	var b [secretLen]byte
	_, _ = rand.Read(b[:]) // never fails
	next := secrets{newSecret(b)}
	if old := d.own.Load(); old != nil {
		next = append(next, (*old)[0])
	}
	d.own.Store(&next)
}

// tellLimited logs how many replies were held back beyond those told of.
func (d *DNS) tellLimited(told uint64) uint64 {
	n, network := d.rates.held()
	if n > told {
		d.log.Warn("replies held back: a network is over its rate", "count", n-told, "newest", network, "reason", dropWords[dropRate])
	}
	return n
}

// Stats returns the figures.
func (d *DNS) Stats() DNSStats {
	s := DNSStats{
		Types: map[string]uint64{}, Codes: map[string]uint64{}, ECS: map[string]uint64{},
		Cookies: map[string]uint64{}, Reasons: map[string]uint64{}, Sources: map[string]uint64{},
		Dropped: map[string]uint64{}, Ended: map[string]uint64{},
	}
	for _, u := range d.udp {
		s.UDP += u.count.messages.Load()
		u.count.addTo(&s)
	}
	s.TCP = d.conns.count.messages.Load()
	d.conns.count.addTo(&s)
	d.conns.addTo(&s)
	z := d.zones.Load()
	s.Zones, s.Names = len(z.plan.Zones), len(z.names)
	return s
}
