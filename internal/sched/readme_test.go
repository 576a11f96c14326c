package sched

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"millrace/internal/stream"
)

// TestReadmeWords wants README.md to tell of all reasons and settings.
func TestReadmeWords(t *testing.T) {
	readme := readme(t)
	for _, r := range Reasons() {
		if r != None && !strings.Contains(readme, "`"+r.String()+"`") {
			t.Errorf("README.md does not tell of the reason %v", r)
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[Costs](), reflect.TypeFor[HealthConfig]()} {
		for f := range typ.Fields() {
			if key := f.Tag.Get("json"); !strings.Contains(readme, "`"+key+"`") {
				t.Errorf("README.md does not tell of the setting %s", key)
			}
		}
	}
}

// TestWorkedExample wants the worked example of README.md to be true.
func TestWorkedExample(t *testing.T) {
	readme := readme(t)
	w := newWorld(t)
	bj, sh := [2]float64{39.9042, 116.4074}, [2]float64{31.2304, 121.4737}
	w.Regions = []Region{
		{Name: "beijing", Lat: &bj[0], Lon: &bj[1], Near: map[string]float64{"tianjin": 3}},
		{Name: "tianjin"},
		{Name: "shanghai", Lat: &sh[0], Lon: &sh[1]},
	}
	w.coverage = "11.0.0.0/8 beijing telecom\n"
	w.Domains[0].Spread4 = 32
	w.edge("bj-1", "beijing", "telecom")
	w.edge("bj-2", "beijing", "*")
	w.edge("tj-1", "tianjin", "telecom")
	w.edge("sh-1", "shanghai", "telecom")
	w.of("bj-1").Load, w.of("bj-2").Load, w.of("tj-1").Load = 4e8, 5e8, 2e8
	w.of("bj-2").Streams = []stream.Name{"live/show"}
	w.Quality = []Quality{{Region: "beijing", ISP: "telecom", Node: "bj-1", Delay: 18, FirstFrame: 420, Samples: 150, At: start}}
	v := w.view()

	q := client("11.0.0.1")
	q.Want, q.Stream = 4, "live/show"
	var a Answer
	v.Decide(start, &q, &a)
	sum := 0.0
	parts := map[string]float64{}
	for i := range a.N {
		c := &a.Candidates[i]
		if c.Cost <= a.Candidates[0].Cost+5 && c.Cost <= 5 {
			parts[c.Node.ID] = math.Exp(-3 * float64(c.Cost) / 5)
			sum += parts[c.Node.ID]
		}
	}
	for i := range a.N {
		c := &a.Candidates[i]
		row := fmt.Sprintf("| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f %% |", c.Node.ID, c.Coverage, c.Quality, c.Stream,
			c.Load, c.Cost, 100*parts[c.Node.ID]/sum)
		if row = strings.ReplaceAll(row, " -0.0 ", " 0.0 "); !strings.Contains(readme, row) {
			t.Errorf("README.md does not have the row\n%s", row)
		}
	}
	if a.N != 4 || a.Candidates[2].Node.ID != "sh-1" || a.Candidates[3].Node.ID != "bj-1" {
		t.Errorf("got %s", told(&a))
	}
	// The shares are what is drawn.
	got := 0
	const n = 50_000
	for i := range n {
		q.Client = client(fmt.Sprintf("11.0.%d.%d", i>>8, i&255)).Client
		if v.Decide(start, &q, &a); a.Candidates[0].Node.ID == "bj-2" {
			got++
		}
	}
	if part := float64(got) / n; math.Abs(part-parts["bj-2"]/sum) > 0.005 {
		t.Errorf("bj-2 gets %.3f of the players, want %.3f", part, parts["bj-2"]/sum)
	}
}

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
