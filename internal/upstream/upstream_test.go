package upstream

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"millrace/internal/flv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("the reader ends with %q, want %q", got, want)
	}
}

// Any number of first readers cause one pull.
func TestOnePull(t *testing.T) {
	center := start(t, "center")
	edge := start(t, "edge", pool(center.url))
	center.publish("live/a")
	var readers sync.WaitGroup
	for range 20 {
		readers.Go(func() {
			r := edge.attach("live/a")
			defer r.detach()
			if why := r.read(30); why != "" {
				t.Error(why)
			}
		})
	}
	readers.Wait()
	if n := edge.count(Tried, ""); n != 1 {
		t.Errorf("%d pulls, want 1", n)
	}
}

// A chain of nodes keeps the order and knows its path.
func TestChain(t *testing.T) {
	center := start(t, "center")
	relay := start(t, "relay", pool(center.url))
	edge := start(t, "edge", pool(relay.url))
	center.publish("live/a")
	r := edge.attach("live/a")
	defer r.detach()
	want(t, r.read(20), "")
	eventually(t, "the edge knows the path", func() bool {
		p, ok := edge.origin.Path("live/a")
		return ok && len(p.Hops) == 2 && p.Hops[0].Node == "relay" && p.Hops[1].Node == "center"
	})
	if a := edge.origin.Arrivals(); a["live/a"].From != "relay" || a["live/a"].Away || len(center.origin.Arrivals()) != 0 {
		t.Errorf("arrivals %v at the edge, %v at the center", a, center.origin.Arrivals())
	}
}

// A cold relay that has yet to choose whom to ask is not taken for one that has nobody
// to ask: only one relay is asked.
func TestColdChainAsksOnce(t *testing.T) {
	center := start(t, "center")
	far := func(_ *Config, o *Options) { // the center is a long way off
		o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(120 * time.Millisecond)
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	}
	one, two := start(t, "one", pool(center.url), far), start(t, "two", pool(center.url), far)
	edge := start(t, "edge", pool(one.url, two.url))
	const streams, slow = 20, 200 * time.Millisecond // another relay may be asked after 250 ms
	judged := 0
	for i := 0; i < 10*streams && judged < streams; i++ {
		name := stream.Name(fmt.Sprint("live/", i))
		center.publish(name)
		before, began := edge.total(Tried), time.Now()
		r := edge.attach(name)
		want(t, r.read(1), "")
		took, pulls := time.Since(began), edge.total(Tried)-before
		r.detach()
		if took >= slow {
			continue // the machine was busy
		}
		if judged++; pulls != 1 {
			t.Errorf("%d pulls for %s, want 1", pulls, name)
		}
	}
	if judged < streams {
		t.Skipf("skipped: this machine brought only %d streams within %v, %d are wanted", judged, slow, streams)
	}
}

// Whoever comes in the linger time, or just as it ends, plays; nothing is left when
// nobody comes.
func TestLinger(t *testing.T) {
	center := start(t, "center")
	edge := start(t, "edge", pool(center.url))
	center.publish("live/a")
	for gap := time.Duration(0); gap <= 300*time.Millisecond; gap += 10 * time.Millisecond {
		r := edge.attach("live/a")
		want(t, r.read(3), "")
		r.detach()
		time.Sleep(gap)
	}
	eventually(t, "the stream is let go of", func() bool { return len(edge.hub.Streams()) == 0 && edge.origin.Stats().Sessions == 0 })
	eventually(t, "the center has no reader", func() bool { return center.table.Len() == 0 })
}

// What nobody has is told at once, and again without asking.
func TestNotFound(t *testing.T) {
	center := start(t, "center")
	edge := start(t, "edge", pool(center.url))
	r := edge.attach("live/none")
	defer r.detach()
	want(t, r.read(1), "not_found")
	if wait := edge.hub.Outlook("live/none").Wait; wait != 0 {
		t.Errorf("a reader would wait %v for what is known to be missing", wait)
	}
	eventually(t, "it is forgotten", func() bool { return edge.hub.Outlook("live/none").Wait > 0 })
}

// A dead port costs nothing, a black hole the time until the next is asked too.
func TestDeadAndBlackHole(t *testing.T) {
	center := start(t, "center")
	dead, deadURL := listen(t)
	dead.Close()
	hole, holeURL := listen(t) // never accepts
	defer hole.Close()
	edge := start(t, "edge", pool(deadURL, holeURL, center.url))
	center.publish("live/a")
	r := edge.attach("live/a")
	defer r.detach()
	want(t, r.read(1), "") // within LocateTime, all of which the hole would take
}

// Nodes that would fetch from one another refuse.
func TestLoops(t *testing.T) {
	t.Run("itself", func(t *testing.T) {
		ln, url := listen(t)
		n := startOn(t, ln, "self", pool(url))
		r := n.attach("live/a")
		defer r.detach()
		want(t, r.read(1), "loop")
	})
	for _, count := range []int{2, 3} {
		// One reader: the request goes round. Readers everywhere: each waits for the next.
		for _, readers := range []int{1, count} {
			t.Run(fmt.Sprintf("%d nodes, %d readers", count, readers), func(t *testing.T) {
				lns, urls := make([]net.Listener, count), make([]string, count)
				for i := range count {
					lns[i], urls[i] = listen(t)
				}
				nodes := make([]*node, count)
				for i := range count {
					nodes[i] = startOn(t, lns[i], fmt.Sprint("n", i), pool(urls[(i+1)%count]))
				}
				var all sync.WaitGroup
				for i := range readers {
					all.Go(func() {
						r := nodes[i].attach("live/a")
						defer r.detach()
						if why := r.read(1); why != "loop" {
							t.Errorf("%s: %q, want loop", nodes[i].id, why)
						}
					})
				}
				all.Wait()
			})
		}
	}
}

// A node that another one asks for a peer does not ask its peers.
func TestPeerGoesToThePool(t *testing.T) {
	center := start(t, "center")
	lnA, urlA := listen(t)
	lnB, urlB := listen(t)
	both := func(c *Config, _ *Options) {
		c.Pool, c.Peers = []string{center.url}, map[string]string{"a": urlA, "b": urlB}
	}
	a, b := startOn(t, lnA, "a", both), startOn(t, lnB, "b", both)
	center.publish("live/a")
	owner, other := a, b
	if _, ok := a.origin.home(time.Now(), "live/a", new(word)); ok {
		owner, other = b, a
	}
	r := other.attach("live/a")
	defer r.detach()
	want(t, r.read(5), "")
	if owner.count(Switched, "") != 1 || center.table.Len() != 1 {
		t.Errorf("the owner fetched %d times, the center serves %d nodes", owner.count(Switched, ""), center.table.Len())
	}
	// Asked on behalf of the owner, the other one fetches it itself.
	s := other.attachFor("live/a", stream.Demand{Via: []string{owner.id}, Peer: true})
	defer other.hub.Detach(s.s)
	want(t, s.read(5), "")
}

// A publisher of this node takes the stream from the upstream.
func TestPublisherTakesOver(t *testing.T) {
	center := start(t, "center")
	edge := start(t, "edge", pool(center.url))
	center.publish("live/a")
	r := edge.attach("live/a")
	defer r.detach()
	want(t, r.read(5), "")
	edge.publish("live/a")
	eventually(t, "the pull ends", func() bool { return edge.count(Stopped, session.Displaced.String()) == 1 })
	eventually(t, "the center has no reader", func() bool { return center.table.Len() == 0 })
}

// The end of a stream at its origin is the end here, without a grace time on top.
func TestEnd(t *testing.T) {
	center := start(t, "center")
	edge := start(t, "edge", pool(center.url))
	e := center.publish("live/a")
	r := edge.attach("live/a")
	defer r.detach()
	want(t, r.read(5), "")
	e.stop()
	want(t, r.read(1000), "ended")
	if r.last+1 != int64(e.sent.Load()) {
		t.Errorf("the reader got %d pictures of %d", r.last+1, e.sent.Load())
	}
}

// A publisher that comes back at the origin goes on here on the same connection.
func TestPublisherComesBack(t *testing.T) {
	center := start(t, "center", grace(patience))
	edge := start(t, "edge", pool(center.url), grace(patience))
	e := center.publish("live/a")
	r := edge.attach("live/a")
	defer r.detach()
	want(t, r.read(5), "")
	e.stop()
	for r.last+1 < int64(e.sent.Load()) {
		want(t, r.read(1), "")
	}
	r.last = -1 // its numbers begin anew
	center.publish("live/a")
	want(t, r.read(20), "")
	if n := edge.count(Tried, ""); n != 1 {
		t.Errorf("%d pulls, want 1", n)
	}
	// Who comes now gets headers, though they are the same as before.
	late := edge.attach("live/a")
	defer late.detach()
	var tags [8]flv.Tag
	if n := late.cur.Peek(tags[:]); n == 0 || !tags[0].Is(flv.Header) {
		t.Errorf("a joiner gets %d tags and no header first", n)
	}
}

// Nodes of a cluster sign; one with another key is refused.
func TestSigned(t *testing.T) {
	const a, b = "0123456789abcdef-a", "0123456789abcdef-b"
	center := start(t, "center", keys(a, b))
	good := start(t, "good", pool(center.url), keys(b))
	bad := start(t, "bad", pool(center.url), keys("0123456789abcdef-c"))
	none := start(t, "none", pool(center.url))
	center.publish("live/a")
	for _, c := range []struct {
		n    *node
		want string
	}{{good, ""}, {bad, "upstream_lost"}, {none, "upstream_lost"}} {
		r := c.n.attach("live/a")
		if got := r.read(3); got != c.want {
			t.Errorf("%s: %q, want %q", c.n.id, got, c.want)
		}
		r.detach()
	}
}

// An upstream that dies is left at once for one that has the frames: none is missing,
// none comes twice.
func TestKill(t *testing.T) {
	center := start(t, "center")
	one, two := start(t, "one", pool(center.url)), start(t, "two", pool(center.url))
	edge := start(t, "edge", pool(one.url, two.url))
	center.publishInTime("live/a")
	r := edge.attach("live/a")
	defer r.detach()
	want(t, r.read(30), "")
	one.stop()
	want(t, r.read(50), "")
	if edge.count(Switched, "") < 2 {
		t.Errorf("%d switches, want 2 at least: %v", edge.count(Switched, ""), edge.origin.Events())
	}
}
