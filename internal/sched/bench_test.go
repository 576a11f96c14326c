package sched

import (
	"fmt"
	"testing"
	"time"

	"millrace/internal/stream"
)

// scenes are the worlds of 2,000 edges in which a decision has to be quick.
var scenes = []struct {
	name          string
	regions, isps int
	stream        stream.Name
	change        func(w *world)
}{
	{"spread over 50 regions", 50, 4, "", nil},
	{"all in one region and equal", 1, 1, "", func(w *world) {
		for i := range w.state.Nodes {
			w.state.Nodes[i].Load = 0
		}
	}},
	{"all in one region under load", 1, 1, "", func(w *world) {
		for i := range w.state.Nodes {
			w.state.Nodes[i].Load /= 4
		}
	}},
	{"near ones full", 50, 4, "", func(w *world) {
		for i := range w.state.Nodes {
			if w.Nodes[i].Region < "r4" { // four fifths of the regions
				w.state.Nodes[i].Load = w.Nodes[i].Capacity
			}
		}
	}},
	{"all but the last full, in one region", 1, 1, "", func(w *world) {
		for i := range w.state.Nodes[:len(w.state.Nodes)-1] {
			w.state.Nodes[i].Load = w.Nodes[i].Capacity
		}
	}},
	{"hot stream on one in ten", 50, 4, "live/show0", func(w *world) {
		for i := 0; i < len(w.state.Nodes); i += 10 {
			w.state.Nodes[i].Streams = streams(3)
		}
	}},
	{"hot stream on all, in one region", 1, 1, "live/show0", func(w *world) {
		for i := range w.state.Nodes {
			w.state.Nodes[i].Load, w.state.Nodes[i].Streams = 0, streams(3)
		}
	}},
	{"hot stream on worse half, in one region", 1, 1, "live/show0", func(w *world) {
		for i := range w.state.Nodes {
			w.state.Nodes[i].Load = 0
			if i%2 == 0 {
				w.state.Nodes[i].Load, w.state.Nodes[i].Streams = 0.58e9, streams(3)
			}
		}
	}},
	{"cold stream on sixty, in one region", 1, 1, "live/show0", func(w *world) {
		for i := range 60 {
			w.state.Nodes[i*30].Streams = streams(3)
		}
	}},
	{"all down", 50, 4, "", func(w *world) {
		for i := range w.state.Nodes {
			w.state.Nodes[i].V4.Status, w.state.Nodes[i].V6.Status = Down, Down
		}
		w.Health.EvictShare = 1
	}},
	{"all regions banned but one", 50, 4, "", func(w *world) {
		o := Override{ID: "o"}
		for i := range w.Nodes {
			if w.Nodes[i].Region != "r7" {
				o.Ban = append(o.Ban, w.Nodes[i].ID)
			}
		}
		w.Overrides = append(w.Overrides, o)
	}},
	{"pinned to forty", 50, 4, "", func(w *world) {
		o := Override{ID: "o"}
		for i := range 40 {
			o.Pin = append(o.Pin, w.Nodes[i].ID)
		}
		w.Overrides = append(w.Overrides, o)
	}},
	{"each measured alone, in one region", 1, 1, "", func(w *world) {
		for i := range w.Nodes {
			w.Quality = append(w.Quality, Quality{Region: "r0", Node: w.Nodes[i].ID, Delay: float64(i%200) / 2, Samples: 100, At: start})
		}
	}},
}

func BenchmarkDecide(b *testing.B) {
	for _, s := range scenes {
		b.Run(s.name, func(b *testing.B) {
			w := big(b, 2000, s.regions, s.isps)
			if s.change != nil {
				s.change(w)
			}
			v := w.view()
			var a Answer
			q := Query{Domain: "live.example.com", Families: V4, Stream: s.stream}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				q.Client = addr(i, s.regions, s.isps)
				v.Decide(start, &q, &a)
				i++
			}
		})
	}
}

// TestNoAllocation wants decisions to leave the garbage collector alone.
func TestNoAllocation(t *testing.T) {
	for _, s := range scenes {
		w := big(t, 2000, s.regions, s.isps)
		if s.change != nil {
			s.change(w)
		}
		v := w.view()
		i := 0
		n := testing.AllocsPerRun(100, func() {
			var a Answer
			q := Query{Client: addr(i, s.regions, s.isps), Domain: "LIVE.example.com.", Stream: s.stream, Self: "e0001"}
			v.Decide(start, &q, &a)
			i++
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", s.name, n)
		}
	}
}

func BenchmarkView(b *testing.B) {
	for _, n := range []int{20, 100} {
		b.Run(fmt.Sprintf("5000 nodes with %d streams each", n), func(b *testing.B) {
			w := big(b, 5000, 50, 4)
			board := busyBoard(w, n)
			v := w.view()
			s := board.State(start)
			b.ReportAllocs()
			for b.Loop() {
				NewView(v.Plan, v.Geo, s)
			}
		})
	}
}

// busyBoard is a board that has seen each edge of w with n streams of its own region.
func busyBoard(w *world, n int) *Board {
	board := NewBoard(w.Health)
	p, err := Compile(&w.Snapshot, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	board.Track(p)
	for i := range w.Nodes {
		f := &Figures{Load: w.state.Nodes[i].Load}
		for j := range n {
			f.Streams = append(f.Streams, stream.Name(fmt.Sprintf("live/show%d", i%50*20+j*7%(2*n))))
		}
		for _, family := range [...]Families{V4, V6} {
			board.Observe(&Observation{Observer: "a", Node: w.Nodes[i].ID, Family: family, At: start, Up: true, Figures: f})
		}
	}
	return board
}

func BenchmarkCompile(b *testing.B) {
	w := big(b, 5000, 50, 4)
	for i := range 200 {
		for j := range 200 {
			w.Quality = append(w.Quality, Quality{
				Region: fmt.Sprintf("r%d", i%50), ISP: fmt.Sprintf("isp%d", i/50), Datacenter: fmt.Sprintf("dc%d", j),
				Delay: float64(i), Samples: 10, At: start.Add(-time.Duration(j) * time.Second),
			})
		}
	}
	pairs := w.view().Geo.Pairs()
	for b.Loop() {
		if _, err := Compile(&w.Snapshot, pairs); err != nil {
			b.Fatal(err)
		}
	}
}
