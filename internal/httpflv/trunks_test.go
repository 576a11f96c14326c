package httpflv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// below is the node that asks, in the tests.
func belowMarks(n *node, now time.Time) Marks {
	m := auth.Mark{Node: "below", Via: []string{"below"}, Purpose: auth.Trunk}
	return Marks{Mark: m, Signature: n.server.self.Cluster.Sign(now, m)}
}

// withTrunks has the node below pull over trunks with so many streams each.
func (n *node) withTrunks(streams int) {
	n.trunks = NewTrunks(TrunkConfig{
		Streams: func() int { return streams }, Timeout: func() time.Duration { return patience },
		Sign: func() Marks { return belowMarks(n, time.Now()) }, Agent: "below",
	})
	n.t.Cleanup(n.trunks.Close)
}

// known has the node below believe that n takes trunks.
func (n *node) known() { n.trunks.learn(&url.URL{Scheme: "http", Host: n.addr}) }

// apartAndOnTrunks runs a test of a node below over a connection of its own and over a
// trunk.
func apartAndOnTrunks(t *testing.T, f func(*testing.T, *node)) {
	t.Run("apart", func(t *testing.T) { f(t, start(t, quickly(), auth.DefaultConfig())) })
	t.Run("trunk", func(t *testing.T) {
		n := start(t, quickly(), auth.DefaultConfig())
		n.withTrunks(10)
		n.known()
		f(t, n)
		if st := n.trunks.Stats(); st.Trunks != 1 {
			t.Errorf("there are %d trunks", st.Trunks)
		}
	})
}

// pull pulls a stream and returns the connection, which is closed at the end.
func (n *node) pull(name stream.Name) *PullConn {
	n.t.Helper()
	c, err := n.below(name, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = c.Close() })
	return c
}

// wantNumbers reads frames of the numbers from to to, in order, and passes over all else.
func wantNumbers(t *testing.T, c *PullConn, from, to int) {
	t.Helper()
	for want := from; want < to; {
		tag, err := c.Read()
		if err != nil {
			t.Fatalf("instead of frame %d: %v", want, err)
		}
		if _, link, _ := ParseLink(tag); link || !tag.Is(flv.Frame) {
			continue
		}
		if got := number(tag); got != want {
			t.Fatalf("frame %d instead of %d", got, want)
		}
		want++
	}
}

// The first stream is pulled over a connection of its own, on which the node says that it
// takes trunks; further ones share them, so many on each.
func TestTrunksCarryMany(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	n.signing()
	n.withTrunks(8)
	var conns []*PullConn
	var sources []*source
	for i := range 20 {
		name := stream.Name(fmt.Sprintf("live/s%d", i))
		s := n.publish(name)
		s.headers()
		s.frame(true, 100)
		sources = append(sources, s)
		conns = append(conns, n.pull(name))
	}
	if st := n.trunks.Stats(); st.Trunks != 3 || st.Streams != 19 {
		t.Errorf("%+v, want 19 streams on 3 trunks", st)
	}
	eventually(t, "the node knows of 19 streams on 3 trunks", func() bool { return n.server.Stats().Trunks == TrunkStats{3, 19} })
	for _, s := range sources {
		s.frames(50, 3000)
	}
	for _, c := range conns {
		wantNumbers(t, c, 0, 51)
	}
	if by := n.table.NodesPlaying(); len(by) != 20 {
		t.Errorf("playing: %v", by)
	}
	for _, c := range conns {
		_ = c.Close()
	}
	n.wantEnded(session.PeerClosed, 20)
	if st := n.trunks.Stats(); st.Trunks != 3 || st.Streams != 0 {
		t.Errorf("afterwards: %+v", st)
	}
	for _, h := range n.trunks.hosts {
		for _, x := range h.trunks {
			if x.Err() != nil {
				t.Errorf("a trunk is over: %v", x.Err())
			}
		}
	}
}

// What the stream sends is told of the connection that carries it.
func TestTrunkIsTold(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	n.publish("live/a").frame(true, 100)
	n.withTrunks(8)
	n.known()
	calls := 0
	var trips []time.Duration
	for range 2 {
		c, err := n.below("live/a", func(r *PullRequest) {
			r.OnTrunk = func(carrier net.Conn, handshake time.Duration) {
				calls++
				trips = append(trips, handshake)
				if carrier.RemoteAddr().String() != n.addr {
					t.Errorf("it is carried to %v", carrier.RemoteAddr())
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, l, _ := item(t, c)
		if l.Out == 0 {
			t.Errorf("the link says nothing of its TCP: %+v", l)
		}
	}
	if calls != 2 || trips[0] <= 0 || trips[1] != 0 {
		t.Errorf("%d calls, with the handshakes %v", calls, trips)
	}
}

// Who gets no trunk pulls over a connection of its own, and does not ask each time.
func TestTrunkRefused(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	n.publish("live/a").frame(true, 100)
	n.signing()
	n.withTrunks(8)
	asked := 0
	n.trunks.cfg.Sign = func() Marks {
		asked++
		m := belowMarks(n, time.Now())
		m.Signature = "1:00"
		return m
	}
	n.known()
	for range 3 {
		wantNumbers(t, n.pull("live/a"), 0, 1)
	}
	if st := n.trunks.Stats(); asked != 1 || st.Trunks != 0 {
		t.Errorf("asked %d times, %+v", asked, st)
	}
	if r := n.table.Refusals()[session.HTTPFLV]; r[session.BadSignature]+r[session.ClockSkew] != 1 {
		t.Errorf("refusals: %v", r)
	}
}

// A trunk is for nodes that say so, and for their streams.
func TestTrunkIsForNodes(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	n.publish("live/a").frame(true, 100)
	n.withTrunks(8)
	n.known()
	f := func(what, request, status string) {
		t.Helper()
		c, _ := n.trunks.dial(t.Context(), &url.URL{Scheme: "http", Host: n.addr}, true)
		if c == nil {
			t.Fatal("no trunk")
		}
		defer c.Close()
		_, _ = io.WriteString(c, request)
		got := make([]byte, len(status))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != status {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	f("a player", get11("/live/a.flv"), "HTTP/1.1 403")
	f("a player with a blank purpose", "GET /live/a.flv HTTP/1.1\r\nHost: x\r\nMillrace-Purpose: \u00a0\r\n\r\n", "HTTP/1.1 403")
	f("a page", get11("/watch/live/a"), "HTTP/1.1 403")
	f("a trunk on a trunk", "GET "+trunkPath+" HTTP/1.1\r\nHost: x\r\nUpgrade: "+trunkProto+"\r\nVia: 1.1 x (millrace)\r\nMillrace-Purpose: trunk\r\n\r\n", "HTTP/1.1 400")
	f("no HTTP", "\x00\x01\r\n\r\n", "HTTP/1.1 400")
	for what, request := range map[string]string{
		"without marks":   "GET " + trunkPath + " HTTP/1.1\r\nHost: x\r\nUpgrade: " + trunkProto + "\r\n\r\n",
		"for a pull":      "GET " + trunkPath + " HTTP/1.1\r\nHost: x\r\nUpgrade: " + trunkProto + "\r\nVia: 1.1 x (millrace)\r\nMillrace-Purpose: pull\r\n\r\n",
		"without upgrade": "GET " + trunkPath + " HTTP/1.1\r\nHost: x\r\nVia: 1.1 x (millrace)\r\nMillrace-Purpose: trunk\r\n\r\n",
		"of a stream":     "GET /live/a.flv HTTP/1.1\r\nHost: x\r\nVia: 1.1 x (millrace)\r\nMillrace-Purpose: trunk\r\n\r\n",
	} {
		if r := n.get(request); r.resp.StatusCode != 400 {
			t.Errorf("a trunk %s: %d", what, r.resp.StatusCode)
		}
	}
	if r := n.get("GET " + trunkPath + " HTTP/1.1\r\nHost: x\r\nUpgrade: " + trunkProto + "\r\nVia: 1.1 here (millrace)\r\nMillrace-Purpose: trunk\r\n\r\n"); r.resp.StatusCode != 508 {
		t.Errorf("a trunk from a node to itself: %d", r.resp.StatusCode)
	}
}

// When a trunk breaks, all its streams are cut off at once; the next ones find another
// way at once.
func TestTrunkBreaks(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	n.publish("live/a").frame(true, 100)
	n.withTrunks(8)
	n.known()
	var conns []*PullConn
	for range 4 {
		c := n.pull("live/a")
		wantNumbers(t, c, 0, 1)
		conns = append(conns, c)
	}
	n.server.closeTrunks()
	for _, c := range conns {
		for err := error(nil); ; {
			if _, err = c.Read(); err == nil {
				continue
			}
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("the end is %v", err)
			}
			break
		}
	}
	wantNumbers(t, n.pull("live/a"), 0, 1)
	eventually(t, "the table is right", func() bool { return n.table.NodesPlaying()["live/a"] == 1 })
}

// A stream that is not read costs itself alone, and ends when it has taken nothing for
// the stall time.
func TestTrunkIsolates(t *testing.T) {
	cfg := quickly()
	cfg.StallTimeout = 2 * time.Second
	n := start(t, cfg, auth.DefaultConfig())
	slow, quick := n.publish("live/slow"), n.publish("live/quick")
	slow.frame(true, 100)
	quick.frame(true, 100)
	n.withTrunks(8)
	n.known()
	idle, busy := n.pull("live/slow"), n.pull("live/quick")
	wantNumbers(t, idle, 0, 1)
	wantNumbers(t, busy, 0, 1)
	for i := range 300 {
		slow.frame(true, 100_000) // in the end far more than a window
		quick.frame(i%30 == 0, 20_000)
		wantNumbers(t, busy, i+1, i+2)
	}
	n.wantEnded(session.Stalled, 1)
	quick.frame(true, 100)
	wantNumbers(t, busy, 301, 302)
}

// An operator's kick and the end of the node reach streams on a trunk as they do others.
func TestTrunkEnds(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.frame(true, 100)
	n.withTrunks(8)
	n.known()
	kicked, left := n.pull("live/a"), n.pull("live/a")
	wantNumbers(t, kicked, 0, 1)
	wantNumbers(t, left, 0, 1)
	first := n.table.List()[0].ID
	n.table.Kick(first, session.Kicked)
	n.wantEnded(session.Kicked, 1)
	end := func(c *PullConn) error {
		for {
			if _, err := c.Read(); err != nil {
				return err
			}
		}
	}
	ends := make(chan error, 2)
	go func() { ends <- end(kicked) }()
	go func() { ends <- end(left) }()
	if err := <-ends; err != io.EOF {
		t.Errorf("the one that was kicked ends with %v", err)
	}
	n.stop()
	if err := <-ends; !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the other one ends with %v", err)
	}
	n.wantEnded(session.Draining, 1)
}

// anyRider returns one of the streams on the trunks to n.
func (n *node) anyRider() (r *rider) {
	n.server.mu.Lock()
	defer n.server.mu.Unlock()
	for _, b := range n.server.coaches {
		b.riding.Lock()
		for r = range b.riders {
		}
		b.riding.Unlock()
	}
	return r
}

// When the node below takes nothing that goes over a trunk, all streams on it end for that.
func TestTrunkStalls(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	n.publish("live/a").frame(true, 100)
	n.withTrunks(8)
	n.known()
	wantNumbers(t, n.pull("live/a"), 0, 1)
	wantNumbers(t, n.pull("live/a"), 0, 1)
	_ = n.anyRider().conn.Carrier().SetDeadline(time.Unix(1, 0))
	n.wantEnded(session.Stalled, 2)
}

// A picture that is far bigger than others goes out in pieces, between which there is room
// for what other streams have.
func TestRiderShares(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.frame(true, 100)
	n.withTrunks(8)
	n.known()
	c := n.pull("live/a")
	wantNumbers(t, c, 0, 1)
	r := n.anyRider()
	r.coach.riding.Lock()
	before := r.w.sess.Bytes.Load()
	s.frame(true, 1<<19)
	r.serve(time.Now())
	sent := r.w.sess.Bytes.Load() - before
	r.coach.riding.Unlock()
	if sent == 0 || sent > riderShare {
		t.Errorf("%d bytes went into one write, want %d at most", sent, riderShare)
	}
	s.frame(false, 100)
	wantNumbers(t, c, 1, 3)
}

// Trunks that nobody uses are closed, and one that is silent is asked for a sign of life
// before it is used.
func TestTrunksAreSwept(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	n.publish("live/a").frame(true, 100)
	n.withTrunks(8)
	n.known()
	c := n.pull("live/a")
	wantNumbers(t, c, 0, 1)
	h := n.trunks.hosts["http://"+n.addr]
	x := h.trunks[0]
	_ = c.Close() // it would tell that its stream is silent
	eventually(t, "the trunk is silent", func() bool { return x.Silent() > trunkQuiet/4 })
	x.Ping()
	eventually(t, "the trunk is heard", func() bool { return x.Silent() < trunkQuiet/4 })
	_ = x.Close()
	n.trunks.Sweep()
	if st := n.trunks.Stats(); st.Trunks != 0 {
		t.Errorf("a trunk that is over is kept: %+v", st)
	}
	wantNumbers(t, n.pull("live/a"), 0, 1)
	if st := n.trunks.Stats(); st.Trunks != 1 || st.Streams != 1 {
		t.Errorf("afterwards: %+v", st)
	}
}

// Nobody waits longer for a trunk than the caller wants to.
func TestTrunkIsNotWaitedFor(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	n.withTrunks(8)
	release := make(chan struct{})
	n.trunks.cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		<-release
		return nil, errors.New("no way")
	}
	n.known()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		if c, _ := n.trunks.dial(ctx, &url.URL{Scheme: "http", Host: n.addr}, true); c != nil {
			t.Error("there was a trunk")
		}
		close(done)
	}()
	if c, _ := n.trunks.dial(ctx, &url.URL{Scheme: "http", Host: n.addr}, false); c != nil {
		t.Error("there was a trunk at once")
	}
	cancel()
	<-done
	close(release)
}

// What a stream sends over a trunk takes no memory, and no lock for each viewer of it.
func TestRiderAllocs(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.frame(true, 100)
	n.withTrunks(8)
	n.known()
	c := n.pull("live/a")
	wantNumbers(t, c, 0, 1)
	go func() {
		for {
			if _, err := c.Read(); err != nil {
				return
			}
		}
	}()
	r := n.anyRider()
	now := time.Now()
	payload := picture(false, 1000, 1)
	pub := s.p
	dts := int64(1000)
	r.coach.riding.Lock()
	defer r.coach.riding.Unlock()
	written := testing.AllocsPerRun(200, func() {
		dts += 10
		_ = pub.Write(now, flv.New(flv.Video, dts, payload))
	})
	both := testing.AllocsPerRun(200, func() {
		dts += 10
		_ = pub.Write(now, flv.New(flv.Video, dts, payload))
		r.serve(now)
	})
	if both > written {
		t.Errorf("%v allocations a tag, of which the rider %v", both, both-written)
	}
}

// To a node that is to be kept there is a trunk before there is a stream, and again when
// it has broken, so the first streams find it.
func TestTrunksAreKept(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	n.publish("live/a").frame(true, 100)
	n.withTrunks(8)
	there := func() bool {
		n.trunks.Sweep()
		return n.trunks.Stats().Trunks == 1
	}
	n.trunks.Sweep()
	if st := n.trunks.Stats(); st.Trunks != 0 {
		t.Errorf("nobody was to be kept, and there is %+v", st)
	}
	n.trunks.Keep([]string{"http://" + n.addr, "rtmp://elsewhere"})
	eventually(t, "there is a trunk", there)
	n.server.closeTrunks()
	eventually(t, "the trunk is over", func() bool {
		n.trunks.mu.Lock()
		defer n.trunks.mu.Unlock()
		return n.trunks.hosts["http://"+n.addr].trunks[0].Err() != nil
	})
	eventually(t, "there is a trunk again", there)
	c, err := n.below("live/a", func(r *PullRequest) { r.Patient = false })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	wantNumbers(t, c, 0, 1)
	if st := n.trunks.Stats(); st != (TrunkStats{1, 1}) {
		t.Errorf("%+v, want one stream on one trunk", st)
	}
}

// Who refuses trunks is asked ever more seldom, and who is not there as often as before.
func TestTrunkRefusedAgainAndAgain(t *testing.T) {
	now := time.Unix(1000, 0)
	h := &trunkHost{}
	f := func(err error, want time.Duration) {
		t.Helper()
		if h.hold(now, err); h.away.Sub(now) != want {
			t.Errorf("after %v it is left alone for %v, want %v", err, h.away.Sub(now), want)
		}
	}
	no, dead := fmt.Errorf("asked: %w", &PullError{Status: 404}), errors.New("no way")
	f(no, time.Minute)
	f(no, 2*time.Minute)
	f(dead, trunkHoldOff)
	f(no, 4*time.Minute)
	f(no, 8*time.Minute)
	f(no, trunkRefusedMost)
	f(no, trunkRefusedMost)
}

// Upstreams that are gone leave room for others.
func TestTrunkHostsAreForgotten(t *testing.T) {
	x := NewTrunks(TrunkConfig{Streams: func() int { return 8 }})
	for i := range maxTrunkHosts + 1 {
		x.learn(&url.URL{Scheme: "http", Host: fmt.Sprintf("edge-%d", i)})
	}
	if len(x.hosts) != maxTrunkHosts {
		t.Errorf("%d hosts are known, want %d", len(x.hosts), maxTrunkHosts)
	}
	x.Sweep()
	u := url.URL{Scheme: "http", Host: "edge-new"}
	if x.learn(&u); x.hosts[hostKey(&u)] == nil {
		t.Error("there is no room for a new host")
	}
}
