package e2e

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"millrace/internal/auth"
	"millrace/internal/flv"
	"millrace/tools/frames"
)

// TestWatchPage is what a newcomer sees: the page plays by itself, the figures move,
// the sound can be turned on, and it looks right in each size and theme.
func TestWatchPage(t *testing.T) {
	tab := browser(t)
	n := StartNode(t)
	publishClip(t, n.URL("rtmp", "/live/demo"))
	p := open(t, tab, n.URL("http", "/watch/live/demo"))
	p.awaitState("playing")
	p.awaitPictures(90)

	f := func(what string, got, low, high float64) {
		t.Helper()
		if got < low || got > high {
			t.Errorf("%s is %v, want %v to %v", what, got, low, high)
		}
	}
	// Wide limits: the machine may be busy with other tests.
	f("delay", p.figure("delay"), 0.01, 30)
	f("buffer", p.figure("buffer"), 0.01, 30)
	f("frame rate", p.figure("fps"), 1, 60)
	f("bitrate", p.figure("bitrate"), 100e3, 1500e3)
	f("first picture", p.figure("first"), 1, 60e3)
	f("width", p.figure("size"), 640, 640)
	if got := p.text("#codecs"); got != "H.264 + AAC" {
		t.Errorf("codecs are %q", got)
	}
	bytes, connected := p.figure("bytes"), p.figure("connected")
	p.awaitPictures(45)
	if p.figure("bytes") <= bytes || p.figure("connected") <= connected {
		t.Error("bytes and time do not grow")
	}
	for _, url := range []string{n.URL("http", "/live/demo.flv"), n.URL("ws", "/live/demo.flv"), n.URL("rtmp", "/live/demo")} {
		if !strings.Contains(p.text("#urls"), url) {
			t.Errorf("%s is not among the addresses:\n%s", url, p.text("#urls"))
		}
	}

	if !eval[bool](p, "video.muted") {
		t.Error("the page is loud without being asked")
	}
	p.click("#unmute")
	p.await("sound", "!video.muted && video.volume > 0")
	p.await("the button goes", `document.getElementById("unmute").hidden`)
	p.awaitPictures(30)
	p.key("m")
	p.await("mute by key", "video.muted")
	p.key("k")
	p.await("pause by key", "video.paused")
	p.key("k")
	p.await("play by key", "!video.paused")
	p.awaitPictures(30)

	for _, v := range []struct {
		name   string
		width  int64
		height int64
		theme  string
	}{
		{"watch-1280-light", 1280, 800, "light"},
		{"watch-1280-dark", 1280, 800, "dark"},
		{"watch-390-light", 390, 844, "light"},
		{"watch-390-dark", 390, 844, "dark"},
	} {
		p.show(v.width, v.height, v.theme)
		p.awaitPictures(5)
		if over := p.number("document.documentElement.scrollWidth - innerWidth"); over > 0 {
			t.Errorf("%s: the page is %v pixels too wide", v.name, over)
		}
		p.picture(v.name)
	}
}

// TestWatchOverWebSocket: the other transport, chosen in the page's address.
func TestWatchOverWebSocket(t *testing.T) {
	tab := browser(t)
	n := StartNode(t)
	publishClip(t, n.URL("rtmp", "/live/demo"))
	p := open(t, tab, n.URL("http", "/watch/live/demo#ws"))
	p.awaitState("playing")
	p.awaitPictures(30)
	if _, sessions := get(t, n.URL("admin", "/v1/sessions")); !strings.Contains(sessions, "ws-flv") {
		t.Errorf("no WebSocket viewer among the sessions: %s", sessions)
	}
	p.click("input[value=http] + span")
	await(t, "a new connection, over HTTP alone", patience, func() bool {
		_, sessions := get(t, n.URL("admin", "/v1/sessions"))
		return strings.Contains(sessions, "http-flv") && !strings.Contains(sessions, "ws-flv")
	})
	p.awaitState("playing")
	p.awaitPictures(30)
}

// TestWatchThroughRestart: the publisher dies under the page and comes back with a
// clock that begins anew. The picture goes on, on the same connection.
func TestWatchThroughRestart(t *testing.T) {
	tab := browser(t)
	n := StartNode(t)
	stop := publishClip(t, n.URL("rtmp", "/live/demo"))
	p := open(t, tab, n.URL("http", "/watch/live/demo"))
	p.awaitState("playing")
	p.awaitPictures(60)
	for range 2 {
		before, connected := p.number("video.currentTime"), p.figure("connected")
		stop()
		p.awaitState("silent")
		stop = publishClip(t, n.URL("rtmp", "/live/demo"))
		p.awaitState("playing")
		p.awaitPictures(60)
		if now := p.number("video.currentTime"); now <= before {
			t.Errorf("the page's clock went from %v to %v", before, now)
		}
		if now := p.figure("connected"); now <= connected {
			t.Errorf("the page connected again: for %v ms, %v ms before the restart", now, connected)
		}
	}
}

// TestWatchWaitsAndComesBack: nobody publishes yet; somebody does; the stream is
// over; it begins again. Nobody touches the page.
func TestWatchWaitsAndComesBack(t *testing.T) {
	tab := browser(t)
	n := StartNode(t, "--set", "stream.grace=0s")
	p := open(t, tab, n.URL("http", "/watch/live/late"))
	p.awaitState("waiting")
	if hint := p.text("#cover"); !strings.Contains(hint, n.URL("rtmp", "/live/late")) {
		t.Errorf("the page does not say where to publish: %q", hint)
	}
	p.show(1280, 800, "light")
	p.picture("waiting-1280-light")
	stop := publishClip(t, n.URL("rtmp", "/live/late"))
	p.awaitState("playing")
	p.awaitPictures(15)
	stop()
	p.awaitState("over")
	publishClip(t, n.URL("rtmp", "/live/late"))
	p.awaitState("playing")
	p.awaitPictures(15)
}

// TestWatchRefused: without a signature the page says what to do, with one it plays.
func TestWatchRefused(t *testing.T) {
	const secret = "a-secret-of-the-end-to-end-tests"
	tab := browser(t)
	n := StartNodeEnv(t, []string{"MILLRACE_AUTH_PLAY_SECRETS=" + secret})
	publishClip(t, n.URL("rtmp", "/live/demo"))
	p := open(t, tab, n.URL("http", "/watch/live/demo"))
	p.awaitState("refused")
	if text := p.text("#cover"); !strings.Contains(text, "signed") || !strings.Contains(text, "Try again") {
		t.Errorf("the page does not say what to do: %q", text)
	}
	p.show(390, 844, "dark")
	p.picture("refused-390-dark")
	query := auth.SignPlay(secret, "live/demo", time.Now().Add(time.Hour))
	p = open(t, tab, n.URL("http", "/watch/live/demo?"+query))
	p.awaitState("playing")
	p.awaitPictures(30)
	p = open(t, tab, n.URL("http", "/watch/live/demo?"+query+"#ws"))
	p.awaitState("playing")
}

// TestWatchOtherCodecs: what this browser cannot decode is said in words, and sound
// alone plays.
func TestWatchOtherCodecs(t *testing.T) {
	tab := browser(t)
	n := StartNode(t)
	f := func(name string, change func(*frames.Config)) *page {
		t.Helper()
		cfg := frames.DefaultConfig()
		cfg.Width, cfg.Height, cfg.VideoKbps = 320, 180, 200
		change(&cfg)
		publishWith(t, n.URL("rtmp", "/live/"+name), func(ctx context.Context, write func(flv.Tag) error) error {
			return playFrames(ctx, cfg, write)
		})
		return open(t, tab, n.URL("http", "/watch/live/"+name))
	}
	p := f("hevc", func(c *frames.Config) { c.Codec = frames.H265Enhanced })
	if eval[bool](p, `MediaSource.isTypeSupported('video/mp4; codecs="hvc1.1.6.L93.B0"')`) {
		t.Log("not tested: this browser decodes H.265")
	} else {
		p.awaitState("unsupported")
		if text := p.text("#cover"); !strings.Contains(text, "does not decode H.265") || !strings.Contains(text, "ffplay 6.1") {
			t.Errorf("the page does not say what to do: %q", text)
		}
	}
	p = f("radio", func(c *frames.Config) { c.NoVideo = true })
	p.awaitState("playing")
	p.await("the clock moves", "video.currentTime > 1")
	if codecs := p.text("#codecs"); codecs != "AAC" {
		t.Errorf("codecs of a stream without picture: %q", codecs)
	}
	p = f("mute", func(c *frames.Config) { c.NoAudio = true })
	p.awaitState("playing")
	p.awaitPictures(15)
}

// playFrames writes a synthetic stream in real time until ctx is done.
func playFrames(ctx context.Context, cfg frames.Config, write func(flv.Tag) error) error {
	g, err := frames.NewGenerator(cfg)
	if err != nil {
		return err
	}
	for _, h := range g.Headers() {
		if err := write(h); err != nil {
			return err
		}
	}
	start := time.Now()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(start.Add(g.Due()))):
		}
		if err := write(g.Next(time.Now())); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// TestFrontPage lists what is live as it comes and goes, and leads to it.
func TestFrontPage(t *testing.T) {
	tab := browser(t)
	n := StartNode(t, "--set", "stream.grace=0s")
	p := open(t, tab, n.URL("http", "/"))
	p.await("nothing is live", `!document.getElementById("empty").hidden`)
	p.show(390, 844, "light")
	p.picture("front-390-empty")
	if over := p.number("document.documentElement.scrollWidth - innerWidth"); over > 0 {
		t.Errorf("the page is %v pixels too wide", over)
	}
	stop := publishClip(t, n.URL("rtmp", "/live/one"))
	publishClip(t, n.URL("rtmp", "/live/two"))
	p.await("two streams", `document.querySelectorAll("#streams li").length === 2`)
	p.await("what they are", `document.querySelector("#streams .what").innerText.includes("640×360")`)
	p.show(1280, 800, "dark")
	p.picture("front-1280-dark")
	stop()
	p.await("one of them", `document.querySelectorAll("#streams li").length === 1`)
	p.await("the way there", `(a => a && (a.click(), true))(document.querySelector("#streams a")) || document.body.dataset.state`)
	p.awaitState("playing")

	p = open(t, tab, n.URL("http", "/"))
	p.await("its script runs", `document.querySelectorAll("#streams li").length === 1`)
	p.click("#want")
	p.key("live/two" + kb.Enter)
	p.awaitState("playing")
	if got := eval[string](p, "location.pathname"); got != "/watch/live/two" {
		t.Errorf("the form led to %s", got)
	}
	if d := p.figure("delay"); math.IsNaN(d) {
		t.Error("no delay")
	}
}
