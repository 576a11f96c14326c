package main

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"millrace/internal/flv"
	"millrace/internal/stream"
	"millrace/tools/procstat"
)

// scenario is one thing to measure.
type scenario struct {
	name  string
	about string
	run   func(context.Context, *bench) error
}

var scenarios = []scenario{
	{"merge100", "figure 1: one stream of 2 Mbit/s, merging fixed at 100 ms", merge(100*time.Millisecond, goals{floor: 1.3, perGB: 0.6, p50: 60})},
	{"merge30", "figure 2: the same, merging fixed at 30 ms", merge(30*time.Millisecond, goals{floor: 1.3, lal: 0.55, p50: 20, p99: 50})},
	{"merge10", "figure 2: the same, merging fixed at 10 ms", merge(10*time.Millisecond, goals{floor: 1.3, lal: 0.85, p50: 8, p99: 20})},
	{"streams", "figure 3: 100 streams of 500 kbit/s with 5 viewers each, as the servers ship", streams},
	{"memory", "figure 4: resident memory per viewer and per idle stream", memory},
	{"join", "figure 5: 500 viewers join at 200 a second", join},
	{"pressure", "figure 5: 2,000 viewers while other work takes a core", pressure},
	{"slow", "figure 6: a tenth of the viewers frozen, a tenth reading at a fifth of the rate", slow},
	{"ingest", "figure 7: from the bytes of a publisher to published tags", ingest},
	{"hop", "the tree: what a hop adds to the delay, with 200 streams", hop},
	{"relay", "the tree: a relay that carries 200 streams to 5 nodes, against a center with as many viewers", relay},
	{"curve", "the interval of merging against CPU time and delay", curve},
}

func scenarioNames() (out []string) {
	for _, s := range scenarios {
		out = append(out, s.name)
	}
	return out
}

// goals are limits for the node; 0 is none.
type goals struct {
	floor, lal float64 // CPU per GB as a multiple of theirs
	perGB      float64
	p50, p99   float64 // ms
}

// merge measures all servers at one interval. lalserver has none: it writes each tag.
func merge(interval time.Duration, g goals) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		var trials []trial
		for _, s := range []string{"node", "floor", "lalserver"} {
			if b.wants(s) && (s != "lalserver" || b.lal != "") {
				trials = append(trials, b.base(s, interval))
			}
		}
		got, err := b.rounds(ctx, trials)
		if err != nil {
			return err
		}
		b.compare(got, g)
		return nil
	}
}

func (b *bench) compare(got map[string][]*outcome, g goals) {
	fmt.Fprintln(b.out, "\nmedians:")
	node := median(got["node"], cpuOf)
	if len(got["node"]) == 0 {
		return
	}
	if g.perGB > 0 {
		b.goal("node: CPU per GB", node, g.perGB, "s/GB")
	} else {
		b.note("node: CPU per GB", node, "s/GB")
	}
	against := func(name string, limit float64) {
		if other := median(got[name], cpuOf); limit > 0 && other > 0 {
			b.note(name+": CPU per GB", other, "s/GB")
			b.goal("node: CPU per GB against "+name, node/other, limit, "x")
		}
	}
	against("floor", g.floor)
	against("lalserver", g.lal)
	if g.lal == 0 && len(got["lalserver"]) > 0 {
		b.note("lalserver: CPU per GB", median(got["lalserver"], cpuOf), "s/GB")
	}
	if g.p50 > 0 {
		b.goal("node: delay p50", median(got["node"], p50Of), g.p50, "ms")
	}
	if g.p99 > 0 {
		b.goal("node: delay p99", median(got["node"], p99Of), g.p99, "ms")
	}
}

func streams(ctx context.Context, b *bench) error {
	var trials []trial
	for _, s := range []string{"node", "lalserver"} {
		if b.wants(s) && (s != "lalserver" || b.lal != "") {
			t := b.base(s, 0)
			t.streams, t.viewers, t.kbps = 100, 500, 500
			trials = append(trials, t)
		}
	}
	got, err := b.rounds(ctx, trials)
	if err != nil {
		return err
	}
	b.compare(got, goals{lal: 0.4})
	b.goal("node: resident memory", median(got["node"], rssOf), 96, "MiB")
	return nil
}

func memory(ctx context.Context, b *bench) error {
	t := b.base("node", 0)
	t.rate, t.warmup = 300, 5*time.Second
	got, err := b.rounds(ctx, []trial{t})
	if err != nil {
		return err
	}
	fmt.Fprintln(b.out)
	b.goal("resident memory per viewer, of "+fmt.Sprint(t.viewers), median(got["node"], func(o *outcome) float64 {
		return float64(o.Report.Servers[0].RSSPerViewer) / 1024
	}), 8, "KiB")
	return b.idleStreams(ctx)
}

// idleStreams publishes many thin streams that nobody watches.
func (b *bench) idleStreams(ctx context.Context) error {
	// Thin ones, so that the log, which is not what is asked for, is small.
	const n, kbps, fps, gop = 200, 20, 10, 2 * time.Second
	s, err := b.serve(ctx, trial{server: "node"})
	if err != nil {
		return err
	}
	defer s.stop()
	pid := s.cmd.Process.Pid
	before, err := procstat.ReadMemory(pid)
	if err != nil {
		return err
	}
	gen, err := b.start(nil, b.path("flvgen"), "--url", s.rtmp, "--streams", fmt.Sprint(n), "--size", "320x180",
		"--video-only", "--video-kbps", fmt.Sprint(kbps), "--fps", fmt.Sprint(fps), "--gop", gop.String())
	if err != nil {
		return err
	}
	defer gen.stop()
	log := stream.DefaultConfig().LogDuration
	if !pause(ctx, log+5*time.Second) {
		return ctx.Err()
	}
	after, err := procstat.ReadMemory(pid)
	if err != nil {
		return err
	}
	each := float64(after.RSS-before.RSS) / n / 1024
	log += gop // it ends at a keyframe
	held := (kbps*125 + fps*(flv.HeaderSize+flv.TrailerSize)) * log.Seconds() / 1024
	b.note(fmt.Sprintf("%d streams: resident before", n), float64(before.RSS)/mib, "MiB")
	b.note(fmt.Sprintf("%d streams: resident after", n), float64(after.RSS)/mib, "MiB")
	b.note(fmt.Sprintf("of a stream: its log of up to %v", log), held, "KiB")
	b.goal("resident memory per idle stream without its log", each-held, 64, "KiB")
	return nil
}

func join(ctx context.Context, b *bench) error {
	t := b.base("node", 0)
	t.viewers, t.rate, t.warmup, t.duration = 500, 200, time.Second, 2*time.Second
	got, err := b.rounds(ctx, []trial{t})
	if err != nil {
		return err
	}
	fmt.Fprintln(b.out, "\nmedians:")
	b.goal("first keyframe p50", median(got["node"], func(o *outcome) float64 { return o.Report.FirstFrame.P50 }), 1.2, "ms")
	b.goal("first keyframe p99", median(got["node"], func(o *outcome) float64 { return o.Report.FirstFrame.P99 }), 5, "ms")
	return nil
}

func pressure(ctx context.Context, b *bench) error {
	t := b.base("node", 0)
	t.viewers, t.warmup, t.duration, t.burner = 2*b.viewers, 5*time.Second, time.Minute, true
	t.pull = []string{"--slice", "10s"}
	b.head()
	o, err := b.run(ctx, t, 0)
	if err != nil {
		return err
	}
	b.row(o)
	fmt.Fprintln(b.out)
	for _, s := range o.Report.Slices {
		fmt.Fprintf(b.out, "from %3.0f s: delay %v\n", s.Begin, s.Delay)
	}
	if n := len(o.Report.Slices); n >= 6 {
		first, last := o.Report.Slices[0].Delay, o.Report.Slices[5].Delay
		b.goal("delay p50, last ten seconds less the first ten", last.P50-first.P50, 10, "ms")
		b.goal("delay p99, last ten seconds less the first ten", last.P99-first.P99, 20, "ms")
		b.note("skips", float64(o.Report.Normal.Skips), "")
	}
	return nil
}

func slow(ctx context.Context, b *bench) error {
	// Fixed merging: more viewers of any kind would move the interval of the adaptive one.
	good, mixed := b.base("node", 100*time.Millisecond), b.base("node", 100*time.Millisecond)
	good.label, mixed.label = "all good", "a fifth bad"
	// 2,064 kbit/s are 258,000 bytes a second. All viewers of the second trial that
	// are good are as many as in the first.
	mixed.viewers = b.viewers * 5 / 4
	mixed.pull = []string{"--frozen", "0.1", "--slow", "0.1@51600"}
	got, err := b.rounds(ctx, []trial{good, mixed})
	if err != nil {
		return err
	}
	fmt.Fprintln(b.out, "\nmedians:")
	was, is := median(got["all good"], p99Of), median(got["a fifth bad"], p99Of)
	b.note("delay p99 with good viewers only", was, "ms")
	b.note("delay p99 of the good ones among the bad", is, "ms")
	b.goal("change of the p99", is-was, 5, "ms")
	for _, o := range got["a fifth bad"] {
		r := &o.Report
		fmt.Fprintf(b.out, "run %d: slow ones %d skips, delay %v; frozen ones %d closed\n", o.Rep+1, r.Slow.Skips, r.Slow.Delay, r.Frozen.Closed)
	}
	return nil
}

func ingest(ctx context.Context, b *bench) error {
	c := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "Ingest", "-benchtime", "2s", "-count", fmt.Sprint(b.reps), "./internal/rtmp")
	out, err := c.CombinedOutput()
	fmt.Fprintf(b.out, "%s\n", out)
	return err
}

// treeStreams is how many streams the figures of the tree are measured with.
const treeStreams = 200

// hop compares viewers at a center with viewers one node further. Both are served
// without merging, so that the difference is the hop.
func hop(ctx context.Context, b *bench) error {
	const merge = time.Millisecond
	var trials []trial
	for _, server := range []string{"node", "relay"} {
		t := b.base(server, merge)
		t.streams, t.viewers, t.kbps = treeStreams, treeStreams, 500
		trials = append(trials, t)
	}
	got, err := b.rounds(ctx, trials)
	if err != nil {
		return err
	}
	fmt.Fprintln(b.out, "\nmedians, streams of 500 kbit/s:")
	for _, f := range []struct {
		name string
		of   func(*outcome) float64
		goal float64
	}{{"p50", p50Of, 2}, {"p99", p99Of, 20}} {
		at, behind := median(got["node"], f.of), median(got["relay"], f.of)
		b.note("delay "+f.name+" at the center", at, "ms")
		b.note("delay "+f.name+" one hop further", behind, "ms")
		b.goal("added by the hop, "+f.name, behind-at, f.goal, "ms")
	}
	return nil
}

// relay compares the CPU time of a relay that serves nodes with that of a center that
// serves as many viewers: as it ships, which holds tags back to merge them, and
// writing every tag at once, as a relay must so that hops do not add up. The nodes have
// trunks, or a connection for each stream.
func relay(ctx context.Context, b *bench) error {
	center, prompt, relay, apart := b.base("node", 0), b.base("node", time.Millisecond), b.base("relay", time.Millisecond), b.base("relay", time.Millisecond)
	center.label, prompt.label, relay.label, apart.label = "center, merged", "center, at once", "relay, nodes", "relay, apart"
	for _, t := range []*trial{&center, &prompt, &relay, &apart} {
		t.streams, t.viewers, t.kbps, t.rate = treeStreams, 5*treeStreams, b.treeKbps, 500
	}
	relay.pull = []string{"--node", "edge", "--trunk", "128"}
	apart.pull = []string{"--node", "edge"}
	got, err := b.rounds(ctx, []trial{center, prompt, relay, apart})
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "\nmedians, streams of %d kbit/s:\n", b.treeKbps)
	at, behind := median(got[center.label], cpuOf), median(got[relay.label], cpuOf)
	once := median(got[prompt.label], cpuOf)
	b.note("center, merged: CPU per GB", at, "s/GB")
	b.note("center, at once: CPU per GB", once, "s/GB")
	b.note("relay: CPU per GB", behind, "s/GB")
	b.note("relay without trunks: CPU per GB", median(got[apart.label], cpuOf), "s/GB")
	b.goal("relay against center, merged", behind/at, 1.2, "x")
	b.goal("relay against center, at once", behind/once, 1.2, "x")
	b.note("center, merged: delay p50 of viewers", median(got[center.label], p50Of), "ms")
	b.note("center, at once: delay p50 of viewers", median(got[prompt.label], p50Of), "ms")
	b.note("relay: delay p50 of nodes", median(got[relay.label], p50Of), "ms")
	b.note("relay without trunks: delay p50 of nodes", median(got[apart.label], p50Of), "ms")
	return nil
}

func curve(ctx context.Context, b *bench) error {
	var trials []trial
	for _, ms := range []int{10, 20, 30, 50, 75, 100, 150, 200, 250, 300, 350} {
		t := b.base("node", time.Duration(ms)*time.Millisecond)
		t.label = t.interval.String()
		trials = append(trials, t)
	}
	t := b.base("node", 0)
	t.label = "as shipped"
	trials = append(trials, t)
	got, err := b.rounds(ctx, trials)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "\nmedians:\n%-12s %9s %9s %9s\n", "interval", "CPU s/GB", "p50 ms", "p99 ms")
	for _, t := range trials {
		o := got[t.label]
		fmt.Fprintf(b.out, "%-12s %9.3f %9.2f %9.2f\n", t.label, median(o, cpuOf), median(o, p50Of), median(o, p99Of))
	}
	return nil
}
