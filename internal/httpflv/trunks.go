package httpflv

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/auth"
	"millrace/internal/trunk"
)

// A node that takes trunks says so in the head of a stream that it sends to another
// node. From then on that one has a trunk to it and pulls further streams over that. So
// whoever cannot take them is never asked. A stream that somebody waits for does not wait
// for a trunk, which takes a round trip more than a connection of its own. To the nodes of
// [Trunks.Keep] there is a trunk always: where the streams of one go when it fails, they all
// find a trunk.
const (
	// trunkPath is where a trunk is asked for, signed, with the purpose trunk.
	trunkPath  = probePath + "/trunk"
	trunkProto = "millrace-trunk" // in Upgrade (RFC 9110, 7.8)
	trunkField = "Millrace-Trunk" // "1" in the head of a stream
	// trunkOffer is for the next hop (RFC 9110, 7.6.1): a proxy in between, which may know
	// nothing of trunks, leaves it out.
	trunkOffer = "Connection: " + trunkField + crlf + trunkField + ": 1" + crlf
)

const (
	// maxTrunkHosts bounds of how many upstreams it is remembered that they take trunks.
	maxTrunkHosts = 1024
	// trunkHoldOff is how long an upstream is left alone that did not take a trunk, and
	// trunkRefused one that said no, twice as long each time up to trunkRefusedMost: there
	// may be a proxy between, or it knows no trunks.
	trunkHoldOff     = 10 * time.Second
	trunkRefused     = time.Minute
	trunkRefusedMost = 10 * time.Minute
	// trunkIdle is how long a trunk without streams is kept.
	trunkIdle = 30 * time.Second
	// trunkQuiet is after what silence the other node is asked for a sign of life, and
	// trunkMute after what silence no stream is begun on a trunk: a new connection may get
	// through where an old one hangs. The streams on it have a judgement of their own.
	trunkQuiet = time.Second
	trunkMute  = trunkQuiet + 750*time.Millisecond
	// trunkUnsent bounds what the kernel holds of a trunk that was not sent yet.
	trunkUnsent = 128 << 10
)

// TrunkConfig says how trunks are opened.
type TrunkConfig struct {
	// Streams returns how many streams share a trunk; with less than two there are none.
	Streams func() int
	// Sign returns the marks of this node, which ask for a trunk.
	Sign func() Marks
	// Timeout returns how long it may take to open one.
	Timeout func() time.Duration
	// TLS is used for https; nil is the default of the system.
	TLS *tls.Config
	// Dial opens TCP connections.
	Dial  func(ctx context.Context, network, addr string) (net.Conn, error)
	Agent string
}

// Trunks are connections to other nodes on which many streams are pulled. All methods may
// be called from any goroutine; on nil they do nothing.
type Trunks struct {
	cfg TrunkConfig

	// Guarded by mu.
	mu     sync.Mutex
	closed bool
	hosts  map[string]*trunkHost // that take trunks, by scheme and host
	kept   map[string]bool       // those of them that have one always

	running sync.WaitGroup
}

// trunkHost is a node that takes trunks. It is guarded by Trunks.mu.
type trunkHost struct {
	trunks  []*outTrunk
	dialing chan struct{} // closed when it has come to an end; nil while nobody dials
	away    time.Time     // not asked until then
	pause   time.Duration // after it said no last; 0 if it did not
}

// outTrunk is a trunk that this node has opened.
type outTrunk struct {
	*trunk.Session
	tcp  net.Conn
	trip time.Duration // of the TCP handshake

	told atomic.Bool // trip
}

// first returns the time of the handshake once, and then 0.
func (x *outTrunk) first() time.Duration {
	if x.told.Swap(true) {
		return 0
	}
	return x.trip
}

// NewTrunks returns Trunks without any.
func NewTrunks(cfg TrunkConfig) *Trunks {
	return &Trunks{cfg: cfg, hosts: make(map[string]*trunkHost)}
}

func hostKey(u *url.URL) string { return u.Scheme + "://" + u.Host }

// learn notes that u takes trunks.
func (t *Trunks) learn(u *url.URL) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if key := hostKey(u); t.hosts[key] == nil && len(t.hosts) < maxTrunkHosts {
		t.hosts[key] = &trunkHost{}
	}
}

// Keep has a trunk open to each of the nodes at urls, and to others only while it is used.
func (t *Trunks) Keep(urls []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = make(map[string]bool, len(urls))
	for _, s := range urls {
		u, err := parseURL(s)
		if err != nil {
			continue
		}
		key := hostKey(u)
		if t.hosts[key] == nil && len(t.hosts) < maxTrunkHosts {
			t.hosts[key] = &trunkHost{}
		}
		t.kept[key] = true
	}
}

// dial returns a connection to u on a trunk, and the trunk. They are nil where there is
// no trunk to be had: u is to be dialed. Only who is patient waits for a trunk that is
// being opened.
func (t *Trunks) dial(ctx context.Context, u *url.URL, patient bool) (*trunk.Conn, *outTrunk) {
	if t == nil {
		return nil, nil
	}
	limit := min(t.cfg.Streams(), trunk.MaxConns)
	t.mu.Lock()
	defer t.mu.Unlock()
	for ctx.Err() == nil && !t.closed && limit > 1 {
		h := t.hosts[hostKey(u)]
		if h == nil {
			return nil, nil
		}
		if c, x := h.open(limit); c != nil {
			return c, x
		}
		if !t.begin(h, hostKey(u)) || !patient {
			return nil, nil
		}
		wait := h.dialing
		t.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
		}
		t.mu.Lock()
	}
	return nil, nil
}

// open opens a connection on the first trunk that has room, so that there are few.
func (h *trunkHost) open(limit int) (*trunk.Conn, *outTrunk) {
	for _, x := range h.trunks {
		if x.Len() >= limit || x.Silent() > trunkMute {
			continue
		}
		if c, err := x.Dial(); err == nil {
			return c, x
		}
	}
	return nil, nil
}

// begin has one more trunk to h dialed, unless that is under way, and reports whether
// there may be one soon. mu is held.
func (t *Trunks) begin(h *trunkHost, key string) bool {
	if h.dialing == nil {
		if time.Now().Before(h.away) {
			return false
		}
		h.dialing = make(chan struct{})
		t.running.Go(func() { t.add(h, key) })
	}
	return true
}

// add dials one more trunk to h, which is at key.
func (t *Trunks) add(h *trunkHost, key string) {
	ctx, cancel := context.WithTimeout(context.Background(), t.cfg.Timeout())
	defer cancel()
	var x *outTrunk
	u, err := url.Parse(key)
	if err == nil {
		x, err = t.upgrade(ctx, u)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	close(h.dialing)
	h.dialing = nil
	switch {
	case err == nil && t.closed:
		_ = x.tcp.Close()
	case err == nil:
		h.trunks = append(h.trunks, x)
		h.pause = 0
	default:
		h.hold(time.Now(), err)
	}
}

// hold leaves h alone for a while because of err.
func (h *trunkHost) hold(now time.Time, err error) {
	pause := trunkHoldOff
	if _, refused := errors.AsType[*PullError](err); refused {
		h.pause = min(max(2*h.pause, trunkRefused), trunkRefusedMost)
		pause = h.pause
	}
	h.away = now.Add(pause)
}

// upgrade opens a trunk to u.
func (t *Trunks) upgrade(ctx context.Context, u *url.URL) (*outTrunk, error) {
	began := time.Now()
	raw, err := dialPull(ctx, u, t.cfg.Dial)
	if err != nil {
		return nil, err
	}
	trip := time.Since(began)
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })
	conn, first, err := t.ask(ctx, raw, u)
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	if tcp := tcpOf(raw); tcp != nil {
		_ = boundUnsentOf(tcp, trunkUnsent)
	}
	return &outTrunk{Session: trunk.Open(conn, first), tcp: raw, trip: trip}, nil
}

// ask has the other side make a trunk of raw. It returns raw or the TLS on it, and what
// came behind the answer.
func (t *Trunks) ask(ctx context.Context, raw net.Conn, u *url.URL) (conn net.Conn, first []byte, err error) {
	if conn, err = secured(ctx, raw, u, t.cfg.TLS); err != nil {
		return nil, nil, err
	}
	req := []byte("GET " + trunkPath + " HTTP/1.1\r\nHost: " + u.Host + "\r\nConnection: Upgrade\r\nUpgrade: " + trunkProto + crlf)
	if t.cfg.Agent != "" {
		req = append(req, "User-Agent: "+t.cfg.Agent+crlf...)
	}
	req = append(AppendMarks(req, t.cfg.Sign()), crlf...)
	if _, err := conn.Write(req); err != nil {
		return nil, nil, err
	}
	src := &pullSource{conn: conn, raw: raw, head: pullHead}
	r := bufio.NewReaderSize(src, pullBuffer)
	resp, err := readAnswer(r, nil)
	switch {
	case err != nil:
		return nil, nil, err
	case resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Upgrade") != trunkProto:
		_ = raw.SetReadDeadline(time.Now().Add(refusalTime))
		return nil, nil, pullError(resp, time.Now())
	}
	first, err = r.Peek(r.Buffered())
	return conn, first, err
}

// Sweep closes trunks that nobody needs, opens those that are to be kept, and asks silent
// ones for a sign of life. It is called every 100 ms or so.
func (t *Trunks) Sweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	keep := t.cfg.Streams() > 1 && !t.closed
	for key, h := range t.hosts {
		needed := keep && t.kept[key]
		kept := h.trunks[:0]
		for _, x := range h.trunks {
			switch {
			case x.Err() != nil:
			case x.Idle() > trunkIdle && (!needed || len(kept) > 0):
				t.running.Go(func() { _ = x.Close() })
			default:
				if x.Silent() > trunkQuiet {
					x.Ping()
				}
				kept = append(kept, x)
			}
		}
		clear(h.trunks[len(kept):])
		h.trunks = kept
		switch {
		case len(kept) > 0 || h.dialing != nil:
		case needed:
			t.begin(h, key)
		case len(t.hosts) >= maxTrunkHosts: // the next stream from there tells it again
			delete(t.hosts, key)
		}
	}
}

// TrunkStats says how many trunks there are, and how many streams on them.
type TrunkStats struct{ Trunks, Streams int }

// Stats returns the figures of now.
func (t *Trunks) Stats() (st TrunkStats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.hosts {
		for _, x := range h.trunks {
			st.Trunks++
			st.Streams += x.Len()
		}
	}
	return st
}

// Close closes all trunks, and waits for their goroutines.
func (t *Trunks) Close() {
	t.mu.Lock()
	t.closed = true
	for _, h := range t.hosts {
		for _, x := range h.trunks {
			t.running.Go(func() { _ = x.Close() })
		}
		h.trunks = nil
	}
	t.mu.Unlock()
	t.running.Wait()
}

// errTrunkUse is the refusal of what is no trunk.
var errTrunkUse = fmt.Sprintf("a trunk is asked for by a node, with Upgrade: %s and the purpose %v", trunkProto, auth.Trunk)
