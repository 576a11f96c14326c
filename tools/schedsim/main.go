// Command schedsim simulates thousands of players that find their edges: by DNS, and
// by the second look that an edge takes at who comes to it. It uses what runs in
// production: sched.Scheduler answers the resolvers, frontend.Recheck of each edge
// decides about the players, geo.Table knows where everybody is. Only the network and
// the people are made up.
//
//	schedsim
//	schedsim --clients 50000 --far 0.5 --ecs 0.2
//	schedsim --text bench/results/schedsim.txt --html bench/results/schedsim.html
//
// # The world
//
// Twelve regions with four ISPs of different size, edges in datacenters of one ISP or
// of all, players that come, watch and go. A resolver answers many players from its
// cache for as long as the TTL says; it is at the player's own ISP, or far away in
// another region, and some far ones send the player's subnet (ECS). What resolvers and
// edges know of loads and health is as old as in production: edges are probed every
// two seconds, views are made each second, and an edge's copy is a second older still.
// A run goes through a datacenter that dies, edges that are drained and restarted, and
// a region where everybody wants to watch at once.
//
// # What is measured
//
// For each play the policy is asked once more, with the player's true address and by
// what the scheduler knows at that moment. The edge is right if it is the one that the
// policy then wants, or not worse than it by more than the threshold of the re-check;
// an edge that is down is never right. Another figure judges by what is true of the
// edges in that second, which nobody can know yet.
//
// The same players are simulated twice, without and with the re-check. The same seed
// gives the same figures.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"millrace/tools/page"
)

// options are the flags.
type options struct {
	clients, edges, streams int
	duration                time.Duration
	seed                    uint64
	far, ecs, v6            float64
	use                     float64
	recheck                 float64
	answers                 int
	ttl, lag                time.Duration
	calm                    bool
	files                   page.Files
}

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "schedsim:", err)
		os.Exit(2)
	}
	if err := run(o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "schedsim:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("schedsim", flag.ContinueOnError)
	f.IntVar(&o.clients, "clients", 60_000, "how many players there are")
	f.IntVar(&o.edges, "edges", 60, "how many edges")
	f.IntVar(&o.streams, "streams", 300, "how many streams; few of them have most players")
	f.DurationVar(&o.duration, "duration", 20*time.Minute, "how much time passes in the simulation")
	f.Uint64Var(&o.seed, "seed", 1, "what chance starts from")
	f.Float64Var(&o.far, "far", 0.3, "share of players whose resolver is in another region, 0 to 1")
	f.Float64Var(&o.ecs, "ecs", 0.5, "share of those whose resolver sends the client subnet, 0 to 1")
	f.Float64Var(&o.v6, "v6", 0.3, "share of players that use IPv6, 0 to 1")
	f.Float64Var(&o.use, "use", 0.5, "share of the edges' capacity that the usual number of viewers takes")
	f.Float64Var(&o.recheck, "recheck", 10, "ms that another edge must be better for a player to be sent there")
	f.IntVar(&o.answers, "answers", 3, "addresses in a DNS answer, of which players take any")
	f.DurationVar(&o.ttl, "ttl", time.Minute, "TTL of DNS answers")
	f.DurationVar(&o.lag, "lag", time.Second, "how much older the edges' copy of loads and health is than the scheduler's")
	f.BoolVar(&o.calm, "calm", false, "nothing fails and nobody rushes in")
	o.files.Flags(f)
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return o, o.validate()
}

func (o *options) validate() error {
	var errs []error
	within := func(name string, v, low, high float64) {
		if !(v >= low && v <= high) {
			errs = append(errs, fmt.Errorf("--%s is %g, must be %g to %g", name, v, low, high))
		}
	}
	within("clients", float64(o.clients), 1, maxClients)
	within("edges", float64(o.edges), 1, maxEdges)
	within("streams", float64(o.streams), 1, 1_000_000)
	within("far", o.far, 0, 1)
	within("ecs", o.ecs, 0, 1)
	within("v6", o.v6, 0, 1)
	within("use", o.use, 0.01, 10)
	within("recheck", o.recheck, 0.1, 1000)
	within("answers", float64(o.answers), 1, 8)
	whole := func(name string, d, low, high time.Duration) {
		if d < low || d > high || d%time.Second != 0 {
			errs = append(errs, fmt.Errorf("--%s is %v, must be whole seconds from %v to %v", name, d, low, high))
		}
	}
	whole("duration", o.duration, time.Minute, 24*time.Hour)
	whole("ttl", o.ttl, time.Second, time.Hour)
	whole("lag", o.lag, 0, time.Minute)
	return errors.Join(errs...)
}

// run simulates the same players twice, without and with the re-check, and reports to
// out and to the files that are asked for.
func run(o options, out io.Writer) error {
	without, err := simulate(o, false)
	if err != nil {
		return err
	}
	with, err := simulate(o, true)
	if err != nil {
		return err
	}
	r := &report{options: o, without: without, with: with}
	return o.files.Write(out, r.text(), r.html)
}

// command is what repeats the run.
func (o *options) command() string {
	var b strings.Builder
	fmt.Fprintf(&b, "go run ./tools/schedsim --clients %d --edges %d --streams %d --duration %v --seed %d --far %g --ecs %g --v6 %g --use %g --recheck %g --answers %d --ttl %v --lag %v",
		o.clients, o.edges, o.streams, o.duration, o.seed, o.far, o.ecs, o.v6, o.use, o.recheck, o.answers, o.ttl, o.lag)
	if o.calm {
		b.WriteString(" --calm")
	}
	return b.String()
}
