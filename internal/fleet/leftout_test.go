package fleet

import (
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control"
	"millrace/internal/plan"
)

// TestLeftOut names the settings that an edge needs to be offered to players.
func TestLeftOut(t *testing.T) {
	f := func(change func(*control.Identity), want string) {
		t.Helper()
		of := newNode("edge-1", plan.Edge, "a").Identity
		change(&of)
		if got := leftOut(&of); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(func(*control.Identity) {}, "")
	f(func(of *control.Identity) { of.Capacity = 0 }, "")
	f(func(of *control.Identity) { of.Region = "" }, "it says no region: set router.region on it")
	f(func(of *control.Identity) { of.Addresses = nil }, "it says no address for players: set router.addresses on it")
	f(func(of *control.Identity) { of.HTTPPort, of.Region = 0, "" },
		"it says no region: set router.region on it; it has no port for players: set address.http or address.https on it")
	f(func(of *control.Identity) { of.Role, of.Region = plan.Relay, "" }, "")
	f(func(of *control.Identity) { of.Region = "no words" }, `nodes[0] edge-1: region: "no words": blanks, commas, # and control characters cannot stand in a name`)
}

// TestPlaceless has edges that cannot be offered, and then one that can.
func TestPlaceless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, "r1", memory(t), nil)
		f := func(who string, want control.Refusal, text string) {
			t.Helper()
			if why, got := r.Placeless(who); why != want || got != text {
				t.Errorf("%s hears %v: %q, want %v: %q", who, why, got, want, text)
			}
		}
		relay, edge := newNode("relay-1", plan.Relay, "a"), newNode("edge-1", plan.Edge, "a")
		edge.Region = ""
		live(t, 5*time.Second, r.Fleet, relay)
		f("scheduler-1", control.NoSnapshot, "there is no edge to place players on: none has spoken to a router yet")
		live(t, 5*time.Second, r.Fleet, relay, edge)
		const why = "edge-1 is left out: it says no region: set router.region on it"
		f("edge-1", control.LeftOut, "there is no edge to place players on, and "+why)
		f("scheduler-1", control.NoSnapshot, "there is no edge to place players on: "+why)
		if r.bundles.in.Load() != nil {
			t.Error("a snapshot without an edge")
		}
		if n := r.Network(); n.Domains != 0 || n.Nodes[0].LeftOut != "it says no region: set router.region on it" || n.Nodes[1].LeftOut != "" {
			t.Errorf("the console is shown %+v", n)
		}
		if ack := edge.beat(t, r.Fleet); ack.LeftOut != "it says no region: set router.region on it" {
			t.Errorf("the edge is told %q", ack.LeftOut)
		}
		if ack := relay.beat(t, r.Fleet); ack.LeftOut != "" {
			t.Errorf("the relay is told %q", ack.LeftOut)
		}
		edge.Region = "north"
		if ack := edge.beat(t, r.Fleet); ack.LeftOut != "" {
			t.Errorf("the edge that has a region is told %q", ack.LeftOut)
		}
		live(t, 5*time.Second, r.Fleet, relay, edge)
		if r.placed("edge-1") == nil {
			t.Error("the edge is not offered")
		}
	})
}
