package sched

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/internal/stream"
)

// observed is a board that tracks the edge e, and a clock.
type observed struct {
	*Board
	t   *testing.T
	now time.Time
}

func newObserved(t *testing.T) *observed {
	w := newWorld(t)
	w.edge("e", "r0")
	b := NewBoard(HealthConfig{})
	b.Track(w.view().Plan)
	return &observed{b, t, start}
}

// see lets an observer see the edge over IPv4, at now and so long ago.
func (o *observed) see(observer string, up bool, ago time.Duration) {
	o.Observe(&Observation{Observer: observer, Node: "e", Family: V4, At: o.now.Add(-ago), Up: up})
}

func (o *observed) want(s Status, what string) {
	o.t.Helper()
	if got := o.State(o.now).Nodes[0].V4.Status; got != s {
		o.t.Errorf("%s: %v, want %v", what, got, s)
	}
}

func TestBoardMerges(t *testing.T) {
	o := newObserved(t)
	o.want(Unknown, "nobody has looked")
	o.see("a", true, 0)
	o.want(Up, "the first look is believed")
	if o.State(o.now).Nodes[0].V6.Status != Unknown {
		t.Error("IPv6 was not looked at")
	}
	o.see("b", false, 0)
	o.want(Up, "one of two sees it up")
	o.now = o.now.Add(11 * time.Second)
	o.see("b", false, 0)
	o.want(Down, "only who sees it down has looked lately")
	o.now = o.now.Add(11 * time.Second)
	o.want(Unknown, "nobody has looked lately")
	h := o.State(o.now).Nodes[0].V4
	if !h.Up.Equal(start) || !h.At.Equal(start.Add(11*time.Second)) {
		t.Errorf("last seen up at %v, looked at %v", h.Up, h.At)
	}
	o.see("a", false, time.Minute)
	o.want(Unknown, "what comes late counts for nothing")
	o.Observe(&Observation{Observer: "c", Node: "e", Family: V4, At: o.now.Add(time.Hour), Up: true})
	o.want(Unknown, "nor what comes from the future")
	o.Observe(&Observation{Observer: "c", Node: "other", Family: V4, At: o.now, Up: true})
}

// TestBoardInertia wants one bad look to change nothing, and a flapping edge to wait.
func TestBoardInertia(t *testing.T) {
	o := newObserved(t)
	look := func(up bool, s Status, what string) {
		t.Helper()
		o.now = o.now.Add(time.Second)
		o.see("a", up, 0)
		o.want(s, what)
	}
	look(true, Up, "first")
	look(false, Up, "one bad look")
	look(true, Up, "good again")
	look(false, Up, "one bad look")
	look(false, Down, "two in a row")
	look(true, Down, "one good look")
	for flaps := 1; flaps <= 6; flaps++ {
		needed := 2 << min(flaps, maxFlaps)
		for i := 2; i < needed; i++ {
			look(true, Down, fmt.Sprintf("flapped %d times, %d good looks", flaps, i))
		}
		look(true, Up, fmt.Sprintf("flapped %d times, %d good looks", flaps, needed))
		look(false, Up, "one bad look")
		look(false, Down, "down again")
		look(true, Down, "one good look")
	}
}

// TestBoardForgives wants an edge that stayed up for long to be quick to come back.
func TestBoardForgives(t *testing.T) {
	o := newObserved(t)
	o.see("a", true, 0)
	for range 2 {
		for range 3 {
			o.now = o.now.Add(time.Minute)
			o.see("a", true, 0)
		}
		o.see("a", false, -time.Second)
		o.see("a", false, -2*time.Second)
		o.now = o.now.Add(2 * time.Second)
		o.want(Down, "two bad looks")
		o.see("a", true, -time.Second)
		o.see("a", true, -2*time.Second)
		o.now = o.now.Add(2 * time.Second)
		o.want(Up, "two good looks")
	}
}

func TestBoardFigures(t *testing.T) {
	o := newObserved(t)
	tell := func(observer string, ago time.Duration, f *Figures, draining bool) NodeState {
		o.Observe(&Observation{Observer: observer, Node: "e", Family: V6, At: o.now.Add(-ago), Up: true, Figures: f, Draining: draining})
		return o.State(o.now).Nodes[0]
	}
	s := tell("a", 0, &Figures{Load: 5, Viewers: 2, Streams: []stream.Name{"live/b", "live/a", "live/b"}}, true)
	if s.Load != 5 || s.Viewers != 2 || !s.Draining || len(s.Streams) != 3 || len(s.hashes) != 2 || !slices.IsSorted(s.hashes) {
		t.Errorf("got %+v", s)
	}
	s = tell("b", time.Second, &Figures{Load: 9}, false)
	if s.Load != 5 || !s.Draining {
		t.Errorf("older figures are taken over: %+v", s)
	}
	s = tell("b", -time.Second, nil, false)
	if s.Load != 5 || s.Draining {
		t.Errorf("without figures: %+v", s)
	}
	s = tell("b", -1500*time.Millisecond, &Figures{Load: 5}, false)
	if len(s.Streams) != 3 || len(s.hashes) != 2 {
		t.Errorf("figures that do not speak of streams: %+v", s)
	}
	o.Observe(&Observation{Observer: "c", Node: "e", Family: V6, At: o.now.Add(2 * time.Second), Draining: false, Up: false})
	// A tracked board keeps what it knows.
	w := newWorld(t)
	w.edge("e", "r0")
	w.edge("f", "r0")
	o.Track(w.view().Plan)
	states := o.State(o.now).Nodes
	if len(states) != 2 || states[0].Load != 5 || states[1].ID != "f" || states[1].Load != 0 {
		t.Errorf("after a new plan: %+v", states)
	}
}

func TestBoardObserversAreBounded(t *testing.T) {
	o := newObserved(t)
	for i := range 3 * maxObservers {
		o.see(fmt.Sprint(i), i%2 == 0, time.Duration(3*maxObservers-i)*time.Millisecond)
	}
	if n := len(o.byID["e"].v4); n != maxObservers {
		t.Errorf("%d observers are kept", n)
	}
	o.see("late", true, time.Minute)
	for _, s := range o.byID["e"].v4 {
		if s.observer == "late" {
			t.Error("an old look has displaced a newer one")
		}
	}
}

// TestAlarm wants a sudden rise of refusals to take an edge out, and calm to bring it
// back; not a busy evening, not one spike, not a restart.
func TestAlarm(t *testing.T) {
	c := DefaultHealth()
	var a alarm
	now, total := start, uint64(1000)
	run := func(seconds int, perSecond float64, want bool, what string) {
		t.Helper()
		for i := range seconds {
			now = now.Add(time.Second)
			total += uint64(perSecond)
			a.note(now, total, &c)
			if got := a.active(now, &c); got != want && (i > 2 || !want) {
				t.Fatalf("%s: after %d s under attack: %v, at %.0f/s, usual %.1f/s", what, i+1, got, a.rate, a.usual)
			}
		}
	}
	run(600, 5, false, "as usual")
	run(60, 90, false, "below the floor")
	run(600, 40, false, "a busy evening")
	run(1, 5000, false, "one spike")
	run(60, 40, false, "after it")
	run(30, 5000, true, "a flood")
	run(20, 30, true, "calm, but not for long")
	run(5, 3000, true, "it goes on")
	run(60, 30, true, "calm")
	run(300, 30, false, "calm for long enough")
	total = 0
	run(10, 30, false, "a restart")
	now, total = now.Add(100*time.Millisecond), total+1e6
	a.note(now, total, &c) // another observer, too soon to make a rate of
	if a.rate > 100 {
		t.Errorf("two readings in 100 ms make a rate of %.0f/s", a.rate)
	}
	now, total = now.Add(time.Hour), total+3600*30
	a.note(now, total, &c)
	run(10, 9000, true, "a second flood")
	if a.active(now.Add(2*time.Minute), &c) {
		t.Error("an alarm goes on without readings")
	}
}

// TestAttackComesAndGoes wants the edge out of the answers while it is flooded.
func TestAttackComesAndGoes(t *testing.T) {
	w := flat(t, 2)
	w.Nodes[0].ID, w.Nodes[1].ID = "a", "b"
	p := w.view().Plan
	board := NewBoard(w.Health)
	board.Track(p)
	total := uint64(0)
	share := func(refused uint64, at time.Time) (a int) {
		total += refused
		for _, id := range []string{"a", "b"} {
			f := &Figures{}
			if id == "a" {
				f.Refused = total
			}
			board.Observe(&Observation{Observer: "o", Node: id, Family: V4, At: at, Up: true, Figures: f})
		}
		for _, id := range crowd(NewView(p, nil, board.State(at)), 200) {
			if id == "a" {
				a++
			}
		}
		return a
	}
	now := start
	f := func(seconds int, refused uint64, served bool) {
		t.Helper()
		got := 0
		for range seconds {
			now = now.Add(time.Second)
			got = share(refused, now)
		}
		if served != (got > 50) || !served && got > 0 {
			t.Errorf("with %d refusals a second it gets %d of 200 clients", refused, got)
		}
	}
	f(5, 10, true)
	f(5, 10_000, false)
	f(30, 10, false)
	f(60, 10, true)
}

// TestBoardOrder wants the order in which observers are heard not to count.
func TestBoardOrder(t *testing.T) {
	w := newWorld(t)
	w.edge("e", "r0")
	p := w.view().Plan
	rapid.Check(t, func(rt *rapid.T) {
		d := fromRapid(rt)
		var seen []Observation
		for range d.n("observations", 1, 12) {
			seen = append(seen, Observation{
				Observer: d.word("observer", "a", "b", "c"), Node: "e", Family: V4, Up: d.yes("up"), At: start.Add(time.Duration(len(seen)) * time.Second),
			})
		}
		state := func() Health {
			b := NewBoard(w.Health)
			b.Track(p)
			for i := range seen {
				b.Observe(&seen[i])
			}
			return b.State(start.Add(15 * time.Second)).Nodes[0].V4
		}
		want := state()
		slices.SortStableFunc(seen, func(a, b Observation) int { return int(a.Observer[0]) - int(b.Observer[0]) })
		if got := state(); got != want {
			rt.Fatalf("%+v, in another order %+v", want, got)
		}
	})
}
