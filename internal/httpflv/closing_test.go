package httpflv

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"millrace/internal/auth"
	"millrace/internal/session"
)

// TestKeep shows how many viewers are left in the course of a drain, also when
// somebody loses patience.
func TestKeep(t *testing.T) {
	cfg := quickly()
	cfg.DrainSpread = 4 * time.Second
	fan := newFanout(cfg, slog.New(slog.DiscardHandler))
	f := func(now time.Duration, want int) {
		t.Helper()
		if got := fan.keep(100, time.Second, now); got != want {
			t.Errorf("at %v %d are left, want %d", now, got, want)
		}
	}
	f(time.Second, 100)
	f(3*time.Second, 50)
	f(5*time.Second, 0)
	fan.CloseBy(fan.began.Add(11 * time.Second))
	f(5*time.Second, 60)
	fan.CloseBy(fan.began.Add(21 * time.Second)) // it only becomes earlier
	f(10*time.Second, 10)
	fan.CloseBy(fan.began.Add(4 * time.Second))
	f(3*time.Second, 33)
	f(4*time.Second, 0)
	fan.CloseBy(fan.began.Add(-time.Second))
	f(2*time.Second, 0)
}

// TestFramePace has a viewer send as many frames as it can.
func TestFramePace(t *testing.T) {
	f := func(name string, x ws.Frame, n int, want session.Reason) {
		t.Helper()
		in := bytes.Repeat(ws.MustCompileFrame(x), n)
		if got := readFrames(bytes.NewReader(in), make(chan []byte, 4)); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	ping, text := ws.MaskFrame(ws.NewPingFrame(nil)), ws.MaskFrame(ws.NewTextFrame(nil))
	f("a few pings", ping, 50, session.None)
	f("pings without end", ping, 10_000, session.ProtocolError)
	f("empty messages without end", text, 10_000, session.ProtocolError)
	f("without a mask", ws.NewPingFrame(nil), 1, session.ProtocolError)
	f("the end", ws.MaskFrame(ws.NewCloseFrame(nil)), 1000, session.None)
}

// TestFlood sends frames to the node until it has enough.
func TestFlood(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.headers()
	s.frames(1, 100)
	conn, _ := n.dialWS("/live/a.flv")
	_, _ = conn.Write(bytes.Repeat(ws.MustCompileFrame(ws.MaskFrame(ws.NewPingFrame(nil))), 10_000))
	n.wantEnded(session.ProtocolError, 1)
}
