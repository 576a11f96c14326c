// Package upstream goes back to the origin: it brings the streams that are wanted
// on this node and published on another.
//
// The [Origin] of a node is the source of its hub. The first reader of a stream, of
// any protocol, starts one [Session]; it ends a linger time after the last one. A
// session has one current feed, which is a connection to another node or to a
// foreign server, and at most two feeds beside it that are on trial:
//
//	              ┌─ feed (current) ── tags ──▶ Splicer ──▶ Publisher ──▶ log, readers
//	hub ── want ─▶ Session
//	              └─ feed (trial)   ── tags ──▶ Trial: how far ahead is it?
//
// Each feed has a goroutine that dials and reads, and hands what it read to the
// session under the session's mutex: so a switch happens between two tags, and
// nothing is handed from goroutine to goroutine. What to do is decided by package
// failover, which is pure; this package does it.
//
// # Where a stream is looked for
//
// In this order: the datacenter's owner of the stream by rendezvous, its runner-up, what
// a router says of this stream, the pool of the orders, the pool of the settings. The
// owner goes outside itself, the runner-up to the owner and then outside. A stream that is
// wanted on behalf of a node of the same datacenter is looked for outside only, so that no
// request goes round inside it. A router is asked only where a stream has to come from
// outside; it is waited for 50 ms, and what it says of nodes of the same datacenter does
// not count.
//
// # Load
//
// A member that sends more than its bound, by package ring, brings nothing new in for
// others. Nodes that judged each other would disagree, as each sees other loads, and a
// second copy would come in. So there is one judge of a stream, its owner by rendezvous,
// whom everybody asks first anyway. Asked by a member for a stream that it neither has nor
// looks for, an owner that is over its bound refuses ([session.OverBound]) and names who
// has it instead: the best of those that say, when they are checked, that they are within
// theirs. When there is none it brings the stream in itself, as it does for its own
// readers. No one else ever passes on, so at most one member refuses.
//
// An owner sticks to what it has said, and takes the stream from there itself if it is
// wanted there later. Sessions believe it while it is over its bound since the same time:
// one that starts anew has forgotten what it said, and is asked again, as it is when who
// has the stream dies. Within its bound again, with a margin, it lets the stream come
// home: all who have it elsewhere move, each once and beside what it has, and the owner
// first if it has it too. Who asks in between is refused still, since a stream that would
// come home to a node which has it from them would go round.
//
// Without a key of the cluster nodes tell no loads, and nobody is over its bound.
//
// # Orders
//
// What a router has decided for this node goes before the settings, which are what is
// left. Orders end no session. When they, or what a router says of one stream, name
// another upstream, those sessions that do well move there calmly: when the choice has
// stood for some seconds, a few a second, by a trial beside the current feed that has to
// be as good, and joined where the frames are the same. One that comes to nothing holds
// off, longer each time, and nobody moves to where a stream was just taken from because it
// was bad. These moves have the reason planned.
//
// # Figures
//
// [Origin.Links] tells what the pulls have shown of the way to each upstream. Who receives
// cannot know how often a sender has to send again, so nodes say that of themselves in
// link tags.
//
// # Trunks
//
// Streams that are pulled from one node of ours share TCP connections, up to
// [Config.TrunkStreams] each ([httpflv.Trunks]): so that node sends with one system call
// what is new in many of them. To a session a stream on a trunk is a connection like any
// other. When a trunk breaks, each stream on it is lost and goes on elsewhere by itself.
//
// # Loops
//
// Every request carries the nodes that it passed, and a node that finds itself among
// them refuses. Requests that wait for one another in a circle are found because a
// node that waits is told through whom: one that finds itself in that path gives the
// upstream up.
//
// # Ingest
//
// A node with centers pushes what is published on it to one of them over RTMP, and
// lets a publisher in only if that center does. What a push brings to a center goes
// through a Splicer too, so that a push that breaks and comes back, here or from the
// same publish at another center, repeats nothing.
//
// # Publishes of one name
//
// What was forwarded belongs to the stream. A session or a push that begins where
// readers have stayed takes the slot with [stream.Hub.Continue]: the publish that they
// have seen goes on where it stopped, a newer one begins behind it, an older one is
// refused. So nothing is seen twice when a node finds its own publish at a center that
// has not heard of its end, or when a push comes to a center that has it by a pull.
//
// Locks: Session.mu → Hub → Origin.mu, and Origin.inletsMu → inlet.mu → Hub. The
// methods of [stream.Source] are called with the hub locked, and take Origin.mu alone.
package upstream

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/internal/auth"
	"millrace/internal/failover"
	"millrace/internal/trunk"
)

// Config says where streams come from. Start from [DefaultConfig].
type Config struct {
	// Pool are the upstreams in the order of preference: http://HOST:PORT or
	// https://… of another node or a foreign HTTP-FLV server, rtmp://HOST:PORT or
	// rtmps://… of any RTMP server. A path is put before APP/NAME.
	Pool []string
	// Peers are the other nodes of the same datacenter: their ids, and the URLs at
	// which they serve.
	Peers map[string]string
	// Centers are where publishes of this node are pushed to, each stream to one of
	// them: rtmp://HOST:PORT or rtmps://. Empty keeps them here.
	Centers []string
	// CAFile has the certificates, in PEM, that https and rtmps upstreams are verified
	// with. Empty is those of the system.
	CAFile string
	// Linger is how long a stream is kept after its last reader.
	Linger time.Duration
	// LocateTime is how long a reader waits for a stream that is being looked for.
	LocateTime time.Duration
	// DialTime is how long it may take to connect to an upstream.
	DialTime time.Duration
	// MissTime is how long it is remembered that nobody has a stream.
	MissTime time.Duration
	// MessageBytes bounds one tag of an upstream.
	MessageBytes int
	// CheckEvery is how often the other nodes of the datacenter are asked whether
	// they live.
	CheckEvery time.Duration
	// TrunkStreams is how many streams that are pulled from one node share a TCP
	// connection: fewer system calls for both nodes. 1 gives each its own.
	TrunkStreams int
}

// DefaultConfig returns the settings of a node with no upstreams.
func DefaultConfig() Config {
	return Config{
		Linger:       10 * time.Second,
		LocateTime:   5 * time.Second,
		DialTime:     time.Second,
		MissTime:     time.Second,
		MessageBytes: 8 << 20,
		CheckEvery:   500 * time.Millisecond,
		TrunkStreams: 128,
	}
}

// Validate checks every value. Its errors name the key and the accepted range.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, u := range c.Pool {
		if err := checkURL(u, "http", "https", "rtmp", "rtmps"); err != nil {
			bad("pool: %w", err)
		}
	}
	for _, u := range c.Centers {
		if err := checkURL(u, "rtmp", "rtmps"); err != nil {
			bad("centers: %w", err)
		}
	}
	for id, u := range c.Peers {
		if !auth.ValidNodeID(id) {
			bad("peers: %q is not the id of a node: letters, digits, dots, underscores and hyphens, at most %d", id, auth.MaxNodeID)
		}
		if err := checkURL(u, "http", "https"); err != nil {
			bad("peers.%s: %w", id, err)
		}
	}
	duration := func(key string, d, lo, hi time.Duration) {
		if d < lo || d > hi {
			bad("%s: is %v, must be %v to %v", key, d, lo, hi)
		}
	}
	duration("linger", c.Linger, 0, 10*time.Minute)
	duration("locate_time", c.LocateTime, 100*time.Millisecond, time.Minute)
	duration("dial_time", c.DialTime, 100*time.Millisecond, time.Minute)
	duration("miss_time", c.MissTime, 0, time.Minute)
	duration("check_every", c.CheckEvery, 50*time.Millisecond, time.Minute)
	if c.TrunkStreams < 1 || c.TrunkStreams > trunk.MaxConns {
		bad("trunk_streams: is %d, must be 1 to %d", c.TrunkStreams, trunk.MaxConns)
	}
	if c.MessageBytes < 64<<10 || c.MessageBytes > 1<<24 {
		bad("message_bytes: is %d, must be 64 KiB to 16 MiB", c.MessageBytes)
	}
	return errors.Join(errs...)
}

// checkURL reports what is wrong with the URL of an upstream.
func checkURL(raw string, schemes ...string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a URL: use %s://HOST:PORT", raw, schemes[0])
	case !slices.Contains(schemes, u.Scheme) || u.Host == "":
		return fmt.Errorf("%q: must be %s://HOST:PORT", raw, strings.Join(schemes, ":// or "))
	case u.Hostname() == "" || !isPort(u.Port()):
		return fmt.Errorf("%q: must be %s://HOST:PORT with a port of 1 to 65535", raw, u.Scheme)
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q: must end after the path", raw)
	}
	return nil
}

// isPort reports whether s is a port, or none for that of the scheme.
func isPort(s string) bool {
	n, err := strconv.Atoi(s)
	return s == "" || err == nil && n > 0 && n <= 65535
}

// failoverConfig is how upstreams are judged. The rules have one set of figures,
// which the scenarios of bench/failover were measured with.
var failoverConfig = failover.DefaultConfig()
