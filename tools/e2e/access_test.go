package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/rtmp"
)

const (
	publishSecret = "publish-secret-publish-secret"
	playSecret    = "play-secret-play-secret-play"
)

// startGuarded starts a node that asks publishers and viewers who they are, and
// believes what X-Forwarded-For says of where they are.
func startGuarded(t *testing.T, args ...string) *Node {
	t.Helper()
	return StartNode(t, append([]string{
		"--set", "auth.publish_keys={live: [static-key]}",
		"--set", "auth.publish_secrets=[" + publishSecret + "]",
		"--set", "httpflv.trusted_proxies=[127.0.0.1]",
	}, args...)...)
}

// tryPublish reports how the server answers a publisher.
func tryPublish(t *testing.T, url string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := rtmp.Dial(ctx, url, rtmp.DefaultClientConfig())
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Publish(ctx)
}

func TestPublishKeys(t *testing.T) {
	n := startGuarded(t, "--set", "auth.storm.first_delay=0s")
	hour := time.Now().Add(time.Hour)
	f := func(name, path, code string) {
		t.Helper()
		err := tryPublish(t, n.URL("rtmp", path))
		var status *rtmp.StatusError
		switch {
		case code == "" && err != nil:
			t.Errorf("%s: %v, want to be let in", name, err)
		case code != "" && (!errors.As(err, &status) || status.Code != code || status.Description == ""):
			t.Errorf("%s: %v, want %s and why", name, err, code)
		}
	}
	const denied = "NetStream.Publish.Denied"
	f("static", "/live/a?key=static-key", "")
	f("wrong", "/live/b?key=other-key", denied)
	f("none", "/live/c", denied)
	f("of another app", "/other/d?key=static-key", denied)
	f("signed", "/other/e?"+auth.SignPublish(publishSecret, "other/e", hour), "")
	f("signed for another", "/other/f?"+auth.SignPublish(publishSecret, "other/e", hour), denied)
	f("expired", "/other/g?"+auth.SignPublish(publishSecret, "other/g", time.Now().Add(-time.Hour)), denied)
	f("signed for play", "/other/h?"+auth.SignPlay(publishSecret, "other/h", hour), denied)
	if strings.Contains(n.Output(), "static-key") || strings.Contains(n.Output(), "sign=") {
		t.Error("the log shows credentials")
	}

	// The stream is another's: the name is bad, not the key.
	defer publish(t, n.URL("rtmp", "/live/z?key=static-key"))()
	f("busy", "/live/z?"+auth.SignPublish(publishSecret, "live/z", hour), "NetStream.Publish.BadName")
}

// TestFFmpegIsTold: what somebody with a wrong key reads in ffmpeg's output.
func TestFFmpegIsTold(t *testing.T) {
	ffmpeg := Program(t, "ffmpeg")
	n := startGuarded(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, ffmpeg, "-nostdin", "-v", "error", "-re", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25",
		"-c:v", "libx264", "-preset", "ultrafast", "-f", "flv", n.URL("rtmp", "/live/a?key=wrong-key")).CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Errorf("ffmpeg goes on: %v", err)
	}
	if !strings.Contains(string(out), "key") || !strings.Contains(string(out), "Server error") {
		t.Errorf("ffmpeg says %s", out)
	}
	n.AwaitMessage(t, "rtmp connection ended", "reason", "unauthorized")
}

func TestPlayAccess(t *testing.T) {
	n := startGuarded(t, "--set", "auth.play_secrets=["+playSecret+"]", "--set", "auth.storm.first_delay=0s",
		"--set", "auth.play_referers=[example.com]", "--set", "auth.deny_play=[203.0.113.0/24]")
	defer publish(t, n.URL("rtmp", "/live/a?key=static-key"))()
	awaitStream(t, n, "live/a")
	f := func(name, query string, status int, says string, header ...string) {
		t.Helper()
		resp := view(t, http.DefaultClient, n.URL("http", "/live/a.flv?"+query), header...)
		if resp.StatusCode != status {
			t.Errorf("%s: %s, want %d", name, resp.Status, status)
		}
		if resp.Header.Get("Access-Control-Allow-Origin") == "" {
			t.Errorf("%s: a page cannot read the answer", name)
		}
		if status == http.StatusOK {
			resp.Body.Close()
			return
		}
		if b, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(b), says) || strings.Contains(string(b), playSecret) {
			t.Errorf("%s: %q, %v; want %q", name, b, err, says)
		}
	}
	good := auth.SignPlay(playSecret, "live/a", time.Now().Add(time.Hour))
	f("signed", good, 200, "")
	f("unsigned", "", 401, "sign")
	f("for another", auth.SignPlay(playSecret, "live/b", time.Now().Add(time.Hour)), 401, "sign")
	f("expired", auth.SignPlay(playSecret, "live/a", time.Now().Add(-time.Hour)), 403, "expired")
	f("from a page of ours", good, 200, "", "Referer", "https://example.com/live")
	f("from another's page", good, 403, "page", "Referer", "https://evil.example/")
	f("from a good address", good, 200, "", "X-Forwarded-For", "198.51.100.1")
	f("from a denied address", good, 403, "address", "X-Forwarded-For", "203.0.113.7")
}

// TestStorm: refusals become slow for the address they come from, and for no other;
// who is let in is let in at once, also from there.
func TestStorm(t *testing.T) {
	n := startGuarded(t, "--set", "auth.play_secrets=["+playSecret+"]",
		"--set", "auth.storm.free=2", "--set", "auth.storm.first_delay=5s", "--set", "auth.storm.max_delay=5s")
	defer publish(t, n.URL("rtmp", "/live/a?key=static-key"))()
	awaitStream(t, n, "live/a")
	took := func(from, query string, status int) time.Duration {
		t.Helper()
		began := time.Now()
		resp := view(t, http.DefaultClient, n.URL("http", "/live/a.flv?"+query), "X-Forwarded-For", from)
		if resp.StatusCode != status {
			t.Errorf("from %s: %s, want %d", from, resp.Status, status)
		}
		resp.Body.Close()
		return time.Since(began)
	}
	const storm, calm = "198.51.100.1", "198.51.100.2"
	good := auth.SignPlay(playSecret, "live/a", time.Now().Add(time.Hour))
	var seen []string
	for i := range 4 {
		d := took(storm, "", 401)
		seen = append(seen, fmt.Sprint(d))
		if i >= 2 && d < 4500*time.Millisecond {
			t.Errorf("refusals took %v: the third and later must take five seconds", seen)
		}
	}
	if d := took(calm, "", 401); d > 4500*time.Millisecond {
		t.Errorf("another address waits %v for its refusal", d)
	}
	if d := took(storm, good, 200); d > 4500*time.Millisecond {
		t.Errorf("a good request from the same address waits %v", d)
	}
}
