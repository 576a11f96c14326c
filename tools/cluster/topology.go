package cluster

import (
	"bytes"
	_ "embed" // default.yaml
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"millrace/internal/auth"
	"millrace/internal/faultnet"
	"millrace/internal/stream"
)

//go:embed default.yaml
var defaultFile []byte

// Topology is a tree of nodes on this machine, and what flows through it.
type Topology struct {
	Seed       uint64 `yaml:"seed"`
	ClusterKey string `yaml:"cluster_key"`
	Nodes      []Node `yaml:"nodes"`
	Links      []Rule `yaml:"links"`
	Streams    []Feed `yaml:"streams"`
	// Scheduler is in front of the edges; nil is none.
	Scheduler *Scheduler `yaml:"scheduler"`
	// Routers plan for all nodes. With them each node may pull from any other, and there
	// is a link for each.
	Routers   []Router   `yaml:"routers"`
	Redis     string     `yaml:"redis"`     // URL of what several routers share
	Operators []Operator `yaml:"operators"` // who may log in to their console
	Regions   []Region   `yaml:"regions"`   // how far they are apart
}

// Node is one process. The nodes of a datacenter are peers of one another.
type Node struct {
	ID         string            `yaml:"id"`
	Role       string            `yaml:"role"`
	Datacenter string            `yaml:"datacenter"`
	Region     string            `yaml:"region"`
	ISPs       []string          `yaml:"isps"`      // whose players and nodes reach it well; none: all
	Upstreams  []string          `yaml:"upstreams"` // nodes, or URLs of foreign servers
	Centers    []string          `yaml:"centers"`   // nodes that publishes are pushed to
	Settings   map[string]string `yaml:"settings"`  // any of the node's, by key
}

// Rule gives faults to the links whose ends match, in the manner of path.Match.
type Rule struct {
	From     string        `yaml:"from"`
	To       string        `yaml:"to"`
	Delay    time.Duration `yaml:"delay"`
	Jitter   time.Duration `yaml:"jitter"`
	Loss     float64       `yaml:"loss"`
	RateKbps int64         `yaml:"rate_kbps"`
}

func (r Rule) fault() faultnet.Fault {
	return faultnet.Fault{Delay: r.Delay, Jitter: r.Jitter, Loss: r.Loss, Rate: r.RateKbps * 125}
}

// The sources of a feed.
const (
	Clip   = "clip"   // looks like something in a player
	Frames = "frames" // can be checked by flvpull
)

// Feed is a stream that is published.
type Feed struct {
	Name   string   `yaml:"name"`
	Source string   `yaml:"source"` // Clip or Frames
	Kbps   int      `yaml:"kbps"`   // of Frames; 0 is 1,000
	At     []string `yaml:"at"`     // nodes, tried in turn
}

// defaultKbps is the video bitrate of Frames, clipKbps about what the clip has.
const defaultKbps, clipKbps = 1000, 300

func (f Feed) kbps() int {
	switch {
	case f.Source == Clip:
		return clipKbps
	case f.Kbps == 0:
		return defaultKbps
	}
	return f.Kbps
}

// Default returns the topology of default.yaml.
func Default() (Topology, error) { return Read(bytes.NewReader(defaultFile)) }

// DefaultFile returns default.yaml, to begin one's own with.
func DefaultFile() []byte { return bytes.Clone(defaultFile) }

// Read reads a topology in YAML. Unknown keys are errors.
func Read(r io.Reader) (Topology, error) {
	var t Topology
	d := yaml.NewDecoder(r)
	d.KnownFields(true)
	if err := d.Decode(&t); err != nil && !errors.Is(err, io.EOF) {
		return Topology{}, err
	}
	return t, t.Validate()
}

// maxNodes is far more than one machine runs, and keeps typos from starting thousands.
const maxNodes = 200

// Validate checks that every name means something, and what nodes would refuse
// without a plain word.
func (t Topology) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if n := len(t.Nodes); n == 0 || n > maxNodes {
		bad("nodes: there are %d, use 1 to %d", n, maxNodes)
	}
	known := map[string]bool{}
	for i, n := range t.Nodes {
		switch {
		case !auth.ValidNodeID(n.ID):
			bad("nodes: number %d has the id %q: use letters, digits, dots, underscores and hyphens", i+1, n.ID)
		case known[n.ID]:
			bad("nodes: two have the id %s", n.ID)
		}
		known[n.ID] = true
		if !slices.Contains([]string{"center", "relay", edge}, n.Role) {
			bad("%s: role is %q: use center, relay or edge", n.ID, n.Role)
		}
	}
	ref := func(who, what, id string) {
		if !known[id] {
			bad("%s: %s: there is no node %q", who, what, id)
		}
	}
	for _, n := range t.Nodes {
		for _, u := range n.Upstreams {
			if !foreign(u) {
				ref(n.ID, "upstreams", u)
			}
		}
		for _, c := range n.Centers {
			ref(n.ID, "centers", c)
		}
	}
	for i, r := range t.Links {
		if err := r.validate(); err != nil {
			bad("links: number %d: %w", i+1, err)
		}
	}
	errs = append(errs, t.Scheduler.validate(t.Nodes), t.validateRouters())
	names := map[string]bool{}
	for _, f := range t.Streams {
		if n, err := stream.ParsePath("/" + f.Name); err != nil || string(n) != f.Name {
			bad("streams: %q is not a name: use app/name", f.Name)
		}
		if names[f.Name] {
			bad("streams: %s is there twice", f.Name)
		}
		names[f.Name] = true
		if f.Source != Clip && f.Source != Frames {
			bad("%s: source is %q: use %s or %s", f.Name, f.Source, Clip, Frames)
		}
		if f.Kbps < 0 || f.Kbps > 100_000 {
			bad("%s: kbps is %d: use 1 to 100000, or 0 for %d", f.Name, f.Kbps, defaultKbps)
		}
		if len(f.At) == 0 {
			bad("%s: at is empty: name the nodes to publish to", f.Name)
		}
		for _, id := range f.At {
			ref(f.Name, "at", id)
		}
	}
	return errors.Join(errs...)
}

func (r Rule) validate() error {
	for _, pattern := range []string{r.From, r.To} {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return fmt.Errorf("%q is not a pattern: use the id of a node, with * for any letters", pattern)
		}
	}
	return r.fault().Validate()
}

// foreign reports whether an upstream is a URL.
func foreign(upstream string) bool {
	u, err := url.Parse(upstream)
	return err == nil && u.Host != ""
}

// Pair is a link by its ends: From connects to To.
type Pair struct{ From, To string }

// String returns the name of a link, such as edge-1>relay-1.
func (p Pair) String() string { return p.From + ">" + p.To }

// MarshalText returns the name.
func (p Pair) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a name.
func (p *Pair) UnmarshalText(b []byte) error {
	from, to, ok := strings.Cut(string(b), ">")
	if !ok {
		return fmt.Errorf("%q is not a link: use FROM>TO", b)
	}
	*p = Pair{from, to}
	return nil
}

// Pairs returns the links there are, sorted.
func (t Topology) Pairs() []Pair {
	set := map[Pair]bool{}
	for _, n := range t.Nodes {
		for _, to := range slices.Concat(n.Upstreams, n.Centers, t.peers(n), t.planned(n)) {
			if !foreign(to) {
				set[Pair{n.ID, to}] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b Pair) int { return strings.Compare(a.String(), b.String()) })
}

// peers returns the other nodes of n's datacenter.
func (t Topology) peers(n Node) (out []string) {
	for _, other := range t.Nodes {
		if n.Datacenter != "" && other.Datacenter == n.Datacenter && other.ID != n.ID {
			out = append(out, other.ID)
		}
	}
	return out
}

// fault returns what a link does at first.
func (t Topology) fault(p Pair) faultnet.Fault {
	for _, r := range t.Links {
		from, _ := path.Match(r.From, p.From)
		to, _ := path.Match(r.To, p.To)
		if from && to {
			return r.fault()
		}
	}
	return faultnet.Fault{}
}

// node returns the node of an id.
func (t Topology) node(id string) (Node, bool) {
	i := slices.IndexFunc(t.Nodes, func(n Node) bool { return n.ID == id })
	if i < 0 {
		return Node{}, false
	}
	return t.Nodes[i], true
}
