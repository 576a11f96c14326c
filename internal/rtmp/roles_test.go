package rtmp

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

func keys(c *auth.Config) {
	c.PublishKeys = map[string][]string{"live": {"secret-1", "secret-2"}}
}

// refused reads everything up to the end and wants one error status and no start.
func (p *peer) refused(code string, stream uint32) string {
	p.t.Helper()
	var text string
	var bytes []byte
	for {
		m, err := p.read()
		if err != nil {
			break
		}
		bytes = append(bytes, m.payload()...)
		if m.kind != typeCommand {
			continue
		}
		cmd, err := parseCommand(&m)
		if err != nil {
			p.t.Fatal(err)
		}
		if s := cmd.status(); cmd.name == "onStatus" {
			if s.code != code || s.level != levelError || m.stream != stream {
				p.t.Errorf("got %+v on message stream %d, want %s on %d", s, m.stream, code, stream)
			}
			text = s.text
		}
	}
	if strings.Contains(string(bytes), codePublishStart) || strings.Contains(string(bytes), codePlayStart) {
		p.t.Error("a start was announced")
	}
	if text == "" {
		p.t.Error("no reason was told")
	}
	return text
}

func TestPublishRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		opt  option
		key  string
		prep func(*node)
		code string
		want session.Reason
	}{
		{"no key", option{auth: keys}, "a", nil, codePublishDenied, session.Unauthorized},
		{"a wrong key", option{auth: keys}, "a?key=wrong", nil, codePublishDenied, session.Unauthorized},
		{"another publisher", option{auth: keys}, "a?key=secret-2", func(n *node) { n.publisher(n.t, "live", "a?key=secret-1") }, codePublishBadName, session.Busy},
		{"a bad name", option{}, "a\x01b", nil, codePublishBadName, session.BadName},
		{"draining", option{}, "a", func(n *node) { n.Drain() }, codePublishFailed, session.Draining},
		{"the hub is draining", option{}, "a", func(n *node) { n.hub.Drain() }, codePublishFailed, session.Draining},
		{
			"too many streams",
			option{stream: func(c *stream.Config) { c.MaxStreams = 1 }},
			"b",
			func(n *node) { n.publisher(n.t, "live", "a") }, codePublishFailed, session.OverLimit,
		},
		{"the address", option{auth: func(c *auth.Config) { c.DenyPublish = []string{"127.0.0.0/8"} }}, "a", nil, codePublishDenied, session.Forbidden},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t, tt.opt)
			if tt.prep != nil {
				tt.prep(n)
			}
			p := n.connected(t, "live")
			p.command(0, "createStream", 2, nil)
			p.expect("_result")
			// An encoder in a hurry: media behind the publish must not cost it the refusal.
			p.write(slicesOf(
				appendMessage(nil, 128, 3, typeCommand, 1, 0, encode("FCPublish", 0, nil, tt.key)),
				appendMessage(nil, 128, 3, typeCommand, 1, 0, encode("publish", 0, nil, tt.key, "live")),
				appendMessage(nil, 128, 6, typeVideo, 1, 0, make([]byte, 100_000))))
			p.refused(tt.code, 1)
			n.endsWith(t, tt.want)
			if n.table.Refusals()[session.RTMP][tt.want] != 1 {
				t.Errorf("refusals %v", n.table.Refusals())
			}
			if strings.Contains(n.log.String(), "secret") || strings.Contains(n.log.String(), "wrong key") {
				t.Errorf("a key is in the log:\n%s", n.log)
			}
		})
	}
}

// TestRefusalDelay wants a storm slowed down, and the gate asked each time.
func TestRefusalDelay(t *testing.T) {
	n := newNode(t, option{auth: func(c *auth.Config) {
		keys(c)
		c.Storm.Free, c.Storm.FirstDelay, c.Storm.MaxDelay = 0, 300*time.Millisecond, 300*time.Millisecond
	}})
	began := time.Now()
	p := n.connected(t, "live")
	p.publish("a?key=wrong")
	p.refused(codePublishDenied, 1)
	if took := time.Since(began); took < 250*time.Millisecond {
		t.Errorf("told after %v", took)
	}
	// A connection that is ended does not wait.
	q := n.connected(t, "live")
	q.publish("a?key=wrong")
	n.stop()
	q.expectEnd()
}

// TestDisplaced brings a publisher back while its old connection is half open.
func TestDisplaced(t *testing.T) {
	n := newNode(t, option{auth: keys})
	w := n.watch(t, "live/a")
	old := n.publisher(t, "live", "a?key=secret-1")
	old.message(6, typeVideo, 1, 0, keyframe(1))
	w.next(1)
	began := time.Now()
	n.publisher(t, "live", "a?key=secret-1").message(6, typeVideo, 1, 0, keyframe(2))
	if s := old.expect("onStatus").status(); s.level != levelError {
		t.Errorf("told %+v", s)
	}
	old.expectEnd()
	t.Logf("displaced within %v, connecting included; the promise is 100 ms", time.Since(began))
	if got := w.next(1)[0].Payload(); !bytes.Equal(got, keyframe(2)) {
		t.Errorf("got % x", got)
	}
	n.endsWith(t, session.Displaced)
}

// TestPublishAgain ends a publish in every way that leaves the connection open, and
// begins another one on it.
func TestPublishAgain(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(p *peer)
		id   uint32 // message stream of the second publish
	}{
		{"FCUnpublish", func(p *peer) { p.command(0, "FCUnpublish", 6, nil, "a") }, 1},
		{"closeStream", func(p *peer) { p.command(1, "closeStream", 0, nil) }, 1},
		{"deleteStream", func(p *peer) { p.command(0, "deleteStream", 0, nil, 1) }, 1},
		{"as ffmpeg does", func(p *peer) {
			p.command(0, "FCUnpublish", 6, nil, "a")
			p.command(0, "deleteStream", 7, nil, 1)
			p.command(0, "createStream", 8, nil)
			for p.expect("_result").tx != 8 {
			}
		}, 1},
		{"on a new message stream", func(p *peer) {
			p.command(0, "FCUnpublish", 0, nil, "a")
			p.command(0, "createStream", 8, nil)
			if id := p.expect("_result").number(); id != 2 {
				p.t.Errorf("message stream %v", id)
			}
		}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t, option{})
			w := n.watch(t, "live/a")
			p := n.publisher(t, "live", "a")
			p.message(6, typeVideo, 1, 0, keyframe(1))
			w.next(1)
			tt.end(p)
			p.message(6, typeVideo, 1, 40, keyframe(2)) // goes nowhere
			p.sync()
			if n.table.Len() != 0 || n.Stats().Dropped[session.NotPublishing] != 1 {
				t.Errorf("%d sessions, dropped %v", n.table.Len(), n.Stats().Dropped)
			}
			p.command(tt.id, "publish", 0, nil, "a", "live")
			p.expectStatus(codePublishStart)
			p.message(6, typeVideo, tt.id, 80, keyframe(3))
			if got := w.next(1)[0].Payload(); !bytes.Equal(got, keyframe(3)) {
				t.Errorf("got % x", got)
			}
			if c := n.table.Counts()[0]; c.Ended[session.Unpublished] != 1 || c.Opened != 2 {
				t.Errorf("counts %+v", c)
			}
		})
	}
}

// TestSecondRole asks for more than one stream at a time.
func TestSecondRole(t *testing.T) {
	n := newNode(t, option{})
	p := n.publisher(t, "live", "a")
	for _, name := range []string{"publish", "play"} {
		p.command(1, name, 0, nil, "b")
		if s := p.expect("onStatus").status(); s.level != levelError {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if n.table.Len() != 1 || n.Stats().Refused[session.BadRequest] != 2 {
		t.Errorf("%d sessions, %+v", n.table.Len(), n.Stats())
	}
}

// TestMessageStreams asks for more message streams than there are.
func TestMessageStreams(t *testing.T) {
	n := newNode(t, option{})
	p := n.connected(t, "live")
	for i := range maxStreams {
		p.command(0, "createStream", i+2, nil)
		if id := p.expect("_result").number(); id != float64(i+1) {
			t.Errorf("stream %d is called %v", i+1, id)
		}
	}
	p.command(0, "createStream", 99, nil)
	if cmd := p.expect("_error"); cmd.tx != 99 {
		t.Errorf("got %+v", cmd)
	}
	p.command(uint32(maxStreams), "publish", 0, nil, "a")
	p.expectStatus(codePublishStart)
	p.command(0, "FCUnpublish", 0, nil)
	p.command(77, "publish", 0, nil, "a")
	p.expectEnd()
	n.endsWith(t, session.BadCommand)
}

func TestTimeouts(t *testing.T) {
	short := func(c *Config) { c.CommandTimeout, c.IdleTimeout = 200*time.Millisecond, time.Second }
	t.Run("no connect", func(t *testing.T) {
		n := newNode(t, option{cfg: short})
		n.dial(t).expectEnd()
		n.endsWith(t, session.CommandTimeout)
	})
	t.Run("pings are no publish", func(t *testing.T) {
		n := newNode(t, option{})
		p := n.connected(t, "live")
		n.limit(short)
		pause := time.NewTicker(10 * time.Millisecond)
		defer pause.Stop()
		for {
			if _, err := p.net.Write(appendMessage(nil, 128, 2, typeUserControl, 0, 0, []byte{0, eventPing, 0, 0, 0, 0})); err != nil {
				break
			}
			if _, err := p.read(); err != nil {
				break
			}
			<-pause.C
		}
		n.endsWith(t, session.CommandTimeout)
	})
	t.Run("idle publisher", func(t *testing.T) {
		n := newNode(t, option{})
		p := n.publisher(t, "live", "a")
		n.limit(short)
		began := time.Now()
		p.message(4, typeAudio, 1, 0, aac(1))
		p.expectStatus(codePublishFailed)
		p.expectEnd()
		if took := time.Since(began); took < 900*time.Millisecond {
			t.Errorf("after %v", took)
		}
		n.endsWith(t, session.Idle)
	})
	t.Run("unpublished and silent", func(t *testing.T) {
		n := newNode(t, option{})
		p := n.publisher(t, "live", "a")
		n.limit(short)
		p.command(0, "FCUnpublish", 0, nil)
		p.expectEnd()
		n.endsWith(t, session.CommandTimeout)
	})
	t.Run("new limits count at once", func(t *testing.T) {
		n := newNode(t, option{})
		cfg := DefaultConfig()
		cfg.CommandTimeout = 200 * time.Millisecond
		if err := n.SetConfig(cfg); err != nil {
			t.Fatal(err)
		}
		cfg.ChunkStreams = 0
		if n.SetConfig(cfg) == nil {
			t.Error("a bad configuration was taken")
		}
		n.dial(t)
		n.endsWith(t, session.CommandTimeout)
	})
}

func TestCommandsBeforeConnect(t *testing.T) {
	for _, name := range []string{"createStream", "publish", "play"} {
		n := newNode(t, option{})
		p := n.dial(t)
		p.command(1, name, 2, nil, "a")
		p.expectEnd()
		n.endsWith(t, session.BadCommand)
	}
}

// play asks for a stream on message stream 1.
func (p *peer) play(key string) {
	p.t.Helper()
	p.command(0, "createStream", 2, nil)
	p.expect("_result")
	p.command(1, "play", 0, nil, key, -2000)
}

func TestPlayRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		opt  option
		key  string
		prep func(*node)
		code string
		want session.Reason
	}{
		{"missing", option{}, "a", nil, codePlayNotFound, session.NotFound},
		{"a bad name", option{}, "", nil, codePlayNotFound, session.BadName},
		{"unsigned", option{auth: func(c *auth.Config) { c.PlaySecrets = []string{"0123456789abcdef"} }}, "a", nil, codePlayDenied, session.Unauthorized},
		{"draining", option{}, "a", func(n *node) { n.Drain() }, codePlayFailed, session.Draining},
		{
			"a referer",
			option{auth: func(c *auth.Config) { c.PlayReferers, c.AllowEmptyReferer = []string{"example.com"}, false }},
			"a", nil, codePlayDenied, session.Forbidden,
		},
		{
			"too many streams that are waited for",
			option{cfg: func(c *Config) { c.PlayWait = time.Minute }, stream: func(c *stream.Config) { c.MaxWaited = 1 }},
			"a",
			func(n *node) { _, _ = n.hub.Attach("live/b", stream.Demand{}) }, codePlayFailed, session.OverLimit,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t, tt.opt)
			if tt.prep != nil {
				tt.prep(n)
			}
			p := n.connected(t, "live")
			p.play(tt.key)
			p.refused(tt.code, 1)
			n.endsWith(t, tt.want)
		})
	}
}

func TestPlayWaits(t *testing.T) {
	n := newNode(t, option{cfg: func(c *Config) { c.PlayWait = 300 * time.Millisecond }})
	p := n.connected(t, "live")
	p.play("a")
	p.expectStatus(codePlayStart)
	p.expectStatus(codePlayNotFound)
	p.expectEnd()
	n.endsWith(t, session.NotFound)

	if len(n.hub.Streams()) != 0 {
		t.Error("the stream that was waited for is still there")
	}
	n.limit(func(c *Config) { c.PlayWait = patience })
	q := n.connected(t, "live")
	q.play("a")
	q.expectStatus(codePlayStart)
	n.publisher(t, "live", "a").message(6, typeVideo, 1, 0, keyframe(1))
	q.expectKind(typeVideo)
}

// TestPlayEnds follows a player from the first picture to the end of the stream.
func TestPlayEnds(t *testing.T) {
	n := newNode(t, option{})
	pub := n.publisher(t, "live", "a")
	pub.message(5, typeData, 1, 0, encode(onMetaData, object{{"width", 1}}))
	pub.message(6, typeVideo, 1, 5000, avcHeader)
	pub.message(6, typeVideo, 1, 5000, keyframe(1))
	pub.sync()
	p := n.connected(t, "live")
	p.play("a")
	if m := p.expectKind(typeUserControl); m.payload()[1] != eventStreamBegin {
		t.Errorf("event % x", m.payload())
	}
	p.expectStatus(codePlayReset)
	p.expectStatus(codePlayStart)
	var kinds []uint8
	for range 3 {
		m, err := p.read()
		if err != nil || m.stream != 1 || m.time != 0 {
			t.Fatalf("%v on %d at %d", err, m.stream, m.time)
		}
		kinds = append(kinds, m.kind)
	}
	if !bytes.Equal(kinds, []uint8{typeData, typeVideo, typeVideo}) {
		t.Errorf("got %v", kinds)
	}
	// A player goes on talking.
	p.message(2, typeAck, 0, 0, make([]byte, 4))
	p.command(1, "pause", 0, nil, true, 0)
	p.sync()
	pub.command(0, "FCUnpublish", 0, nil)
	pub.sync()
	n.hub.Sweep(time.Now())
	p.expectStatus(codePlayUnpublished)
	p.expectStatus(codePlayStop)
	p.expectEnd()
	n.endsWith(t, session.StreamEnded)
	if c := n.table.Counts()[1]; c.Ended[session.StreamEnded] != 1 || c.Bytes == 0 {
		t.Errorf("counts %+v", c)
	}
}

// TestPlayAgain closes a play and begins another on the same connection.
func TestPlayAgain(t *testing.T) {
	n := newNode(t, option{})
	n.publisher(t, "live", "a").message(6, typeVideo, 1, 0, keyframe(1))
	p := n.connected(t, "live")
	p.play("a")
	for range 3 {
		p.expectStatus(codePlayStart)
		p.expectKind(typeVideo)
		p.command(1, "closeStream", 0, nil)
		p.sync()
		p.command(1, "play", 0, nil, "a")
	}
	p.expectStatus(codePlayStart)
	if s, _ := n.hub.Lookup("live/a"); n.hub.Readers(s) != 1 {
		t.Errorf("%d readers", n.hub.Readers(s))
	}
}

func TestPlayStalled(t *testing.T) {
	n := newNode(t, option{cfg: func(c *Config) { c.StallTimeout = 3 * time.Second }})
	n.frozenPlayer(t)
	n.endsWith(t, session.Stalled)
	if n.table.Len() != 0 {
		t.Error("the session is still open")
	}
}

// TestSlowPlayerSkips lets a frozen player read again: it must find the newest
// start point, not all that it missed.
func TestSlowPlayerSkips(t *testing.T) {
	n := newNode(t, option{})
	p, pub := n.frozenPlayer(t)
	s := pub.Stream()
	big := make([]byte, 256<<10)
	copy(big, keyframe(0))
	for i := range int64(60) { // 15 MB; a viewer may be 8 MB behind
		if err := pub.Write(time.Now(), flv.New(flv.Video, 100+i, big)); err != nil {
			t.Fatal(err)
		}
	}
	for n.table.List()[0].Skipped == 0 {
		p.expectKind(typeVideo)
	}
	if err := pub.Write(time.Now(), flv.New(flv.Video, 200, keyframe(99))); err != nil {
		t.Fatal(err)
	}
	seen := uint64(0)
	for !bytes.Equal(p.expectKind(typeVideo).payload(), keyframe(99)) {
		seen++
	}
	if seen > s.Head()/2 {
		t.Errorf("%d of %d tags came before the newest", seen, s.Head())
	}
}

func TestKickAndDrain(t *testing.T) {
	n := newNode(t, option{})
	p := n.publisher(t, "live", "a")
	p.message(6, typeVideo, 1, 0, keyframe(1))
	q := n.connected(t, "live")
	q.play("a")
	q.expectKind(typeVideo)
	for _, s := range n.table.List() {
		if s.Info.Action == session.Play {
			n.table.Kick(s.ID, session.Kicked)
		}
	}
	if s := q.expectStatus(codePlayStop).status(); !strings.Contains(s.text, "operator") {
		t.Errorf("told %+v", s)
	}
	q.expectEnd()
	n.endsWith(t, session.Kicked)
	n.Drain() // who has begun may go on
	p.sync()
	n.stop()
	if s := p.expectStatus(codePublishFailed).status(); !strings.Contains(s.text, "shutting down") {
		t.Errorf("told %+v", s)
	}
	p.expectEnd()
	n.endsWith(t, session.Draining)
	if n.table.Len() != 0 || n.Stats().Connections != 0 {
		t.Errorf("%d sessions, %+v", n.table.Len(), n.Stats())
	}
}

// TestTokenExpires ends a player when its signed URL does, as configured.
func TestTokenExpires(t *testing.T) {
	n := newNode(t, option{})
	pub := n.publisher(t, "live", "a")
	pub.message(6, typeVideo, 1, 0, keyframe(1))
	pub.sync()
	s, err := n.hub.Attach("live/a", stream.Demand{})
	if err != nil {
		t.Fatal(err)
	}
	nc := n.dialRaw(t)
	c := newConn(n.Server, nc.net, time.Now())
	p := &playing{
		c: c, src: s, cursor: s.NewCursor(stream.CursorOptions{}), expires: time.Now().Add(50 * time.Millisecond),
		ses:  n.table.Open(session.Info{}, func(session.Reason) {}),
		wake: make(chan struct{}, 1), begin: make(chan struct{}), over: make(chan struct{}), gone: make(chan struct{}),
	}
	close(p.begin)
	p.run()
	if c.reason() != session.TokenExpired {
		t.Errorf("ended with %v", c.reason())
	}
	p.ses.Close(c.reason())
}
