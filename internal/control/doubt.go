package control

import (
	"math"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"millrace/internal/auth"
	"millrace/internal/plan"
	"millrace/internal/sched"
	"millrace/internal/stream"
)

// Bounds of what a node can say of itself. They are far above any machine, and so low
// that sums over all nodes stay exact.
const (
	// maxRate bounds bytes/s.
	maxRate = 1 << 50
	// maxViewers bounds viewers of a node.
	maxViewers = 100_000_000
	// maxSpan bounds times in ms.
	maxSpan = 3_600_000
	// maxClock is how far the clock of a node may be from that of its router, whatever
	// signatures allow: times of samples and events are compared with those of others.
	maxClock = 5 * time.Minute
	// maxRechecked is how many rows of rechecks a heartbeat may have.
	maxRechecked = 4096
	// maxWords bounds lists of names and of reasons.
	maxWords = 64
	// maxDetail is how many bytes of text an event may have.
	maxDetail = 1024
	// bootLen is the length of the name of a run, as rand.Text makes it.
	bootLen = 26
)

// checkSelf looks at who says it, and when.
func (h *Heartbeat) checkSelf(now time.Time) error {
	switch {
	case !auth.ValidNodeID(h.Node):
		return deny(Absurd, "node is %.80q: the id of a node has letters, digits, dots, underscores and hyphens", h.Node)
	case len(h.Boot) != bootLen || !isWord(strings.ToLower(h.Boot)):
		return deny(Absurd, "boot is %.80q: want %d letters and digits", h.Boot, bootLen)
	case h.Sequence == 0:
		return deny(Absurd, "sequence is 0: count from 1")
	case h.At.Sub(now).Abs() > maxClock:
		return deny(ClockSkew, "the clock of the node says %v and that of the router %v: let both follow NTP", h.At.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case h.Started.After(h.At) || h.Started.IsZero():
		return deny(Absurd, "started is %v, at is %v: a program starts before it speaks", h.Started, h.At)
	case h.Streams.Based >= h.Sequence:
		return deny(Absurd, "streams is based on heartbeat %d and this is %d", h.Streams.Based, h.Sequence)
	case h.Streams.Based == 0 && len(h.Streams.Gone) > 0:
		return deny(Absurd, "streams is based on nothing and says that some are gone")
	case len(h.Orders) > maxToken:
		return deny(Absurd, "orders is %.80q, which is no token", h.Orders)
	}
	return nil
}

// maxToken is how long a token may be.
const maxToken = 128

func (h *Heartbeat) checkCounts() error {
	for _, c := range []struct {
		key     string
		n, most int
	}{
		{"streams", len(h.Streams.Set), MaxCarried},
		{"streams: gone", len(h.Streams.Gone), MaxCarried},
		{"samples", len(h.Samples), plan.MaxSamples},
		{"players", len(h.Players), MaxPlayers},
		{"rechecks", len(h.Rechecks), maxRechecked},
		{"events", len(h.Events), MaxEvents},
	} {
		if c.n > c.most {
			return deny(TooBig, "%s: %d of them, at most %d are possible: send fewer at once", c.key, c.n, c.most)
		}
	}
	return nil
}

func (h *Heartbeat) checkFigures() error {
	switch {
	case h.Load < 0 || h.Load > maxRate:
		return deny(Absurd, "load is %d bytes/s", h.Load)
	case h.Pulled < 0 || h.Pulled > maxRate:
		return deny(Absurd, "pulled is %d bytes/s", h.Pulled)
	case h.Viewers < 0 || h.Viewers > maxViewers:
		return deny(Absurd, "viewers is %d", h.Viewers)
	}
	return nil
}

// checkIdentity wants what the scheduler takes as a node, and what other nodes can reach.
func (h *Heartbeat) checkIdentity() error {
	i := h.Identity
	if i == nil {
		return nil
	}
	if i.ID != h.Node {
		return deny(NotYours, "the identity is that of %.80q and the heartbeat is of %s", i.ID, h.Node)
	}
	n := i.node()
	if err := (&sched.Snapshot{Nodes: []sched.Node{n}}).Validate(); err != nil {
		return deny(Absurd, "identity: %w", err)
	}
	switch {
	case i.Domain != "" && !isName(i.Domain):
		return deny(Absurd, "identity: domain is %.80q: write a short name without blanks", i.Domain)
	case len(i.Program) > 200 || !utf8.ValidString(i.Program):
		return deny(Absurd, "identity: program is %.80q", i.Program)
	case i.Capacity < 0 || i.Capacity > maxRate:
		return deny(Absurd, "identity: capacity is %d bytes/s", i.Capacity)
	case !within(i.Price, 1e6):
		return deny(Absurd, "identity: price is %v: use 0 to 1000000", i.Price)
	}
	t := Target{Node: i.ID, URL: i.URL, Push: i.Push, Probe: i.Probe, Weight: i.Weight, Capacity: i.Capacity}
	if i.URL == "" {
		return deny(Absurd, "identity: url is missing: say where other nodes pull, http://HOST:PORT")
	}
	if err := t.check(); err != nil {
		return deny(Absurd, "identity: %w", err)
	}
	return nil
}

// node returns i as the scheduler would have it, with something in place of what a node
// need not say.
func (i *Identity) node() sched.Node {
	n := sched.Node{
		ID: i.ID, Role: i.Role, Datacenter: i.Datacenter, Region: i.Region, ISPs: i.ISPs, Groups: i.Groups,
		Addresses: i.Addresses, HTTPPort: i.HTTPPort, HTTPSPort: i.HTTPSPort, Host: i.Host, Capacity: max(i.Capacity, 1), Weight: i.Weight,
	}
	if n.Region == "" {
		n.Region = "unknown"
	}
	if len(n.Addresses) == 0 {
		n.Addresses = []netip.Addr{netip.IPv6Loopback()}
	}
	if n.HTTPPort == 0 && n.HTTPSPort == 0 {
		n.HTTPPort = 80
	}
	return n
}

func (h *Heartbeat) checkStreams() error {
	for i := range h.Streams.Set {
		c := &h.Streams.Set[i]
		switch {
		case !validName(c.Name):
			return deny(Absurd, "streams: %.80q is not the name of a stream", string(c.Name))
		case c.From != "" && !auth.ValidNodeID(c.From):
			return deny(Absurd, "streams: %s comes from %.80q, which is not the id of a node", c.Name, c.From)
		case c.Epoch < 0 || c.Epoch > auth.MaxEpoch:
			return deny(Absurd, "streams: %s has the epoch %d", c.Name, c.Epoch)
		case c.Bitrate < 0 || c.Bitrate > maxRate || c.Viewers < 0 || c.Viewers > maxViewers || !within(c.Delay, maxSpan):
			return deny(Absurd, "streams: %s has %d bytes/s, %d viewers and %v ms of delay", c.Name, c.Bitrate, c.Viewers, c.Delay)
		}
	}
	for _, n := range h.Streams.Gone {
		if !validName(n) {
			return deny(Absurd, "streams: gone: %.80q is not the name of a stream", string(n))
		}
	}
	return nil
}

// validName reports whether n is the name of a stream in its normal form. Most names
// are plain, and are told by their bytes.
func validName(n stream.Name) bool {
	slash, last := 0, byte('/')
	for i := 0; i < len(n); i++ {
		c := n[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		case c == '/' && last != '/':
			if slash == 0 {
				slash = i
			}
		default:
			return normalName(n)
		}
		last = c
	}
	if slash == 0 || last == '/' || len(n) > stream.MaxName || string(n[:slash]) == stream.PageApp {
		return normalName(n)
	}
	return true
}

func normalName(n stream.Name) bool {
	normal, err := stream.ParsePath(string(n))
	return err == nil && normal == n
}

// within reports whether v is a number of 0…most.
func within(v, most float64) bool { return v >= 0 && v <= most }

// isName reports whether s can be a name of ours, as the scheduler has it: short,
// printable and without blanks.
func isName(s string) bool {
	return s != "" && len(s) <= maxWords && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == ',' || r == '#'
	})
}

// isWord reports whether s can be a word of an enumeration, such as a reason.
func isWord(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= maxWords
}

// validPull wants the URL of a node: http or https, a host, and nothing else.
func validPull(s string) bool { return checkServer(s) == nil }

// validPush wants where a node takes publishes.
func validPush(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= maxURL && (u.Scheme == "rtmp" || u.Scheme == "rtmps") && u.Host != "" && u.User == nil &&
		u.RawQuery == "" && u.Fragment == "" && strings.Trim(u.Path, "/") == "" && goodHost(u.Host)
}

// goodHost wants HOST or HOST:PORT.
func goodHost(s string) bool {
	if _, _, err := net.SplitHostPort(s); err != nil {
		s = net.JoinHostPort(strings.Trim(s, "[]"), "1")
	}
	return validProbe(s)
}

// validProbe wants HOST:PORT.
func validProbe(s string) bool {
	host, port, err := net.SplitHostPort(s)
	n, bad := strconv.ParseUint(port, 10, 16)
	return err == nil && bad == nil && n > 0 && host != "" && len(s) <= maxURL && !strings.ContainsFunc(host, func(r rune) bool {
		return r <= ' ' || r >= unicode.MaxASCII || strings.ContainsRune(`"'<>/\`, r)
	})
}

// finite reports whether all of them are numbers of 0…1e15.
func finite(values ...float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || !within(v, 1e15) {
			return false
		}
	}
	return true
}
