package httpflv

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/session"
)

// dialSmall connects with a receive buffer of n bytes; 0 leaves it alone.
func dialSmall(t *testing.T, addr string, n int) net.Conn {
	t.Helper()
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		if n == 0 {
			return nil
		}
		var err error
		return errors.Join(raw.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, n)
		}), err)
	}}
	conn, err := d.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// pushed is the size of a frame of 40 ms at 2 Mbit/s. The frames are published
// without waiting: only the clock of the stream passes.
const pushed = 10_000

// A player that stops reading, and reads again when it is far behind, is near live
// at once: what its socket hides is little, and its cursor skips.
func TestAFrozenViewerReturnsNearLive(t *testing.T) {
	for name, rcvbuf := range map[string]int{"small buffer": 16 << 10, "default buffer": 0} {
		t.Run(name, func(t *testing.T) {
			cfg := quickly()
			cfg.Shards = 1 // who has a frame was served behind the frozen one, or before it
			n, book := keptBy(t, cfg)
			s := n.publish("live/a")
			s.headers()
			s.frames(50, pushed)
			frozen := ask(t, dialSmall(t, n.addr, rcvbuf), get11("/live/a.flv"))
			other := n.get(get11("/live/a.flv"))
			frozen.frame()
			other.wantFrames(40, 49)

			// 40 s of stream pass; the other viewer gets each frame.
			for i := 50; i < 1050; i += 10 {
				s.frames(10, pushed)
				other.wantFrames(i, i+9)
			}
			var old, skipped int
			last, clock := 0, int64(-1)
			for last < 1040 {
				x := frozen.tag()
				if x.DTS < clock {
					t.Fatalf("the clock went from %d to %d", clock, x.DTS)
				}
				clock = x.DTS
				if !x.Is(flv.Frame) {
					continue
				}
				if got := number(x); last > 0 && got != last+1 {
					if !x.Is(flv.Keyframe) {
						t.Fatalf("after frame %d comes %d, not a keyframe", last, got)
					}
					skipped++
				} else if skipped == 0 {
					old++
				}
				last = number(x)
			}
			if skipped != 1 {
				t.Errorf("%d skips, want one", skipped)
			}
			// What the kernels of both sides held back.
			t.Logf("%d frames of before the freeze were on their way: %d KB", old, old*pushed>>10)
			if rcvbuf > 0 && old > 50 {
				t.Errorf("%d frames were hidden in a socket, want two seconds' worth at most", old)
			}
			// Its place has left the log by then, which holds less than 40 s.
			if got := n.table.Skips()[session.OffLog]; got == 0 || n.table.List()[0].Skipped != got {
				t.Errorf("skips %v, of the session %d", n.table.Skips(), n.table.List()[0].Skipped)
			}
			if got := book.Take(1); len(got) != 1 || got[0].Skips != 1 {
				t.Errorf("kept %+v, want one skip", got)
			}
			if got := n.fan.Stats().Partial; got == 0 {
				t.Error("no partial write is counted")
			}
		})
	}
}

// The others do not notice that some take nothing.
func TestSlowViewersCostOnlyThemselves(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.headers()
	s.frames(10, pushed)
	for range 20 {
		ask(t, dialSmall(t, n.addr, 4<<10), get11("/live/a.flv")).frame()
	}
	r := n.get(get11("/live/a.flv"))
	r.wantFrames(0, 9)
	for i := 10; i < 500; i += 10 {
		s.frames(10, pushed)
		r.wantFrames(i, i+9)
	}
	if got := n.fan.Stats().Viewers; got != 21 {
		t.Errorf("%d viewers left, want 21", got)
	}
}

func TestAHalfClosedViewerIsGone(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.frames(5, 300)
	r := n.get(get11("/live/a.flv"))
	r.wantFrames(0, 4)
	if err := r.conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	n.wantEnded(session.PeerClosed, 1)
	if _, err := io.Copy(io.Discard, r.conn); err != nil {
		t.Errorf("the socket is not closed: %v", err)
	}
}

func TestAResetViewerIsGone(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.frames(5, 300)
	r := n.get(get11("/live/a.flv"))
	r.wantFrames(0, 4)
	_ = r.conn.(*net.TCPConn).SetLinger(0)
	r.conn.Close()
	n.wantEnded(session.PeerClosed, 1)
}

func TestAStalledViewerIsClosed(t *testing.T) {
	cfg := quickly()
	cfg.StallTimeout = 2 * time.Second
	n := start(t, cfg, auth.DefaultConfig())
	s := n.publish("live/a")
	s.headers()
	s.frames(10, pushed)
	stalled := ask(t, dialSmall(t, n.addr, 4<<10), get11("/live/a.flv"))
	stalled.frame()
	idle := n.get(get11("/live/a.flv")) // has everything, which is no stall
	idle.wantFrames(0, 9)
	next := 10
	eventually(t, "the stalled viewer is closed", func() bool {
		s.frames(10, pushed) // to one that has been skipped to the next keyframe too
		idle.wantFrames(next, next+9)
		next += 10
		return n.ended(session.Stalled) > 0
	})
	if got := n.fan.Stats().Viewers; got != 1 {
		t.Errorf("%d viewers left, want the idle one", got)
	}
}

// A viewer may be stuck in the middle of a tag when the stream ends, and gets a
// proper end when it reads again.
func TestStreamEndForABlockedViewer(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.headers()
	s.frames(10, pushed)
	r := ask(t, dialSmall(t, n.addr, 4<<10), get11("/live/a.flv"))
	s.frames(90, pushed)
	eventually(t, "the viewer is blocked", func() bool { return n.fan.Stats().Partial > 0 })
	s.p.Close(time.Now())
	n.hub.Sweep(time.Now().Add(time.Minute))
	for {
		if _, err := r.flv.Read(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("at the end: %v", err)
		}
	}
	n.wantEnded(session.StreamEnded, 1)
}

func TestKickOfABlockedViewer(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.headers()
	s.frames(10, pushed)
	ask(t, dialSmall(t, n.addr, 4<<10), get11("/live/a.flv"))
	s.frames(90, pushed)
	eventually(t, "the viewer is blocked", func() bool { return n.fan.Stats().Partial > 0 })
	n.table.Kick(n.table.List()[0].ID, session.Kicked)
	n.wantEnded(session.Kicked, 1)
}

// A stream may end between the first write to a viewer and the moment in which its
// shard takes it in: one that had no viewer of the stream, or one that still has some
// which take nothing any more.
func TestStreamEndOnTheWayToTheShard(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	for _, tt := range []struct{ begun, others bool }{{true, false}, {false, false}, {true, true}, {false, true}} {
		s := n.publish("live/a")
		if tt.others {
			s.frames(10, pushed)
			before := n.fan.Stats().Partial
			ask(t, dialSmall(t, n.addr, 4<<10), get11("/live/a.flv"))
			s.frames(90, pushed)
			eventually(t, "the other viewer is blocked", func() bool { return n.fan.Stats().Partial > before })
			s.p.Renew(time.Now().UnixMilli()) // so that who comes now waits
		}
		first := s.n
		if tt.begun {
			for i := range 3 {
				s.frame(i == 0, 100)
			}
		}
		client, c := pair(t)
		str, refused := n.server.attach(play{name: "live/a"})
		if refused != nil {
			t.Fatal(refused.text)
		}
		v, err := n.server.newViewer(play{name: "live/a", framing: chunked}, str, c, tcpOf(c))
		if err != nil {
			t.Fatal(err)
		}
		n.server.firstWrite(v)
		s.p.Close(time.Now())
		passes := v.shard.stats.passes.Load()
		n.hub.Sweep(time.Now().Add(time.Minute))
		if tt.others { // which the shard knows have to end, before v comes
			eventually(t, "the shard has looked", func() bool { return v.shard.stats.passes.Load() > passes+1 })
		}
		if err := n.fan.join(v); err != nil {
			t.Fatal(err)
		}
		r := respond(t, client)
		if !tt.begun {
			if r.resp.StatusCode != 404 {
				t.Errorf("status %d, want 404", r.resp.StatusCode)
			}
			continue
		}
		r.wantFrames(first, s.n-1)
		if _, err := r.flv.Read(); !errors.Is(err, io.EOF) {
			t.Errorf("%+v: at the end: %v", tt, err)
		}
	}
}

// Who merges what it sends, or is a little behind, gets the last frames of a stream too.
func TestTheLastFramesAreSent(t *testing.T) {
	cfg := quickly()
	cfg.MergeMin, cfg.MergeMax = 300*time.Millisecond, 300*time.Millisecond
	n := start(t, cfg, auth.DefaultConfig())
	s := n.publish("live/a")
	s.frames(1, 100)
	plain := n.get(get11("/live/a.flv"))
	conn, in := n.dialWS("/live/a.flv")
	socket := &reader{t: t, conn: conn, flv: flv.NewReader(&messages{in: in, other: func(ws.OpCode, []byte) {}}, 1<<20)}
	plain.wantFrames(0, 0)
	socket.wantFrames(0, 0)
	s.frames(9, 100)
	s.p.End(time.Now())
	plain.wantFrames(1, 9)
	if _, err := plain.flv.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	socket.wantFrames(1, 9)
	n.wantEnded(session.StreamEnded, 2)
}

// A stream that is live but shows no keyframe is not said to be missing.
func TestLiveWithoutAKeyframe(t *testing.T) {
	cfg := quickly()
	cfg.StallTimeout = time.Second
	n := start(t, cfg, auth.DefaultConfig())
	n.publish("live/a").headers()
	plain := n.send("/live/a.flv")
	upgrade := n.sendRaw("GET /live/a.flv HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n")
	for name, conn := range map[string]net.Conn{"HTTP-FLV": plain, "WebSocket-FLV": upgrade} {
		r := respond(t, conn)
		body, _ := io.ReadAll(r.resp.Body)
		if r.resp.StatusCode != 503 || r.resp.Header.Get(reasonField) != "no_keyframe" || r.resp.Header.Get("Retry-After") == "" ||
			!strings.Contains(string(body), "live/a is live but has shown no keyframe") {
			t.Errorf("%s: %d %v %q", name, r.resp.StatusCode, r.resp.Header, body)
		}
	}
}

// pair returns two ends of a TCP connection.
func pair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	ln := listen(t)
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	_ = client.SetDeadline(time.Now().Add(patience))
	if server, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}
