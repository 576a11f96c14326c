package sched

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"millrace/internal/geo"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 0.05 }

func TestLoadCost(t *testing.T) {
	c := DefaultCosts()
	f := func(used, want float64) {
		t.Helper()
		if got := c.loadCost(used); !near(got, want) {
			t.Errorf("at %v of its capacity: %.2f ms, want %.2f", used, got, want)
		}
	}
	f(-1, 0)
	f(0, 0)
	f(0.5, 5)
	f(0.8, 20)
	f(0.9, 45)
	f(0.99, 495)
	f(1, 1000)
	f(1.5, 1500)
	f(9, 2000)
}

func TestDistance(t *testing.T) {
	at := func(v float64) *float64 { return &v }
	s := &Snapshot{Regions: []Region{
		{Name: "beijing", Lat: at(39.9), Lon: at(116.4), Near: map[string]float64{"tianjin": 3, "moon": 1300}},
		{Name: "shanghai", Lat: at(31.23), Lon: at(121.47)},
		{Name: "tianjin", Near: map[string]float64{"beijing": 4}},
		{Name: "moon"},
		{Name: "pole", Lat: at(90), Lon: at(0)},
		{Name: "other pole", Lat: at(-90), Lon: at(77)},
	}}
	c := DefaultCosts()
	a := newAtlas(s, &c)
	f := func(from, to string, want float64) {
		t.Helper()
		x, y := a.regions[from], a.regions[to]
		if got := a.distance(x, y); !near(got, want) || a.distance(y, x) != got {
			t.Errorf("%s to %s: %.2f and %.2f ms, want %.2f", from, to, got, a.distance(y, x), want)
		}
	}
	f("beijing", "beijing", 0)
	f("beijing", "shanghai", 10.7)
	f("pole", "other pole", 200.2) // half of the way around
	f("beijing", "tianjin", 3)
	f("beijing", "moon", 1300)
	f("shanghai", "moon", 50)
	f("shanghai", "tianjin", 50)
	f("", "beijing", 50)
	f("nowhere", "nowhere", 50)
}

// TestMeasured wants the most fitting row to count, by what it says above what is
// promised, by its samples and its age.
func TestMeasured(t *testing.T) {
	c := DefaultCosts()
	s := &Snapshot{Nodes: []Node{{ID: "a", ISPs: []string{"i0", "i1"}}, {ID: "b"}}}
	byID := map[string]int32{"a": 0, "b": 1}
	row := func(q Quality) {
		q.Region, q.At, q.Samples = "r", start, 1e9
		s.Quality = append(s.Quality, q)
	}
	row(Quality{ISP: "i0", Node: "a", Access: AccessMobile, Delay: 11})
	row(Quality{ISP: "i0", Node: "a", Delay: 12})
	row(Quality{Node: "a", Access: AccessMobile, Delay: 13})
	row(Quality{Node: "a", Delay: 14})
	row(Quality{ISP: "i0", Datacenter: "x", Delay: 15})
	row(Quality{Datacenter: "x", Delay: 16})
	row(Quality{ISP: "i0", Node: "gone", Delay: 99})
	a := newAtlas(s, &c)
	m := newMeasured(s, a, byID, &c)
	f := func(isp string, access Access, node int32, dc string, want float64) {
		t.Helper()
		if got := m.of(placeKey{a.regions["r"], a.isp(isp), access}, node, dc, 0); !near(got, want) {
			t.Errorf("%s %v node %d in %s: %.2f, want %.2f", isp, access, node, dc, got, want)
		}
	}
	f("i0", AccessMobile, 0, "x", 1)
	f("i0", AccessFixed, 0, "x", 2)
	f("i1", AccessMobile, 0, "x", 3)
	f("", AccessUnknown, 0, "x", 4)
	f("i0", AccessMobile, 1, "x", 5)
	f("i9", AccessMobile, 1, "x", 6)
	f("i0", AccessMobile, 1, "y", 0)
	if got := m.of(placeKey{elsewhere, unknownISP, 0}, 0, "x", 0); got != 0 {
		t.Errorf("of an unknown region: %v", got)
	}
	if !m.alone["a"] || m.alone["b"] || m.alone["gone"] || m.accesses() != 3 {
		t.Errorf("alone: %v, accesses %d", m.alone, m.accesses())
	}

	g := func(what string, q Quality, coverage, want float64) {
		t.Helper()
		q.Region, q.Node = "r", "b"
		if q.At.IsZero() {
			q.At = start
		}
		newest := Quality{Region: "r", Node: "a", At: start}
		s := &Snapshot{Quality: []Quality{q, newest}}
		a := newAtlas(s, &c)
		m := newMeasured(s, a, byID, &c)
		if got := m.of(placeKey{a.regions["r"], unknownISP, 0}, 1, "", coverage); !near(got, want) {
			t.Errorf("%s: %.2f, want %.2f", what, got, want)
		}
	}
	g("nothing measured", Quality{Samples: 1e9}, 20, 0)
	g("no samples", Quality{Delay: 100}, 0, 0)
	g("delay as promised", Quality{Delay: 30, Samples: 1e9}, 20, 0)
	g("delay above", Quality{Delay: 50, Samples: 1e9}, 20, 20)
	g("delay below", Quality{Delay: 5, Samples: 1e9}, 20, -20)
	g("no better than that", Quality{Delay: 5, Samples: 1e9}, 200, -20)
	g("first frame", Quality{FirstFrame: 800, Samples: 1e9}, 0, 50)
	g("stalls", Quality{Stalls: 2, Samples: 1e9}, 0, 20)
	g("loss", Quality{Loss: 0.03, Samples: 1e9}, 0, 30)
	g("all of it", Quality{Delay: 110, FirstFrame: 800, Stalls: 2, Loss: 0.03, Samples: 1e9}, 0, 200)
	g("no worse than that", Quality{Loss: 1, Samples: 1e9}, 0, 500)
	g("as many samples as half", Quality{Loss: 0.1, Samples: 50}, 0, 50)
	g("one half life old", Quality{Loss: 0.1, Samples: 1e9, At: start.Add(-10 * time.Minute)}, 0, 50)
	g("two half lives old", Quality{Loss: 0.1, Samples: 1e9, At: start.Add(-20 * time.Minute)}, 0, 25)
}

// TestManyPlaces wants a table that would be too large to keep to the pairs of the geo
// table, and to be refused when these are too many.
func TestManyPlaces(t *testing.T) {
	w := newWorld(t)
	var pairs []geo.Pair
	for i := range MaxRegions {
		w.Regions = append(w.Regions, Region{Name: region(i), Near: map[string]float64{"r0": float64(i)}})
	}
	for i := range 100 {
		w.edge(fmt.Sprintf("e%03d", i), region(i), fmt.Sprintf("i%d", i), fmt.Sprintf("j%d", i))
		pairs = append(pairs, geo.Pair{Region: region(i), ISP: fmt.Sprintf("i%d", i)})
	}
	p, err := Compile(&w.Snapshot, pairs)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.places.keys); n != MaxRegions+1+100 {
		t.Errorf("%d places", n)
	}
	v := NewView(p, nil, &w.state)
	f := func(region, isp string, cost float32) {
		t.Helper()
		q := Query{Domain: "live.example.com", Region: region, ISP: isp, Want: 1}
		var a Answer
		v.Decide(start, &q, &a)
		if a.Candidates[0].Cost != cost {
			t.Errorf("%s %s: %s", region, isp, told(&a))
		}
	}
	f("r7", "i7", 0)
	f("r7", "j7", 15) // not among the pairs: as of an unknown ISP
	f("r500", "i7", 65)

	for i := range 1900 {
		w.edge(fmt.Sprintf("f%03d", i), region(i%MaxRegions)).Datacenter = fmt.Sprint("dc", i)
	}
	for i := range 10_000 {
		pairs = append(pairs, geo.Pair{Region: region(i % MaxRegions), ISP: fmt.Sprintf("i%d", i%100)})
	}
	if _, err := Compile(&w.Snapshot, pairs); err == nil || !strings.Contains(err.Error(), "name fewer regions or ISPs") {
		t.Errorf("got %v", err)
	}
	w.Regions, w.Nodes = nil, w.Nodes[:0]
	for i := range 6000 {
		n := w.edge(fmt.Sprintf("g%04d", i), region(i%100))
		n.Datacenter = fmt.Sprint("dc", i)
		n.Groups = []string{"all"}
	}
	for i := range 60 {
		w.Domains = append(w.Domains, Domain{Name: fmt.Sprintf("d%d.example.com", i), Groups: []string{"all", fmt.Sprint("g", i)}})
	}
	if _, err := Compile(&w.Snapshot, nil); err == nil || !strings.Contains(err.Error(), "let domains share groups") {
		t.Errorf("got %v", err)
	}
}
