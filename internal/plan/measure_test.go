package plan

import (
	"slices"
	"testing"
	"time"
)

func TestMeasure(t *testing.T) {
	n := paths()
	p := Make(start, n, nil, config())
	v := NewView(start, n, p, config())
	if got := v.Measure("c1", 4); got != nil {
		t.Errorf("a center measures %v", got)
	}
	if got := v.Measure("nobody", 4); got != nil {
		t.Errorf("an unknown node measures %v", got)
	}
	got := v.Measure("far-tel", 3)
	if len(got) != 3 {
		t.Fatalf("an edge measures %v beside its pool %v", got, p.Pools["far-tel"])
	}
	for _, up := range got {
		if slices.ContainsFunc(p.Pools["far-tel"], func(c Choice) bool { return c.Upstream == up }) {
			t.Errorf("%s is in the pool already", up)
		}
	}
	// Relays measure centers alone, and what is banned is not measured.
	n.Edits.Bans = []Ban{{From: got[0], To: "far-tel"}}
	v = NewView(start, n, p, config())
	if after := v.Measure("far-tel", 3); slices.Contains(after, got[0]) {
		t.Errorf("%s is banned and measured: %v", got[0], after)
	}
	for _, up := range v.Measure("south-tel", 4) {
		if up != "c1" {
			t.Errorf("a relay measures %s", up)
		}
	}
}

func TestHop(t *testing.T) {
	n := paths()
	n.Scores = NewScores(DefaultHalves())
	s := Sample{From: "south-tel", To: "far-tel", At: start, RTT: 300 * time.Millisecond, OK: true}
	if why := s.Check(start); why != Taken {
		t.Fatal(why)
	}
	n.Scores.Take(start, "far-tel", []Sample{s}, everybody)
	v := NewView(start, n, nil, config())
	h, ok := v.Hop("south-tel", "far-tel")
	if !ok || !h.Measured || h.Cost <= h.Promised || h.Crosses {
		t.Errorf("a slow link within an ISP: %+v %v", h, ok)
	}
	if h, ok = v.Hop("c1", "far-tel"); !ok || h.Measured || h.Cost != h.Promised || !h.Crosses {
		t.Errorf("a link that nobody measured: %+v %v", h, ok)
	}
	if _, ok = v.Hop("c1", "nobody"); ok {
		t.Error("a link to nobody")
	}
}
