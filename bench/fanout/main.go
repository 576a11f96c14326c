// Command fanout measures what it costs to serve many viewers: our node, the floor
// (see floor) and, when it is on the PATH, lalserver, on the same machine in the
// same run, one after the other and several times over, so that what is told is a
// ratio. README.md beside it has the scenarios and the figures to reach.
//
//	go run ./bench/fanout -scenario merge100
//	go run ./bench/fanout -scenario all -reps 3
//
// A table goes to standard output and, with every single run, to
// bench/results/fanout-SCENARIO.txt and .json.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"millrace/tools/procstat"
)

func main() {
	var o options
	var names, only string
	var burnFor time.Duration
	flag.StringVar(&names, "scenario", "merge100", "comma separated: all, "+strings.Join(scenarioNames(), ", "))
	flag.StringVar(&only, "servers", "node,floor,lalserver", "which servers to measure")
	flag.IntVar(&o.reps, "reps", 3, "how many times each server is measured")
	flag.DurationVar(&o.duration, "duration", 10*time.Second, "measuring time of a run")
	flag.IntVar(&o.treeKbps, "tree-kbps", 2000, "video bitrate of the 200 streams of the scenario relay")
	flag.IntVar(&o.viewers, "viewers", 1000, "viewers of the scenarios with one stream")
	flag.StringVar(&o.results, "results", "bench/results", "folder for the results")
	flag.StringVar(&o.node, "node", "", "a node that is built already")
	flag.DurationVar(&burnFor, "burn", 0, "keep one core busy for this time and do nothing else")
	flag.Parse()
	if burnFor > 0 {
		burn(burnFor)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	o.servers = strings.Split(only, ",")
	err := run(ctx, o, strings.Split(names, ","))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fanout:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	reps     int
	duration time.Duration
	viewers  int
	treeKbps int
	results  string
	node     string
	servers  []string
}

func (o options) wants(server string) bool { return slices.Contains(o.servers, server) }

func run(ctx context.Context, o options, names []string) error {
	if slices.Contains(names, "all") {
		names = scenarioNames()
	}
	dir, err := os.MkdirTemp("", "fanout")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, dir: dir}
	if err := b.build(ctx); err != nil {
		return err
	}
	var failed error
	for _, name := range names {
		i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return fmt.Errorf("no scenario %q: there are %s", name, strings.Join(scenarioNames(), ", "))
		}
		if err := b.scenario(ctx, scenarios[i]); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return failed
}

// bench is one invocation: the programs it built and where.
type bench struct {
	options
	dir string
	lal string // path of lalserver, or ""
	out io.Writer
	log []outcome // of the scenario
}

// build compiles what is measured and what measures.
func (b *bench) build(ctx context.Context) error {
	what := []string{"./tools/flvgen", "./tools/flvpull", "./bench/fanout/floor"}
	if b.node == "" {
		what = append(what, "./cmd/node")
	} else if abs, err := filepath.Abs(b.node); err == nil {
		b.node = abs
	}
	for _, pkg := range what {
		c := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(b.dir, filepath.Base(pkg)), pkg)
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s (run this at the top of the repository): %w\n%s", pkg, err, out)
		}
	}
	if b.node == "" {
		b.node = b.path("node")
	}
	b.lal, _ = exec.LookPath("lalserver")
	return nil
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

// scenario runs one and writes its results.
func (b *bench) scenario(ctx context.Context, s scenario) error {
	var text strings.Builder
	b.out, b.log = io.MultiWriter(os.Stdout, &text), nil
	fmt.Fprintf(b.out, "%s: %s\n", s.name, s.about)
	fmt.Fprintf(b.out, "repeat with: go run ./bench/fanout -scenario %s -reps %d -duration %v -viewers %d\n", s.name, b.reps, b.duration, b.viewers)
	fmt.Fprintln(b.out, procstat.Machine())
	if b.lal == "" {
		fmt.Fprintln(b.out, "lalserver: not on PATH")
	}
	fmt.Fprintln(b.out)
	err := s.run(ctx, b)
	fmt.Fprintln(b.out)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.results, 0o755); err != nil {
		return err
	}
	base := filepath.Join(b.results, "fanout-"+s.name)
	if err := os.WriteFile(base+".txt", []byte(text.String()), 0o644); err != nil {
		return err
	}
	if len(b.log) == 0 {
		return nil
	}
	j, err := json.MarshalIndent(b.log, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(base+".json", append(j, '\n'), 0o644)
}

// burn is the other work that takes a core.
func burn(d time.Duration) {
	x := uint64(1)
	for end := time.Now().Add(d); time.Now().Before(end); {
		for range 1_000_000 {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
	}
	if x == 0 {
		fmt.Println(x)
	}
}
