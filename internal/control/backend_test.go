package control

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"millrace/internal/plan"
	"millrace/internal/stream"
)

// fakeFleet is a Backend that remembers, and answers what it is told to.
type fakeFleet struct {
	mu             sync.Mutex
	name           string
	heard          []*Heartbeat
	refuse         Refusal
	every          int
	refusedSamples map[string]int // of samples, in the next Ack
	orders         map[string]*OrdersPaper
	routes         map[stream.Name]Route
	slow           time.Duration // before an answer
	resend         bool          // once
	leftOut        string        // in every Ack
	asked          int           // paths
	refused        []string      // that it was told of
}

func newFleet(name string) *fakeFleet {
	return &fakeFleet{name: name, every: 1000, orders: map[string]*OrdersPaper{}, routes: map[stream.Name]Route{}}
}

func (f *fakeFleet) Heartbeat(_ time.Time, h *Heartbeat, _ netip.Addr) (Ack, Refusal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.slow > 0 {
		slow := f.slow
		f.mu.Unlock()
		time.Sleep(slow)
		f.mu.Lock()
	}
	if f.refuse != NotRefused {
		return Ack{}, f.refuse, errors.New("no: " + f.refuse.String())
	}
	f.heard = append(f.heard, h)
	a := Ack{Router: f.name, Sequence: h.Sequence, Interval: f.every, Resend: f.resend, LeftOut: f.leftOut, Refused: f.refusedSamples}
	f.resend, f.refusedSamples = false, nil
	return a, NotRefused, nil
}

func (f *fakeFleet) Refused(_ time.Time, node string, _ netip.Addr, why Refusal, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = append(f.refused, fmt.Sprintf("%s %v %s", node, why, text))
}

func (f *fakeFleet) Orders(node string) *OrdersPaper {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.orders[node]
}

func (f *fakeFleet) Placeless(node string) (Refusal, string) {
	return LeftOut, "nowhere to place players: set router.region on " + node
}

func (f *fakeFleet) Path(_ string, n stream.Name) Route {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.slow > 0 {
		slow := f.slow
		f.mu.Unlock()
		time.Sleep(slow)
		f.mu.Lock()
	}
	if r, ok := f.routes[n]; ok {
		r.Stream = n
		return r
	}
	return Route{Stream: n, Reason: "unknown", Choices: []Target{}}
}

// with changes f.
func (f *fakeFleet) with(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// heartbeats returns what was heard since the last call.
func (f *fakeFleet) heartbeats() []*Heartbeat {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.heard
	f.heard = nil
	return out
}

// newRouter returns a server of a fleet.
func newRouter(t testing.TB, name string, keys ...string) (*Server, *fakeFleet) {
	t.Helper()
	s, f := newServer(t, newCluster(t, keys...)), newFleet(name)
	s.Fleet(f)
	return s, f
}

// goodHeartbeat is the heartbeat of an edge with two streams.
func goodHeartbeat(now time.Time) *Heartbeat {
	return &Heartbeat{
		Node: "e1", Boot: "ABCDEFGHIJKLMNOPQRSTUVWXY7", Started: now.Add(-time.Hour).UTC(), Sequence: 3, At: now.UTC(),
		Identity: &Identity{
			ID: "e1", Role: "edge", Datacenter: "bj-1", Region: "beijing", ISPs: []string{"telecom"}, Groups: []string{"gold"},
			Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7")},
			HTTPPort:  8080, HTTPSPort: 8443, Host: "e1.example.com", URL: "http://192.0.2.7:8081", Push: "rtmp://192.0.2.7:1935",
			Probe: "192.0.2.7:8081", Capacity: 1_250_000_000, Weight: 1, Price: 0.02, Program: "millrace 1",
		},
		Load: 10_000_000, Pulled: 500_000, Viewers: 40, Refused: 2, Draining: true, Full: true, Orders: "0011223344556677",
		Streams: Carrying{Based: 2, Set: []Carried{
			{Name: "live/one", Epoch: 1_700_000_000_000, From: "r1", Bitrate: 250_000, Viewers: 39, Delay: 12.5},
			{Name: "live/ä two", Source: true, Epoch: 7},
		}, Gone: []stream.Name{"live/gone"}},
		Samples:  []plan.Sample{{From: "r1", To: "e1", At: now.UTC(), RTT: 3 * time.Millisecond, Loss: 0.01, OK: true, Pulled: true, Probes: 10}},
		Players:  []Players{{Region: "beijing", ISP: "telecom", Started: 3, FirstByte: 120, Closes: map[string]int{"gone": 2}, Reports: 2, FirstFrames: 1, FirstFrame: 300}},
		Rechecks: []Rechecked{{Region: "beijing", Way: "dns", Outcome: "stayed", Count: 4}},
		Events:   []Event{{Number: 9, At: now.UTC(), Kind: "switch", Stream: "live/one", From: "r1", To: "r2", Reason: "slow", Figures: map[string]any{"dropped": 3.0, "way": "splice"}}},
	}
}

func routeTo(node string) Route {
	return Route{Version: 4, Source: "c1", Reason: "direct", Choices: []Target{{Node: node, URL: "http://" + node + ":8080"}}}
}
