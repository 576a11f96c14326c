package fleet

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control"
	"millrace/internal/plan"
	"millrace/internal/stream"
)

// TestIdentity is who may go by the name of a node.
func TestIdentity(t *testing.T) {
	other := netip.MustParseAddr("198.51.100.8")
	f := func(name string, want control.Refusal, silent time.Duration, change func(h *control.Heartbeat, from *netip.Addr)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			synctest.Test(t, func(t *testing.T) {
				fl := newFleet(t, "r1", memory(t), nil)
				n := newNode("edge-1", plan.Edge, "a")
				n.streams = carry(3, "")
				n.beat(t, fl)
				n.beat(t, fl)
				before := *fl.nodes.nodes["edge-1"]
				time.Sleep(silent)
				h, from := n.message(), n.from
				change(h, &from)
				_, why, err := fl.Heartbeat(time.Now(), h, from)
				if why != want || (err != nil) != (want != control.NotRefused) {
					t.Fatalf("want %v, got %v: %v", want, why, err)
				}
				after := fl.nodes.nodes["edge-1"]
				if want != control.NotRefused {
					if after.boot != before.boot || after.sequence != before.sequence || after.heard != before.heard || len(after.carried) != 3 {
						t.Errorf("what was refused changed the node: %+v", after)
					}
					if fl.Stats().Refused[want.String()] != 1 || len(fl.Events(EventFilter{Kind: KindRefused, Reason: want.String()}, 0, 9).Events) != 1 {
						t.Errorf("it is not counted, or there is no event: %v", fl.Stats().Refused)
					}
				}
			})
		})
	}
	another := func(later time.Duration, at netip.Addr) func(*control.Heartbeat, *netip.Addr) {
		return func(h *control.Heartbeat, from *netip.Addr) {
			h.Boot, h.Sequence = "OTHER", 1
			h.Started = h.Started.Add(later)
			if at.IsValid() {
				*from = at
			}
		}
	}
	same := netip.Addr{}
	f("the next", control.NotRefused, time.Second, func(*control.Heartbeat, *netip.Addr) {})
	f("the same again", control.Replayed, 0, func(h *control.Heartbeat, _ *netip.Addr) { h.Sequence = 2 })
	f("an older one", control.Replayed, 0, func(h *control.Heartbeat, _ *netip.Addr) { h.Sequence = 1 })
	f("from elsewhere, same run", control.NotRefused, 0, func(_ *control.Heartbeat, from *netip.Addr) { *from = other })
	f("restarted", control.NotRefused, time.Second, another(time.Second, same))
	f("another machine at once", control.IdentityTaken, time.Second, another(time.Second, other))
	f("another machine after a silence", control.NotRefused, 4*time.Second, another(time.Second, other))
	f("an older run at once", control.IdentityTaken, time.Second, another(-time.Second, same))
	f("an older run after a silence", control.IdentityTaken, 4*time.Second, another(-time.Second, same))
	f("an older run after long", control.NotRefused, 31*time.Second, another(-time.Second, other))
	f("no address", control.IdentityTaken, time.Second, func(h *control.Heartbeat, from *netip.Addr) {
		another(time.Second, same)(h, from)
		*from = netip.Addr{}
	})
}

func TestUnknownNode(t *testing.T) {
	fl := newFleet(t, "r1", memory(t), func(c *Config) { c.MaxNodes = 2 })
	n := newNode("edge-1", plan.Edge, "a")
	h := n.message()
	h.Identity = nil
	if ack, why, err := fl.Heartbeat(time.Now(), h, n.from); !ack.Resend || why != control.NotRefused || err != nil || len(fl.nodes.nodes) != 0 {
		t.Errorf("a node without an identity: %+v %v %v", ack, why, err)
	}
	n.beat(t, fl)
	newNode("edge-2", plan.Edge, "a").beat(t, fl)
	if _, why, _ := fl.Heartbeat(time.Now(), newNode("edge-3", plan.Edge, "a").message(), n.from); why != control.TableFull {
		t.Errorf("one node too many: %v", why)
	}
}

// TestDeltas follows what a node carries through changes.
func TestDeltas(t *testing.T) {
	fl := newFleet(t, "r1", memory(t), nil)
	n := newNode("edge-1", plan.Edge, "a")
	send := func(c control.Carrying) control.Ack {
		t.Helper()
		h := n.message()
		h.Streams = c
		ack, why, err := fl.Heartbeat(time.Now(), h, n.from)
		if why != control.NotRefused {
			t.Fatal(why, err)
		}
		return ack
	}
	names := func() (out []string) {
		for name := range fl.nodes.nodes["edge-1"].carried {
			out = append(out, string(name))
		}
		slices.Sort(out)
		return out
	}
	check := func(want ...string) {
		t.Helper()
		if got := names(); !slices.Equal(got, want) {
			t.Errorf("carries %v, want %v", got, want)
		}
		if fl.nodes.streams.count != len(want) || len(fl.nodes.streams.table) != len(want) {
			t.Errorf("%d copies of %d streams, want %d", fl.nodes.streams.count, len(fl.nodes.streams.table), len(want))
		}
	}
	one := func(name stream.Name) control.Carried { return control.Carried{Name: name, Epoch: 1, Bitrate: 1000} }
	send(control.Carrying{Set: []control.Carried{one("live/a"), one("live/b")}})
	check("live/a", "live/b")
	if ack := send(control.Carrying{Based: 1, Set: []control.Carried{one("live/c")}, Gone: []stream.Name{"live/a"}}); ack.Resend {
		t.Error("a change was not taken")
	}
	check("live/b", "live/c")
	// A change of what was never heard: all is wanted, and what is known stays.
	if ack := send(control.Carrying{Based: 7, Gone: []stream.Name{"live/b"}}); !ack.Resend {
		t.Error("a change of something unknown was taken")
	}
	check("live/b", "live/c")
	if ack := send(control.Carrying{Based: 3}); !ack.Resend {
		t.Error("after that, the next change was taken")
	}
	send(control.Carrying{Set: []control.Carried{one("live/d")}})
	check("live/d")
	send(control.Carrying{})
	check()
	if _, ok := fl.nodes.streams.Find("live/d"); ok {
		t.Error("a stream that nobody has is found")
	}
}

func TestSourceIsNewest(t *testing.T) {
	fl := newFleet(t, "r1", memory(t), nil)
	at := func(id string, c control.Carried) {
		n := newNode(id, plan.Edge, "a")
		n.streams = []control.Carried{c}
		n.beat(t, fl)
	}
	at("b", control.Carried{Name: "live/a", Source: true, Epoch: 5, Bitrate: 100})
	at("c", control.Carried{Name: "live/a", From: "b", Epoch: 5, Bitrate: 900})
	s, ok := fl.nodes.streams.Find("live/a")
	if !ok || s.Source != "b" || s.Epoch != 5 || s.Bitrate != 100 || s.Carriers["c"] != "b" || s.Carriers["b"] != "" {
		t.Fatalf("%+v", s)
	}
	at("d", control.Carried{Name: "live/a", Source: true, Epoch: 9, Bitrate: 200})
	if s, _ = fl.nodes.streams.Find("live/a"); s.Source != "d" || s.Epoch != 9 {
		t.Errorf("a newer publish is not the source: %+v", s)
	}
	at("a", control.Carried{Name: "live/a", Source: true, Epoch: 9, Bitrate: 200})
	if s, _ = fl.nodes.streams.Find("live/a"); s.Source != "a" {
		t.Errorf("of two of one time the first by id should count: %+v", s)
	}
}

// TestSamples wants absurd samples refused with a reason, and nothing disturbed.
func TestSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, "r1", memory(t), nil)
		center, edge := newNode("center-1", plan.Center, "a"), newNode("edge-1", plan.Edge, "a")
		center.beat(t, r.Fleet)
		now := time.Now()
		edge.samples = []plan.Sample{
			{From: "center-1", To: "edge-1", At: now, RTT: 7 * time.Millisecond, OK: true},
			{From: "center-1", To: "edge-1", At: now, RTT: -1, OK: true},
			{From: "center-1", To: "edge-2", At: now, RTT: 1, OK: true},
			{From: "nobody", To: "edge-1", At: now, RTT: 1, OK: true},
			{From: "center-1", To: "edge-1", At: now.Add(time.Hour), RTT: 1, OK: true},
			{From: "center-1", To: "edge-1", At: now, Loss: 2, Probes: 1, OK: true},
		}
		ack := edge.beat(t, r.Fleet)
		for _, word := range []string{"negative", "not_yours", "unknown_node", "from_the_future", "not_a_share"} {
			if ack.Refused[word] != 1 {
				t.Errorf("%s: %d refused", word, ack.Refused[word])
			}
		}
		if len(ack.First) != 5 {
			t.Errorf("told of %v", ack.First)
		}
		live(t, 3*time.Second, r.Fleet, center, edge)
		l, ok := r.Link("center-1", "edge-1")
		if !ok || l.RTT != 7 || !l.Why.Measured {
			t.Errorf("the link: %+v", l)
		}
		if s := r.Stats(); s.Samples["taken"] != 1 || s.Samples["negative"] != 1 {
			t.Errorf("figures: %v", s.Samples)
		}
		if n, _ := r.Node("edge-1"); n.Samples["negative"] != 1 {
			t.Errorf("the node: %v", n.Samples)
		}
	})
}
