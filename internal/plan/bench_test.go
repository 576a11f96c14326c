package plan

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"millrace/internal/stream"
)

// bigNetwork has n nodes in 50 regions and four ISPs: one in 100 is a center, one in ten a
// relay. Each has measured some of its neighbours. use is the share of the capacity of
// the relays that is wanted.
func bigNetwork(n int, use float64) *Network {
	r := rand.New(rand.NewPCG(1, 2))
	net := &Network{Demand: map[string]int64{}, Scores: NewScores(DefaultHalves())}
	for i := range 50 {
		net.Regions = append(net.Regions, at(fmt.Sprintf("region-%d", i), 20+30*r.Float64(), 80+50*r.Float64()))
	}
	isps := []string{"a", "b", "c", "d", "*"}
	edges := float64(n) * 0.89
	for i := range n {
		m := Node{
			ID: fmt.Sprintf("node-%05d", i), Role: Edge, Region: fmt.Sprintf("region-%d", r.IntN(50)), ISPs: []string{isps[r.IntN(5)]},
			Capacity: 1 << 30, Alive: true, Price: float64(r.IntN(4)) / 50,
		}
		switch {
		case i%100 == 0:
			m.Role, m.Capacity, m.ISPs = Center, 100<<30, []string{"*"}
		case i%10 == 1:
			m.Role, m.Capacity = Relay, int64(edges*(10<<20)/(float64(n)/10)/use)
		}
		m.Datacenter = fmt.Sprintf("%s-%s-%d", m.Region, m.ISPs[0], r.IntN(3))
		net.Nodes = append(net.Nodes, m)
		net.Demand[m.ID] = (5 + r.Int64N(10)) << 20
	}
	net.measureAll(r, 4)
	return net
}

// measureAll lets each node measure some upstreams, five times each.
func (n *Network) measureAll(r *rand.Rand, links int) {
	var ups []*Node
	for i := range n.Nodes {
		if n.Nodes[i].Role != Edge {
			ups = append(ups, &n.Nodes[i])
		}
	}
	for i := range n.Nodes {
		for range links {
			up := ups[r.IntN(len(ups))]
			rtt := time.Duration(5+r.IntN(100)) * time.Millisecond
			for k := range 5 {
				s := Sample{From: up.ID, To: n.Nodes[i].ID, At: start.Add(time.Duration(k-5) * time.Second), RTT: rtt, OK: true, Probes: 5}
				n.Scores.Take(start, "", []Sample{s}, everybody)
			}
		}
	}
}

// cpu reports what the loop that follows costs in CPU time of its thread: on a machine
// that is shared, the time on the wall says little. Call the result after the loop.
func cpu(b *testing.B) (done func()) {
	b.Helper()
	runtime.LockOSThread()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(1, &u); err != nil { // RUSAGE_THREAD
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	return func() {
		b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op")
		runtime.UnlockOSThread()
	}
}

// BenchmarkMake plans 5,000 nodes with 20 candidates each.
func BenchmarkMake(b *testing.B) {
	for _, scene := range []struct {
		name string
		use  float64
		old  bool
	}{
		{"first/half", 0.5, false},
		{"first/tight", 0.88, false},
		{"first/over", 1.2, false},
		{"again/half", 0.5, true},
		{"again/tight", 0.88, true},
		{"again/over", 1.2, true},
	} {
		b.Run(scene.name, func(b *testing.B) {
			n := bigNetwork(5000, scene.use)
			cfg := config()
			var old *Plan
			if scene.old {
				old = Make(start, n, nil, cfg)
			}
			b.ReportAllocs()
			done := cpu(b)
			for b.Loop() {
				Make(start, n, old, cfg)
			}
			done()
		})
	}
}

// bigStreams are a cold stream without carriers and a hot one that a third of the
// relays and half of the edges have.
func bigStreams(n *Network) StreamMap {
	hot := &Stream{Source: "node-00100", Epoch: 7, Bitrate: 500_000, Carriers: map[string]string{"node-00100": ""}}
	cold := &Stream{Source: "node-00205", Epoch: 7, Bitrate: 250_000, Carriers: map[string]string{"node-00205": ""}}
	for i := range n.Nodes {
		if m := &n.Nodes[i]; m.Role == Relay && i%30 == 1 || m.Role == Edge && i%2 == 0 {
			hot.Carriers[m.ID] = "node-00100"
		}
	}
	return StreamMap{"live/hot": hot, "live/cold": cold}
}

func BenchmarkPath(b *testing.B) {
	n := bigNetwork(5000, 0.5)
	n.Streams = bigStreams(n)
	cfg := config()
	v := NewView(start, n, Make(start, n, nil, cfg), cfg)
	for _, name := range []stream.Name{"live/hot", "live/cold"} {
		b.Run(string(name)[5:], func(b *testing.B) {
			var a PathAnswer
			b.ReportAllocs()
			i := 0
			done := cpu(b)
			for b.Loop() {
				i = (i + 7) % len(n.Nodes)
				v.Path(n.Nodes[i].ID, name, &a)
			}
			done()
		})
	}
}

func BenchmarkNewView(b *testing.B) {
	n := bigNetwork(5000, 0.5)
	cfg := config()
	p := Make(start, n, nil, cfg)
	done := cpu(b)
	for b.Loop() {
		NewView(start, n, p, cfg)
	}
	done()
}

// BenchmarkTake is what one node's 24 samples cost.
func BenchmarkTake(b *testing.B) {
	s := NewScores(DefaultHalves())
	var samples []Sample
	for i := range 24 {
		samples = append(samples, Sample{From: fmt.Sprintf("up-%d", i), To: "me", At: start, RTT: time.Millisecond, OK: true, Probes: 5, Pulled: true})
	}
	b.ReportAllocs()
	done := cpu(b)
	for b.Loop() {
		s.Take(start, "me", samples, everybody)
	}
	done()
}

// TestPathAllocatesNothing holds for answers whose slices were made before.
func TestPathAllocatesNothing(t *testing.T) {
	n := bigNetwork(500, 0.5)
	n.Streams = bigStreams(n)
	cfg := config()
	v := NewView(start, n, Make(start, n, nil, cfg), cfg)
	var a PathAnswer
	for _, name := range []stream.Name{"live/hot", "live/cold", "live/none"} {
		for i := range n.Nodes {
			v.Path(n.Nodes[i].ID, name, &a)
		}
		i := 0
		if got := testing.AllocsPerRun(200, func() {
			v.Path(n.Nodes[i%len(n.Nodes)].ID, name, &a)
			i++
		}); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

func TestTakeAllocatesNothing(t *testing.T) {
	s := NewScores(DefaultHalves())
	samples := []Sample{{From: "up", To: "me", At: start, RTT: time.Millisecond, OK: true, Probes: 5, Pulled: true}}
	s.Take(start, "me", samples, everybody)
	if got := testing.AllocsPerRun(100, func() { s.Take(start, "me", samples, everybody) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
