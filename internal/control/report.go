package control

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/internal/auth"
	"millrace/internal/sched"
	"millrace/internal/stream"
)

// Report is what one observer has seen of the nodes, the newest of each and family. All
// times are by the observer's clock.
type Report struct {
	Observer     string
	At           time.Time // when it was made
	Observations []sched.Observation
}

// tick is how finely a report tells times. An observation that is in several reports
// has the same time in all of them.
const tick = 100 * time.Millisecond

// Bounds of a report.
const (
	// MaxReport bounds the JSON of a report.
	MaxReport = 32 << 20
	// maxReported is how many nodes it may tell of.
	maxReported = 50_000
	// maxCarried bounds the streams of all nodes together: where there are more, each
	// node's list is cut to an even share.
	maxCarried = 500_000
)

// reportWire is a Report as it is sent. Ages are shorter than times, and names of streams
// stand once.
type reportWire struct {
	Format   int           `json:"format"`
	Observer string        `json:"observer"`
	At       int64         `json:"at"`              // ticks since 1970
	Names    []stream.Name `json:"names,omitempty"` // of streams
	Nodes    []nodeWire    `json:"nodes"`
}

// nodeWire is what was seen of one node.
type nodeWire struct {
	ID       string         `json:"id"`
	V4       *seenWire      `json:"v4,omitempty"`
	V6       *seenWire      `json:"v6,omitempty"`
	Draining bool           `json:"draining,omitempty"`
	Told     sched.Families `json:"told,omitempty"`    // over which family it told the rest; none: it did not
	Load     int64          `json:"load,omitempty"`    // rounded to 1/128 of itself
	Viewers  int            `json:"viewers,omitempty"` // likewise
	Refused  uint64         `json:"refused,omitempty"`
	Streams  *[]int         `json:"streams,omitempty"` // indexes of names; null: left out
}

// seenWire is what was seen over one family.
type seenWire struct {
	Up    bool   `json:"up,omitempty"`
	Age   int64  `json:"age"`             // ticks before the report
	Error string `json:"error,omitempty"` // the word of the outcome
}

func ticks(t time.Time) int64 { return t.UnixMilli() / tick.Milliseconds() }

// token names a report: reports of one observer differ in their time.
func (r *Report) token() string { return strconv.FormatInt(r.At.UnixMilli(), 36) }

// encode returns r as it is sent, with the names of streams or without.
func (r *Report) encode(streams bool) []byte {
	w := reportWire{Format: format, Observer: r.Observer, At: ticks(r.At), Nodes: []nodeWire{}}
	obs := slices.SortedFunc(slices.Values(r.Observations), func(a, b sched.Observation) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), int(a.Family)-int(b.Family))
	})
	names := &names{}
	if streams {
		names = newNames(obs, maxCarried)
	}
	for i := range obs {
		o := &obs[i]
		if n := len(w.Nodes); n == 0 || w.Nodes[n-1].ID != o.Node {
			w.Nodes = append(w.Nodes, nodeWire{ID: o.Node})
		}
		n := &w.Nodes[len(w.Nodes)-1]
		seen := &seenWire{Up: o.Up, Age: max(0, w.At-ticks(o.At)), Error: o.Error}
		if o.Family == sched.V6 {
			n.V6 = seen
		} else {
			n.V4 = seen
		}
		n.Draining = n.Draining || o.Draining
		if f := o.Figures; f != nil && n.Told == 0 {
			n.Told, n.Load, n.Viewers, n.Refused = o.Family, rounded(f.Load), int(rounded(int64(f.Viewers))), f.Refused
			if streams && f.Streams != nil {
				list := names.indexes(f.Streams)
				n.Streams = &list
			}
		}
	}
	w.Names = names.list
	b, err := json.Marshal(w)
	if err != nil {
		panic("control: " + err.Error()) // of numbers and text
	}
	return b
}

// rounded keeps eight bits of n, so that reports compress better.
func rounded(n int64) int64 {
	shift := 0
	for n>>shift > 0xff {
		shift++
	}
	return n >> shift << shift
}

// names numbers the names of streams.
type names struct {
	list  []stream.Name
	index map[stream.Name]int
	share int // how many each node may have
}

// newNames cuts the lists of all nodes to an even share of most names, where they have
// more.
func newNames(obs []sched.Observation, most int) *names {
	total, nodes := 0, 0
	for i := range obs {
		if f := obs[i].Figures; f != nil {
			total, nodes = total+len(f.Streams), nodes+1
		}
	}
	n := &names{index: map[stream.Name]int{}, share: math.MaxInt}
	if total > most {
		n.share = most / nodes
	}
	return n
}

func (n *names) indexes(streams []stream.Name) []int {
	streams = streams[:min(len(streams), n.share)]
	out := make([]int, len(streams))
	for i, s := range streams {
		j, ok := n.index[s]
		if !ok {
			j = len(n.list)
			n.index[s], n.list = j, append(n.list, s)
		}
		out[i] = j
	}
	return out
}

// ParseReport reads a report as it was sent. It believes nothing that it cannot check:
// what makes no sense is an error.
func ParseReport(b []byte) (*Report, error) {
	if len(b) > MaxReport {
		return nil, fmt.Errorf("the report has %d bytes, at most %d are read", len(b), MaxReport)
	}
	if n := bytes.Count(b, []byte("{")); n > 4*maxReported {
		return nil, fmt.Errorf("the report has %d objects, at most %d are read", n, 4*maxReported)
	}
	var w reportWire
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, fmt.Errorf("not a report: %w", err)
	}
	switch {
	case w.Format != format:
		return nil, fmt.Errorf("the report has format %d and this program reads %d: run the same version everywhere", w.Format, format)
	case !auth.ValidNodeID(w.Observer):
		return nil, errors.New("the report has no observer")
	case w.At < 0 || w.At > maxTick:
		return nil, fmt.Errorf("the report is of the tick %d, which is no time", w.At)
	case len(w.Nodes) > maxReported:
		return nil, fmt.Errorf("the report has %d nodes, at most %d are read", len(w.Nodes), maxReported)
	}
	for _, name := range w.Names {
		if n, err := stream.ParsePath(string(name)); err != nil || n != name {
			return nil, fmt.Errorf("the report has a stream %.80q, which is no name", name)
		}
	}
	r := &Report{Observer: w.Observer, At: time.UnixMilli(w.At * tick.Milliseconds()), Observations: make([]sched.Observation, 0, 2*len(w.Nodes))}
	for i := range w.Nodes {
		if err := r.add(&w, &w.Nodes[i]); err != nil {
			return nil, err
		}
	}
	return r, nil
}

const (
	// maxAge is beyond what is of any interest.
	maxAge = 24 * time.Hour
	// maxTick is some time in the year 5138: further ones do not fit everywhere.
	maxTick = 1e12
)

// add adds what w says of a node.
func (r *Report) add(w *reportWire, n *nodeWire) error {
	if n.ID == "" || len(n.ID) > auth.MaxNodeID || n.Load < 0 || n.Viewers < 0 {
		return fmt.Errorf("the report says something of a node %.80q that makes no sense", n.ID)
	}
	figures := &sched.Figures{Load: n.Load, Viewers: n.Viewers, Refused: n.Refused}
	if n.Streams != nil {
		if len(*n.Streams) > sched.MaxStreams {
			return fmt.Errorf("the report names %d streams for node %s, at most %d are read", len(*n.Streams), n.ID, sched.MaxStreams)
		}
		figures.Streams = make([]stream.Name, len(*n.Streams))
		for i, j := range *n.Streams {
			if j < 0 || j >= len(w.Names) {
				return fmt.Errorf("the report names stream %d of %d for node %s", j, len(w.Names), n.ID)
			}
			figures.Streams[i] = w.Names[j]
		}
	}
	for _, seen := range []struct {
		*seenWire
		family sched.Families
	}{{n.V4, sched.V4}, {n.V6, sched.V6}} {
		if seen.seenWire == nil {
			continue
		}
		age := time.Duration(min(max(seen.Age, 0), int64(maxAge/tick))) * tick
		o := sched.Observation{
			Observer: w.Observer, Node: n.ID, Family: seen.family, At: r.At.Add(-age), Up: seen.Up,
			Error: clipWord(seen.Error), Draining: n.Draining,
		}
		if n.Told == seen.family {
			o.Figures = figures
		}
		r.Observations = append(r.Observations, o)
	}
	return nil
}

// clipWord bounds a word of somebody else's.
func clipWord(s string) string { return s[:min(len(s), 64)] }
