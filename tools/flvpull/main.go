// Command flvpull opens many HTTP-FLV viewers of streams that flvgen publishes,
// checks every frame of each, and reports delay, first-frame time and, given the
// server's pid, its CPU time per GB sent and its memory per viewer.
//
//	flvpull --url http://127.0.0.1:8080/live/test.flv --viewers 1000 --rate 200 --pid $(pidof node)
//	flvpull --url http://127.0.0.1:8080/live/s%d.flv --streams 100 --viewers 500 --json out.json
//	flvpull --url … --viewers 1000 --slow 0.1@51600 --frozen 0.1
//
// The exit code is 1 if a frame was not as it should be or a viewer was lost, 2 if
// nothing could be measured. See tools/pull for how it works.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"millrace/tools/pull"
)

func main() {
	cfg, file, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "flvpull:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	r, err := pull.Run(ctx, cfg)
	stop()
	if err == nil && file != "" {
		err = write(file, r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "flvpull:", err)
		os.Exit(2)
	}
	r.Write(os.Stdout)
	if !r.OK() {
		os.Exit(1)
	}
}

func write(file string, r *pull.Report) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}

func parse(args []string) (cfg pull.Config, file string, err error) {
	cfg = pull.DefaultConfig()
	streams := 0
	f := flag.NewFlagSet("flvpull", flag.ContinueOnError)
	f.Func("url", "http://HOST:PORT/APP/NAME.flv, repeatable; %d is the number of the stream, with --streams", func(s string) error {
		cfg.URLs = append(cfg.URLs, s)
		return nil
	})
	f.IntVar(&streams, "streams", 0, "numbers 0 to n-1 go into the %d of --url, and stream i must be number i")
	f.IntVar(&cfg.Viewers, "viewers", cfg.Viewers, "how many viewers")
	f.Float64Var(&cfg.Rate, "rate", cfg.Rate, "joins a second; 0 is all at once")
	f.DurationVar(&cfg.Warmup, "warmup", cfg.Warmup, "from the last join to the beginning of measuring")
	f.DurationVar(&cfg.Duration, "duration", cfg.Duration, "how long to measure")
	f.DurationVar(&cfg.Slice, "slice", cfg.Slice, "report the delay of each piece of this length; 0 for none")
	f.Func("slow", "SHARE@BYTES: share of viewers that read so many bytes a second", func(s string) error {
		share, rate, ok := strings.Cut(s, "@")
		var err1, err2 error
		cfg.Slow, err1 = strconv.ParseFloat(share, 64)
		cfg.SlowRate, err2 = strconv.ParseFloat(rate, 64)
		if !ok {
			return errors.New("want SHARE@BYTES")
		}
		return errors.Join(err1, err2)
	})
	f.Float64Var(&cfg.Frozen, "frozen", 0, "share of viewers that stop reading after their first frame")
	f.DurationVar(&cfg.Thaw, "thaw", 0, "frozen viewers read again after this time; 0 is never")
	f.StringVar(&cfg.Node, "node", "", "ask as the node with this id does: every tag at once, on the stream's own clock")
	f.IntVar(&cfg.Trunk, "trunk", cfg.Trunk, "with --node: how many streams share a connection, as between nodes; 0 for none")
	f.BoolVar(&cfg.HTTP10, "http10", false, "ask with HTTP/1.0")
	f.IntVar(&cfg.Verify, "verify", cfg.Verify, "how many viewers check the payloads too")
	f.IntVar(&cfg.Workers, "workers", cfg.Workers, "how many goroutines read")
	f.IntVar(&cfg.Sources, "sources", 0, "spread viewers over so many addresses from 127.0.0.1 up")
	f.Func("pid", "server whose CPU time and memory to measure, repeatable", func(s string) error {
		pid, err := strconv.Atoi(s)
		cfg.PIDs = append(cfg.PIDs, pid)
		return err
	})
	f.StringVar(&file, "json", "", "write the report to this file too")
	if err := f.Parse(args); err != nil {
		return cfg, "", err
	}
	if f.NArg() > 0 {
		return cfg, "", fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if streams > 0 {
		if len(cfg.URLs) != 1 || !strings.Contains(cfg.URLs[0], "%d") {
			return cfg, "", errors.New("--streams needs one --url with %d in it")
		}
		pattern := cfg.URLs[0]
		cfg.URLs, cfg.Numbered = nil, true
		for i := range streams {
			cfg.URLs = append(cfg.URLs, strings.ReplaceAll(pattern, "%d", strconv.Itoa(i)))
		}
	}
	return cfg, file, nil
}
