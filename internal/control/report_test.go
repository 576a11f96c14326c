package control

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/internal/sched"
	"millrace/internal/stream"
)

func TestReport(t *testing.T) {
	made := time.Unix(1_700_000_000, 0)
	figures := &sched.Figures{Load: 1000, Viewers: 3, Refused: 9, Streams: []stream.Name{"live/a", "live/b"}}
	shared := &sched.Figures{Load: 200, Streams: []stream.Name{"live/b"}}
	none := &sched.Figures{Streams: []stream.Name{}}
	r := &Report{Observer: "s1", At: made, Observations: []sched.Observation{
		{Observer: "s1", Node: "e2", Family: sched.V6, At: made.Add(-1299 * time.Millisecond), Error: "timeout"},
		{Observer: "s1", Node: "e1", Family: sched.V4, At: made.Add(-3 * time.Second), Up: true, Figures: figures},
		{Observer: "s1", Node: "e2", Family: sched.V4, At: made, Up: true, Draining: true, Figures: shared},
		{Observer: "s1", Node: "e3", Family: sched.V6, At: made, Up: true, Figures: none},
		{Observer: "s1", Node: "e4", Family: sched.V6, At: made, Up: true},
	}}
	want := &Report{Observer: "s1", At: made, Observations: []sched.Observation{
		{Observer: "s1", Node: "e1", Family: sched.V4, At: made.Add(-3 * time.Second), Up: true, Figures: figures},
		{Observer: "s1", Node: "e2", Family: sched.V4, At: made, Up: true, Draining: true, Figures: shared},
		{Observer: "s1", Node: "e2", Family: sched.V6, At: made.Add(-1300 * time.Millisecond), Draining: true, Error: "timeout"},
		{Observer: "s1", Node: "e3", Family: sched.V6, At: made, Up: true, Figures: none},
		{Observer: "s1", Node: "e4", Family: sched.V6, At: made, Up: true},
	}}
	got, err := ParseReport(r.encode(true))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, %v\nwant\n%+v", got, err, want)
	}
	if got.nodes() != 4 {
		t.Errorf("tells of %d nodes", got.nodes())
	}
	// Without names: what is not told is not the same as none.
	got, err = ParseReport(r.encode(false))
	if err != nil || strings.Contains(string(r.encode(false)), "live/") {
		t.Fatalf("%s, %v", r.encode(false), err)
	}
	for _, o := range got.Observations {
		if o.Figures != nil && o.Figures.Streams != nil {
			t.Errorf("%s is said to carry %v", o.Node, o.Figures.Streams)
		}
	}
	if a, b := r.token(), (&Report{At: made.Add(time.Millisecond)}).token(); a == b {
		t.Error("two reports have the same token")
	}
}

// TestNews: an observation that is in several reports is taken once, and the clocks of
// the two programs need not agree.
func TestNews(t *testing.T) {
	made := time.Unix(1_700_000_000, 42e6)
	here := made.Add(time.Hour)
	known := map[seenKey]time.Time{}
	o := sched.Observation{Observer: "s1", Node: "e1", Family: sched.V4, At: made.Add(-777 * time.Millisecond)}
	take := func(after time.Duration, obs ...sched.Observation) []sched.Observation {
		t.Helper()
		r, err := ParseReport((&Report{Observer: "s1", At: made.Add(after), Observations: obs}).encode(false))
		if err != nil {
			t.Fatal(err)
		}
		return r.news(here.Add(after), known)
	}
	got := take(0, o)
	if len(got) != 1 || here.Sub(got[0].At) < 700*time.Millisecond || here.Sub(got[0].At) > 900*time.Millisecond {
		t.Errorf("the first time: %+v, now %v", got, here)
	}
	for after := range 50 {
		if got := take(time.Duration(after)*37*time.Millisecond, o); len(got) != 0 {
			t.Fatalf("again after %d: %+v", after*37, got)
		}
	}
	o6, later := o, o
	o6.Family, later.At = sched.V6, o.At.Add(time.Second)
	if got := take(2*time.Second, later, o6); len(got) != 2 {
		t.Errorf("a later one and one of another family: %+v", got)
	}
	if take(3*time.Second, later); len(known) != 1 {
		t.Errorf("%d are remembered of one", len(known))
	}
}

func TestNamesAreBounded(t *testing.T) {
	var obs []sched.Observation
	for i := range 10 {
		f := &sched.Figures{}
		for j := range 10 * i {
			f.Streams = append(f.Streams, stream.Name(fmt.Sprintf("live/%d-%d", i, j)))
		}
		obs = append(obs, sched.Observation{Node: fmt.Sprintf("e%d", i), Family: sched.V4, Figures: f})
	}
	all, some := newNames(obs, 450), newNames(obs, 449)
	for i, o := range obs {
		if n := len(all.indexes(o.Figures.Streams)); n != 10*i {
			t.Errorf("%s has %d streams of %d", o.Node, n, 10*i)
		}
		if n, want := len(some.indexes(o.Figures.Streams)), min(10*i, 44); n != want {
			t.Errorf("%s has %d streams, want %d", o.Node, n, want)
		}
	}
	if len(all.list) != 450 {
		t.Errorf("%d names", len(all.list))
	}
}

func TestParseReportRefuses(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"nothing", "", "not a report"},
		{"no format", "{}", "format 0"},
		{"no observer", `{"format":1}`, "no observer"},
		{"a node without id", `{"format":1,"observer":"s1","nodes":[{}]}`, "makes no sense"},
		{"a long id", `{"format":1,"observer":"s1","nodes":[{"id":"` + strings.Repeat("x", 65) + `"}]}`, "makes no sense"},
		{"load below zero", `{"format":1,"observer":"s1","nodes":[{"id":"a","load":-1}]}`, "makes no sense"},
		{"viewers below zero", `{"format":1,"observer":"s1","nodes":[{"id":"a","viewers":-1}]}`, "makes no sense"},
		{"a stream that is none", `{"format":1,"observer":"s1","names":["a//b"],"nodes":[]}`, "which is no name"},
		{"an index below zero", `{"format":1,"observer":"s1","names":["a/b"],"nodes":[{"id":"a","told":"v4","streams":[-1]}]}`, "stream -1 of 1"},
		{"an index too big", `{"format":1,"observer":"s1","names":["a/b"],"nodes":[{"id":"a","told":"v4","streams":[1]}]}`, "stream 1 of 1"},
		{"no time", `{"format":1,"observer":"s1","at":9e18}`, "not a report"},
		{"too late a time", `{"format":1,"observer":"s1","at":9000000000000}`, "which is no time"},
		{"too many streams", `{"format":1,"observer":"s1","names":["a/b"],"nodes":[{"id":"a","streams":[` + strings.Repeat("0,", sched.MaxStreams) + `0]}]}`, "10001 streams"},
		{"no family", `{"format":1,"observer":"s1","nodes":[{"id":"a","told":"v5"}]}`, "not a report"},
		{"an age that is none", `{"format":1,"observer":"s1","nodes":[{"id":"a","v4":{"age":1e99}}]}`, "not a report"},
		{"too many objects", `{"format":1,"nodes":[` + strings.Repeat("{},", 4*maxReported) + `{}]}`, "objects"},
		{"too many nodes", `{"format":1,"observer":"s1","nodes":[` + strings.Repeat(`{},`, maxReported) + `{}]}`, "nodes, at most"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r, err := ParseReport([]byte(tc.text))
			if r != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v; want %q in it", r, err, tc.want)
			}
		})
	}
	if _, err := ParseReport(make([]byte, MaxReport+1)); err == nil {
		t.Error("too many bytes are taken")
	}
	r, err := ParseReport([]byte(`{"format":1,"observer":"s1","at":17000000000,"nodes":[{"id":"a","v4":{"age":-5,"error":"` + strings.Repeat("x", 999) + `"},"v6":{"age":9999999999}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	a, b := r.Observations[0], r.Observations[1]
	if a.At.After(r.At) || len(a.Error) > 64 || r.At.Sub(b.At) > maxAge {
		t.Errorf("got %+v and %+v", a, b)
	}
}

func TestRounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Min(0).Draw(t, "n")
		if r := rounded(n); r > n || float64(n-r) > float64(n)/128 {
			t.Fatalf("%d becomes %d", n, r)
		}
	})
}

func FuzzParseReport(f *testing.F) {
	f.Add([]byte(`{"format":1,"observer":"s1","names":["live/a"],"nodes":[{"id":"a","v4":{"up":true,"age":3},"told":"v4","load":5,"streams":[0]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseReport(b)
		if (r == nil) == (err == nil) {
			t.Fatalf("got %v and %v", r, err)
		}
		if r == nil {
			return
		}
		for _, o := range r.Observations {
			if o.At.After(r.At) || o.Observer != r.Observer || o.Family != sched.V4 && o.Family != sched.V6 {
				t.Errorf("%+v", o)
			}
		}
		if !slices.IsSortedFunc(r.Observations, func(a, b sched.Observation) int { return strings.Compare(a.Node, b.Node) }) {
			return // what our own programs send is in order
		}
		var w reportWire
		if err := json.Unmarshal(r.encode(true), &w); err != nil {
			t.Error(err)
		}
	})
}
