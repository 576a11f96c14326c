package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"millrace/tools/procstat"
	"millrace/tools/pull"
)

// trial is one measurement of one server.
type trial struct {
	server   string
	label    string        // in the table; the server's name without one
	interval time.Duration // of merging; 0 as the server ships
	streams  int
	viewers  int
	kbps     int
	rate     float64 // joins a second
	warmup   time.Duration
	duration time.Duration
	pull     []string // more flags for flvpull
	burner   bool     // other work takes a core while measuring
}

// base is the trial of the first figure: one stream of 2 Mbit/s.
func (b *bench) base(server string, interval time.Duration) trial {
	return trial{
		server: server, label: server, interval: interval, streams: 1, viewers: b.viewers, kbps: 2000, rate: 500,
		warmup: 3 * time.Second, duration: b.duration,
	}
}

// outcome is what came of a trial.
type outcome struct {
	Label    string      `json:"label"`
	Server   string      `json:"server"`
	Interval string      `json:"interval"`
	Rep      int         `json:"rep"`
	Idle     int64       `json:"rss_idle"` // resident before anything was published
	Report   pull.Report `json:"report"`
}

// cpu is CPU seconds per GB.
func (o *outcome) cpu() float64 { return o.Report.Servers[0].CPUPerGB }

// run measures once.
func (b *bench) run(ctx context.Context, t trial, rep int) (*outcome, error) {
	s, err := b.serve(ctx, t)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	pid := s.cmd.Process.Pid
	mem, err := procstat.ReadMemory(pid)
	if err != nil {
		return nil, err
	}
	if s.rtmp != "" {
		gen, err := b.start(nil, b.path("flvgen"), "--url", s.rtmp, "--streams", fmt.Sprint(t.streams), "--video-kbps", fmt.Sprint(t.kbps))
		if err != nil {
			return nil, err
		}
		defer gen.stop()
		// A whole GOP must be there before the first viewer.
		select {
		case <-gen.done:
			gen.done <- nil
			return nil, fmt.Errorf("flvgen ended: %s", gen.tail())
		case <-time.After(2500*time.Millisecond + time.Duration(t.streams)*20*time.Millisecond):
		}
	}
	if t.burner {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		other, err := b.start(nil, self, "-burn", (t.warmup + t.duration + 30*time.Second).String())
		if err != nil {
			return nil, err
		}
		defer other.stop()
	}
	r, err := b.pull(ctx, t, s, pid)
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", t.label, err, s.tail())
	}
	o := &outcome{Label: t.label, Server: t.server, Interval: t.interval.String(), Rep: rep, Idle: mem.RSS, Report: *r}
	b.log = append(b.log, *o)
	return o, nil
}

// pull runs flvpull, a process of its own so that its cost is not the server's.
func (b *bench) pull(ctx context.Context, t trial, s *server, pid int) (*pull.Report, error) {
	file := b.path("report.json")
	os.Remove(file)
	args := []string{
		"--url", s.http, "--streams", fmt.Sprint(t.streams), "--viewers", fmt.Sprint(t.viewers),
		"--rate", fmt.Sprint(t.rate), "--warmup", t.warmup.String(), "--duration", t.duration.String(),
		"--pid", fmt.Sprint(pid), "--json", file, "--verify", "10",
	}
	out, err := exec.CommandContext(ctx, b.path("flvpull"), append(args, t.pull...)...).CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		return nil, fmt.Errorf("flvpull: %w\n%s", err, out)
	}
	j, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := new(pull.Report)
	if err := json.Unmarshal(j, r); err != nil {
		return nil, err
	}
	if len(r.Servers) != 1 {
		return nil, errors.New("flvpull measured no server")
	}
	if !r.OK() && t.server != "lalserver" { // lalserver begins with sound before the picture, for one
		return r, fmt.Errorf("the stream is not as it should be:\n%s", out)
	}
	return r, nil
}

// rounds runs every trial reps times, interleaved, and returns what came of each.
// The order turns by one from round to round.
func (b *bench) rounds(ctx context.Context, trials []trial) (map[string][]*outcome, error) {
	got := map[string][]*outcome{}
	b.head()
	for rep := range b.reps {
		for i := range trials {
			t := trials[(i+rep)%len(trials)]
			o, err := b.run(ctx, t, rep)
			if err != nil {
				return got, err
			}
			b.row(o)
			got[t.label] = append(got[t.label], o)
		}
	}
	return got, nil
}

// median returns the median of a figure.
func median(all []*outcome, f func(*outcome) float64) float64 {
	if len(all) == 0 {
		return 0
	}
	v := make([]float64, len(all))
	for i, o := range all {
		v[i] = f(o)
	}
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
