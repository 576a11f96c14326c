package control

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/plan"
	"millrace/internal/stream"
)

// fakeNode is a Gather.
type fakeNode struct {
	mu       sync.Mutex
	identity Identity
	figures  Figures
	streams  []Carried
	samples  []plan.Sample
	players  []Players
	rechecks []Rechecked
	events   []Event
}

func newNode() *fakeNode {
	return &fakeNode{identity: *goodHeartbeat(noon).Identity}
}

func (n *fakeNode) with(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

func (n *fakeNode) Identity() Identity {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.identity
}

func (n *fakeNode) Figures(time.Time) Figures {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.figures
}

func (n *fakeNode) Streams() []Carried {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.streams)
}

func (n *fakeNode) Samples(most int) []plan.Sample {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.samples
	n.samples = nil
	return out[max(0, len(out)-most):]
}

func (n *fakeNode) Players(int) []Players {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.players
	n.players = nil
	return out
}

func (n *fakeNode) Rechecks() []Rechecked {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.rechecks
}

func (n *fakeNode) Events(after uint64, most int) []Event {
	n.mu.Lock()
	defer n.mu.Unlock()
	i, _ := slices.BinarySearchFunc(n.events, after+1, func(e Event, number uint64) int { return int(e.Number) - int(number) })
	return slices.Clone(n.events[i:min(i+most, len(n.events))])
}

// beating runs a Beat of node against routers until the test ends.
func beating(t *testing.T, net *network, node *fakeNode, change func(*BeatConfig), servers ...string) *Beat {
	t.Helper()
	cfg := DefaultBeatConfig()
	cfg.Servers = servers
	if change != nil {
		change(&cfg)
	}
	b, err := NewBeat(cfg, node, "e1", newCluster(t, clusterKey), net.dial, nil, silent)
	if err != nil {
		t.Fatal(err)
	}
	b.rota.turn = 0
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := b.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		net.wg.Wait()
	})
	return b
}

// pass lets time pass, and all that was due happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestBeatLog has a node that players are not sent to, and a router that goes and comes
// back: each is told once.
func TestBeatLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, node := &network{}, newNode()
		s, fleet := newRouter(t, "r1", clusterKey)
		net.http("r1:80", s)
		fleet.leftOut = "it says no region: set router.region on it"
		cfg := DefaultBeatConfig()
		cfg.Servers = []string{"http://r1:80"}
		var log strings.Builder
		b, err := NewBeat(cfg, node, "e1", newCluster(t, clusterKey), net.dial, nil, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = b.Run(ctx) })
		pass(10 * time.Second)
		status := b.Status()
		net.set("r1:80", nil)
		pass(10 * time.Second)
		net.http("r1:80", s)
		pass(10 * time.Second)
		cancel()
		wg.Wait()
		net.wg.Wait()
		if status.LeftOut != fleet.leftOut {
			t.Errorf("the status says %q", status.LeftOut)
		}
		for _, want := range []string{
			`msg="heartbeats are taken" server=http://r1:80 router=r1`, `msg="heartbeats are taken again" server=http://r1:80 router=r1`,
			`level=WARN msg="players are not sent to this node" server=http://r1:80 reason=left_out err="it says no region: set router.region on it"`,
		} {
			if n := strings.Count(log.String(), want); n != 1 {
				t.Errorf("%d times %s:\n%s", n, want, log.String())
			}
		}
	})
}

func TestBeatTellsWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fleet := newRouter(t, "r1", clusterKey)
		n, node := &network{}, newNode()
		n.http("r1:80", s)
		node.streams = []Carried{{Name: "live/a", Bitrate: 1000, Viewers: 3}, {Name: "live/b", Bitrate: 1000}}
		node.figures = Figures{Load: 5, Viewers: 3, Orders: "token"}
		node.rechecks = []Rechecked{{Way: "dns", Outcome: "stayed", Count: 1}}
		b := beating(t, n, node, nil, "http://r1:80")
		synctest.Wait()
		first := fleet.heartbeats()
		if len(first) != 1 {
			t.Fatalf("%d heartbeats at once", len(first))
		}
		h := first[0]
		if h.Identity == nil || !reflect.DeepEqual(*h.Identity, node.identity) || h.Streams.Based != 0 || len(h.Streams.Set) != 2 ||
			h.Load != 5 || h.Viewers != 3 || h.Orders != "token" || len(h.Rechecks) != 1 || h.Sequence != 1 || h.Started != h.At {
			t.Errorf("the first: %+v", h)
		}
		pass(3 * time.Second)
		rest := fleet.heartbeats()
		if len(rest) < 2 || len(rest) > 4 {
			t.Errorf("%d heartbeats in 3 s", len(rest))
		}
		for i, h := range rest {
			if h.Identity != nil || h.Rechecks != nil || len(h.Streams.Set)+len(h.Streams.Gone) != 0 || h.Streams.Based != uint64(i)+1 || h.Sequence != uint64(i)+2 || h.Boot != first[0].Boot {
				t.Errorf("nothing new: %+v", h)
			}
		}
		// Slight changes wait, others do not.
		node.with(func() {
			node.streams = []Carried{{Name: "live/a", Bitrate: 1100, Viewers: 3}, {Name: "live/c", Bitrate: 1}}
			node.rechecks = []Rechecked{{Way: "dns", Outcome: "stayed", Count: 2}}
			node.identity.Weight = 2
		})
		pass(1100 * time.Millisecond)
		h = fleet.heartbeats()[0]
		if len(h.Streams.Set) != 1 || h.Streams.Set[0].Name != "live/c" || !slices.Equal(h.Streams.Gone, []stream.Name{"live/b"}) ||
			h.Identity == nil || h.Identity.Weight != 2 || h.Rechecks[0].Count != 2 {
			t.Errorf("changed: %+v", h)
		}
		node.with(func() { node.streams[0].Bitrate = 1400; node.streams[0].From = "c1" })
		pass(1100 * time.Millisecond)
		h = fleet.heartbeats()[0]
		if len(h.Streams.Set) != 1 || h.Streams.Set[0].From != "c1" || h.Identity != nil {
			t.Errorf("moved: %+v", h)
		}
		// Viewers are told every five seconds.
		told := 0
		for i := range 20 {
			node.with(func() { node.streams[0].Viewers = 10 + i })
			pass(time.Second)
		}
		for _, h := range fleet.heartbeats() {
			told += len(h.Streams.Set)
		}
		if told < 3 || told > 4 {
			t.Errorf("viewers are told %d times in 20 s", told)
		}
		if st := b.Status(); st.Router != "r1" || st.Error != "" || st.Taken < 25 || st.Taken != st.Sent || b.Counts()["answered"] != st.Taken || st.Bytes == 0 {
			t.Errorf("status %+v", st)
		}
	})
}

func TestBeatResends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fleet := newRouter(t, "r1", clusterKey)
		n, node := &network{}, newNode()
		n.http("r1:80", s)
		node.streams = []Carried{{Name: "live/a"}}
		b := beating(t, n, node, nil, "http://r1:80")
		pass(1100 * time.Millisecond)
		fleet.heartbeats()
		fleet.with(func() { fleet.resend = true })
		pass(1900 * time.Millisecond)
		h := fleet.heartbeats()
		if len(h) < 2 || h[0].Streams.Based == 0 || h[1].Identity == nil || h[1].Streams.Based != 0 || len(h[1].Streams.Set) != 1 {
			t.Errorf("asked for everything: %+v", h)
		}
		if st := b.Status(); st.Resent != 1 {
			t.Errorf("status %+v", st)
		}
	})
}

func TestBeatGoesToTheNextRouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, fleet1 := newRouter(t, "r1", clusterKey)
		two, fleet2 := newRouter(t, "r2", clusterKey)
		n, node := &network{}, newNode()
		n.http("r1:80", one)
		n.http("r2:80", two)
		node.streams = []Carried{{Name: "live/a"}}
		b := beating(t, n, node, nil, "http://r1:80", "http://r2:80")
		pass(2100 * time.Millisecond)
		if len(fleet1.heartbeats()) < 2 || len(fleet2.heartbeats()) != 0 {
			t.Fatal("not the first router alone is told")
		}
		node.with(func() {
			node.samples = []plan.Sample{{From: "r1", To: "e1", At: time.Now(), OK: true}}
			node.players = []Players{{Region: "x", Started: 2}}
			node.events = []Event{{Number: 4, At: time.Now(), Kind: "switch"}}
		})
		n.set("r1:80", nil)
		pass(1100 * time.Millisecond)
		h := fleet2.heartbeats()
		if len(h) != 1 {
			t.Fatalf("the second router heard %d heartbeats within the second", len(h))
		}
		if h[0].Identity == nil || h[0].Streams.Based != 0 || len(h[0].Streams.Set) != 1 || len(h[0].Samples) != 1 || h[0].Players[0].Started != 2 || h[0].Events[0].Number != 4 {
			t.Errorf("the first for the second router: %+v", h[0])
		}
		pass(time.Second)
		if h = fleet2.heartbeats(); len(h) != 1 || h[0].Identity != nil || len(h[0].Samples)+len(h[0].Players)+len(h[0].Events) != 0 {
			t.Errorf("told twice: %+v", h)
		}
		// A router that hangs is left after the timeout.
		n.http("r1:80", one)
		fleet2.with(func() { fleet2.slow = time.Minute })
		pass(2700 * time.Millisecond)
		if len(fleet1.heartbeats()) == 0 || b.Status().Router != "r1" {
			t.Errorf("still at a router that hangs: %+v", b.Status())
		}
		fleet2.with(func() { fleet2.slow = 0 })
		// One that shuts down, too.
		one.Close()
		pass(1200 * time.Millisecond)
		if st := b.Status(); st.Router != "r2" {
			t.Errorf("still at a router that shuts down: %+v", st)
		}
		time.Sleep(time.Minute) // for the answers that nobody waited for
	})
}

func TestBeatKeepsWhatNobodyTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fleet := newRouter(t, "r1", clusterKey)
		n, node := &network{}, newNode()
		b := beating(t, n, node, nil, "http://r1:80")
		for i := range 40 {
			node.with(func() {
				for range 50 {
					node.samples = append(node.samples, plan.Sample{From: "r1", To: "e1", At: time.Now(), Probes: i})
				}
				node.players = []Players{{Region: "x", Started: 1, Closes: map[string]int{"gone": 1}}, {Region: "y", Reports: 1, Delays: 1, Delay: 5}}
				node.events = append(node.events, Event{Number: uint64(i) + 1, Kind: "switch", At: time.Now()})
			})
			pass(5 * time.Second)
		}
		if st := b.Status(); st.Taken != 0 || st.Error == "" || st.Sent < 40 || st.Sent > 100 {
			t.Errorf("without a router: %+v", st)
		}
		n.http("r1:80", s)
		pass(6 * time.Second)
		heard := fleet.heartbeats()
		if len(heard) == 0 {
			t.Fatal("not heard again")
		}
		h := heard[0]
		slices.SortFunc(h.Players, func(a, b Players) int { return len(a.Closes) - len(b.Closes) })
		if len(h.Samples) != plan.MaxSamples || h.Samples[plan.MaxSamples-1].Probes != 39 || len(h.Players) != 2 ||
			h.Players[1].Started != 40 || h.Players[1].Closes["gone"] != 40 || h.Players[0].Delay != 200 || len(h.Events) != 40 {
			t.Errorf("%d samples, players %+v, %d events", len(h.Samples), h.Players, len(h.Events))
		}
		if st := b.Status(); st.Lost != 2000-plan.MaxSamples {
			t.Errorf("%d lost", st.Lost)
		}
	})
}
