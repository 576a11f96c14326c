// Package httpflv serves streams to players over HTTP-FLV and WebSocket-FLV.
//
// A [Server] is the HTTP face of one listener: it reads requests, refuses what it
// must with one plain sentence, and takes the connection of a viewer away from
// the HTTP library. A [Fanout], shared by the servers of a node, sends.
//
//	request ──▶ Server ── socket ──▶ shard 0 ─┬─ feed live/a ── viewers ──▶ writev
//	              │                           └─ feed live/b ── viewers
//	              │                  shard 1 ─── feed live/a ── viewers
//	              └── TLS, WebSocket ──▶ a goroutine for each viewer
//
// A shard is one goroutine per core that owns its viewers' descriptors. Nothing
// else reads, writes or closes them once they are handed over, so a viewer costs
// no goroutine, no lock and no buffer. What a viewer lacks is gathered from its
// cursor into one non-blocking writev; what the socket does not take stays with
// the cursor, but for the rest of the tag in progress. How often a viewer is
// written to is the one figure that the cost depends on; merge.go decides it.
//
// A descriptor is not known to the runtime's poller: the shard has an epoll
// instance of its own, and that one is what the runtime waits for on its behalf.
//
// # Nodes
//
// A node below gets every tag at once, on the stream's own clock, with link tags between
// ([Link]). One that pulls many streams has them on trunks, which are TCP connections that
// several streams share ([Trunks], package trunk): a coach writes what came of all of them
// with one system call, in the goroutine of the trunk and no other.
//
//	feed live/a ─┐
//	feed live/b ─┼─ marks ──▶ coach ──▶ trunk ──▶ one write ──▶ node below
//	feed live/c ─┘
//
// # Half-closed connections
//
// A player that shuts down its sending side counts as gone. Players do not do
// that, dying networks and killed processes do, and it is the only sign of a
// dead reader that costs nothing to see.
//
// # Framing
//
// HTTP/1.1 gets the chunked coding with one chunk for each tag, HTTP/1.0 (or
// everyone, by configuration) a body that ends with the connection, WebSocket
// one binary message for each tag. Which of them a viewer has is fixed before its
// first byte.
//
// # How players fare
//
// A server that has a [quality.Book] notes there when viewers got their first byte, when
// they were too slow and why they ended, and takes at POST /v1/report what players say of
// themselves.
//
// # Where players belong
//
// A server that has a [Placer] may send a player on to the edge that suits it better,
// with a ticket in the URL. Who comes with a ticket is served or refused, and never
// sent on, so no player is passed around. Schedulers learn what they place players by
// from /healthz and, signed, from /.well-known/millrace.
package httpflv

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Config says how streams are served. One value configures the servers and the
// fan-out that they share.
type Config struct {
	// ReadTimeout is how long a request may take from its first byte to its last.
	ReadTimeout time.Duration
	// IdleTimeout is how long a connection may wait for its next request.
	IdleTimeout time.Duration
	// PlayWait is how long a viewer of a missing stream waits for it before the
	// answer is 404. Zero answers at once.
	PlayWait time.Duration
	// StallTimeout ends a viewer whose socket took nothing for so long.
	StallTimeout time.Duration
	// MaxViewers is how many may watch or wait at the same time on this node.
	MaxViewers int
	// CloseDelimited sends bodies without the chunked coding to HTTP/1.1 too, for
	// players that cannot read it.
	CloseDelimited bool
	// Origins are the web origins that may read streams: "*" for all, "null" for
	// pages without one, else scheme://host[:port]. None means none.
	Origins []string
	// TrustedProxies are the addresses, single or CIDR, whose X-Forwarded-For and
	// X-Real-IP are believed.
	TrustedProxies []string
	// MergeMin and MergeMax bound how long tags of a viewer may be held so that
	// several go out in one write: the first while the node has little to do, the
	// second while it is busy. Equal values fix the time.
	MergeMin time.Duration
	MergeMax time.Duration
	// DrainSpread is the time over which viewers are closed at the end, so that
	// they do not all come back elsewhere in the same instant.
	DrainSpread time.Duration
	// Shards is how many goroutines write. Zero is one for each core.
	Shards int
}

// DefaultConfig returns what suits a node with a few thousand viewers.
func DefaultConfig() Config {
	return Config{
		ReadTimeout:  10 * time.Second,
		IdleTimeout:  30 * time.Second,
		StallTimeout: 30 * time.Second,
		MaxViewers:   10_000,
		Origins:      []string{"*"},
		MergeMin:     10 * time.Millisecond,
		MergeMax:     350 * time.Millisecond,
		DrainSpread:  2 * time.Second,
	}
}

// Validate checks every value. Its errors name the key and the accepted range.
func (c Config) Validate() error {
	var errs []error
	duration := func(key string, d, lo, hi time.Duration) {
		if d < lo || d > hi {
			errs = append(errs, fmt.Errorf("%s: is %v, must be %v to %v", key, d, lo, hi))
		}
	}
	count := func(key string, n, lo, hi int) {
		if n < lo || n > hi {
			errs = append(errs, fmt.Errorf("%s: is %d, must be %d to %d", key, n, lo, hi))
		}
	}
	duration("read_timeout", c.ReadTimeout, 100*time.Millisecond, time.Minute)
	duration("idle_timeout", c.IdleTimeout, 100*time.Millisecond, 10*time.Minute)
	duration("play_wait", c.PlayWait, 0, time.Minute)
	duration("stall_timeout", c.StallTimeout, time.Second, 10*time.Minute)
	count("max_viewers", c.MaxViewers, 1, 1_000_000)
	duration("merge_min", c.MergeMin, 0, time.Second)
	duration("merge_max", c.MergeMax, c.MergeMin, 2*time.Second)
	duration("drain_spread", c.DrainSpread, 0, time.Minute)
	count("shards", c.Shards, 0, 256)
	for _, o := range c.Origins {
		if o != "*" && o != "null" && !plausibleOrigin(o) {
			errs = append(errs, fmt.Errorf("origins: %q must be *, null or scheme://host[:port] without a path", o))
		}
	}
	if _, err := parsePrefixes(c.TrustedProxies); err != nil {
		errs = append(errs, fmt.Errorf("trusted_proxies: %w", err))
	}
	return errors.Join(errs...)
}

// plausibleOrigin reports whether o looks like what a browser sends as Origin.
func plausibleOrigin(o string) bool {
	scheme, host, ok := strings.Cut(o, "://")
	return ok && scheme != "" && host != "" && !strings.ContainsAny(host, "/?#, \t\r\n")
}

// parsePrefixes reads addresses and CIDR prefixes.
func parsePrefixes(list []string) ([]netip.Prefix, error) {
	out := make([]netip.Prefix, 0, len(list))
	for _, s := range list {
		if a, err := netip.ParseAddr(s); err == nil {
			out = append(out, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, fmt.Errorf("%q is neither an address nor a prefix such as 10.0.0.0/8", s)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}
