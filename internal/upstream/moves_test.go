package upstream

import (
	"strings"
	"testing"
	"time"

	"millrace/internal/failover"
	"millrace/internal/faultnet"
	"millrace/internal/stream"
)

// A session moves to where the plan has its stream come from, and its readers miss
// nothing.
func TestPlannedMove(t *testing.T) {
	center := start(t, "center")
	one, two := start(t, "one", pool(center.url)), start(t, "two", pool(center.url))
	edge := start(t, "edge", follows(hasty))
	edge.ordered(one, two)
	center.publishInTime("live/a")
	r := edge.attach("live/a")
	defer r.detach()
	want(t, r.read(20), "")
	for _, to := range []*node{two, one, two} {
		if to == two {
			edge.ordered(two, one)
		} else {
			edge.ordered(one) // the other is not even in the pool any more
		}
		r.readFrom(to)
		want(t, r.read(100), "")
	}
	if edge.count(Tried, "planned") == 0 {
		t.Errorf("nothing was planned: %v", edge.origin.Events())
	}
	for _, e := range edge.origin.Events() {
		if e.Kind == Lost || e.Kind == Spliced && e.Fig["missing"] != 0 {
			t.Errorf("viewers noticed: %+v", e)
		}
	}
}

// A choice must stand for a while before anybody moves.
func TestPlanThatWavers(t *testing.T) {
	slow := hasty
	slow.stand = time.Second
	n := start(t, "n", follows(slow))
	x := newSession(n.origin, nil, stream.Demand{})
	one, two := &node{t: t, id: "one", url: "http://one:1"}, &node{t: t, id: "two", url: "http://two:1"}
	now := time.Now()
	f := func(after time.Duration, want string) {
		t.Helper()
		now = now.Add(after)
		if to, ok := x.choice(now); ok != (want != "") || ok && to.node != want {
			t.Errorf("the choice is %v %v, want %q", to, ok, want)
		}
	}
	f(0, "")
	n.ordered(one, two)
	f(time.Hour, "")
	f(999*time.Millisecond, "")
	n.ordered(two, one)
	f(time.Millisecond, "")
	n.ordered(one, two)
	f(0, "")
	f(time.Second, "one")
	n.ordered(one)
	f(0, "one")
	x.route.to = []target{{url: two.url, node: two.id}} // what is said of the stream goes before
	f(0, "")
	f(time.Second, "two")
	n.ordered()
	x.route.to = nil
	f(time.Second, "")
}

// However many streams a plan moves, they move one after another, and none to where it is
// bad.
func TestPlannedMovesAreFew(t *testing.T) {
	few := hasty
	few.every, few.burst, few.after = 200*time.Millisecond, 3, time.Minute
	o := start(t, "n", pool("http://a:1", "http://b:1"), follows(few)).origin
	now := time.Now()
	moved := func(url string, over time.Duration) (n int) {
		t.Helper()
		for end := now.Add(over); now.Before(end); now = now.Add(10 * time.Millisecond) {
			for range 100 {
				may := o.mayMove(now, url, false)
				if may != o.mayMove(now, url, true) {
					t.Fatal("it may, and then it may not")
				}
				if may {
					n++
				}
			}
		}
		return n
	}
	if n := moved("http://a:1", time.Second) + moved("http://c:1", time.Second); n < 11 || n > 14 { // 3, and one each 200 ms
		t.Errorf("%d move within two seconds", n)
	}
	if !o.mayMove(now.Add(time.Hour), "http://a:1", true) {
		t.Error("nobody may move in the end")
	}
	now = now.Add(time.Hour)
	o.bad(now, target{url: "http://a:1"}, failover.Refused)
	o.bad(now, target{url: "http://c:1"}, failover.Refused)
	if o.mayMove(now, "http://a:1", true) || o.mayMove(now, "http://c:1", true) {
		t.Error("one moves to where nobody answers")
	}
	n := 0
	for range 100 {
		may := o.mayGoHome(now, false)
		if may != o.mayGoHome(now, true) {
			t.Fatal("it may, and then it may not")
		}
		if may {
			n++
		}
	}
	if n != int(few.homeBurst) {
		t.Errorf("%d go home at once, want %v", n, few.homeBurst)
	}
	if !o.mayMove(now.Add(10*time.Second), "http://a:1", true) || !o.mayMove(now.Add(10*time.Second), "http://c:1", true) {
		t.Error("it is never forgiven")
	}
}

// Nobody moves to an upstream that was just left because it was bad.
func TestNoMoveBackToTheBad(t *testing.T) {
	center := start(t, "center")
	one, two := start(t, "one", pool(center.url)), start(t, "two", pool(center.url))
	link, err := faultnet.ListenTCP("127.0.0.1:0", strings.TrimPrefix(one.url, "http://"), faultnet.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	one.url = "http://" + link.Addr()
	edge := start(t, "edge", follows(hasty))
	edge.ordered(one, two)
	center.publishInTime("live/a")
	r := edge.attach("live/a")
	defer r.detach()
	r.readFrom(one)
	want(t, r.read(20), "")
	before := edge.count(Tried, "planned")
	link.Reset()
	want(t, r.read(200), "")
	if n := edge.count(Tried, "planned") - before; n != 0 {
		t.Errorf("%d moves back begin", n)
	}
}

// A member that drains hands its streams over: who has pulled from it fetches them itself,
// and then it pulls from there. No reader misses anything.
func TestDrainOfAnOwner(t *testing.T) {
	center := start(t, "center")
	lnA, urlA := listen(t)
	lnB, urlB := listen(t)
	a, b := startOn(t, lnA, "a", follows(hasty)), startOn(t, lnB, "b", follows(hasty))
	to := func(n *node, own, other float64) {
		t.Helper()
		peer := Upstream{Node: "b", URL: urlB, Weight: other}
		if n == b {
			peer = Upstream{Node: "a", URL: urlA, Weight: other}
		}
		if err := n.origin.SetOrders(&Orders{Pool: []Upstream{at(center)}, Peers: []Upstream{peer}, Weight: own}); err != nil {
			t.Fatal(err)
		}
	}
	to(a, 1, 1)
	to(b, 1, 1)
	owner, other := a, b
	if _, ok := a.origin.home(time.Now(), "live/a", new(word)); ok {
		owner, other = b, a
	}
	center.publishInTime("live/a")
	near, far := owner.attach("live/a"), other.attach("live/a")
	defer near.detach()
	defer far.detach()
	far.readFrom(owner)
	near.readFrom(center)
	to(owner, 0, 1)
	to(other, 1, 0)
	for end := time.Now().Add(time.Minute); owner.from("live/a") != other.id || other.from("live/a") != "center"; {
		if time.Now().After(end) {
			t.Fatalf("they never change places:\n%v\n%v", owner.origin.Events(), other.origin.Events())
		}
		want(t, near.read(5), "")
		want(t, far.read(5), "")
	}
	want(t, near.read(50), "")
	want(t, far.read(50), "")
	if other.count(Tried, "planned") == 0 || owner.count(Tried, "preferred") == 0 {
		t.Errorf("it moved for other reasons:\n%v\n%v", owner.origin.Events(), other.origin.Events())
	}
}
