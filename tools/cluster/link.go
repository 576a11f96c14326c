package cluster

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"millrace/internal/faultnet"
)

// link is the way from one node to another: a relay for each protocol that is used
// on it. What is done to a link is done to all of them.
type link struct {
	// Fixed at construction.
	pair  Pair
	base  faultnet.Fault   // both ways, as the topology says
	relay map[string]relay // by scheme: http, rtmp or udp

	// Owned by who holds the cluster's mutex.
	up, down int64         // limits of now, bytes a second; 0 for none but the topology's
	late     time.Duration // beyond the topology's
	cut      bool
	bytes    uint64 // at the last look, for the rate
}

// relay is what all links of package faultnet have in common.
type relay interface {
	Addr() string
	Set(up, down faultnet.Fault) error
	Refuse() error
	Freeze()
	Heal() error
	Stats() faultnet.Stats
	Close() error
}

// probes is the scheme of the datagrams by which nodes measure links.
const probes = "udp"

// open adds the relay of a scheme, if it is not there, and returns its address.
func (l *link) open(scheme, target string, seed uint64) (string, error) {
	if r := l.relay[scheme]; r != nil {
		return r.Addr(), nil
	}
	cfg := faultnet.Config{Seed: seed, Up: l.base, Down: l.base}
	var r relay
	var err error
	if scheme == probes {
		r, err = faultnet.ListenUDP("127.0.0.1:0", target, cfg)
	} else {
		r, err = faultnet.ListenTCP("127.0.0.1:0", target, cfg)
	}
	if err != nil {
		return "", fmt.Errorf("link %v: %w", l.pair, err)
	}
	l.relay[scheme] = r
	return r.Addr(), nil
}

// each does something to all relays.
func (l *link) each(do func(relay) error) error {
	var errs []error
	for _, r := range l.relay {
		errs = append(errs, do(r))
	}
	return errors.Join(errs...)
}

// slow limits what passes, in bytes a second: up is from the link's From to its To.
// Zero leaves a direction as it is.
func (l *link) slow(up, down int64) error {
	if up > 0 {
		l.up = up
	}
	if down > 0 {
		l.down = down
	}
	return l.set()
}

// delay makes everything come later, both ways.
func (l *link) delay(by time.Duration) error {
	l.late = by
	return l.set()
}

// set puts what was asked for in force.
func (l *link) set() error {
	worse := func(rate int64) faultnet.Fault {
		f := l.base
		f.Delay += l.late
		if rate > 0 {
			f.Rate = rate
		}
		return f
	}
	return l.each(func(r relay) error { return r.Set(worse(l.up), worse(l.down)) })
}

// kill cuts the link: what is open is reset, what comes is refused.
func (l *link) kill() error {
	l.cut = true
	return errors.Join(l.each(relay.Refuse), l.reset())
}

func (l *link) heal() error {
	l.up, l.down, l.late, l.cut = 0, 0, 0, false
	return l.each(relay.Heal)
}

func (l *link) freeze() error {
	return l.each(func(r relay) error { r.Freeze(); return nil })
}

func (l *link) reset() error { return l.connections((*faultnet.TCP).Reset) }

func (l *link) halfOpen() error { return l.connections((*faultnet.TCP).HalfOpen) }

// connections does something to the relays that have connections.
func (l *link) connections(do func(*faultnet.TCP)) error {
	return l.each(func(r relay) error {
		if tcp, ok := r.(*faultnet.TCP); ok {
			do(tcp)
		}
		return nil
	})
}

// state returns what is wrong with the link that was not so from the beginning, and
// how much has passed in both directions and is open. Probes do not count.
func (l *link) state() (trouble string, bytes uint64, open int) {
	var words []string
	frozen := false
	for scheme, r := range l.relay {
		s := r.Stats()
		frozen = frozen || s.Frozen
		if scheme != probes {
			bytes += s.Up.Bytes + s.Down.Bytes
			open += s.Open
		}
	}
	if l.cut {
		words = append(words, "killed")
	}
	if frozen {
		words = append(words, "frozen")
	}
	if l.late > 0 {
		words = append(words, fmt.Sprintf("%v late", l.late))
	}
	for _, d := range []struct {
		rate int64
		way  string
	}{{l.up, "up"}, {l.down, "down"}} {
		if d.rate > 0 {
			words = append(words, fmt.Sprintf("%d kbit/s %s", d.rate/125, d.way))
		}
	}
	return strings.Join(words, ", "), bytes, open
}
