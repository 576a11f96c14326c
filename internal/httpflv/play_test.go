package httpflv

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/internal/session"
)

func TestViewerStartsAtAKeyframeWithItsHeaders(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.headers()
	s.frames(25, 1000)

	r := n.get(get11("/live/a.flv"))
	if got := r.resp.StatusCode; got != 200 {
		t.Fatalf("status %d: %s", got, body(t, r))
	}
	if got := r.resp.Header.Get("Content-Type"); got != "video/x-flv" {
		t.Errorf("content type %q", got)
	}
	var kinds []flv.Kind
	for range 2 {
		x := r.tag()
		if !x.Is(flv.Header) {
			t.Fatalf("%v tag before the headers", x.Kind)
		}
		kinds = append(kinds, x.Kind)
	}
	if kinds[0] != flv.Video || kinds[1] != flv.Audio {
		t.Errorf("headers %v", kinds)
	}
	first := r.tag()
	if !first.Is(flv.Keyframe) || number(first) != 20 || first.DTS != 0 {
		t.Errorf("first frame is %d at %d ms, keyframe %v", number(first), first.DTS, first.Is(flv.Keyframe))
	}
	r.wantFrames(21, 24)
	s.frames(20, 1000)
	r.wantFrames(25, 44)
	if a, v := r.flv.Tracks(); !a || !v {
		t.Errorf("FLV header says audio %v, video %v", a, v)
	}
	r.conn.Close()
	n.wantEnded(session.PeerClosed, 1)
}

func TestFramingByVersionAndConfiguration(t *testing.T) {
	f := func(name string, closeDelimited bool, version string, wantChunked bool) {
		t.Run(name, func(t *testing.T) {
			cfg := quickly()
			cfg.CloseDelimited = closeDelimited
			n := start(t, cfg, auth.DefaultConfig())
			s := n.publish("live/a")
			s.frames(5, 2000)
			r := n.get("GET /live/a.flv " + version + "\r\nHost: x\r\n\r\n")
			if got := len(r.resp.TransferEncoding) > 0; got != wantChunked {
				t.Errorf("transfer encoding %v", r.resp.TransferEncoding)
			}
			if !r.resp.Close || r.resp.ContentLength >= 0 {
				t.Errorf("close %v, length %d", r.resp.Close, r.resp.ContentLength)
			}
			r.wantFrames(0, 4)
			s.frames(5, 2000)
			r.wantFrames(5, 9)
		})
	}
	f("1.1", false, "HTTP/1.1", true)
	f("1.0", false, "HTTP/1.0", false)
	f("1.1 by configuration", true, "HTTP/1.1", false)
}

// FLV header flags say what is there, not what might be.
func TestHeaderFlags(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	video := n.publish("live/video")
	video.write(flv.Video, avcHeader)
	video.frames(3, 100)
	sound := n.publish("live/sound")
	sound.write(flv.Audio, aacHeader)
	sound.write(flv.Audio, []byte{0xaf, 1, 9, 9})
	f := func(name string, audio, video bool) {
		t.Helper()
		r := n.get(get11("/live/" + name + ".flv"))
		r.tag()
		if a, v := r.flv.Tracks(); a != audio || v != video {
			t.Errorf("%s: audio %v, video %v", name, a, v)
		}
	}
	f("video", false, true)
	f("sound", true, false)
}

func TestViewersJoinAtAnyTime(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.headers()
	s.frames(1, 500)
	const viewers, frames = 50, 60
	readers := make([]*reader, 0, viewers)
	for i := range viewers {
		readers = append(readers, n.get(get11("/live/a.flv")))
		if i%2 == 0 {
			s.frames(1, 500)
		}
	}
	s.frames(frames, 500)
	for i, r := range readers {
		var last int64 = -1
		want := -1
		for want != s.n {
			x := r.tag()
			if x.DTS < last {
				t.Fatalf("viewer %d: the clock went from %d to %d", i, last, x.DTS)
			}
			last = x.DTS
			if !x.Is(flv.Frame) {
				continue
			}
			switch {
			case want < 0 && (!x.Is(flv.Keyframe) || x.DTS != 0):
				t.Fatalf("viewer %d begins with frame %d at %d", i, number(x), x.DTS)
			case want >= 0 && number(x) != want:
				t.Fatalf("viewer %d: frame %d, want %d", i, number(x), want)
			}
			want = number(x) + 1
		}
	}
	if got := n.fan.Stats(); got.Viewers != viewers || got.Waiting != 0 || got.Bytes == 0 {
		t.Errorf("stats %+v", got)
	}
}

func TestAViewerOutlivesItsPublisher(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.headers()
	s.frames(12, 300)
	r := n.get(get11("/live/a.flv"))
	r.wantFrames(10, 11)
	s.p.Close(time.Now())

	// Whoever comes in the grace time gets nothing old, and waits.
	late, err := net.Dial("tcp", n.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	_ = late.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(late, get11("/live/a.flv")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one waits", func() bool { return n.fan.Stats().Waiting == 1 })

	again := n.publish("live/a")
	again.n, again.dts = 100, 500_000
	again.headers()
	again.frames(5, 300)
	last := r.tag()
	for !last.Is(flv.Frame) {
		last = r.tag()
	}
	if number(last) != 100 || last.DTS != 80 {
		t.Errorf("after the gap: frame %d at %d, want 100 at 80", number(last), last.DTS)
	}
	r.wantFrames(101, 104)
	respond(t, late).wantFrames(100, 104)
}

func TestStreamEnd(t *testing.T) {
	for _, version := range []string{"HTTP/1.1", "HTTP/1.0"} {
		n := start(t, quickly(), auth.DefaultConfig())
		s := n.publish("live/a")
		s.frames(5, 300)
		r := n.get("GET /live/a.flv " + version + "\r\nHost: x\r\n\r\n")
		r.wantFrames(0, 4)
		s.p.Close(time.Now())
		late := n.send("/live/a.flv")
		eventually(t, "one waits", func() bool { return n.fan.Stats().Waiting == 1 })
		n.hub.Sweep(time.Now().Add(time.Minute))
		if _, err := r.flv.Read(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: after the end: %v, want a proper end", version, err)
		}
		n.wantEnded(session.StreamEnded, 1)
		if got := respond(t, late); got.resp.StatusCode != 404 {
			t.Errorf("%s: who waited got %d, want 404", version, got.resp.StatusCode)
		}
		eventually(t, "nobody left", func() bool { return n.fan.Stats().Viewers == 0 && len(n.hub.Streams()) == 0 })
	}
}

// send sends a request and does not wait for the answer.
func (n *node) send(path string) net.Conn { return n.sendRaw(get11(path)) }

func (n *node) sendRaw(request string) net.Conn {
	n.t.Helper()
	conn, err := net.Dial("tcp", n.addr)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, request); err != nil {
		n.t.Fatal(err)
	}
	return conn
}

func TestWaitingForAStream(t *testing.T) {
	cfg := quickly()
	cfg.PlayWait = 300 * time.Millisecond
	n := start(t, cfg, auth.DefaultConfig())

	asked := time.Now()
	r := n.get(get11("/live/never.flv"))
	if r.resp.StatusCode != 404 || time.Since(asked) < cfg.PlayWait {
		t.Errorf("%d after %v, want 404 after %v", r.resp.StatusCode, time.Since(asked), cfg.PlayWait)
	}
	eventually(t, "nobody left", func() bool { return n.fan.Stats().Viewers == 0 && len(n.hub.Streams()) == 0 })

	cfg.PlayWait = patience
	if err := n.server.SetConfig(cfg); err != nil {
		t.Fatal(err)
	}
	var early []net.Conn
	for range 20 {
		early = append(early, n.send("/live/a.flv"))
	}
	gone := n.send("/live/a.flv")
	eventually(t, "all wait", func() bool { return n.fan.Stats().Waiting == 21 })
	gone.Close()
	eventually(t, "who left is gone", func() bool { return n.fan.Stats().Waiting == 20 })
	// The HTTP library's workers stay for a while; none of ours may.
	eventually(t, "waiting viewers have no goroutines", func() bool {
		stacks := allStacks()
		return !strings.Contains(stacks, "takeOver") && !strings.Contains(stacks, "(*writer)")
	})
	s := n.publish("live/a")
	s.headers()
	s.frames(3, 100)
	for _, c := range early {
		respond(t, c).wantFrames(0, 2)
	}
}

func allStacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

func TestKick(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.frames(5, 300)
	r := n.get(get11("/live/a.flv"))
	r.wantFrames(0, 4)
	list := n.table.List()
	if len(list) != 1 || list[0].Info.Protocol != session.HTTPFLV || list[0].Info.Stream != "live/a" {
		t.Fatalf("sessions %+v", list)
	}
	n.table.Kick(list[0].ID, session.Kicked)
	if _, err := r.flv.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("after the kick: %v, want a proper end", err)
	}
	n.wantEnded(session.Kicked, 1)
}

func TestSessionCounts(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.frames(10, 1000)
	r := n.get("GET /live/a.flv HTTP/1.1\r\nHost: x\r\nUser-Agent: player\r\n\r\n")
	r.wantFrames(0, 9)
	eventually(t, "ten tags counted", func() bool { l := n.table.List(); return len(l) == 1 && l[0].Tags == 10 })
	if l := n.table.List()[0]; l.Bytes < 10_000 || l.Bytes > 11_000 || l.Info.Agent != "player" || !l.Info.Peer.IsValid() {
		t.Errorf("session %+v", l)
	}
}

func TestTokenExpiryInMidPlay(t *testing.T) {
	const secret = "0123456789abcdef0123456789abcdef"
	access := auth.DefaultConfig()
	access.PlaySecrets, access.EndAtExpiry = []string{secret}, true
	access.ClockSkew, access.EndGrace = 0, 0
	n := start(t, quickly(), access)
	s := n.publish("live/a")
	s.frames(3, 300)
	expires := strconv.FormatInt(time.Now().Add(3100*time.Millisecond).Unix()+1, 10)
	mac := hmac.New(sha256.New, []byte(secret))
	io.WriteString(mac, "play:live/a:"+expires)
	r := n.get(get11("/live/a.flv?expires=" + expires + "&sign=" + hex.EncodeToString(mac.Sum(nil))))
	if r.resp.StatusCode != 200 {
		t.Fatalf("status %d: %s", r.resp.StatusCode, body(t, r))
	}
	r.wantFrames(0, 2)
	if _, err := r.flv.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("at expiry: %v, want a proper end", err)
	}
	n.wantEnded(session.TokenExpired, 1)
}

func TestDrain(t *testing.T) {
	cfg := quickly()
	n := start(t, cfg, auth.DefaultConfig())
	s := n.publish("live/a")
	s.frames(3, 300)
	var readers []*reader
	for range 10 {
		r := n.get(get11("/live/a.flv"))
		r.wantFrames(0, 2)
		readers = append(readers, r)
	}
	n.server.Drain()
	if r := n.get(get11("/live/a.flv")); r.resp.StatusCode != 503 || r.resp.Header.Get("Retry-After") == "" {
		t.Errorf("while draining: %d", r.resp.StatusCode)
	}
	s.frames(1, 300)
	for _, r := range readers {
		r.wantFrames(3, 3) // those who are there stay
	}
	n.stop()
	for _, r := range readers {
		if _, err := r.flv.Read(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("at the end: %v, want a broken body: the player shall come back", err)
		}
	}
	if got := n.ended(session.Draining); got != 10 {
		t.Errorf("%d ended by draining, want 10", got)
	}
}

func TestManyJoinsAndLeavesReturnToTheBaseline(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	s := n.publish("live/a")
	s.frames(20, 500)
	first := n.get(get11("/live/a.flv"))
	first.wantFrames(10, 12)
	first.conn.Close()
	n.wantEnded(session.PeerClosed, 1)
	fds := openFiles(t)
	for range 20 {
		var wg sync.WaitGroup
		for range 25 {
			wg.Go(func() {
				r := n.get(get11("/live/a.flv"))
				r.wantFrames(10, 12)
				r.conn.Close()
			})
		}
		wg.Wait()
	}
	n.wantEnded(session.PeerClosed, 501)
	eventually(t, "descriptors are closed", func() bool { return openFiles(t) <= fds })
	eventually(t, "feeds are dropped", func() bool {
		st := n.fan.Stats()
		return st.Viewers == 0 && st.Shards[0].Feeds+st.Shards[1].Feeds == 0
	})
	if n.table.Len() != 0 {
		t.Errorf("%d sessions left", n.table.Len())
	}
	if len(n.fan.spread) != 0 {
		t.Errorf("%d streams are still placed", len(n.fan.spread))
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
