package upstream

import (
	"net"
	"slices"
	"sync"
	"time"

	"millrace/internal/failover"
	"millrace/internal/httpflv"
)

// LinkFigures is what the pulls from one upstream have shown since the figures were
// taken last. What is 0 was not measured.
type LinkFigures struct {
	Node        string        // id of the upstream; empty for a foreign server
	URL         string        // of the upstream
	Over        time.Duration // the time that this is about
	Connect     time.Duration // median of the TCP handshakes
	RTT         time.Duration // the least that TCP has seen lately
	Delay       time.Duration // by which media came later than the upstream had them
	FirstFrame  time.Duration // median from the dial to the first frame, of what it had at hand
	Retransmits float64       // share of the bytes that the upstream had to send again, 0…1
	Rate        int64         // bytes/s that came
	Stalls      int           // times that a stream stood still
	Switches    int           // times that a stream was taken elsewhere because of this upstream
	Opened      int           // pulls that the upstream answered
	Failed      int           // pulls that it did not answer, or that broke
	Streams     int           // that come from it now
}

// Links returns the figures of all upstreams that streams were pulled from since the
// last call. It has one caller.
func (o *Origin) Links() []LinkFigures {
	o.mu.Lock()
	all := make([]*Session, 0, len(o.sessions))
	for _, x := range o.sessions {
		all = append(all, x)
	}
	o.mu.Unlock()
	for _, x := range all {
		x.tally()
	}
	return o.links.take(time.Now())
}

// maxLinkURLs bounds of how many upstreams figures are kept, and maxSpans how many times
// of one: the figures of a second.
const (
	maxLinkURLs = 1024
	maxSpans    = 256
)

// links gathers what happens on the way from each upstream.
type links struct {
	// Guarded by mu.
	mu sync.Mutex
	at time.Time // when the figures were taken last
	by map[string]*tally
	// again is the share that was sent again, by URL, as it was told last.
	again map[string]float64
}

// tally is what happened on one way.
type tally struct {
	node                                      string
	connects, firsts, delays                  []time.Duration
	trip                                      time.Duration
	bytes                                     uint64
	sent, again                               uint64 // bytes, as the upstream's TCP counts
	stalls, switches, opened, failed, streams int
}

func newLinks(now time.Time) links { return links{at: now, by: make(map[string]*tally)} }

// note has f change what is noted of the upstream t.
func (l *links) note(t target, f func(*tally)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	y := l.by[t.url]
	if y == nil {
		if len(l.by) >= maxLinkURLs {
			return
		}
		y = &tally{node: t.node}
		l.by[t.url] = y
	}
	f(y)
}

// add appends a time to a list that is not full.
func add(to *[]time.Duration, d time.Duration) {
	if len(*to) < maxSpans {
		*to = append(*to, d)
	}
}

// take returns the figures and begins anew.
func (l *links) take(now time.Time) []LinkFigures {
	l.mu.Lock()
	over := now.Sub(l.at)
	by, before := l.by, l.again
	l.at, l.by, l.again = now, make(map[string]*tally, len(by)), make(map[string]float64)
	for url, y := range by {
		switch {
		case y.sent > 0:
			l.again[url] = min(float64(y.again)/float64(y.sent), 1)
		case y.streams > 0: // link tags come once a second: nothing new is not that nothing is lost
			l.again[url] = before[url]
		}
	}
	again := l.again // nobody changes it any more
	l.mu.Unlock()
	out := make([]LinkFigures, 0, len(by))
	for url, y := range by {
		f := LinkFigures{
			Node: y.node, URL: url, Over: over, Connect: median(y.connects), RTT: y.trip, Delay: median(y.delays),
			FirstFrame: median(y.firsts), Stalls: y.stalls, Switches: y.switches, Opened: y.opened, Failed: y.failed, Streams: y.streams,
			Retransmits: again[url],
		}
		if over > 0 {
			f.Rate = int64(float64(y.bytes) / over.Seconds())
		}
		out = append(out, f)
	}
	return out
}

// median returns the middle one of all, 0 of none. It sorts them.
func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// tally notes what the feeds of a session have brought since the last call.
func (x *Session) tally() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.trials {
		f.tally(false)
	}
	if x.current != nil {
		x.current.tally(true)
	}
}

// tally notes what f has brought since the last call. mu of the session is held.
func (f *feed) tally(current bool) {
	bytes, trip := f.bytes-f.counted.bytes, time.Duration(f.link.Trip)*time.Microsecond
	sent, again := f.link.Out-f.counted.out, f.link.Again-f.counted.again
	if f.link.Out < f.counted.out || f.link.Again < f.counted.again {
		sent, again = 0, 0 // nobody counts backwards
	}
	f.counted = counted{f.bytes, f.link.Out, f.link.Again}
	if trip == 0 {
		trip = leastTrip(f.tcp)
	}
	f.s.o.links.note(f.to, func(y *tally) {
		y.bytes += bytes
		y.sent += sent
		y.again += again
		if trip > 0 && (y.trip == 0 || trip < y.trip) {
			y.trip = trip
		}
		if f.linked {
			y.node = f.link.Node // it says itself who it is
		}
		if current {
			y.streams++
			if f.hop.begun {
				add(&y.delays, f.hop.mean)
			}
		}
	})
}

// tell takes in what the upstream says of itself. What a trunk carried before this stream
// was on it is no news. mu of the session is held.
func (f *feed) tell(l httpflv.Link) {
	if f.onTrunk && !f.linked {
		f.counted.out, f.counted.again = l.Out, l.Again
	}
	f.link, f.linked = l, true
}

// counted is what of a feed is in the figures already.
type counted struct{ bytes, out, again uint64 }

// connected notes how long a handshake took, and on which connection.
func (f *feed) connected(c net.Conn, took time.Duration) {
	f.s.mu.Lock()
	f.hop.trip, f.tcp, f.onTrunk = took, c, false
	f.s.mu.Unlock()
	f.s.o.links.note(f.to, func(y *tally) { add(&y.connects, took) })
}

// carried is connected for a stream on a trunk, whose handshake counts once.
func (f *feed) carried(c net.Conn, handshake time.Duration) {
	f.s.mu.Lock()
	f.tcp, f.onTrunk = c, true
	f.s.mu.Unlock()
	if handshake > 0 {
		f.s.o.links.note(f.to, func(y *tally) { add(&y.connects, handshake) })
	}
}

// framed notes the first frame. mu of the session is held.
func (f *feed) framed(now time.Time) {
	f.begun = true
	if !f.waited { // else it is the upstream that had to fetch it
		f.s.o.links.note(f.to, func(y *tally) { add(&y.firsts, now.Sub(f.began)) })
	}
}

// judged notes that the stream stands still, once each time. mu of the session is held.
func (f *feed) judged(v failover.Verdict) {
	still := v == failover.Silent
	if still && !f.still {
		f.s.o.links.note(f.to, func(y *tally) { y.stalls++ })
	}
	f.still = still
}

// leave notes that a stream is taken from the upstream of f because that is bad.
func (x *Session) leave(now time.Time, f *feed) {
	x.o.links.note(f.to, func(y *tally) { y.switches++ })
	x.o.mu.Lock()
	defer x.o.mu.Unlock()
	x.o.places.leave(now, f.to.url)
}

// fault reports whether a switch says that the upstream that is left is bad.
func fault(r failover.Reason) bool {
	switch r {
	case failover.UpstreamSilent, failover.UpstreamSlow, failover.UpstreamThin, failover.UpstreamIdle:
		return true
	default:
		return false
	}
}

// gone reports whether a failure says that an upstream is bad, and not that it does not
// have a stream.
func gone(f failover.Failure) bool {
	return f == failover.Lost || f == failover.Timeout || f == failover.Refused
}
