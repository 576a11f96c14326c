package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"testing"
	"time"
)

// readJSON reads a JSON answer into v.
func readJSON(t *testing.T, url string, v any) {
	t.Helper()
	status, body := get(t, url)
	if status != http.StatusOK {
		t.Fatalf("%s: %d %s", url, status, body)
	}
	if err := json.Unmarshal([]byte(body), v); err != nil {
		t.Fatalf("%s: %v in %s", url, err, body)
	}
}

// ask sends a request without a body and returns status and body.
func ask(t *testing.T, method, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// streamFigures are those of /v1/streams that a test looks at.
type streamFigures struct {
	Video struct {
		Codec, Profile, Level string
		Width, Height         int
		FPS                   float64
		GOP                   int64 `json:"gop_ms"`
	}
	Audio struct {
		Codec, Profile string
		SampleRate     int `json:"sample_rate"`
		Channels       int
	}
	Bitrate   int64 `json:"bitrate_bps"`
	Viewers   int
	BytesIn   uint64            `json:"bytes_in"`
	BytesOut  uint64            `json:"bytes_out"`
	Drops     map[string]uint64 `json:"drops"`
	Publisher struct {
		ID    uint64
		Agent string
	}
}

// TestStreamFigures compares what the API says of a stream of ffmpeg with what
// ffmpeg was told to send.
func TestStreamFigures(t *testing.T) {
	n := StartNode(t)
	ctx, cancel := context.WithCancel(t.Context())
	push := exec.CommandContext(ctx, Program(t, "ffmpeg"), "-nostdin", "-v", "error",
		"-re", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25", "-re", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000",
		"-c:v", "libx264", "-preset", "ultrafast", "-profile:v", "main", "-level:v", "3.1", "-g", "50", "-keyint_min", "50", "-sc_threshold", "0",
		"-pix_fmt", "yuv420p", "-c:a", "aac", "-ac", "2", "-f", "flv", n.URL("rtmp", "/live/a"))
	var said bytes.Buffer
	push.Stderr = &said
	if err := push.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); push.Wait() }()
	awaitStream(t, n, "live/a")
	watch(t, n.URL("http", "/live/a.flv"))

	var got streamFigures
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); got.Video.FPS == 0 || got.Bitrate == 0 || got.BytesOut == 0; <-look.C {
		if time.Now().After(end) {
			t.Fatalf("no figures after %v: %+v; ffmpeg says %s", patience, got, said.String())
		}
		readJSON(t, n.URL("admin", "/v1/streams/live/a"), &got)
	}
	v, a := got.Video, got.Audio
	if v.Codec != "h264" || v.Profile == "" || v.Level != "3.1" || v.Width != 640 || v.Height != 360 || v.FPS < 24.5 || v.FPS > 25.5 || v.GOP < 1990 || v.GOP > 2010 {
		t.Errorf("video is %+v", v)
	}
	if a.Codec != "aac" || a.Profile != "LC" || a.SampleRate != 48000 || a.Channels != 2 {
		t.Errorf("audio is %+v", a)
	}
	if got.Viewers != 1 || got.BytesIn == 0 || got.Publisher.ID == 0 || got.Drops == nil {
		t.Errorf("the rest is %+v", got)
	}
}

// TestKick ends a viewer and then the publisher, each with its reason.
func TestKick(t *testing.T) {
	n := StartNode(t, "--set", "stream.grace=0s")
	defer publish(t, n.URL("rtmp", "/live/a"))()
	awaitStream(t, n, "live/a")
	_, kicked := watch(t, n.URL("http", "/live/a.flv"))
	var first struct{ Sessions []struct{ ID uint64 } }
	readJSON(t, n.URL("admin", "/v1/sessions?action=play"), &first)
	if len(first.Sessions) != 1 {
		t.Fatalf("viewers are %+v", first)
	}
	_, stays := watch(t, n.URL("http", "/live/a.flv"))

	one := n.URL("admin", fmt.Sprintf("/v1/sessions/%d", first.Sessions[0].ID))
	if status, body := ask(t, http.MethodDelete, one); status != http.StatusOK || body == "" {
		t.Errorf("the kick: %d %s", status, body)
	}
	n.AwaitMessage(t, "viewer left", "reason", "kicked")
	for err := error(nil); err == nil; {
		_, err = kicked.Read()
	}
	for range 20 {
		if _, err := stays.Read(); err != nil {
			t.Fatalf("the other viewer: %v", err)
		}
	}
	if status, body := ask(t, http.MethodDelete, one); status != http.StatusNotFound {
		t.Errorf("a second kick: %d %s", status, body)
	}
	if status, body := ask(t, http.MethodPost, n.URL("admin", "/v1/streams/live/a/kick?who=publisher")); status != http.StatusOK {
		t.Errorf("the kick of the publisher: %d %s", status, body)
	}
	n.AwaitMessage(t, "rtmp connection ended", "reason", "kicked")
	for err := error(nil); err == nil; {
		_, err = stays.Read()
	}
	n.AwaitMessage(t, "viewer left", "reason", "stream_ended")
}
