package httpflv

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

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
			n := start(t, quickly(), auth.DefaultConfig())
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
			began := time.Now()
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
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("near live after %v, want 2s at most", took)
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
	cfg.StallTimeout = 500 * time.Millisecond
	n := start(t, cfg, auth.DefaultConfig())
	s := n.publish("live/a")
	s.headers()
	s.frames(10, pushed)
	stalled := ask(t, dialSmall(t, n.addr, 4<<10), get11("/live/a.flv"))
	stalled.frame()
	idle := n.get(get11("/live/a.flv")) // has everything, which is no stall
	idle.wantFrames(0, 9)
	for i := 10; i < 210; i += 10 {
		s.frames(10, pushed)
		idle.wantFrames(i, i+9)
	}
	n.wantEnded(session.Stalled, 1)
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
// shard takes it in.
func TestStreamEndOnTheWayToTheShard(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	for _, begun := range []bool{true, false} {
		s := n.publish("live/a")
		if begun {
			s.frames(3, 100)
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
		n.hub.Sweep(time.Now().Add(time.Minute))
		if err := n.fan.join(v); err != nil {
			t.Fatal(err)
		}
		r := respond(t, client)
		if !begun {
			if r.resp.StatusCode != 404 {
				t.Errorf("status %d, want 404", r.resp.StatusCode)
			}
			continue
		}
		r.wantFrames(0, 2)
		if _, err := r.flv.Read(); !errors.Is(err, io.EOF) {
			t.Errorf("at the end: %v", err)
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
	_ = client.SetDeadline(time.Now().Add(20 * time.Second))
	if server, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}
