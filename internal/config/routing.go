package config

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"millrace/internal/auth"
	"millrace/internal/control"
)

// Routing says which routers a node works with, and what it tells them of itself.
type Routing struct {
	// Servers are the routers. They are tried in turn; none means that the node has its
	// upstreams and peers from this file alone.
	Servers []string
	// StateFile is where the last orders of a router are kept for the next start, and
	// with .snapshot behind it the last snapshot.
	StateFile string
	// Every is how often the node tells a router how it does.
	Every time.Duration

	// Region and ISPs are where the node is well reached from; "*" is every ISP.
	Region string
	ISPs   []string
	// Domain is what fails together with the node: a rack, a hall, a datacenter.
	Domain string
	// Groups are those that domains choose their edges by.
	Groups []string
	// Addresses are where players reach the node. Empty is the one that routers see.
	Addresses []netip.Addr
	// URL is where other nodes pull from it, Push where they push publishes to. Empty
	// ones are made of its first address and its ports.
	URL  string
	Push string
	// Probe is where it answers UDP probes of other nodes, as host:port; "off" is nowhere,
	// and empty the port where other nodes pull.
	Probe string
	// Reach is where this node reaches others instead of where they say: URLs by id, one
	// for each of http or https, rtmp or rtmps, udp for probes.
	Reach map[string][]string
	// Price is money for a GB that the node sends elsewhere, Weight how much of the
	// datacenter's streams it takes compared with others.
	Price  float64
	Weight float64
}

// ProbesOff is the value of Probe that answers no probes.
const ProbesOff = "off"

// Bounds of what a node says of itself, far beyond what is sensible.
const (
	maxPrice  = 1000
	minWeight = 0.01
	maxWeight = 1000
	maxWords  = 64 // ISPs, groups and addresses
	maxWord   = 64 // bytes of a region, an ISP or a group
)

// DefaultRouting works with no router.
func DefaultRouting() Routing { return Routing{Every: time.Second, Weight: 1} }

// Validate checks every value.
func (r Routing) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	errs = append(errs, checkServers(r.Servers))
	if r.Every < 200*time.Millisecond || r.Every > 2*time.Second {
		bad("every is %s: use 200ms to 2s", formatDuration(r.Every))
	}
	for _, w := range []struct{ key, value string }{{"region", r.Region}, {"domain", r.Domain}} {
		if w.value != "" {
			errs = append(errs, checkWord(w.key, w.value))
		}
	}
	errs = append(errs, checkWords("isps", r.ISPs), checkWords("groups", r.Groups), checkGiven(r.Addresses))
	errs = append(errs, checkReach("url", r.URL, "http", "https"), checkReach("push", r.Push, "rtmp", "rtmps"))
	errs = append(errs, checkWays(r.Reach))
	if r.Probe != "" && r.Probe != ProbesOff {
		if err := checkAddress(r.Probe); err != nil {
			bad("probe is %q: %w, or off", r.Probe, err)
		}
	}
	if !(r.Price >= 0 && r.Price <= maxPrice) {
		bad("price is %v: use the money that a GB costs, 0 to %v", r.Price, maxPrice)
	}
	if !(r.Weight >= minWeight && r.Weight <= maxWeight) {
		bad("weight is %v: use %v to %v; 1 is a node like others", r.Weight, minWeight, maxWeight)
	}
	return errors.Join(errs...)
}

// relations checks what the section needs of others. Its errors name whole keys.
func (r Routing) relations(n Node) (errs []error) {
	if len(r.Servers) == 0 {
		return nil
	}
	if n.ID == "" {
		errs = append(errs, errors.New("router.servers needs an id: set id (--id NAME) to a name that no other node has, the same at every start"))
	}
	if n.Address.HTTP == "" && n.Address.HTTPS == "" && n.Address.Internal == "" {
		errs = append(errs, errors.New("router.servers needs address.http, address.https or address.internal: other nodes pull streams there"))
	}
	return errs
}

// noServers are the keys that need a restart to have the first router, or none any more:
// nothing runs that could ask others.
func noServers(servers []string) []string {
	if len(servers) == 0 {
		return []string{"router.servers"}
	}
	return nil
}

// checkServers checks a list of routers.
func checkServers(servers []string) error {
	c := control.DefaultFollowerConfig()
	c.Servers = servers
	return c.Validate()
}

// checkWord checks a name as lists of nodes and domains have it.
func checkWord(key, w string) error {
	switch {
	case w == "":
		return fmt.Errorf("%s has an empty name: remove it", key)
	case len(w) > maxWord:
		return fmt.Errorf("%s has %.20q…: use at most %d bytes", key, w, maxWord)
	case !utf8.ValidString(w) || strings.ContainsFunc(w, func(c rune) bool { return !unicode.IsGraphic(c) || unicode.IsSpace(c) || c == ',' || c == '#' }):
		return fmt.Errorf("%s has %q: blanks, commas, # and control characters cannot stand in a name", key, w)
	}
	return nil
}

// checkWords checks a list of names, each of which may be there once.
func checkWords(key string, words []string) error {
	if len(words) > maxWords {
		return fmt.Errorf("%s has %d names: use at most %d", key, len(words), maxWords)
	}
	for i, w := range words {
		if err := checkWord(key, w); err != nil {
			return err
		}
		if slices.Contains(words[:i], w) {
			return fmt.Errorf("%s has %s twice: remove one", key, w)
		}
	}
	return nil
}

// checkGiven checks addresses that are given to players.
func checkGiven(all []netip.Addr) error {
	if len(all) > maxWords {
		return fmt.Errorf("addresses has %d of them: use at most %d", len(all), maxWords)
	}
	for i, a := range all {
		if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a.Zone() != "" || a.Is4In6() {
			return fmt.Errorf("addresses: %v cannot be given to players: use addresses such as 203.0.113.7 or 2001:db8::7", a)
		}
		if slices.Contains(all[:i], a) {
			return fmt.Errorf("addresses has %v twice: remove one", a)
		}
	}
	return nil
}

// checkReach checks where others reach the node.
func checkReach(key, raw string, schemes ...string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	if err != nil || !slices.Contains(schemes, u.Scheme) || u.Hostname() == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || len(raw) > 512 {
		return fmt.Errorf("%s is %.100q: write %s://HOST:PORT, as other nodes reach this one", key, raw, strings.Join(schemes, ":// or "))
	}
	if err := control.CheckPort(u); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// maxWays bounds for how many nodes the settings may say how they are reached.
const maxWays = 4096

// checkWays checks where other nodes are reached.
func checkWays(ways map[string][]string) error {
	if len(ways) > maxWays {
		return fmt.Errorf("reach has %d nodes: use at most %d", len(ways), maxWays)
	}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(ways)) {
		if !auth.ValidNodeID(id) {
			errs = append(errs, fmt.Errorf("reach has %.80q, which is no id of a node", id))
		}
		seen := map[byte]bool{}
		for _, raw := range ways[id] {
			if err := checkReach("reach of "+id, raw, "http", "https", "rtmp", "rtmps", "udp"); err != nil {
				errs = append(errs, err)
			} else if seen[raw[0]] {
				errs = append(errs, fmt.Errorf("reach of %s has two ways for one purpose: keep one of http and https, one of rtmp and rtmps, one of udp", id))
			} else {
				seen[raw[0]] = true
			}
		}
	}
	return errors.Join(errs...)
}

// Following says which routers a scheduler takes its nodes and domains from.
type Following struct {
	// Servers are the routers. Their snapshot stands in for the files, and what they see
	// of the edges counts beside the probes of this scheduler.
	Servers []string
	// StateFile is where the last good snapshot is kept for the next start.
	StateFile string
	// Wait is how long a question for a newer snapshot may wait for one.
	Wait time.Duration
}

// DefaultFollowing follows no router.
func DefaultFollowing() Following { return Following{Wait: control.DefaultFollowerConfig().Wait} }

// Follow returns how the snapshot is followed.
func (f Following) Follow() control.FollowerConfig {
	c := control.DefaultFollowerConfig()
	c.Servers, c.File, c.Wait = f.Servers, f.StateFile, f.Wait
	return c
}

// Validate checks every value.
func (f Following) Validate() error { return f.Follow().Validate() }
