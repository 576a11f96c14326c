package fleet

import (
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"millrace/internal/control"
	"millrace/internal/plan"
	"millrace/internal/stream"
)

// BenchmarkHeartbeat is a node with 500 streams: a heartbeat of which a few have changed,
// and one with all of them.
func BenchmarkHeartbeat(b *testing.B) {
	f := func(name string, streams func(h *control.Heartbeat, i int)) {
		b.Run(name, func(b *testing.B) {
			fl := newFleet(b, "r1", memory(b), nil)
			newNode("relay-1", plan.Relay, "a").beat(b, fl)
			n := newNode("edge-1", plan.Edge, "a")
			n.streams = carry(500, "relay-1")
			n.beat(b, fl)
			from := netip.MustParseAddr("198.51.100.7")
			list := carry(500, "relay-1")
			now := time.Now()
			samples := make([]plan.Sample, 5)
			b.ReportAllocs()
			defer cpu(b)()
			for i := 0; b.Loop(); i++ {
				n.sequence++
				for j := range samples {
					samples[j] = plan.Sample{From: "relay-1", To: "edge-1", At: now, RTT: 5 * time.Millisecond, OK: true}
				}
				h := control.Heartbeat{
					Node: n.ID, Boot: n.boot, Started: n.started, Sequence: n.sequence, At: now, Streams: control.Carrying{Set: list}, Samples: samples,
				}
				streams(&h, i)
				if _, why, err := fl.Heartbeat(now, &h, from); err != nil {
					b.Fatal(why, err)
				}
				if i%1000 == 0 {
					fl.scores.take(now, func(string) bool { return true })
				}
			}
		})
	}
	f("change", func(h *control.Heartbeat, i int) {
		list := h.Streams.Set[:20]
		for j := range list {
			list[j].Viewers = i + j
		}
		h.Streams = control.Carrying{Based: h.Sequence - 1, Set: list}
	})
	f("all", func(h *control.Heartbeat, i int) {
		for j := range h.Streams.Set {
			h.Streams.Set[j].Viewers = i + j
		}
	})
	f("turnover", func(h *control.Heartbeat, i int) {
		for j := range h.Streams.Set {
			h.Streams.Set[j].Name = names[(i%2)*500+j]
		}
	})
}

// cpu reports what a loop costs in CPU time of the process: on a machine that does other
// things, too, elapsed time says little.
func cpu(b *testing.B) (done func()) {
	before := spentTime(b)
	return func() { b.ReportMetric(float64(spentTime(b)-before)/float64(b.N), "cpu-ns/op") }
}

var names = func() (out [1000]stream.Name) {
	for i := range out {
		out[i] = stream.Name(fmt.Sprintf("live/other%d", i))
	}
	return out
}()

// big is a router with 5,000 nodes, 500 of them relays, which carry 50 streams each.
func big(b *testing.B, streams int) (*Fleet, []*node) {
	b.Helper()
	fl := newFleet(b, "r1", memory(b), func(c *Config) { c.Alive, c.Grace = time.Minute, 10*time.Minute }) // the machine may be busy
	var nodes []*node
	for i := range 5000 {
		role := plan.Edge
		switch {
		case i < 10:
			role = plan.Center
		case i < 510:
			role = plan.Relay
		}
		n := newNode(fmt.Sprintf("node-%04d", i), role, fmt.Sprintf("dc-%d", i%100))
		n.Region = fmt.Sprintf("region-%d", i%30)
		n.ISPs = [][]string{{"telecom"}, {"unicom"}, {"*"}}[i%3]
		n.pulled, n.load = 10<<20, 100<<20
		n.streams = carry(streams, fmt.Sprintf("node-%04d", i%500+10))
		if i == 0 {
			for j := range n.streams {
				n.streams[j].Source, n.streams[j].From = true, ""
			}
		}
		n.beat(b, fl)
		nodes = append(nodes, n)
	}
	for i := range nodes {
		n := nodes[i]
		for j := range 6 {
			n.samples = append(n.samples, plan.Sample{
				From: fmt.Sprintf("node-%04d", 10+(i*7+j*31)%500), To: n.ID, At: time.Now(), RTT: time.Duration(1+j) * time.Millisecond, OK: true,
			})
		}
		n.samples = n.samples[:min(len(n.samples), 6)]
		h := n.message()
		h.Identity = nil
		if _, why, err := fl.Heartbeat(time.Now(), h, n.from); err != nil && why != control.NotRefused {
			b.Fatal(err)
		}
	}
	return fl, nodes
}

// BenchmarkFrame is what a router with 5,000 nodes does each second, without planning.
func BenchmarkFrame(b *testing.B) {
	fl, _ := big(b, 50)
	fl.makeFrame(time.Now())
	b.ReportAllocs()
	defer cpu(b)()
	for b.Loop() {
		now := time.Now()
		fl.sweep(now)
		fr := fl.makeFrame(now)
		fl.frame.Store(fr)
		fl.trends.add(fr)
		fl.observations(fr)
	}
}

// BenchmarkPath is the answer to where a node should pull from, among 5,000.
func BenchmarkPath(b *testing.B) {
	fl, nodes := big(b, 50)
	now := time.Now()
	fr := fl.makeFrame(now)
	fl.published.Store(&published{plan: plan.Make(now, &fr.network, nil, &fl.cfg.Plan)})
	fl.frame.Store(fl.makeFrame(now))
	b.ReportAllocs()
	defer cpu(b)()
	for i := 0; b.Loop(); i++ {
		fl.Path(nodes[i%len(nodes)].ID, nodes[0].streams[i%50].Name)
	}
}

// BenchmarkOrders makes the orders of 5,000 nodes.
func BenchmarkOrders(b *testing.B) {
	fl, nodes := big(b, 0)
	now := time.Now()
	fr := fl.makeFrame(now)
	p := plan.Make(now, &fr.network, nil, &fl.cfg.Plan)
	w := planWireOf(p, "r1", plan.NewView(now, &fr.network, p, &fl.cfg.Plan))
	body, err := fl.packer.pack(w)
	if err != nil {
		b.Fatal(err)
	}
	fl.published.Store(&published{plan: w.plan(), measure: w.Measure})
	defer func() { b.ReportMetric(float64(len(body)), "plan-bytes") }()
	defer cpu(b)()
	for b.Loop() {
		for _, n := range nodes {
			fl.makeOrders(n.ID)
		}
	}
}

// BenchmarkShare is what a router with 5,000 nodes tells another one in a second in which
// everything has changed, and BenchmarkMerge what the other one takes in.
func BenchmarkShare(b *testing.B) { between(b, func(from, _ *Fleet) *Fleet { return from }) }

func BenchmarkMerge(b *testing.B) { between(b, func(_, to *Fleet) *Fleet { return to }) }

func between(b *testing.B, which func(from, to *Fleet) *Fleet) {
	from, nodes := big(b, 50)
	to := newFleet(b, "r2", from.store, nil)
	once := func(f *Fleet) {
		if err := f.shareOnce(b.Context(), time.Now()); err != nil {
			b.Fatal(err)
		}
	}
	// Each must have seen the other: to nobody nothing is told.
	once(from)
	once(to)
	once(from)
	var spent time.Duration
	for b.Loop() {
		for i := range nodes[0].streams {
			nodes[0].streams[i].Viewers++
		}
		for _, n := range nodes {
			n.streams = nodes[0].streams
			n.beat(b, from)
		}
		for _, f := range []*Fleet{from, to} {
			began := spentTime(b)
			once(f)
			if f == which(from, to) {
				spent += spentTime(b) - began
			}
		}
	}
	b.ReportMetric(float64(spent)/float64(b.N), "cpu-ns/op")
	if got := len(to.nodes.nodes); got != len(nodes) {
		b.Fatalf("the other router knows %d nodes", got)
	}
}

// spentTime is the CPU time of the process so far.
func spentTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
