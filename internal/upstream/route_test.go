package upstream

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"millrace/internal/stream"
)

// router answers for a router in tests, and counts.
type router struct {
	mu     sync.Mutex
	asked  []stream.Name
	answer func(ctx context.Context) ([]Upstream, error)
}

func (r *router) route(ctx context.Context, n stream.Name) ([]Upstream, error) {
	r.mu.Lock()
	r.asked = append(r.asked, n)
	f := r.answer
	r.mu.Unlock()
	return f(ctx)
}

func (r *router) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.asked)
}

// says has it name nodes.
func (r *router) says(nodes ...*node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = func(context.Context) ([]Upstream, error) {
		var out []Upstream
		for _, n := range nodes {
			out = append(out, at(n))
		}
		return out, nil
	}
}

func asks(r *router) option { return func(_ *Config, o *Options) { o.Route = r.route } }

// What a router says of a stream goes before the pool.
func TestRoute(t *testing.T) {
	center := start(t, "center")
	one, two := start(t, "one", pool(center.url)), start(t, "two", pool(center.url))
	var r router
	edge := start(t, "edge", pool(one.url), asks(&r), follows(hasty))
	r.says(edge, two) // itself is left out
	center.publishInTime("live/a")
	a := edge.attach("live/a")
	defer a.detach()
	a.readFrom(two)
	want(t, a.read(50), "") // enough to recognise them elsewhere
	two.stop()              // the pool is what is left
	want(t, a.read(30), "")
	if got := edge.from("live/a"); got != "one" {
		t.Errorf("it comes from %q, want one", got)
	}
}

// A router that does not answer is not waited for, and what it says late still counts.
func TestRouteThatIsLate(t *testing.T) {
	center := start(t, "center")
	one, two := start(t, "one", pool(center.url)), start(t, "two", pool(center.url))
	late := make(chan struct{})
	var r router
	r.answer = func(ctx context.Context) ([]Upstream, error) {
		select {
		case <-late:
			return []Upstream{at(two)}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	edge := start(t, "edge", pool(one.url), asks(&r), follows(hasty))
	center.publishInTime("live/a")
	a := edge.attach("live/a")
	defer a.detach()
	want(t, a.read(1), "")
	if got := edge.from("live/a"); got != "one" {
		t.Errorf("it comes from %q, want one", got)
	}
	close(late)
	a.readFrom(two)
}

// The first answer is waited for 50 ms, and no other.
func TestAwaitRoute(t *testing.T) {
	var r router
	n := start(t, "n", pool("http://a:1"), asks(&r))
	x := newSession(n.origin, new(stream.Stream), stream.Demand{})
	spawned := 0
	x.spawn = func(func(context.Context)) context.CancelFunc {
		spawned++
		return func() {}
	}
	now := time.Now()
	f := func(after time.Duration, want bool, asked int) {
		t.Helper()
		if got := x.awaitRoute(now.Add(after)); got != want || spawned != asked {
			t.Errorf("after %v: it waits: %v, asked %d times, want %v and %d", after, got, spawned, want, asked)
		}
	}
	f(0, true, 1)
	f(49*time.Millisecond, true, 1)
	f(50*time.Millisecond, false, 1)
	x.routed(now, nil, errors.New("no router is there"))
	f(60*time.Millisecond, false, 1)
	x = newSession(n.origin, new(stream.Stream), stream.Demand{})
	spawned, x.spawn = 0, func(func(context.Context)) context.CancelFunc { spawned++; return nil }
	f(0, true, 1)
	x.routed(now, nil, nil)
	f(time.Millisecond, false, 1)
	x.trials = []*feed{{}}
	x.route = route{}
	f(0, false, 1) // somebody is being asked already
	x.o.opt.Route, x.trials = nil, nil
	f(0, false, 1)
}

// A router that fails leaves things as they are.
func TestRouteFails(t *testing.T) {
	center := start(t, "center")
	var r router
	r.answer = func(context.Context) ([]Upstream, error) { return nil, errors.New("no router is there") }
	edge := start(t, "edge", pool(center.url), asks(&r))
	center.publishInTime("live/a")
	a := edge.attach("live/a")
	defer a.detach()
	want(t, a.read(5), "")
}

// A session that wants to go where a router has said asks no faster because routers fail.
func TestRouteFailsOnceAnswered(t *testing.T) {
	center := start(t, "center")
	one, two := start(t, "one", pool(center.url)), start(t, "two", pool(center.url))
	var r router
	r.says(one)
	// The plan has to stand for longer than an answer is fresh.
	slow := hasty
	slow.stand, slow.fresh, slow.ask = 500*time.Millisecond, 100*time.Millisecond, 50*time.Millisecond
	edge := start(t, "edge", asks(&r), follows(slow))
	center.publishInTime("live/a")
	a := edge.attach("live/a")
	defer a.detach()
	want(t, a.read(5), "")
	r.says(two)
	for asked := r.count(); r.count() == asked; {
		want(t, a.read(1), "")
	}
	r.mu.Lock()
	r.answer = func(context.Context) ([]Upstream, error) { return nil, errors.New("no router is there") }
	r.mu.Unlock()
	before := r.count()
	want(t, a.read(60), "")
	if got := r.count() - before; got > 60 {
		t.Errorf("%d questions in the time of 60 tags", got)
	}
}

// With a router alone, what it does not know of is not found, and what it cannot say is
// looked for nowhere else.
func TestRouteAlone(t *testing.T) {
	center := start(t, "center")
	var r router
	r.says()
	edge := start(t, "edge", asks(&r))
	a := edge.attach("live/none")
	want(t, a.read(1), "not_found")
	a.detach()
	r.says(center)
	center.publishInTime("live/a")
	b := edge.attach("live/a")
	defer b.detach()
	want(t, b.read(5), "")
}

// Inside a datacenter no router is asked, but by who fetches for all.
func TestRouteIsNotAskedForPeers(t *testing.T) {
	center := start(t, "center")
	lnA, urlA := listen(t)
	lnB, urlB := listen(t)
	var ra, rb router
	ra.says(center)
	rb.says(center)
	both := func(c *Config, _ *Options) { c.Peers = map[string]string{"a": urlA, "b": urlB} }
	a, b := startOn(t, lnA, "a", both, asks(&ra)), startOn(t, lnB, "b", both, asks(&rb))
	center.publishInTime("live/a")
	other, asked, quiet := a, &rb, &ra
	if _, ok := a.origin.home(time.Now(), "live/a", new(word)); !ok {
		other, asked, quiet = b, &ra, &rb
	}
	r := other.attach("live/a")
	defer r.detach()
	want(t, r.read(1), "")
	if quiet.count() != 0 || asked.count() == 0 {
		t.Errorf("who has an owner asked %d times, the owner %d times", quiet.count(), asked.count())
	}
}

// When the router names another way later, the session moves there.
func TestRouteChanges(t *testing.T) {
	for _, c := range []struct {
		name   string
		ask    time.Duration
		orders bool
	}{{"asked now and then", 200 * time.Millisecond, false}, {"asked when the orders change", time.Hour, true}} {
		t.Run(c.name, func(t *testing.T) {
			center := start(t, "center")
			one, two := start(t, "one", pool(center.url)), start(t, "two", pool(center.url))
			var r router
			r.says(one)
			often := hasty
			often.ask, often.fresh = c.ask, 100*time.Millisecond
			edge := start(t, "edge", asks(&r), follows(often))
			center.publishInTime("live/a")
			a := edge.attach("live/a")
			defer a.detach()
			want(t, a.read(50), "")
			r.says(two, one)
			if c.orders {
				edge.ordered(one)
			}
			a.readFrom(two)
			r.says() // it knows nothing any more: the stream goes on
			want(t, a.read(50), "")
		})
	}
}

// What a router says is believed as far as it can be.
func TestRoutedIsChecked(t *testing.T) {
	n := start(t, "n", func(c *Config, _ *Options) { c.Peers = map[string]string{"peer": "http://peer:1"} })
	x := newSession(n.origin, nil, stream.Demand{})
	x.routed(time.Now(), []Upstream{
		{Node: "n", URL: "http://n:1"},
		{Node: "peer", URL: "http://peer:1"},
		{Node: "b", URL: "file:///b"},
		{Node: "", URL: "http://c:1"},
		{Node: "good", URL: "http://good:1"},
	}, nil)
	if !slices.Equal(x.route.to, []target{{url: "http://good:1", node: "good"}}) {
		t.Errorf("it follows %+v", x.route.to)
	}
	x.routed(time.Now(), nil, errors.New("gone"))
	if len(x.route.to) != 1 {
		t.Error("a router that is gone takes its word back")
	}
	many := make([]Upstream, 100)
	for i := range many {
		many[i] = Upstream{Node: "good", URL: "http://good:1"}
	}
	if x.routed(time.Now(), many, nil); len(x.route.to) != maxRouted {
		t.Errorf("it keeps %d", len(x.route.to))
	}
}
