package httpflv

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/auth"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// fetch asks n for a path and returns the answer.
func (n *node) fetch(method, path string, header http.Header) (*http.Response, string) {
	n.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, "http://"+n.addr+path, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	if header != nil {
		req.Header = header
	}
	tr := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return resp, string(text)
}

func TestHealth(t *testing.T) {
	cfg := quickly()
	cfg.MaxViewers = 1
	n := start(t, cfg, auth.DefaultConfig())
	n.publish("live/a").frames(3, 100)
	f := func(status int, text string) {
		t.Helper()
		for _, method := range []string{"GET", "HEAD"} {
			resp, got := n.fetch(method, healthPath, nil)
			want := text
			if method == "HEAD" {
				want = ""
			}
			if resp.StatusCode != status || got != want || resp.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %d %q %v, want %d %q", method, resp.StatusCode, got, resp.Header, status, want)
			}
			if origin := resp.Header.Values("Access-Control-Allow-Origin"); len(origin) != 1 || origin[0] != "*" {
				t.Errorf("%s: Access-Control-Allow-Origin %q, want one *", method, origin)
			}
			if reason := resp.Header.Get(reasonField); reason != strings.Trim(text, "\n") && status != 200 {
				t.Errorf("%s: %s %q", method, reasonField, reason)
			}
		}
	}
	f(200, "ok\n")
	r := n.get(get11("/live/a.flv"))
	r.wantFrames(0, 2)
	f(503, "over_limit\n")
	r.conn.Close()
	n.wantEnded(session.PeerClosed, 1)
	f(200, "ok\n")
	n.server.Drain()
	f(503, "draining\n")

	if resp, text := n.fetch("POST", healthPath, nil); resp.StatusCode != 405 || resp.Header.Get("Allow") == "" {
		t.Errorf("POST: %d %q", resp.StatusCode, text)
	}
	if resp, _ := n.fetch("OPTIONS", healthPath, nil); resp.StatusCode != 204 {
		t.Errorf("OPTIONS: %d", resp.StatusCode)
	}
	for protocol, byReason := range n.table.Refusals() {
		if len(byReason) > 0 {
			t.Errorf("%v: refusals counted: %v", protocol, byReason)
		}
	}
}

func TestHealthOnTheNodesPort(t *testing.T) {
	p := &placer{}
	n := startPlacing(t, quickly(), auth.DefaultConfig(), listen(t), p, true)
	if resp, text := n.fetch("GET", healthPath, nil); resp.StatusCode != 200 || text != "ok\n" {
		t.Errorf("%d %q", resp.StatusCode, text)
	}
}

// asScheduler returns the header of a signed question.
func asScheduler(c *auth.Cluster) http.Header {
	m := auth.Mark{Node: "scheduler", Via: []string{"scheduler"}, Purpose: auth.Probe}
	h := http.Header{}
	for line := range strings.Lines(string(AppendMarks(nil, Marks{Mark: m, Signature: c.Sign(time.Now(), m)}))) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		h.Set(name, value)
	}
	return h
}

func TestFigures(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	cluster := n.signing()
	n.server.self.Capacity = 125_000_000
	n.server.self.Refused = func() uint64 { return 7 }
	n.publish("live/b").frames(3, 100)
	n.publish("live/<é\">").frames(3, 100)
	gone := n.publish("live/c")
	gone.frames(3, 100)

	ask := func(query string) (Figures, string) {
		t.Helper()
		resp, text := n.fetch("GET", probePath+query, asScheduler(cluster))
		var got Figures
		if err := json.Unmarshal([]byte(text), &got); err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" {
			t.Fatalf("%d %q: %v", resp.StatusCode, text, err)
		}
		return got, text
	}
	n.get(get11("/live/b.flv")).wantFrames(0, 2)
	n.table.Refuse(session.RTMP, session.Unauthorized)
	n.table.Refuse(session.HTTPFLV, session.Elsewhere)
	n.table.Refuse(session.HTTPFLV, session.NotFound)
	n.table.Refuse(session.HTTPFLV, session.OverLimit)
	n.table.Refuse(session.WSFLV, session.Storm)

	n.fan.relayed.Add(1 << 40)
	eventually(t, "the load is measured", func() bool { return n.fan.Stats().Load > 0 })
	got, _ := ask("")
	if got.Load == 0 {
		t.Error("no load")
	}
	want := Figures{
		Node: "here", Capacity: 125_000_000, Viewers: 1, Refused: 9, Carried: 3, Load: got.Load,
		Streams: []stream.Name{"live/<é\">", "live/b", "live/c"},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	got, text := ask("?streams=0")
	if got.Carried != 3 || got.Streams != nil || strings.Contains(text, "streams") {
		t.Errorf("without names: %q", text)
	}
	// What is asked again is not made again, but for what decides whether to come.
	n.table.Refuse(session.WSFLV, session.Storm)
	if _, again := ask("?streams=0"); again != text {
		t.Errorf("asked again: %q, want %q", again, text)
	}
	n.server.Drain()
	if got, _ := ask("?streams=0"); !got.Draining || got.Refused != 10 {
		t.Errorf("while draining: %+v", got)
	}
}

// TestFiguresAreNotForStrangers: without a key anybody can write marks.
func TestFiguresAreNotForStrangers(t *testing.T) {
	n := start(t, quickly(), auth.DefaultConfig())
	n.publish("live/secret").frames(3, 100)
	none, err := auth.NewCluster(auth.ClusterConfig{})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"node":"here","draining":false,"full":false,"load":0,"viewers":0,"refused":0,"carried":0}`
	if resp, text := n.fetch("GET", probePath, asScheduler(none)); resp.StatusCode != 200 || strings.TrimSpace(text) != want {
		t.Errorf("%d %q, want %q", resp.StatusCode, text, want)
	}
	n.signing()
	for _, h := range []http.Header{nil, asScheduler(none)} {
		if resp, text := n.fetch("GET", probePath, h); resp.StatusCode != 403 || strings.Contains(text, "live/") {
			t.Errorf("%v: %d %q", h, resp.StatusCode, text)
		}
	}
}

func TestFiguresAreBounded(t *testing.T) {
	f := func(streams, length int) (told int) {
		t.Helper()
		cfg := stream.DefaultConfig()
		cfg.MaxStreams = 2 * maxStreams
		hub, err := stream.NewHub(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for i := range streams {
			name := fmt.Sprintf("live/%06d", i)
			name += strings.Repeat("\"", length-len(name))
			if _, err := hub.Publish(time.Now(), stream.Name(name), "owner", nil); err != nil {
				t.Fatal(err)
			}
		}
		count, names := carried(hub, true)
		if count != streams || !slices.IsSorted(names) {
			t.Errorf("%d streams: %d counted", streams, count)
		}
		text := encode(Figures{Node: strings.Repeat("n", auth.MaxNodeID), Streams: names, Carried: count, Load: 1 << 62, Refused: 1 << 63})
		if len(text) > maxFigures {
			t.Errorf("%d streams: %d bytes, at most %d", streams, len(text), maxFigures)
		}
		return len(names)
	}
	if got := f(100, 20); got != 100 {
		t.Errorf("%d of 100 names", got)
	}
	if got := f(maxStreams+1, 30); got != maxStreams {
		t.Errorf("%d names, want %d", got, maxStreams)
	}
	if got := f(5000, 250); got < 1000 || got >= 5000 {
		t.Errorf("%d of 5000 long names", got)
	}
}

// BenchmarkFigures is what a probe costs whose answer is not at hand.
func BenchmarkFigures(b *testing.B) {
	hub, err := stream.NewHub(stream.DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		if _, err := hub.Publish(time.Now(), stream.Name(fmt.Sprintf("live/stream-%06d", i)), "owner", nil); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		count, names := carried(hub, true)
		_ = encode(Figures{Streams: names, Carried: count})
	}
}
