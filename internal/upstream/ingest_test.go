package upstream

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/rtmp"
	"millrace/internal/session"
)

// withRTMP gives a node its RTMP side, and returns its URL and what ends it.
func (n *node) withRTMP(t *testing.T) (string, func()) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := rtmp.New(rtmp.DefaultConfig(), ln, n.hub, n.origin.opt.Gate, n.origin, n.table, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	var once sync.Once
	stop := func() { once.Do(func() { cancel(); running.Wait() }) }
	t.Cleanup(stop)
	return "rtmp://" + ln.Addr().String(), stop
}

// camera publishes numbered pictures over RTMP.
type camera struct {
	client *rtmp.Client
	mu     sync.Mutex
	next   uint32
	end    chan struct{}
	gone   chan error // capacity 1
}

// shoot begins to publish at url.
func shoot(t *testing.T, url string) (*camera, error) {
	t.Helper()
	client, err := rtmp.Dial(t.Context(), url, rtmp.DefaultClientConfig())
	if err != nil {
		return nil, err
	}
	if err := client.Publish(t.Context()); err != nil {
		_ = client.Close()
		return nil, err
	}
	c := &camera{client: client, end: make(chan struct{}), gone: make(chan error, 1)}
	go c.run()
	t.Cleanup(c.stop)
	return c, nil
}

func (c *camera) run() {
	err := c.client.Write(flv.New(flv.Video, 0, []byte{0x17, 0, 0, 0, 0, 1}))
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for err == nil {
		c.mu.Lock()
		i := c.next
		c.next++
		c.mu.Unlock()
		p := []byte{0x27, 1, 0, 0, 0}
		if i%10 == 0 {
			p[0] = 0x17
		}
		err = c.client.Write(flv.New(flv.Video, int64(i)*10, binary.BigEndian.AppendUint32(p, i)))
		select {
		case <-tick.C:
		case <-c.end:
			c.gone <- err
			return
		}
	}
	c.gone <- err
}

func (c *camera) stop() {
	select {
	case <-c.end:
	default:
		close(c.end)
		<-c.gone
	}
	_ = c.client.Close()
}

func centers(urls ...string) option { return func(c *Config, _ *Options) { c.Centers = urls } }

// A publish at an edge is at its center, and what the edge's own viewers see is the
// same.
func TestPush(t *testing.T) {
	center := start(t, "center", keys("0123456789abcdef"))
	at, _ := center.withRTMP(t)
	edge := start(t, "edge", centers(at), keys("0123456789abcdef"))
	in, _ := edge.withRTMP(t)
	c, err := shoot(t, in+"/live/a")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []*node{edge, center} {
		r := n.attach("live/a")
		want(t, r.read(20), "")
		r.detach()
	}
	if e, c := edge.attach("live/a"), center.attach("live/a"); e.s.Epoch() != c.s.Epoch() {
		t.Errorf("epoch %d at the edge, %d at the center", e.s.Epoch(), c.s.Epoch())
	}
	if e, c := edge.origin.Arrivals(), center.origin.Arrivals(); e["live/a"] != (Arrival{Away: true}) || len(e) != 1 || c["live/a"] != (Arrival{From: "edge", Pushed: true}) || len(c) != 1 {
		t.Errorf("arrivals %v at the edge, %v at the center", e, c)
	}
	c.stop()
	eventually(t, "the push ends", func() bool { return edge.count(Stopped, "") == 1 })
	if edge.count(Stopped, session.Unpublished.String()) != 1 {
		t.Error(edge.origin.Events())
	}
}

// A name that looks encoded is pushed as it is.
func TestPushEncodedName(t *testing.T) {
	center := start(t, "center", keys("0123456789abcdef"))
	at, _ := center.withRTMP(t)
	edge := start(t, "edge", centers(at), keys("0123456789abcdef"))
	in, _ := edge.withRTMP(t)
	if _, err := shoot(t, in+"/live/a%252541 b"); err != nil { // decoded by who dials, then by who is dialled
		t.Fatal(err)
	}
	r := center.attach("live/a%41 b")
	want(t, r.read(5), "")
	r.detach()
}

// The center's refusal is the publisher's.
func TestPushRefused(t *testing.T) {
	center := start(t, "center", keys("0123456789abcdef"))
	at, _ := center.withRTMP(t)
	edge := start(t, "edge", centers(at), keys("0123456789abcdef"))
	in, _ := edge.withRTMP(t)
	center.publish("live/a") // somebody else's
	_, err := shoot(t, in+"/live/a")
	var status *rtmp.StatusError
	if !errors.As(err, &status) || status.Code != "NetStream.Publish.BadName" {
		t.Errorf("the publisher is told %v", err)
	}
	if _, live := edge.hub.Lookup("live/a"); live {
		t.Error("the stream is live at the edge")
	}
}

// Without a center that answers a publisher is told to come again.
func TestNoCenter(t *testing.T) {
	ln, url := listen(t)
	ln.Close()
	edge := start(t, "edge", centers(strings.Replace(url, "http", "rtmp", 1)))
	in, _ := edge.withRTMP(t)
	_, err := shoot(t, in+"/live/a")
	if err == nil || !strings.Contains(err.Error(), "no center answers") {
		t.Errorf("the publisher is told %v", err)
	}
}

// A push that is not signed with the cluster's key is refused.
func TestPushUnsigned(t *testing.T) {
	center := start(t, "center", keys("0123456789abcdef"))
	at, _ := center.withRTMP(t)
	m := auth.Mark{Stream: "live/a", Node: "x", Via: []string{"x"}, Owner: "00", Epoch: 1}
	if _, err := shoot(t, at+"/live/a?"+auth.PushQuery(m, "")); err == nil {
		t.Error("an unsigned push was let in")
	}
}

// A center dies: the push goes to the other one, and a reader behind both sees every
// picture once.
func TestCenterDies(t *testing.T) {
	one, two := start(t, "one"), start(t, "two")
	atOne, stopOne := one.withRTMP(t)
	atTwo, stopTwo := two.withRTMP(t)
	in := start(t, "in", centers(atOne, atTwo))
	url, _ := in.withRTMP(t)
	if _, err := shoot(t, url+"/live/a"); err != nil {
		t.Fatal(err)
	}
	edge := start(t, "edge", pool(one.url, two.url))
	r := edge.attach("live/a")
	defer r.detach()
	want(t, r.read(30), "")
	if _, live := one.hub.Lookup("live/a"); live {
		stopOne()
		one.stop()
	} else {
		stopTwo()
		two.stop()
	}
	if why := r.read(60); why != "" {
		t.Errorf("the reader ends with %q\nedge: %v\nin: %v", why, edge.origin.Events(), in.origin.Events())
	}
}

// The connection of a push breaks: what is sent again is left out at the center.
func TestPushComesBack(t *testing.T) {
	center := start(t, "center")
	at, _ := center.withRTMP(t)
	var mu sync.Mutex
	var open []net.Conn
	edge := start(t, "edge", centers(at), func(_ *Config, o *Options) {
		o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			mu.Lock()
			defer mu.Unlock()
			open = append(open, c)
			return c, err
		}
	})
	in, _ := edge.withRTMP(t)
	if _, err := shoot(t, in+"/live/a"); err != nil {
		t.Fatal(err)
	}
	r := center.attach("live/a")
	defer r.detach()
	for range 5 {
		want(t, r.read(20), "")
		mu.Lock()
		_ = open[len(open)-1].(*net.TCPConn).SetLinger(0)
		_ = open[len(open)-1].Close()
		mu.Unlock()
	}
	want(t, r.read(20), "")
	if n := edge.count(Pushed, ""); n < 6 {
		t.Errorf("%d connections, want 6 at least", n)
	}
}

// A publisher comes back at another node: who watches at the first one goes on.
func TestPublisherMovesToAnotherNode(t *testing.T) {
	center := start(t, "center")
	at, _ := center.withRTMP(t)
	long := func(_ *Config, o *Options) { o.Grace = patience }
	one := start(t, "one", centers(at), pool(center.url), long)
	two := start(t, "two", centers(at), pool(center.url), long)
	urlOne, _ := one.withRTMP(t)
	urlTwo, _ := two.withRTMP(t)
	c, err := shoot(t, urlOne+"/live/a")
	if err != nil {
		t.Fatal(err)
	}
	r := one.attach("live/a")
	defer r.detach()
	want(t, r.read(10), "")
	c.stop()
	if _, err := shoot(t, urlTwo+"/live/a"); err != nil {
		t.Fatal(err)
	}
	for {
		old := r.last
		r.last = -1
		want(t, r.read(1), "")
		if r.last < old {
			break // the second publish counts anew
		}
		if r.last != old+1 {
			t.Fatalf("picture %d after %d", r.last, old)
		}
	}
	want(t, r.read(20), "")
}
