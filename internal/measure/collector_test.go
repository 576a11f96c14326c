package measure

import (
	"testing"
	"time"

	"millrace/internal/plan"
	"millrace/internal/upstream"
)

// told are figures for a test.
type told struct {
	links   []upstream.LinkFigures
	results []Result
}

func (f *told) Links() []upstream.LinkFigures {
	defer func() { f.links = nil }()
	return f.links
}

func (f *told) Results() []Result {
	defer func() { f.results = nil }()
	return f.results
}

const ms = time.Millisecond

func TestSamples(t *testing.T) {
	link := func(f upstream.LinkFigures) []upstream.LinkFigures {
		f.Node, f.Over = "relay-1", time.Second
		return []upstream.LinkFigures{f}
	}
	probe := func(r Result) []Result {
		r.Node = "relay-1"
		return []Result{r}
	}
	for _, c := range []struct {
		name string
		f    told
		want plan.Sample // without From, To and At; the zero value: none
	}{
		{"nothing", told{}, plan.Sample{}},
		{
			"streams flow",
			told{links: link(upstream.LinkFigures{Streams: 3, Connect: ms, RTT: 2 * ms, Delay: 3 * ms, FirstFrame: 4 * ms, Retransmits: 0.1, Rate: 1000, Opened: 1})},
			plan.Sample{OK: true, Pulled: true, Connect: ms, RTT: 2 * ms, Delay: 3 * ms, FirstFrame: 4 * ms, Retransmits: 0.1, Rate: 1000},
		},
		{"a dial in vain", told{links: link(upstream.LinkFigures{Failed: 1})}, plan.Sample{}},
		{"a dial in vain beside streams", told{links: link(upstream.LinkFigures{Failed: 1, Streams: 1})}, plan.Sample{OK: true, Pulled: true}},
		{"a trial", told{links: link(upstream.LinkFigures{Opened: 1, Rate: 9, FirstFrame: ms})}, plan.Sample{OK: true, Rate: 9, FirstFrame: ms}},
		{"the last stream was taken away", told{links: link(upstream.LinkFigures{Switches: 1, Failed: 1})}, plan.Sample{Pulled: true, Switches: 6}},
		{"a stall", told{links: link(upstream.LinkFigures{Streams: 1, Stalls: 1})}, plan.Sample{OK: true, Pulled: true, Stalls: 6}},
		{"a train", told{results: probe(Result{RTT: 5 * ms, Sent: 10, Lost: 1})}, plan.Sample{OK: true, RTT: 5 * ms, Loss: 0.1, Probes: 10}},
		{"a train without an answer", told{results: probe(Result{Sent: 10, Lost: 10})}, plan.Sample{Loss: 1, Probes: 10}},
		{"TCP alone", told{results: probe(Result{Connect: 5 * ms})}, plan.Sample{OK: true, Connect: 5 * ms}},
		{"TCP refuses", told{results: probe(Result{RTT: ms, Sent: 10, Refused: true})}, plan.Sample{RTT: ms, Probes: 10}},
		{
			"both",
			told{
				results: append(probe(Result{RTT: 5 * ms, Sent: 10, Lost: 1}), probe(Result{RTT: 6 * ms, Sent: 10, Lost: 2})...),
				links:   link(upstream.LinkFigures{Streams: 1, RTT: 2 * ms, Connect: 3 * ms}),
			},
			plan.Sample{OK: true, Pulled: true, RTT: 6 * ms, Connect: 3 * ms, Loss: 0.15, Probes: 20},
		},
		{
			"two addresses of one node",
			told{links: append(link(upstream.LinkFigures{Streams: 1, RTT: 2 * ms, Retransmits: 0.1, Rate: 1, Delay: ms}),
				link(upstream.LinkFigures{Streams: 3, RTT: ms, Retransmits: 0.3, Rate: 2, Delay: 2 * ms})...)},
			plan.Sample{OK: true, Pulled: true, RTT: ms, Retransmits: 0.25, Rate: 3, Delay: 2 * ms},
		},
	} {
		got := NewCollector("edge-1", &c.f, &c.f).Samples(t0, 100)
		if len(got) == 0 {
			if c.want != (plan.Sample{}) {
				t.Errorf("%s: no sample", c.name)
			}
			continue
		}
		c.want.From, c.want.To, c.want.At = "relay-1", "edge-1", t0
		if diff := got[0].Loss - c.want.Loss; diff > -1e-9 && diff < 1e-9 {
			got[0].Loss = c.want.Loss
		}
		if diff := got[0].Retransmits - c.want.Retransmits; diff > -1e-9 && diff < 1e-9 {
			got[0].Retransmits = c.want.Retransmits
		}
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("%s:\n%+v, want\n%+v", c.name, got, c.want)
		}
		// A router takes what is made.
		scores := plan.NewScores(plan.DefaultHalves())
		if r := scores.Take(t0, "edge-1", got, func(string) bool { return true }); r.Taken != len(got) {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

// Of foreign servers, and of itself, a node says nothing.
func TestSamplesOfNodesOnly(t *testing.T) {
	f := told{
		links:   []upstream.LinkFigures{{URL: "http://foreign", Streams: 1}, {Node: "edge-1", Streams: 1}, {Node: "a b", Streams: 1}},
		results: []Result{{Node: "edge-1", RTT: ms, Sent: 1}},
	}
	if got := NewCollector("edge-1", &f, &f).Samples(t0, 100); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	f.links = []upstream.LinkFigures{{Node: "a", Streams: 1}}
	if got := NewCollector("edge-1", &f, nil).Samples(t0, 100); len(got) != 1 {
		t.Errorf("without a prober: %+v", got)
	}
}

// The round trip of probes goes before that of TCP, which hides what has become slow.
func TestProbesGoBeforeTCP(t *testing.T) {
	f := &told{}
	c := NewCollector("edge-1", f, f)
	rtt := func(at time.Time, probe time.Duration) time.Duration {
		f.links = []upstream.LinkFigures{{Node: "a", Streams: 1, RTT: 2 * ms}}
		if probe > 0 {
			f.results = []Result{{Node: "a", RTT: probe, Sent: 1}}
		}
		return c.Samples(at, 10)[0].RTT
	}
	for i, want := range []time.Duration{2 * ms, 50 * ms, 0, 0, 2 * ms} {
		at := t0.Add(time.Duration(i) * 7 * time.Second)
		probe := time.Duration(0)
		if i == 1 {
			probe = 50 * ms
		}
		if got := rtt(at, probe); got != want {
			t.Errorf("after %v: %v, want %v", at.Sub(t0), got, want)
		}
	}
}

// Stalls and switches are told as a rate over ten minutes and all streams.
func TestRates(t *testing.T) {
	f := func(name string, streams, seconds, stalls int, want float64) {
		t.Helper()
		var h history
		now := t0
		for i := range seconds {
			now = t0.Add(time.Duration(i) * time.Second)
			l := upstream.LinkFigures{Over: time.Second, Streams: streams}
			if i == seconds-1 {
				l.Stalls, l.Switches = stalls, 2*stalls
			}
			h.add(now, &l)
		}
		got, switches := h.rates(now)
		if got < want*0.97 || got > want*1.03 || switches < 2*got*0.99 || switches > 2*got*1.01 {
			t.Errorf("%s: %.2f and %.2f an hour, want %.2f and twice that", name, got, switches, want)
		}
		if got, _ := h.rates(now.Add(10 * time.Minute)); got != 0 {
			t.Errorf("%s: %.2f an hour after ten minutes", name, got)
		}
		if h.idle(now) || !h.idle(now.Add(10*time.Minute)) {
			t.Errorf("%s: forgotten at the wrong time", name)
		}
	}
	f("the first second", 1, 1, 1, 6)
	f("ten minutes", 1, 600, 1, 6)
	f("an hour", 1, 3600, 1, 6)
	f("all of a hundred streams", 100, 600, 100, 6)
	f("one of a hundred streams", 100, 600, 1, 0.06)
}

// What finds no room comes with the next call, in order, as long as it is worth it.
func TestLimit(t *testing.T) {
	f := &told{}
	c := NewCollector("edge-1", f, f)
	at := func(i int) time.Time { return t0.Add(time.Duration(i) * time.Second) }
	take := func(i, limit int) []plan.Sample {
		f.links = []upstream.LinkFigures{{Node: "a", Streams: 1}, {Node: "b", Streams: 1}}
		return c.Samples(at(i), limit)
	}
	if got := take(2, 1); len(got) != 1 || got[0].From != "a" {
		t.Fatalf("a limit of one: %+v", got)
	}
	if got := c.Samples(at(2), 10); len(got) != 1 || got[0].From != "b" {
		t.Fatalf("what was left: %+v", got)
	}
	if got := take(3, 0); len(got) != 0 {
		t.Fatalf("a limit of none: %+v", got)
	}
	if got := take(4, 10); len(got) != 4 || !got[0].At.Equal(at(3)) || !got[3].At.Equal(at(4)) {
		t.Fatalf("the older ones first: %+v", got)
	}
	take(5, 0)
	if got := take(35, 10); len(got) != 2 || !got[0].At.Equal(at(35)) {
		t.Fatalf("an old one: %+v", got)
	}
	for i := range plan.MaxSamples {
		take(36+i/100, 0)
	}
	got := c.Samples(at(50), 1<<20)
	if len(got) != plan.MaxSamples || !got[0].At.After(at(36)) {
		t.Errorf("%d are kept, from %v", len(got), got[0].At)
	}
}
