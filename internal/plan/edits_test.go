package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestParseEdits wants each fault told with where it is; an empty want is no fault.
func TestParseEdits(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		e, err := ParseEdits([]byte(in))
		switch {
		case err == nil && want != "":
			t.Errorf("%.80s: taken, want %s", in, want)
		case err != nil && (want == "" || !strings.Contains(err.Error(), want)):
			t.Errorf("%.80s: %v, want %q", in, err, want)
		case err == nil && e == nil:
			t.Errorf("%.80s: nothing", in)
		}
	}
	f(`{}`, "")
	f(`{"pins":[{"node":"e1","upstreams":["r1","r2"],"author":"ann","comment":"fiber cut","at":"2026-03-01T12:00:00Z"}]}`, "")
	f(`{"pins":[{"node":"*","stream":"live/a","upstreams":["r1"],"until":"2026-03-01T12:00:00Z"}]}`, "")
	f(`{"bans":[{"from":"dc:fra","to":"*"}],"drains":[{"node":"dc:fra"}],"frozen":{"author":"ann"}}`, "")
	f(`{"weights":[{"from":"r1","to":"*","weight":2}],"prices":[{"node":"r1","price":0}],"capacities":[{"node":"r1","capacity":0}]}`, "")
	f(``, "EOF")
	f(`{} {}`, "more follows")
	f(`{"pin":[]}`, "unknown field")
	f(`{"weights":[{"from":"r1","to":"*","weight":"2"}]}`, "cannot unmarshal")
	f(`{"pins":[{"node":"","upstreams":["r1"]}]}`, "pins[0]: node: is empty: give a node's id")
	f(`{"pins":[{"node":"e1","upstreams":[]}]}`, "pins[0]: upstreams: 0 of them")
	f(`{"pins":[{"node":"e1","upstreams":["a","b","c","d","e","f","g","h","i"]}]}`, "9 of them")
	f(`{"pins":[{"node":"e1","upstreams":["e1"]}]}`, "cannot pull from itself")
	f(`{"pins":[{"node":"e1","upstreams":["r1","r1"]}]}`, "twice")
	f(`{"pins":[{"node":"e1","upstreams":["dc:fra"]}]}`, "more than one node")
	f(`{"pins":[{"node":"e1","upstreams":["*"]}]}`, "more than one node")
	f(`{"pins":[{"node":"e1","stream":"live","upstreams":["r1"]}]}`, "pins[0]: stream")
	f(`{"pins":[{"node":"e1","stream":"/live/a","upstreams":["r1"]}]}`, `write it as "live/a"`)
	f(`{"bans":[{"from":"*","to":"*"}]}`, "for every link")
	f(`{"bans":[{"from":"dc:","to":"e1"}]}`, "names no datacenter")
	f(`{"bans":[{"from":"a b","to":"e1"}]}`, "blanks")
	f(`{"bans":[{"from":"`+strings.Repeat("x", 65)+`","to":"e1"}]}`, "longer than 64")
	f(`{"weights":[{"from":"r1","to":"e1"}]}`, "weights[0]: weight: 0 must be between 0.01 and 100")
	f(`{"prices":[{"node":"r1","price":-1}]}`, "prices[0]: price: -1")
	f(`{"capacities":[{"node":"r1","capacity":-1}]}`, "capacities[0]: capacity: -1")
	f(`{"drains":[{"node":"r1","comment":"`+strings.Repeat("x", 1001)+`"}]}`, "drains[0]: comment")
	f(`{"drains":[`+strings.Repeat(`{"node":"a"},`, MaxEdits)+`{"node":"a"}]}`, "at most 1024")
	f(`{"drains":[`+strings.Repeat(`{"node":""},`, 99)+`{"node":""}]}`, "and 80 faults more")
	f(strings.Repeat(" ", MaxEditBytes+1), "longer")
}

func TestDryRun(t *testing.T) {
	n := small()
	n.Demand["e1"], n.Demand["e2"], n.Demand["e3"] = 3<<20, 5<<20, 7<<20
	old := Make(start, n, nil, config())
	if d := DryRun(start, n, old, Edits{}, config()); len(d.Changes) > 0 || d.Moved > 0 || d.Before != d.After {
		t.Errorf("nothing is edited: %+v", d)
	}
	d := DryRun(start, n, old, Edits{Bans: []Ban{{From: "r1", To: "*"}}}, config())
	if len(d.Changes) != 3 || d.Moved != 8<<20 || d.After.Cost <= d.Before.Cost || d.After.Backhaul-d.Before.Backhaul != 8<<20 || len(d.Empty)+len(d.Over) > 0 {
		t.Errorf("%+v", d)
	}
	if c := d.Changes[0]; c.Node != "e1" || c.Before[0].Upstream != "r1" || c.After[0].Upstream != "r2" || c.Moved != 3<<20 || c.CostAfter <= c.CostBefore {
		t.Errorf("%+v", c)
	}
	if c := d.Changes[2]; c.Node != "e3" || c.Moved != 0 {
		t.Errorf("only its second choice changes: %+v", c)
	}
	d = DryRun(start, n, old, Edits{Drains: []Drain{{Node: "*"}}}, config())
	if fmt.Sprint(d.Empty) != "[e1 e2 e3 r1 r2]" || d.After.Unplaced != 5 {
		t.Errorf("all are drained: %+v", d)
	}
	d = DryRun(start, n, old, Edits{Capacities: []Capacity{{Node: "*", Capacity: 1 << 20}}}, config())
	if fmt.Sprint(d.Over) != "[e1 e2 e3 r1 r2]" {
		t.Errorf("nobody has room: %v", d.Over)
	}
	// What time has done is not what edits do: before, e1 would go to r2 anyway.
	n.node("r1").Alive = false
	if d := DryRun(start, n, old, Edits{}, config()); len(d.Changes) > 0 {
		t.Errorf("%+v", d.Changes)
	}
}

func TestExplainNode(t *testing.T) {
	n := small()
	n.Edits.Bans = []Ban{{From: "r2", To: "dc:dc-n", By: By{Author: "ann", Comment: "fiber cut"}}, {From: "r1", To: "e3", By: By{Until: start}}}
	n.Edits.Drains = []Drain{{Node: "c2"}}
	v := NewView(start, n, Make(start, n, nil, config()), config())
	e := v.ExplainNode("e1")
	var got []string
	for _, c := range e.Candidates {
		got = append(got, fmt.Sprintf("%d %s %v", c.Place, c.Upstream, c.Reason))
	}
	if s := strings.Join(got, ", "); s != "1 r1 cheapest, 2 c1 cheapest, 0 r2 banned, 0 c2 draining" {
		t.Errorf("candidates of e1: %s", s)
	}
	if !e.Known || e.Version != 1 || e.Demand != 1<<20 || fmt.Sprint(e.Edits) != "[ban of r2 for dc:dc-n by ann: fiber cut]" {
		t.Errorf("%+v", e)
	}
	if e = v.ExplainNode("r1"); fmt.Sprint(e.Downstream) != "[e1 e2 e3]" && fmt.Sprint(e.Downstream) != "[e1 e2]" || e.Use < 0.019 || e.Use > 0.031 {
		t.Errorf("%+v", e)
	}
	if e = v.ExplainNode("c2"); e.Upstream != Draining || len(e.Edits) != 1 || len(e.Candidates) != 0 {
		t.Errorf("%+v", e)
	}
	if e = v.ExplainNode("nobody"); e.Known || e.Upstream != Unknown {
		t.Errorf("%+v", e)
	}
}

func TestExplainLink(t *testing.T) {
	n := small()
	n.Edits.Weights = []Weight{{From: "r1", To: "*", Weight: 2}}
	for i := range 20 {
		at := start.Add(time.Duration(i) * time.Second)
		n.Scores.Take(at, "e3", []Sample{{From: "r1", To: "e3", At: at, RTT: 80 * ms, OK: true}}, everybody)
	}
	now := start.Add(20 * time.Second)
	v := NewView(now, n, Make(now, n, nil, config()), config())
	e := v.ExplainLink("r1", "e3")
	if !e.Measured || !almost(e.Figures.RTT, 80) || e.Figures.Samples != 20 || e.Promised < 10 || e.Promised > 16 || e.Parts.Delay < 30 || !e.Crosses || e.Place != 2 || e.Reason != None {
		t.Errorf("%+v", e)
	}
	if len(e.Edits) != 1 || e.Parts.Weight != 2 || !almost(e.Cost, Cost(e.Parts)) {
		t.Errorf("%+v", e)
	}
	if e = v.ExplainLink("r2", "e1"); e.Measured || len(e.Edits) > 0 || !almost(e.Parts.Delay, e.Promised) {
		t.Errorf("%+v", e)
	}
	if e = v.ExplainLink("r1", "x"); e.Reason != Unknown {
		t.Errorf("%+v", e)
	}
	if e = v.ExplainLink("r1", "r1"); e.Reason != Self {
		t.Errorf("%+v", e)
	}
}

func TestExplainStream(t *testing.T) {
	n := paths()
	n.Streams = StreamMap{"live/a": {Source: "src-tel", Epoch: 3, Bitrate: 1000, Carriers: map[string]string{
		"src-tel": "", "south-tel": "src-tel", "far-tel": "south-tel", "near-tel": "src-tel", "far-uni": "gone", "south-uni": "",
	}}}
	v := NewView(start, n, nil, config())
	e := v.ExplainStream("live/a")
	var got []string
	for _, m := range e.Nodes {
		got = append(got, fmt.Sprintf("%d %s<%s", m.Hops, m.Node, m.Upstream))
	}
	if s := strings.Join(got, " "); s != "0 src-tel< 1 near-tel<src-tel 1 south-tel<src-tel 2 far-tel<south-tel -1 far-uni<gone -1 south-uni<" {
		t.Errorf("%s", s)
	}
	if e.Copies != 4 || e.Crosses != 1 || e.Deepest != 2 || e.Epoch != 3 || e.Nodes[3].Delay < 20 {
		t.Errorf("%+v", e)
	}
	// Pushed there by the node of its encoder, through another one.
	n.Streams = StreamMap{"live/a": {Source: "src-tel", Carriers: map[string]string{
		"src-tel": "south-bgp", "south-bgp": "far-uni", "far-uni": "", "south-tel": "src-tel", "near-uni": "far-uni",
	}}}
	f := func(want string) {
		t.Helper()
		var got []string
		for _, m := range NewView(start, n, nil, config()).ExplainStream("live/a").Nodes {
			got = append(got, fmt.Sprintf("%d %s<%s", m.Hops, m.Node, m.Upstream))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s", s)
		}
	}
	at, _ := n.Streams.Find("live/a")
	f("0 far-uni< 1 near-uni<far-uni 1 south-bgp<far-uni 2 src-tel<south-bgp 3 south-tel<src-tel")
	if at.Ingest() != "far-uni" {
		t.Errorf("ingest at %q", at.Ingest())
	}
	at.Carriers["far-uni"] = "src-tel" // it is told wrong, and no way ends
	f("0 far-uni<src-tel 1 near-uni<far-uni 1 south-bgp<far-uni 2 src-tel<south-bgp 3 south-tel<src-tel")
	delete(at.Carriers, "south-bgp") // and one that is not heard
	f("0 src-tel<south-bgp 1 far-uni<src-tel 1 south-tel<src-tel 2 near-uni<far-uni")
	if at.Ingest() != "" {
		t.Errorf("ingest at %q", at.Ingest())
	}
	if e = v.ExplainStream("live/b"); e.Known || e.Nodes == nil {
		t.Errorf("%+v", e)
	}
}

func TestExplainPath(t *testing.T) {
	n := paths()
	n.Streams = StreamMap{"live/a": {Source: "src-tel", Bitrate: 1000, Carriers: map[string]string{"src-tel": ""}}}
	n.Edits.Bans = []Ban{{From: "south-bgp", To: "far-tel"}}
	e := NewView(start, n, Make(start, n, nil, config()), config()).ExplainPath("far-tel", "live/a")
	reasons := map[string]Reason{}
	for _, w := range e.Ways {
		reasons[w.Over] = w.Reason
	}
	if e.Near || !e.Same || reasons["south-tel"] != Between || reasons["south-bgp"] != Banned || reasons["south-uni"] != OtherISP {
		t.Errorf("%+v", e)
	}
	if e = NewView(start, n, nil, config()).ExplainPath("far-tel", "live/x"); len(e.Ways) > 0 || e.Answer.Reason != NoUpstream {
		t.Errorf("%+v", e)
	}
}
