package plan

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"millrace/internal/sched"
)

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestReadmeWords wants README.md to tell of all reasons, refusals and settings, with
// their defaults.
func TestReadmeWords(t *testing.T) {
	readme := readme(t)
	for _, r := range Reasons() {
		if r != None && !strings.Contains(readme, "`"+r.String()+"`") {
			t.Errorf("README.md does not tell of the reason %v", r)
		}
	}
	for _, r := range Refusals() {
		if r != Taken && !strings.Contains(readme, "`"+r.String()+"`") {
			t.Errorf("README.md does not tell of the refusal %v", r)
		}
	}
	row := func(name string, v any) {
		if want := fmt.Sprintf("| `%s` | %v |", name, v); !strings.Contains(readme, want) {
			t.Errorf("README.md has no row %s", want)
		}
	}
	c := config()
	c.Costs.each(func(name string, v *float64) { row(name, *v) })
	c.Half.each(func(name string, v *time.Duration) { row(name, *v) })
	row("gain_ms", c.GainMS)
	row("gain_share", c.GainShare)
	row("max_use", c.MaxUse)
	row("pool", c.Pool)
	row("candidates", c.Candidates)
	row("near", c.Near)
	row("bound", c.Bound)
	row("hot", c.Hot)
}

// TestWorkedExample wants the worked example of README.md to be true.
func TestWorkedExample(t *testing.T) {
	bj, sh := at("beijing", 39.9042, 116.4074), at("shanghai", 31.2304, 121.4737)
	sh.Near = map[string]float64{"hangzhou": 3}
	n := &Network{
		Regions: []sched.Region{bj, sh, {Name: "hangzhou"}}, Demand: map[string]int64{},
		Scores: NewScores(DefaultHalves()),
	}
	add := func(id, role, region, isp string, load int64, price float64) {
		m := n.add(id, role, "", region, isp)
		m.Capacity, m.Load, m.Price = 1e9, load, price
		n.Demand[id] = 0
	}
	add("bj-c", Center, "beijing", "*", 0, 0.05)
	add("sh-1", Relay, "shanghai", "telecom", 5e8, 0.02)
	add("sh-2", Relay, "shanghai", "*", 2e8, 0.05)
	add("hz-1", Relay, "hangzhou", "telecom", 2e8, 0.02)
	add("sh-e", Edge, "shanghai", "telecom", 0, 0)
	for i := range 60 {
		s := Sample{From: "sh-1", To: "sh-e", At: start.Add(time.Duration(i+1) * time.Second), RTT: 6 * ms, Retransmits: 0.02, Stalls: 1, OK: true, Pulled: true}
		n.Scores.Take(s.At, "sh-e", []Sample{s}, everybody)
	}
	w := newWorld(start.Add(time.Minute), n, config())
	p := newPlanner(w, &Plan{})
	p.run()
	readme := readme(t)
	for _, id := range []string{"sh-1", "sh-2", "hz-1", "bj-c"} {
		b := p.breakdown(w.ids[id], w.ids["sh-e"])
		row := fmt.Sprintf("| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |", id, b.Delay, b.Loss, b.Stall, b.Money, b.Load, b.Tier, b.Behind, Cost(b))
		if !strings.Contains(readme, row) {
			t.Errorf("README.md has no row\n%s", row)
		}
	}
	if got := w.nodes[p.pools[w.ids["sh-e"]][0].up].ID; got != "sh-2" {
		t.Errorf("the edge pulls from %s", got)
	}
}
