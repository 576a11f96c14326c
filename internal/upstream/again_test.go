package upstream

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/faultnet"
	"millrace/internal/flv"
	"millrace/internal/httpflv"
	"millrace/internal/stream"
)

// These are about one name that is published again, here and there, while links are
// broken: no reader may see a picture twice, or one of an older publish.

// grace changes how long a node keeps a stream without its publisher.
func grace(d time.Duration) option {
	return func(_ *Config, o *Options) {
		cfg := stream.DefaultConfig()
		cfg.Grace, o.Grace = d, d
		o.Hub.SetConfig(cfg)
	}
}

// link opens a relay to the address of a URL, which it returns with the relay's.
func link(t *testing.T, url string) (*faultnet.TCP, string) {
	t.Helper()
	r, err := faultnet.ListenTCP("127.0.0.1:0", url[len("rtmp://"):], faultnet.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, "rtmp://" + r.Addr()
}

// next reads one picture and returns its number, -1 and why if there is none.
func (r *reader) next() (number int64, why string) {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	var tags [4]flv.Tag
	for {
		for r.cur.Peek(tags[:]) > 0 {
			t := tags[0]
			r.cur.Advance(1)
			if p := t.Payload(); t.Is(flv.Frame) {
				return int64(binary.BigEndian.Uint32(p[len(p)-4:])), ""
			}
		}
		if r.cur.Ended() {
			return -1, "ended"
		}
		select {
		case <-r.wake:
		case <-limit.C:
			return -1, "nothing came"
		}
	}
}

// another reads until the first picture of another publish, and wants nothing of the
// one before but what follows.
func (r *reader) another(t *testing.T) {
	t.Helper()
	for {
		old := r.last
		n, why := r.next()
		r.last = n
		switch {
		case why != "":
			t.Fatalf("after picture %d: %s; %v", old, why, r.n.origin.Events())
		case n == 0:
			return
		case n != old+1:
			t.Fatalf("picture %d after %d; %v", n, old, r.n.origin.Events())
		}
	}
}

// A publisher leaves, and its center does not hear of it: the node that it has left looks
// for the stream there, and finds what its readers have seen.
func TestCenterThatDoesNotHearOfTheEnd(t *testing.T) {
	center := start(t, "center", grace(patience))
	at, _ := center.withRTMP(t)
	broken, to := link(t, at)
	edge := start(t, "edge", centers(to), pool(center.url), grace(patience))
	in, _ := edge.withRTMP(t)
	c, err := shoot(t, in+"/live/a")
	if err != nil {
		t.Fatal(err)
	}
	r := edge.attach("live/a")
	defer r.detach()
	want(t, r.read(40), "")
	broken.Freeze()
	c.stop()
	eventually(t, "the edge asks the center", func() bool { return edge.count(Switched, "") > 0 })
	time.Sleep(100 * time.Millisecond) // for what it answers
	if _, err := shoot(t, at+"/live/a"); err != nil {
		t.Fatal(err)
	}
	r.another(t)
	want(t, r.read(20), "")
}

// A push goes to another center, which has the stream from the first one; and the first
// one has it from there when it has waited for the push in vain.
func TestPushMovesToWhoPullsIt(t *testing.T) {
	lnOne, urlOne := listen(t)
	lnTwo, urlTwo := listen(t)
	one := startOn(t, lnOne, "one", pool(urlTwo), grace(patience))
	two := startOn(t, lnTwo, "two", pool(urlOne), grace(patience))
	atOne, _ := one.withRTMP(t)
	atTwo, _ := two.withRTMP(t)
	linkOne, toOne := link(t, atOne)
	linkTwo, toTwo := link(t, atTwo)
	in := start(t, "in", centers(toOne, toTwo))
	url, _ := in.withRTMP(t)
	if _, err := shoot(t, url+"/live/a"); err != nil {
		t.Fatal(err)
	}
	first, other, cut := one, two, linkOne
	if _, here := two.hub.Lookup("live/a"); here {
		first, other, cut = two, one, linkTwo
	}
	a, b := first.attach("live/a"), other.attach("live/a")
	defer a.detach()
	defer b.detach()
	want(t, a.read(20), "")
	want(t, b.read(40), "")
	if err := cut.Refuse(); err != nil {
		t.Fatal(err)
	}
	cut.Reset()
	for _, r := range []*reader{b, a} { // a waits for inletGap
		if why := r.read(60); why != "" {
			t.Errorf("%s: %q; %v", r.n.id, why, r.n.origin.Events())
		}
	}
	if first.count(Switched, "") == 0 || in.count(Pushed, "") < 2 {
		t.Errorf("the push did not move: %v, %v", first.origin.Events(), in.origin.Events())
	}
}

// What is pushed to a node that has a newer publish is refused, whether it has that from
// another node or had it until just now.
func TestOlderPush(t *testing.T) {
	center := start(t, "center")
	center.publish("live/a")
	n := start(t, "n", pool(center.url), grace(patience))
	r := n.attach("live/a")
	defer r.detach()
	want(t, r.read(10), "")
	m := auth.Mark{Stream: "live/a", Owner: "owner", Epoch: r.s.Epoch() - 1}
	push := func(epoch int64) error {
		m.Epoch = epoch
		_, err := n.origin.inlet(time.Now(), m, nil, true)
		return err
	}
	had := r.s.Epoch()
	if err := push(had - 1); !errors.Is(err, stream.ErrOlder) {
		t.Errorf("beside a pull: %v, want ErrOlder", err)
	}
	want(t, r.read(10), "")
	if err := push(had + 1); err != nil {
		t.Errorf("a newer one: %v", err)
	}
	n.origin.closeInlet(time.Now(), n.origin.inlets["live/a"])
	if err := push(had); !errors.Is(err, stream.ErrOlder) {
		t.Errorf("in the grace time: %v, want ErrOlder", err)
	}
}

// An upstream that goes back to an older publish is left before a tag of it is forwarded.
func TestUpstreamGoesBack(t *testing.T) {
	center := start(t, "center")
	center.publish("live/a")
	n := start(t, "n", pool(center.url))
	r := n.attach("live/a")
	defer r.detach()
	want(t, r.read(10), "")
	n.origin.mu.Lock()
	x := n.origin.sessions["live/a"]
	n.origin.mu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.current.link
	l.Epoch--
	if err := x.tookLink(time.Now(), x.current, l); !errors.Is(err, errOlder) {
		t.Errorf("got %v, want errOlder", err)
	}
	l.Epoch += 2
	if err := x.tookLink(time.Now(), x.current, l); err != nil || x.stream.Epoch() != l.Epoch {
		t.Errorf("a newer one: %v, epoch %d", err, x.stream.Epoch())
	}
	l.State = httpflv.LinkGrace
	if err := x.tookLink(time.Now(), x.current, l); err != nil || x.stream.Epoch() != l.Epoch {
		t.Errorf("in its grace time: %v, epoch %d", err, x.stream.Epoch())
	}
}

// A session ends when somebody publishes its stream on this node, also if it has nothing
// to write: who comes when that publish is over must not wait for it.
func TestPublishBesideASilentSession(t *testing.T) {
	center := start(t, "center", grace(patience))
	far := center.publish("live/a")
	edge := start(t, "edge", pool(center.url), grace(time.Second))
	r := edge.attach("live/a")
	defer r.detach()
	want(t, r.read(20), "")
	far.stop() // the center waits for it, and the edge's session with it
	near := edge.publish("live/a")
	eventually(t, "the session ends", func() bool { return edge.count(Stopped, "displaced") > 0 })
	near.stop()
	r.another(t) // that of the edge
	center.publish("live/a")
	r.another(t)
	eventually(t, "another session", func() bool { return edge.count(Started, "") > 1 })
}

// A center is frozen: it takes connections and says nothing. A publisher is at the other
// one soon, the next one at once, and a push that has lost its center too.
func TestFrozenCenter(t *testing.T) {
	one, two := start(t, "one"), start(t, "two")
	atOne, _ := one.withRTMP(t)
	atTwo, _ := two.withRTMP(t)
	linkOne, toOne := link(t, atOne)
	linkTwo, toTwo := link(t, atTwo)
	in := start(t, "in", centers(toOne, toTwo))
	url, _ := in.withRTMP(t)
	first := (&push{o: in.origin, mark: auth.Mark{Stream: "live/a"}}).centers(time.Now())[0]
	frozen, other, good := linkOne, linkTwo, two
	if first == toTwo {
		frozen, other, good = linkTwo, linkOne, one
	}
	frozen.Freeze()
	for _, asked := range []uint64{1, 0} {
		before := frozen.Stats().Accepted
		c, err := shoot(t, url+"/live/a")
		if err != nil {
			t.Fatalf("%v; %v", err, in.origin.Events())
		}
		if n := frozen.Stats().Accepted - before; n != asked {
			t.Errorf("the frozen center was asked %d times, want %d", n, asked)
		}
		r := good.attach("live/a")
		want(t, r.read(20), "")
		r.detach()
		other.Reset()
		eventually(t, "the push is back", func() bool { return in.count(Pushed, "")%2 == 0 })
		c.stop()
		eventually(t, "it is over", func() bool { return in.count(Stopped, "unpublished") == in.count(Pushed, "")/2 })
	}
}
