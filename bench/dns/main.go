// Command dns measures what an answer of the scheduler's name server costs, beside a
// program that answers a fixed packet through miekg/dns and beside CoreDNS with a zone
// file, on the same machine in the same run, one after the other and several times
// over, so that what is told is a ratio. README.md beside it has the figures to reach.
//
//	go run ./bench/dns
//	go run ./bench/dns -reps 1 -duration 3s -servers ours,fixed
//
// A table goes to standard output and to bench/results/dns.txt.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"millrace/tools/procstat"
)

func main() {
	var o options
	var serve, addr, only string
	flag.StringVar(&serve, "serve", "", "be a server, ours or fixed, until interrupted, and do nothing else")
	flag.StringVar(&addr, "addr", "127.0.0.1:0", "where to serve")
	flag.StringVar(&only, "servers", "ours,fixed,coredns", "which servers to measure")
	flag.IntVar(&o.reps, "reps", 3, "how many times each server is measured")
	flag.DurationVar(&o.duration, "duration", 10*time.Second, "measuring time of a run")
	flag.IntVar(&o.edges, "edges", 1000, "edges that ours chooses from")
	flag.IntVar(&o.paced, "paced", 20_000, "queries per second while latency is measured")
	flag.StringVar(&o.results, "results", "bench/results", "folder for the results")
	flag.StringVar(&o.coredns, "coredns", "", "a CoreDNS v"+corednsVersion+" that is built already")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch o.servers = strings.Split(only, ","); serve {
	case "":
		err = run(ctx, o)
	case "ours":
		err = serveOurs(ctx, addr, o.edges)
	case "fixed":
		err = serveFixed(ctx, addr)
	default:
		err = fmt.Errorf("no server %q: there are ours and fixed", serve)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dns:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	reps     int
	duration time.Duration
	edges    int
	paced    int
	results  string
	coredns  string
	servers  []string
}

// bench is one invocation.
type bench struct {
	options
	dir     string // for all that is written but the results
	self    string // this program
	queries string // file of what dnsperf sends
	out     io.Writer
}

func run(ctx context.Context, o options) error {
	if _, err := exec.LookPath("dnsperf"); err != nil {
		return fmt.Errorf("dnsperf makes the load: apt-get install dnsperf")
	}
	if runtime.NumCPU() < 2 {
		return fmt.Errorf("a core for the server and one for the load are needed, this machine has %d", runtime.NumCPU())
	}
	dir, err := os.MkdirTemp("", "dns")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, dir: dir, queries: filepath.Join(dir, "queries")}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if err := writeQueries(b.queries); err != nil {
		return err
	}
	var text strings.Builder
	b.out = io.MultiWriter(os.Stdout, &text)
	fmt.Fprintf(b.out, "repeat with: go run ./bench/dns -reps %d -duration %v -edges %d -paced %d\n", o.reps, o.duration, o.edges, o.paced)
	fmt.Fprintln(b.out, procstat.Machine())
	if err := b.measure(ctx); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.results, "dns.txt"), []byte(text.String()), 0o644)
}

// measure runs all servers and prints what came of it.
func (b *bench) measure(ctx context.Context) error {
	if slices.Contains(b.servers, "coredns") && b.coredns == "" {
		var err error
		if b.coredns, err = buildCoreDNS(ctx, b.dir); err != nil {
			fmt.Fprintf(b.out, "coredns: left out: %v\n", err)
			b.servers = slices.DeleteFunc(b.servers, func(s string) bool { return s == "coredns" })
		}
	}
	got := map[string][]outcome{}
	b.head()
	for rep := range b.reps {
		for i := range b.servers { // in turning order
			name := b.servers[(i+rep)%len(b.servers)]
			o, err := b.trial(ctx, name)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			b.row(name, rep, o)
			got[name] = append(got[name], o)
		}
	}
	b.goals(got)
	return nil
}
