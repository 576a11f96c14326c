package failover

import (
	"slices"
	"testing"
)

func programme() *source {
	return content{ms: 70_000, fps: 25, audio: 43.07, gop: 50}.make()
}

func after(from int) func(int) bool { return func(ms int) bool { return ms >= from } }

func slow(from int, part float64) func(int) float64 {
	return func(ms int) float64 {
		if ms < from {
			return 100
		}
		return part
	}
}

func burst(dts int64) int { return int(dts/3000+1) * 3000 }

// TestScenarios runs sessions in simulated time.
func TestScenarios(t *testing.T) {
	for _, c := range []struct {
		name    string
		servers []*server
		end     int      // ms; trouble begins at 10,000
		moves   []string // who became current
		within  int      // ms from 10,000 to the last move; 0: not looked at
		gap     int      // longest pause at the viewer
		tries   int      // at most, with the first
		stalls  bool     // the viewer may stall
		missing bool
	}{
		{
			name: "all is well", end: 60_000, moves: []string{"a"}, gap: 60, tries: 1,
			servers: []*server{{url: "a"}, {url: "b"}},
		},
		{
			name: "killed", end: 20_000, moves: []string{"a", "b"}, within: 100, gap: 300, tries: 2,
			servers: []*server{{url: "a", down: after(10_000)}, {url: "b"}},
		},
		{
			name: "killed, the next is a hole", end: 20_000, moves: []string{"a", "c"}, within: 500, gap: 500, tries: 3,
			servers: []*server{{url: "a", down: after(10_000)}, {url: "b", hole: true}, {url: "c"}},
		},
		{
			name: "killed, other clock", end: 20_000, moves: []string{"a", "b"}, within: 100, gap: 300, tries: 2,
			servers: []*server{{url: "a", down: after(10_000)}, {url: "b", shift: 987_654}},
		},
		{
			name: "frozen link", end: 20_000, moves: []string{"a", "b"}, within: 1100, gap: 1200, tries: 2,
			servers: []*server{{url: "a", frozen: after(10_000)}, {url: "b"}},
		},
		{
			name: "frozen foreign server", end: 20_000, moves: []string{"a", "b"}, within: 1600, gap: 1600, tries: 2,
			servers: []*server{{url: "a", frozen: after(10_000), foreign: true}, {url: "b", foreign: true, shift: 5000}}, stalls: true,
		},
		{
			name: "60 % of the bitrate", end: 30_000, moves: []string{"a", "b"}, within: 1700, gap: 300, tries: 2,
			servers: []*server{{url: "a", rate: slow(10_000, 0.6)}, {url: "b"}},
		},
		{
			name: "60 %, foreign, other clock", end: 30_000, moves: []string{"a", "b"}, within: 1700, gap: 300, tries: 2,
			servers: []*server{{url: "a", rate: slow(10_000, 0.6), foreign: true}, {url: "b", foreign: true, shift: -900}},
		},
		{
			name: "a and b slow, c good", end: 30_000, moves: []string{"a", "c"}, within: 3000, gap: 400, tries: 3,
			servers: []*server{{url: "a", rate: slow(10_000, 0.6)}, {url: "b", rate: slow(10_000, 0.6)}, {url: "c"}},
		},
		{
			name: "a, b and c slow, d good", end: 30_000, moves: []string{"a", "d"}, within: 3000, gap: 400, tries: 4, stalls: true,
			servers: []*server{
				{url: "a", rate: slow(10_000, 0.6)},
				{url: "b", rate: slow(10_000, 0.6)},
				{url: "c", rate: slow(10_000, 0.6)},
				{url: "d"},
			},
		},
		{
			name: "all equally slow", end: 60_000, moves: []string{"a"}, gap: 400, tries: 1 + 5, stalls: true,
			servers: []*server{{url: "a", rate: slow(10_000, 0.6)}, {url: "b", rate: slow(10_000, 0.6)}},
		},
		{
			name: "bursts over links", end: 60_000, moves: []string{"a"}, gap: 3100, tries: 5, stalls: true,
			servers: []*server{{url: "a", release: burst}, {url: "b", release: burst}},
		},
		{
			name: "bursts from foreign servers", end: 60_000, moves: []string{"a"}, gap: 3100, tries: 6, stalls: true,
			servers: []*server{{url: "a", release: burst, foreign: true}, {url: "b", release: burst, foreign: true, shift: 77}},
		},
		{
			name: "bursts that the other has a little earlier", end: 60_000, moves: []string{"a"}, gap: 3100, tries: 5, stalls: true,
			servers: []*server{{url: "a", release: func(dts int64) int { return burst(dts) + 150 }}, {url: "b", release: burst}},
		},
		{
			name: "foreign bursts that the other has a little earlier", end: 60_000, moves: []string{"a"}, gap: 3100, tries: 6, stalls: true,
			servers: []*server{
				{url: "a", release: func(dts int64) int { return burst(dts) + 150 }, foreign: true},
				{url: "b", release: burst, foreign: true},
			},
		},
		{
			name: "a slow publisher", end: 60_000, moves: []string{"a"}, gap: 400, tries: 1 + 5, stalls: true,
			servers: []*server{
				{url: "a", release: func(dts int64) int { return int(float64(dts) * 1.25) }},
				{url: "b", release: func(dts int64) int { return int(float64(dts) * 1.25) }},
			},
		},
		{
			name: "half of the frames are missing", end: 30_000, moves: []string{"a", "b"}, within: 6000, gap: 400, tries: 2,
			servers: []*server{{url: "a", keep: func(n int) bool { return n < 700 || n%2 == 0 }}, {url: "b"}}, missing: true,
		},
		{
			name: "a single upstream freezes and comes back", end: 30_000, moves: []string{"a"}, gap: 5100, tries: 1, stalls: true,
			servers: []*server{{url: "a", frozen: func(ms int) bool { return ms >= 10_000 && ms < 15_000 }}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, programme(), c.servers...)
			w.run(c.end)
			if !slices.Equal(w.moves, c.moves) {
				t.Errorf("moved over %v, want %v", w.moves, c.moves)
			} else if last := w.movedA[len(w.movedA)-1] - 10_000; c.within > 0 && last > c.within {
				t.Errorf("moved %d ms after the onset, want %d", last, c.within)
			}
			if w.gap > c.gap || w.tries > c.tries || w.stalls > 0 && !c.stalls || w.viewer.missing > 0 && !c.missing {
				t.Errorf("gap %d ms, want %d; %d tries, want %d; %d ms stalled; %d missing",
					w.gap, c.gap, w.tries, c.tries, w.stalls, w.viewer.missing)
			}
			if t.Failed() || testing.Verbose() {
				t.Logf("gap %d tries %d stalls %d moved %v\n%v", w.gap, w.tries, w.stalls, w.movedA, w.log)
			}
		})
	}
}

// TestColdPool: a dead port costs nothing and a black hole little.
func TestColdPool(t *testing.T) {
	w := newWorld(t, programme(), &server{url: "dead", down: after(0)}, &server{url: "hole", hole: true}, &server{url: "good"})
	w.run(6000)
	if !slices.Equal(w.moves, []string{"good"}) || w.movedA[0] > 3500 {
		t.Errorf("moved over %v at %v ms\n%v", w.moves, w.movedA, w.log)
	}
	w = newWorld(t, programme(), &server{url: "1", hole: true}, &server{url: "2", hole: true}, &server{url: "3", hole: true}, &server{url: "good"})
	w.run(8000)
	if !slices.Equal(w.moves, []string{"good"}) || w.movedA[0] > 4500 {
		t.Errorf("moved over %v at %v ms\n%v", w.moves, w.movedA, w.log)
	}
}

// TestEverySecondKilled: whoever is current is killed again and again.
func TestEverySecondKilled(t *testing.T) {
	down := func(phase int) func(int) bool {
		return func(ms int) bool { return ms > 5000 && ms/2000%3 == phase }
	}
	w := newWorld(t, programme(),
		&server{url: "a", down: down(0)}, &server{url: "b", down: down(1), shift: 1 << 33}, &server{url: "c", down: down(2), foreign: true})
	w.run(60_000)
	if w.gap > 300 || w.viewer.missing > 0 || w.stalls > 0 || len(w.moves) < 10 {
		t.Errorf("gap %d ms, %d missing, stalled %d ms, %d moves\n%v", w.gap, w.viewer.missing, w.stalls, len(w.moves), w.log)
	}
}
