// Command plansim compares two ways to bring streams from where they are published to
// the edges that have viewers, in a made-up network: as a tree, in which edges pull from
// relays, relays from centers, and publishers are pushed up to a center; and by flat
// paths, each planned for one stream and one node. Both use what runs in the router:
// plan.Make, plan.View.Path, plan.Scores. Only the network and the viewers are made up.
//
//	plansim
//	plansim --streams 2000 --viewers 100000 --seed 7
//	plansim --text bench/results/plansim.txt --html bench/results/plansim.html
//
// # The world
//
// Twelve regions at their true distances (four for the comparison of cold streams) with
// three ISPs (two). Each region has, for each ISP, two relays and some edges, and a
// multi-homed relay; three regions (two) have a multi-homed center. A link takes the light's way times a
// factor that is its own, and 30 to 60 ms more across ISPs; a node takes 2 ms to hand a
// stream on. Nodes measure the links to the nearest relays and centers, with noise. Streams are
// published at edges; few of them have most viewers (Zipf).
//
// # What is measured
//
// Back-haul is what links carry between regions or between ISPs: the scarce and paid part.
// All that nodes send to one another is shown beside it. Delay is that of all links and
// nodes from the source to an edge, the mean over the edges that have viewers of a stream. Churn is how
// many choices change in two minutes of noise with one link that is slow for a while.
// Recovery is how long streams are missing when a relay, or a datacenter, dies: a second until a
// node notices, a second more for each choice that is dead too, and three ways over
// each link until media comes again. The same seed gives the same figures.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"millrace/tools/page"
)

// options are the flags.
type options struct {
	streams, viewers, edges int
	cold                    int
	seed                    uint64
	files                   page.Files
}

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "plansim:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("plansim", flag.ContinueOnError)
	f.IntVar(&o.streams, "streams", 600, "how many streams; few of them have most viewers")
	f.IntVar(&o.viewers, "viewers", 20_000, "how many viewers")
	f.IntVar(&o.edges, "edges", 5, "edges of each ISP in each region")
	f.IntVar(&o.cold, "cold", 200, "streams of the comparison of cold ones, each with viewers on 20 edges")
	f.Uint64Var(&o.seed, "seed", 1, "what chance starts from")
	o.files.Flags(f)
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	var errs []error
	within := func(name string, v, low, high int) {
		if v < low || v > high {
			errs = append(errs, fmt.Errorf("--%s is %d, must be %d to %d", name, v, low, high))
		}
	}
	within("streams", o.streams, 1, 100_000)
	within("viewers", o.viewers, 1, 10_000_000)
	within("edges", o.edges, 3, 100)
	within("cold", o.cold, 1, 10_000)
	return o, errors.Join(errs...)
}

// run simulates, and reports to out and to the files that are asked for.
func run(o options, out io.Writer) error {
	r, err := simulate(o)
	if err != nil {
		return err
	}
	return o.files.Write(out, r.text(), r.html)
}
