package plan

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
)

// FuzzSamples takes whatever a node may send: no panic, and costs stay numbers.
func FuzzSamples(f *testing.F) {
	f.Add([]byte(`[{"from":"r1","to":"e1","at":"2026-03-01T12:00:00Z","rtt_ns":20000000,"loss":0.5,"probes":5,"ok":true}]`))
	f.Add([]byte(`[{"from":"r1","to":"e1","at":"2026-03-01T12:00:00Z","pulled":true,"retransmits":1,"stalls":90000,"delay_ns":3600000000000}]`))
	f.Add([]byte(`[{"from":"c1","to":"r1","at":"2026-03-01T11:59:00.5Z","rate":1125899906842624,"switches":1e4},{"from":"c1","to":"r1","at":"2026-03-01T12:00:09Z"}]`))
	f.Add([]byte(`[{}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		samples, err := ParseSamples(b)
		if err != nil {
			return
		}
		n := small()
		known := func(id string) bool {
			for i := range n.Nodes {
				if n.Nodes[i].ID == id {
					return true
				}
			}
			return false
		}
		r := n.Scores.Take(start, "", samples, known)
		if total := r.Taken; total > len(samples) || n.Scores.Len() > total {
			t.Fatalf("%+v of %d", r, len(samples))
		}
		p := Make(start, n, nil, config())
		for id, pool := range p.Pools {
			if len(pool) == 0 {
				t.Errorf("%s has no upstream", id)
			}
			for _, c := range pool {
				if math.IsNaN(c.Cost) || math.IsInf(c.Cost, 0) || c.Cost < 0 {
					t.Errorf("%s: %+v", id, c)
				}
			}
		}
	})
}

// FuzzEdits reads whatever an operator may send: what is taken can be written and read
// again, and planned with.
func FuzzEdits(f *testing.F) {
	f.Add([]byte(`{"pins":[{"node":"e1","upstreams":["r2","c1"],"author":"ann"}],"bans":[{"from":"dc:dc-n","to":"e3"}]}`))
	f.Add([]byte(`{"weights":[{"from":"*","to":"e1","weight":0.01}],"prices":[{"node":"*","price":1000000}],"frozen":{}}`))
	f.Add([]byte(`{"capacities":[{"node":"dc:dc-e","capacity":0}],"drains":[{"node":"r1","until":"2026-03-01T12:00:01Z"}]}`))
	f.Add([]byte(`{"pins":[{"node":"*","stream":"live/a","upstreams":["src"]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEdits(b)
		if err != nil {
			return
		}
		out, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseEdits(out)
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if twice, _ := json.Marshal(again); string(twice) != string(out) {
			t.Fatalf("%s became %s", out, twice)
		}
		n := small()
		old := Make(start, n, nil, config())
		n.Edits = *e
		p := Make(start, n, old, config())
		if q := Make(start, n, old, config()); !reflect.DeepEqual(p, q) {
			t.Fatal("the same edits make two plans")
		}
		v := NewView(start, n, p, config())
		v.ExplainNode("e1")
		v.ExplainLink("r1", "e1")
	})
}
