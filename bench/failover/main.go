// Command failover runs the emergencies of tools/drill many times with different
// seeds, on the real node, and writes what viewers saw of them: how long the gaps
// were, and whether a frame came twice, not at all or with a wrong time. README.md
// beside it has the cases and what is promised.
//
//	go run ./bench/failover -case owner-kill
//	go run ./bench/failover -case all
//
// What a run showed is kept under -work at once; whoever is interrupted goes on where
// it was with the same command line. Tables go to standard output and to
// bench/results/failover-CASE.txt.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"

	"millrace/tools/drill"
	"millrace/tools/procstat"
)

// options are what the command line says.
type options struct {
	runs     int
	seed     uint64
	results  string
	work     string
	node     string
	short    bool
	together int
	verbose  bool
	logs     string
}

func main() {
	var o options
	var names string
	var all []string
	var apart []string
	for _, c := range drill.Cases() {
		if c.Apart {
			apart = append(apart, c.Name)
		} else {
			all = append(all, c.Name)
		}
	}
	flag.StringVar(&names, "case", "all", "comma separated: all, which are "+strings.Join(all, ", ")+"; or "+strings.Join(apart, ", "))
	flag.IntVar(&o.runs, "runs", 0, "how often each case is run; 0 is what gives fifty samples or more")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the first run; the next one has the next")
	flag.StringVar(&o.results, "results", "bench/results", "folder for the results; empty writes none")
	flag.StringVar(&o.work, "work", filepath.Join(os.TempDir(), "millrace-failover"), "folder for what runs showed; remove it to begin anew")
	flag.StringVar(&o.node, "node", "", "a node that is built already")
	flag.IntVar(&o.together, "together", 1, "how many runs at once; each has up to nine nodes")
	flag.BoolVar(&o.short, "short", false, "leave repetitions inside a case out: for a first look")
	flag.BoolVar(&o.verbose, "v", false, "tell of each run")
	flag.StringVar(&o.logs, "logs", "", "an existing folder that keeps the logs of the nodes, of all runs in one file each")
	flag.Parse()
	if names == "all" {
		names = strings.Join(all, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, strings.Split(names, ","))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, names []string) error {
	if err := os.MkdirAll(o.work, 0o755); err != nil {
		return err
	}
	if o.node == "" {
		o.node = filepath.Join(o.work, "node")
		c := exec.CommandContext(ctx, "go", "build", "-o", o.node, "./cmd/node")
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("build the node (run this at the top of the repository): %w\n%s", err, out)
		}
	}
	version, err := fingerprint(o.node)
	if err != nil {
		return err
	}
	var failed error
	for _, name := range names {
		c, ok := drill.Find(name)
		if !ok {
			return fmt.Errorf("there is no case %q", name)
		}
		if err := o.measure(ctx, c, version); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return failed
}

// errBroken is returned for a case whose promises were not kept.
var errBroken = errors.New("a promise was broken")

// measure runs a case as often as it was not yet run with this node, and writes what
// all runs showed.
func (o options) measure(ctx context.Context, c drill.Case, version string) error {
	runs := o.runs
	if runs == 0 {
		runs = c.Runs
	}
	where := procstat.Machine()
	k, err := openKept(filepath.Join(o.work, c.Name+"-"+version+".jsonl"))
	if err != nil {
		return err
	}
	defer k.file.Close()
	if err := o.repeat(ctx, c, k, runs); err != nil {
		return err
	}
	var all []drill.Result
	for i := range runs {
		all = append(all, k.results[o.seed+uint64(i)])
	}
	var text strings.Builder
	out := io.MultiWriter(os.Stdout, &text)
	fmt.Fprintf(out, "%s (%d): %s\n", c.Name, c.Item, c.About)
	fmt.Fprintf(out, "repeat with: go run ./bench/failover -case %s -runs %d -seed %d -together %d\n", c.Name, runs, o.seed, max(1, o.together))
	fmt.Fprintf(out, "%s\n\n", where)
	good := write(out, c, all)
	fmt.Fprintln(out)
	if o.results != "" {
		if err := os.MkdirAll(o.results, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.results, "failover-"+c.Name+".txt"), []byte(text.String()), 0o644); err != nil {
			return err
		}
	}
	if !good {
		return errBroken
	}
	return nil
}

// repeat makes the runs that are not there yet.
func (o options) repeat(ctx context.Context, c drill.Case, k *kept, runs int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, o.together))
	var mu sync.Mutex // of k and the output
	for i := range runs {
		seed := o.seed + uint64(i)
		mu.Lock()
		_, ok := k.results[seed]
		mu.Unlock()
		if ok {
			continue
		}
		g.Go(func() error {
			r, err := drill.Run(ctx, c, seed, drill.Options{Program: o.node, Logs: o.logs, Short: o.short})
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil { // it counts as a run in which nothing was kept
				r.Broken = append(r.Broken, "it could not be run to its end: "+err.Error())
			}
			mu.Lock()
			defer mu.Unlock()
			if o.verbose {
				fmt.Printf("%s seed %d, %.1f s: %d views, figures %v\n", c.Name, seed, r.Seconds, len(r.Views), r.Figures)
				for _, b := range r.Broken {
					fmt.Println("  ", b)
				}
			}
			return k.add(r)
		})
	}
	return g.Wait()
}
