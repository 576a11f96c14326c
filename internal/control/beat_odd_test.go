package control

import (
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/plan"
	"millrace/internal/stream"
)

func TestBeatPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fleet := newRouter(t, "r1", clusterKey)
		n, node := &network{}, newNode()
		n.http("r1:80", s)
		fleet.every = 4000
		b := beating(t, n, node, nil, "http://r1:80")
		pass(20500 * time.Millisecond)
		if got := len(fleet.heartbeats()); got < 5 || got > 7 {
			t.Errorf("%d heartbeats in 20 s, each 4 s wanted", got)
		}
		b.Hurry()
		pass(hurryPause)
		if got := len(fleet.heartbeats()); got != 1 {
			t.Errorf("%d in a hurry", got)
		}
		for range 100 {
			b.Hurry()
			pass(10 * time.Millisecond)
		}
		if got := len(fleet.heartbeats()); got < 3 || got > 6 {
			t.Errorf("%d in a second of hurry", got)
		}
		fleet.with(func() { fleet.every = 0 })
		pass(5 * time.Second)
		fleet.heartbeats()
		pass(10 * time.Second)
		if got := len(fleet.heartbeats()); got < 9 || got > 11 {
			t.Errorf("%d heartbeats in 10 s", got)
		}
		// Refused ones come less and less often.
		fleet.with(func() { fleet.refuse = IdentityTaken })
		pass(time.Second)
		before := b.Status().Sent
		pass(time.Minute)
		if st := b.Status(); st.Sent-before < 12 || st.Sent-before > 26 || st.Error == "" || b.Counts()["refused"] == 0 {
			t.Errorf("%d refused in a minute: %+v", st.Sent-before, st)
		}
	})
}

func TestBeatAddress(t *testing.T) {
	node := newNode()
	node.identity.Addresses = nil
	b, err := NewBeat(BeatConfig{Servers: []string{"http://r1:80"}, Every: time.Second, Timeout: time.Second, RetryMin: time.Second, RetryMax: time.Second}, node, "e1", newCluster(t), nil, nil, silent)
	if err != nil {
		t.Fatal(err)
	}
	b.begun = time.Now()
	h := b.compose(time.Now(), "http://r1:80")
	if h.Identity == nil || len(h.Identity.Addresses) != 0 {
		t.Errorf("the first: %+v", h.Identity)
	}
	b.remember(h, "http://r1:80", &Ack{})
	local := netip.MustParseAddr("192.0.2.9")
	b.local.Store(&local)
	if !b.identityChanged("http://r1:80") {
		t.Error("the address is not worth telling")
	}
	if h = b.compose(time.Now(), "http://r1:80"); h.Identity == nil || !slices.Equal(h.Identity.Addresses, []netip.Addr{local}) {
		t.Errorf("the second: %+v", h.Identity)
	}
	node.identity.Addresses = []netip.Addr{netip.MustParseAddr("::ffff:192.0.2.1")}
	if h = b.compose(time.Now(), "http://r1:80"); h.Identity.Addresses[0] != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("the third: %+v", h.Identity)
	}
}

// TestBeatTidies gives a Beat all that a router refuses.
func TestBeatTidies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fleet := newRouter(t, "r1", clusterKey)
		n, node := &network{}, newNode()
		n.http("r1:80", s)
		nan := math.NaN()
		node.figures = Figures{Load: -1, Pulled: math.MaxInt64, Viewers: -1}
		node.streams = []Carried{
			{Name: "live/a", From: "http://x", Epoch: -1, Bitrate: -1, Viewers: -1, Delay: nan},
			{Name: "odd"},
			{Name: "live/b", Delay: math.Inf(1), Epoch: math.MaxInt64, Bitrate: math.MaxInt64, Viewers: math.MaxInt64},
		}
		for i := range MaxCarried {
			node.streams = append(node.streams, Carried{Name: stream.Name(fmt.Sprint("live/", i))})
		}
		node.samples = []plan.Sample{{From: "r1", To: "e1", Loss: nan}, {From: "r1", To: "e1", Loss: 2}}
		node.players = []Players{{Delay: nan}, {Started: 1}}
		long := string(make([]byte, 3000)) + "ä"
		node.events = []Event{{Number: 1, At: time.Now().Add(time.Hour), Kind: "odd", Stream: "odd", From: long, To: "\xff" + long, Detail: long, Figures: map[string]any{"a": nan, "b": 1, "c d": 1, "e": long}}}
		b := beating(t, n, node, nil, "http://r1:80")
		synctest.Wait()
		heard := fleet.heartbeats()
		if len(heard) != 1 {
			t.Fatalf("not taken: %+v", b.Status())
		}
		h := heard[0]
		if len(h.Streams.Set) != MaxCarried || h.Streams.Set[0].From != "" || len(h.Samples) != 1 || len(h.Players) != 1 || !reflect.DeepEqual(h.Events[0].Figures, map[string]any{"b": 1.0}) {
			t.Errorf("%d streams, samples %+v, players %+v, events %+v", len(h.Streams.Set), h.Samples, h.Players, h.Events)
		}
	})
}

func TestBeatCountsRefusedSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fleet := newRouter(t, "r1", clusterKey)
		n, node := &network{}, newNode()
		n.http("r1:80", s)
		fleet.refusedSamples = map[string]int{"too_old": 2}
		b := beating(t, n, node, nil, "http://r1:80")
		synctest.Wait()
		fleet.with(func() { fleet.refusedSamples = map[string]int{"too_old": 1, "negative": 3} })
		pass(1100 * time.Millisecond)
		if got := b.Status().Refused; !reflect.DeepEqual(got, map[string]uint64{"too_old": 3, "negative": 3}) {
			t.Errorf("refused %v", got)
		}
	})
}

func TestBeatConfig(t *testing.T) {
	good := DefaultBeatConfig()
	good.Servers = []string{"http://r1:80"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for _, spoil := range []func(*BeatConfig){
		func(c *BeatConfig) { c.Servers = []string{"r1"} },
		func(c *BeatConfig) { c.Every = 0 },
		func(c *BeatConfig) { c.Timeout = time.Hour },
		func(c *BeatConfig) { c.RetryMin = 0 },
		func(c *BeatConfig) { c.RetryMax = time.Millisecond },
	} {
		c := good
		spoil(&c)
		if _, err := NewBeat(c, newNode(), "e1", newCluster(t), nil, nil, silent); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	if _, err := NewBeat(DefaultBeatConfig(), newNode(), "e1", newCluster(t), nil, nil, silent); err == nil {
		t.Error("no servers are taken")
	}
}
