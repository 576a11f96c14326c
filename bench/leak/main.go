// Command leak runs 100,000 connections of publishers and viewers against a node
// and holds what the node has left against what it had before: descriptors,
// goroutines and live heap must come back to within 2 %. See tools/churn for the
// ways in which they come and go, and README.md for how to repeat it.
//
//	go run ./bench/leak
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"millrace/tools/churn"
)

// share is how much more than before may be left.
const share = 0.02

type options struct {
	cycles  int
	workers int
	node    string
	results string
	profile string
}

func main() {
	var o options
	flag.IntVar(&o.cycles, "cycles", 100_000, "how many connections")
	flag.IntVar(&o.workers, "workers", 32, "how many at the same time")
	flag.StringVar(&o.node, "node", "", "a node that is built already")
	flag.StringVar(&o.results, "results", "bench/results", "folder for the result")
	flag.StringVar(&o.profile, "profile", "", "write heap profiles to FILE.base and FILE.left; with GODEBUG=memprofilerate=1 they are complete")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "leak:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "leak")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.node == "" {
		o.node = filepath.Join(dir, "node")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", o.node, "./cmd/node").CombinedOutput(); err != nil {
			return fmt.Errorf("build ./cmd/node (run this at the top of the repository): %w\n%s", err, out)
		}
	}
	n, stop, err := start(ctx, o.node, filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer stop()

	var text strings.Builder
	out := io.MultiWriter(os.Stdout, &text)
	fmt.Fprintf(out, "repeat with: go run ./bench/leak -cycles %d -workers %d; %s\n", o.cycles, o.workers, time.Now().UTC().Format("2006-01-02 15:04 MST"))
	verdict := measure(ctx, o, n, out)
	if verdict != nil && ctx.Err() != nil {
		return verdict
	}
	if err := os.MkdirAll(o.results, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.results, "leak.txt"), []byte(text.String()), 0o644); err != nil {
		return err
	}
	return verdict
}

// measure is the run: warm up, rest, all cycles, rest. The warm up is long enough for
// maps and pools to grow as far as they will: that room is kept, and is no leak. A
// stream of 2 Mbit/s is live all the time.
func measure(ctx context.Context, o options, n churn.Node, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	var standing sync.WaitGroup
	var broke error // valid after standing.Wait
	standing.Go(func() {
		if err := n.Standing(ctx); err != nil {
			broke = fmt.Errorf("the stream that all watch broke: %w", err)
		}
	})
	result := compare(ctx, o, n, out)
	cancel()
	standing.Wait()
	return errors.Join(result, broke)
}

func compare(ctx context.Context, o options, n churn.Node, out io.Writer) error {
	cfg := churn.Config{Node: n, Cycles: max(o.cycles/5, 2000), Workers: o.workers}
	res, err := churn.Run(ctx, cfg)
	if err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	fmt.Fprintln(out, "warm up: ", res)
	base, err := n.Rest(ctx, 10*time.Second, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "baseline:", base)
	if err := o.save(ctx, n, ".base"); err != nil {
		return err
	}
	cfg.Cycles = o.cycles
	if res, err = churn.Run(ctx, cfg); err != nil {
		return err
	}
	fmt.Fprintln(out, "cycles:  ", res)
	left, err := n.Rest(ctx, time.Minute, func(h churn.Holdings) bool { return h.Within(base, share) })
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "left:    ", left)
	if err := o.save(ctx, n, ".left"); err != nil {
		return err
	}
	fmt.Fprintf(out, "against the baseline: descriptors %+d, goroutines %+d, heap %+.1f KiB = %+.2f %%\n", left.Descriptors-base.Descriptors,
		left.Goroutines-base.Goroutines, float64(left.Heap-base.Heap)/1024, 100*float64(left.Heap-base.Heap)/float64(base.Heap))
	if len(res.Failed) > 0 {
		fmt.Fprintln(out, "MISSED: some cycles failed")
		return fmt.Errorf("some cycles failed: %v", res)
	}
	if !left.Within(base, share) {
		fmt.Fprintln(out, "MISSED: more is left than 2 % above the baseline")
		return fmt.Errorf("left %v, baseline %v", left, base)
	}
	fmt.Fprintln(out, "reached: all within 2 %")
	return nil
}

// save writes a heap profile for go tool pprof.
func (o options) save(ctx context.Context, n churn.Node, suffix string) error {
	if o.profile == "" {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.Admin+"/debug/pprof/heap?gc=1", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(o.profile+suffix, b, 0o644)
}

// start runs the node with a short grace time, so that streams end soon.
func start(ctx context.Context, path, logFile string) (n churn.Node, stop func(), err error) {
	n.RTMP, n.HTTP, n.Admin = freePort(), freePort(), freePort()
	log, err := os.Create(logFile)
	if err != nil {
		return n, nil, err
	}
	defer log.Close()
	cmd := exec.Command(path, "--rtmp", n.RTMP, "--http", n.HTTP, "--admin", n.Admin)
	cmd.Env = append(os.Environ(), "MILLRACE_STREAM_GRACE=1s", "MILLRACE_LOG_LEVEL=warn")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return n, nil, err
	}
	n.PID = cmd.Process.Pid
	stop = func() {
		cmd.Process.Kill() // how it leaves is not what is measured here
		cmd.Wait()
	}
	for range 100 {
		c, err := net.Dial("tcp", n.Admin)
		if err == nil {
			return n, stop, c.Close()
		}
		select {
		case <-ctx.Done():
			stop()
			return n, nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	stop()
	said, _ := os.ReadFile(logFile)
	return n, nil, fmt.Errorf("the node does not listen:\n%s", said)
}

// freePort returns a loopback address that nobody listens on.
func freePort() string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:0"
	}
	defer ln.Close()
	return ln.Addr().String()
}
