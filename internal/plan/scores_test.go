package plan

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// TestTakeRefuses wants each absurd sample refused with its word, and nothing changed.
func TestTakeRefuses(t *testing.T) {
	good := Sample{From: "up", To: "me", At: start, OK: true, RTT: 20 * ms, Probes: 5, Pulled: true}
	s := NewScores(DefaultHalves())
	known := func(id string) bool { return id == "up" || id == "me" || id == "other" }
	if r := s.Take(start, "me", []Sample{good}, known); r.Taken != 1 {
		t.Fatalf("%+v", r)
	}
	cfg := config()
	before, _ := s.Link("up", "me").Cost(start, 10, cfg)
	f := func(want Refusal, spoil func(*Sample)) {
		t.Helper()
		bad := good
		spoil(&bad)
		r := s.Take(start, "me", []Sample{bad}, known)
		if r.Counts[want] != 1 || len(r.First) != 1 || r.First[0].Why != want {
			t.Errorf("want %v: %+v", want, r)
		}
	}
	f(SameNode, func(m *Sample) { m.From = "me" })
	f(NotYours, func(m *Sample) { m.To = "other" })
	f(UnknownNode, func(m *Sample) { m.From = "nobody" })
	f(UnknownNode, func(m *Sample) { m.From = "" })
	f(NotANumber, func(m *Sample) { m.Loss = math.NaN() })
	f(NotANumber, func(m *Sample) { m.Stalls = math.Inf(1) })
	f(NotANumber, func(m *Sample) { m.Retransmits = math.Inf(-1) })
	f(Negative, func(m *Sample) { m.Switches = -1 })
	f(Negative, func(m *Sample) { m.RTT = -ms })
	f(Negative, func(m *Sample) { m.Delay = math.MinInt64 })
	f(Negative, func(m *Sample) { m.Rate = -1 })
	f(Negative, func(m *Sample) { m.Probes = -1 })
	f(TooLong, func(m *Sample) { m.Connect = time.Hour + 1 })
	f(TooLong, func(m *Sample) { m.FirstFrame = math.MaxInt64 })
	f(NotAShare, func(m *Sample) { m.Loss = 1.01 })
	f(TooMany, func(m *Sample) { m.Stalls = 1e9 })
	f(TooMany, func(m *Sample) { m.Probes = 1e9 })
	f(TooMany, func(m *Sample) { m.Rate = math.MaxInt64 })
	f(FromTheFuture, func(m *Sample) { m.At = start.Add(time.Minute) })
	f(TooOld, func(m *Sample) { m.At = start.Add(-time.Hour) })
	f(TooOld, func(m *Sample) { m.At = start.Add(-time.Second) }) // before the newest of the link
	f(TooOld, func(m *Sample) { m.At = time.Time{} })
	if after, _ := s.Link("up", "me").Cost(start, 10, cfg); after != before || s.Len() != 1 {
		t.Errorf("refused samples changed the cost from %v to %v, %d links", before, after, s.Len())
	}
	if s.Link("nobody", "me") != nil || s.Link("up", "other") != nil {
		t.Error("a refused sample made a link")
	}
}

// TestScoresAreBounded lets a node report of more upstreams than it may.
func TestScoresAreBounded(t *testing.T) {
	s := NewScores(DefaultHalves())
	for i := range 1000 {
		at := start.Add(time.Duration(i) * ms)
		s.Take(at, "me", []Sample{{From: fmt.Sprint(i), To: "me", At: at, OK: true}}, everybody)
	}
	if s.Len() != maxUpstreams || s.Link("999", "me") == nil || s.Link("0", "me") != nil {
		t.Errorf("%d links; the newest must be there, and the oldest not", s.Len())
	}
	for to := range MaxLinks/maxUpstreams + 10 {
		id := fmt.Sprintf("node-%d", to)
		for from := range maxUpstreams {
			r := s.Take(start, "", []Sample{{From: fmt.Sprint(from), To: id, At: start, OK: true}}, everybody)
			if r.Taken == 0 && (r.Counts[TableFull] != 1 || s.Len() != MaxLinks) {
				t.Fatalf("%+v with %d links", r, s.Len())
			}
		}
	}
	if s.Len() != MaxLinks {
		t.Errorf("%d links", s.Len())
	}
	s.Prune(start, func(id string) bool { return id == "me" || len(id) < 4 && id != "999" })
	if s.Len() != maxUpstreams-1 {
		t.Errorf("%d links after all others are gone", s.Len())
	}
	s.Prune(start.Add(time.Hour), everybody)
	if s.Len() != 0 {
		t.Errorf("%d links after an hour of silence", s.Len())
	}
}

func TestParseSamples(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		got, err := ParseSamples([]byte(in))
		if err == nil {
			if want != fmt.Sprint(len(got)) {
				t.Errorf("%.60s: %d samples, want %s", in, len(got), want)
			}
			return
		}
		if !contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", in, err, want)
		}
	}
	f(`[]`, "0")
	f(`[{"from":"a","to":"b","at":"2026-03-01T12:00:00Z","rtt_ns":20000000,"ok":true}]`, "1")
	f(`[{"form":"a"}]`, "unknown field")
	f(`[{"loss":NaN}]`, "invalid character")
	f(`[{"rtt_ns":1e300}]`, "cannot unmarshal")
	f(`[] []`, "more follows")
	f(``, "EOF")
	f(`[`+strings.Repeat(`{},`, MaxSamples)+`{}]`, "at most")
	f(strings.Repeat(" ", MaxSampleBytes+1), "longer")
}
