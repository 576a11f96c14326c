// Package drill rehearses the emergencies of a tree of nodes: real processes on
// loopback, a publisher of numbered frames, viewers that check each of them, and
// something that breaks at a moment which depends on a seed. bench/failover runs
// each case many times, the end-to-end tests run one seed of each.
//
//	publisher ─▶ nodes of a cluster, links of faultnet ─▶ viewers
//	                    ▲ kill, freeze, slow               │ every frame: when, which
//	                  Case ───────────────────────────▶ Result: gap, faults, stalls
//
// # What is measured of a viewer
//
// The gap is the longest time between the arrivals of two frames in the window of the
// case, which begins with the last frame before the fault; frames that stood together
// at the source arrive together, so the gap contains the node's merging of writes.
// Missing are numbers that never came between the first and the last of an epoch.
// The player model has a buffer of one second at live: a frame is due one second
// after the quickest frame of the viewer's beginning would have it, and a frame that
// comes later is a stall, after which everything is due that much later.
package drill

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"millrace/tools/cluster"
)

// Case is one emergency.
type Case struct {
	Name  string
	Item  int // of the list of what must be shown
	About string
	Runs  int  // that give fifty samples or more
	Nodes int  // processes that it starts
	Apart bool // it is no part of all cases: it takes minutes
	// Gap is the longest gap that is promised, 0 for none; of one view in a hundred it
	// may be longer if P99 is set.
	Gap time.Duration
	P99 bool
	// Stalls says that no viewer's player may run dry.
	Stalls bool
	// First is how long the first keyframe may take, 0 for no promise.
	First time.Duration

	topology func(*rig) (cluster.Topology, error)
	run      func(*rig) error
}

// Options say how a case is run.
type Options struct {
	Program string // the node
	Logs    string // an existing folder for what nodes write; empty keeps nothing
	Short   bool   // leave repetitions inside the case out
	// Slack is how many times as long as promised everything may take: for machines that
	// have other work. 0 is 1.
	Slack int
}

// Result is what one run showed.
type Result struct {
	Case     string             `json:"case"`
	Seed     uint64             `json:"seed"`
	Seconds  float64            `json:"seconds"`
	Views    []View             `json:"views"`
	Switches int                `json:"switches"` // of all nodes, without the first upstream of a stream
	Trials   int                `json:"trials"`   // upstreams tried beside or after the first
	Figures  map[string]float64 `json:"figures,omitempty"`
	Broken   []string           `json:"broken,omitempty"` // promises, in words; gaps are judged over all runs
	Events   []cluster.Event    `json:"events,omitempty"` // of the nodes, if something was not as promised
}

// Run runs a case once. The error is for what kept the case from being run; promises
// that were broken are in the Result.
func Run(ctx context.Context, c Case, seed uint64, opt Options) (Result, error) {
	if opt.Logs == "" {
		dir, err := os.MkdirTemp("", "drill-")
		if err != nil {
			return Result{}, err
		}
		defer os.RemoveAll(dir)
		opt.Logs = dir
	}
	r := &rig{
		Case: c, opt: opt, rnd: rand.New(rand.NewPCG(seed, 0)), began: time.Now(), ids: map[string]uint32{},
		out: Result{Case: c.Name, Seed: seed, Figures: map[string]float64{}, Views: []View{}},
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	err := r.open()
	if err == nil {
		err = c.run(r)
		r.observe() // the events of the end
	}
	if closed := r.close(); err == nil {
		err = closed
	}
	if len(r.out.Broken) > 0 || c.GapIn(r.out, opt.Slack) != nil {
		r.out.Events = r.events
	}
	r.out.Seconds = time.Since(r.began).Seconds()
	if err != nil {
		return r.out, fmt.Errorf("%s, seed %d: %w", c.Name, seed, err)
	}
	return r.out, nil
}

// GapIn returns whether the gaps of one run are as promised, with the slack that the
// run had.
func (c Case) GapIn(r Result, slack int) error {
	for _, v := range r.Views {
		if limit := c.Gap * time.Duration(max(slack, 1)); limit > 0 && v.Gap > ms(limit) {
			return fmt.Errorf("viewer of %s at %s: a gap of %.0f ms, want %v", v.Stream, v.Node, v.Gap, limit)
		}
	}
	return nil
}

// Explain returns what nodes did in a run in which something was not as promised.
func (r Result) Explain() string {
	var b strings.Builder
	for _, e := range r.Events {
		fmt.Fprintf(&b, "%s %s %s %s: %q -> %q %s %s %s\n", e.At.Format("05.000"), e.Node, e.Kind, e.Stream, e.From, e.To, e.Reason, e.Detail, e.Figures)
	}
	return b.String()
}

// Find returns the case of a name.
func Find(name string) (Case, bool) {
	all := Cases()
	i := slices.IndexFunc(all, func(c Case) bool { return c.Name == name })
	if i < 0 {
		return Case{}, false
	}
	return all[i], true
}
