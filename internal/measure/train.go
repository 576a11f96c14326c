package measure

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"
)

// connectTime is how long a TCP connection may take.
const connectTime = 2 * time.Second

// measure sends a train to t, opens a connection to it if that is due or no packet came
// back, and notes the result.
func (p *Prober) measure(ctx context.Context, t *target) {
	var trip trips
	if t.Probe != "" {
		trip = p.train(ctx, t.Target)
	}
	p.mu.Lock()
	connect := t.URL != "" && (trip.came == 0 || !time.Now().Before(t.connect))
	p.mu.Unlock()
	r := trip.result()
	r.Node = t.Node
	if connect && ctx.Err() == nil {
		r.Connect, r.Refused = p.connect(ctx, t.URL)
	}
	r.At = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.rouse()
	t.under = false
	p.under--
	if ctx.Err() != nil {
		return
	}
	if connect {
		t.connect = r.At.Add(p.cfg.ConnectEvery*9/10 + rand.N(p.cfg.ConnectEvery/5))
	}
	t.judge(&r)
	p.sent += uint64(r.Sent)
	p.lost += uint64(r.Lost)
	t.last = r
	if r.Sent == 0 && r.Connect == 0 && !r.Refused {
		return // nothing was found out
	}
	if len(p.results) >= maxResults {
		p.results = slices.Delete(p.results, 0, 1)
	}
	p.results = append(p.results, r)
}

// judge decides what a train without an answer means. Where TCP gets through, UDP may be
// shut on the way, or nobody answers there: that is no loss. Where probes were answered
// before, it takes a few such trains to be believed.
func (t *target) judge(r *Result) {
	switch {
	case r.Sent == 0:
	case r.Lost < r.Sent:
		t.answered, t.mute = true, 0
	default:
		t.mute++
		if r.Refused {
			return
		}
		if r.Connect > 0 && (!t.answered || t.mute >= muteAfter) || r.Connect == 0 && !t.answered {
			r.Sent, r.Lost = 0, 0
		}
	}
}

// trips are the round trips of a train.
type trips struct {
	sent int
	came int
	took [maxPackets]time.Duration // 0: lost
}

// result sums them up.
func (t *trips) result() Result {
	r := Result{Sent: t.sent, Lost: t.sent - t.came}
	var all []time.Duration
	var last, differ time.Duration
	for _, d := range t.took[:t.sent] {
		if d == 0 {
			continue
		}
		if last > 0 {
			differ += (d - last).Abs()
		}
		last = d
		all = append(all, d)
	}
	if len(all) > 1 {
		r.Jitter = differ / time.Duration(len(all)-1)
	}
	if len(all) > 0 {
		slices.Sort(all)
		r.RTT, r.Least = all[len(all)/2], all[0]
	}
	return r
}

// train sends a train to t and waits for the answers.
func (p *Prober) train(ctx context.Context, t Target) trips {
	var out trips
	c, err := p.open(ctx, t.Probe)
	if err != nil {
		out.sent = p.cfg.Packets // as good as lost
		return out
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	l := listener{conn: c, prober: p, node: t.Node, train: rand.Uint64()}
	var listening sync.WaitGroup
	listening.Go(l.listen)
	gap := time.NewTicker(p.cfg.Gap)
	defer gap.Stop()
	for i := range p.cfg.Packets {
		if i > 0 {
			select {
			case <-gap.C:
			case <-ctx.Done():
			}
		}
		l.send(uint16(i))
	}
	_ = c.SetReadDeadline(time.Now().Add(p.cfg.Wait))
	listening.Wait()
	return l.trips
}

// open returns a socket that sends to addr and hears nobody else.
func (p *Prober) open(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Wait)
	defer cancel()
	return new(net.Dialer).DialContext(ctx, "udp", addr)
}

// listener sends the packets of a train and takes in the answers.
type listener struct {
	// Fixed at construction.
	conn   net.Conn
	prober *Prober
	node   string
	train  uint64

	// Guarded by mu.
	mu    sync.Mutex
	asked [maxPackets]packet
	at    [maxPackets]time.Time
	trips trips
}

// send sends one packet. One that cannot be sent is lost.
func (l *listener) send(index uint16) {
	var buf [packetSize]byte
	q := packet{kind: question, index: index, train: l.train}
	q.sign(time.Now(), l.prober.opt.Cluster, l.node, nil)
	out := q.append(buf[:0])
	l.mu.Lock()
	l.asked[index], l.trips.sent = q, int(index)+1
	l.at[index] = time.Now()
	l.mu.Unlock()
	_, _ = l.conn.Write(out)
}

// listen takes in answers until all have come or the deadline has.
func (l *listener) listen() {
	var buf [packetSize + 1]byte
	for failed := 0; failed <= maxPackets; {
		n, err := l.conn.Read(buf[:])
		now := time.Now()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			failed++ // nobody was there for one packet; the next may arrive
		case l.take(now, buf[:n]):
			return
		}
	}
}

// take takes in an answer and reports whether it was the last.
func (l *listener) take(now time.Time, b []byte) bool {
	a, err := parse(b)
	if err != nil || a.kind != answer || a.train != l.train {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if int(a.index) >= l.trips.sent || l.trips.took[a.index] != 0 ||
		a.verify(now, l.prober.opt.Cluster, l.node, &l.asked[a.index]) != nil {
		return false
	}
	l.trips.took[a.index] = max(now.Sub(l.at[a.index]), 1)
	l.trips.came++
	return l.trips.came == l.prober.cfg.Packets
}

// connect opens a TCP connection to where a URL points and closes it again.
func (p *Prober) connect(ctx context.Context, at string) (took time.Duration, refused bool) {
	u, err := url.Parse(at)
	if err != nil || u.Hostname() == "" {
		return 0, false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "rtmp": "1935", "rtmps": "443"}[u.Scheme]
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	began := time.Now()
	c, err := p.opt.Dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return 0, true
	}
	took = max(time.Since(began), 1)
	_ = c.Close()
	return took, false
}
