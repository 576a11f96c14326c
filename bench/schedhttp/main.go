// Command schedhttp measures what the HTTP faces of the scheduler cost: a redirect,
// an answer in JSON, and one in plain text, against a fasthttp program that answers a
// constant, with the same load in the same run, one after the other and several times
// over, so that what is told is a ratio. README.md beside it has the figures to reach.
//
//	go run ./bench/schedhttp
//
// A table goes to standard output and to bench/results/schedhttp.txt.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"millrace/tools/procstat"
)

// options are what the command line says.
type options struct {
	reps     int
	duration time.Duration
	conns    int
	edges    int
	results  string
	serve    string
}

func main() {
	var o options
	flag.IntVar(&o.reps, "reps", 3, "how many times each answer is measured")
	flag.DurationVar(&o.duration, "duration", 10*time.Second, "measuring time of a run")
	flag.IntVar(&o.conns, "conns", 64, "connections, each with one request under way")
	flag.IntVar(&o.edges, "edges", 1000, "edges that the scheduler chooses from")
	flag.StringVar(&o.results, "results", "bench/results", "folder for the result")
	flag.StringVar(&o.serve, "serve", "", "be a server: constant or scheduler; it prints its address")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "schedhttp:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) error {
	if o.serve != "" {
		return serve(ctx, o)
	}
	if err := keepOff(serverCore); err != nil {
		return err
	}
	var text strings.Builder
	out := io.MultiWriter(os.Stdout, &text)
	fmt.Fprintf(out, "schedhttp: HTTP faces of the scheduler against a fasthttp program that answers a constant\n")
	fmt.Fprintf(out, "repeat with: go run ./bench/schedhttp -reps %d -duration %v -conns %d -edges %d\n", o.reps, o.duration, o.conns, o.edges)
	fmt.Fprintln(out, procstat.Machine())
	if err := o.measure(ctx, out); err != nil {
		return err
	}
	if err := os.MkdirAll(o.results, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.results, "schedhttp.txt"), []byte(text.String()), 0o644)
}

// answer is one kind of request, and what it may cost.
type answer struct {
	name   string
	server string
	uri    string
	status string
	goal   float64 // requests per second and core, of those of the constant; 0: none
}

var answers = []answer{
	{"constant", "constant", "/live/room.flv?token=0123456789abcdef&uid=1234567", "200", 0},
	{"302", "scheduler", "/live/room.flv?token=0123456789abcdef&uid=1234567", "302", 0.6},
	{"json", "scheduler", "/v1/resolve?domain=" + domain + "&stream=live/room&n=3", "200", 0.4},
	{"plain", "scheduler", "/d?dn=" + domain + "&ttl=1", "200", 0},
}

// result is what came of one run.
type result struct {
	perSecond float64
	cpu       float64 // seconds of the server for a request
	p50, p99  time.Duration
}

// perCore is how many requests a core could answer in a second.
func (r result) perCore() float64 { return 1 / r.cpu }

func (o options) measure(ctx context.Context, out io.Writer) error {
	fmt.Fprintf(out, "\n%-10s %4s %12s %14s %14s %9s %9s\n", "answer", "run", "requests/s", "CPU us/request", "requests/s/core", "p50 ms", "p99 ms")
	got := map[string][]result{}
	for rep := range o.reps {
		for i := range answers {
			a := answers[(i+rep)%len(answers)]
			r, err := o.one(ctx, a)
			if err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
			got[a.name] = append(got[a.name], r)
			fmt.Fprintf(out, "%-10s %4d %12.0f %14.2f %14.0f %9.2f %9.2f\n", a.name, rep+1, r.perSecond, r.cpu*1e6, r.perCore(), ms(r.p50), ms(r.p99))
		}
	}
	fmt.Fprintln(out)
	base := median(got["constant"], result.perCore)
	for _, a := range answers {
		r := median(got[a.name], result.perCore)
		fmt.Fprintf(out, "%-10s median %9.0f requests/s/core, %5.2f of the constant's%s\n", a.name, r, r/base, verdict(r/base, a.goal))
	}
	return nil
}

// verdict says whether a goal was reached.
func verdict(got, goal float64) string {
	switch {
	case goal == 0:
		return ""
	case got < goal:
		return fmt.Sprintf(", at least %.2f  MISSED", goal)
	}
	return fmt.Sprintf(", at least %.2f  reached", goal)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// median is that of a figure of all runs.
func median(all []result, figure func(result) float64) float64 {
	v := make([]float64, len(all))
	for i, r := range all {
		v[i] = figure(r)
	}
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
