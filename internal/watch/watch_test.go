package watch

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

func newWatch(t *testing.T, opt Options) *Watch {
	t.Helper()
	w, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// ask sends one request; headers come in pairs.
func ask(w *Watch, method, uri string, headers ...string) *fasthttp.RequestCtx {
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.Header.SetMethod(method)
	ctx.Request.SetRequestURI(uri)
	ctx.Request.Header.SetHost("example.test:8080")
	for i := 0; i+1 < len(headers); i += 2 {
		ctx.Request.Header.Set(headers[i], headers[i+1])
	}
	w.Handle(ctx)
	return ctx
}

func header(ctx *fasthttp.RequestCtx, name string) string {
	return string(ctx.Response.Header.Peek(name))
}

func TestRoutes(t *testing.T) {
	w := newWatch(t, Options{Streams: func() []Live { return nil }})
	f := func(method, path string, status int, contentType, body string) {
		t.Helper()
		ctx := ask(w, method, path)
		if got := ctx.Response.StatusCode(); got != status {
			t.Errorf("%s %s: status %d, want %d", method, path, got, status)
		}
		if got := header(ctx, "Content-Type"); !strings.HasPrefix(got, contentType) {
			t.Errorf("%s %s: content type %q, want %q", method, path, got, contentType)
		}
		if !bytes.Contains(ctx.Response.Body(), []byte(body)) {
			t.Errorf("%s %s: no %q in the answer:\n%.300s", method, path, body, ctx.Response.Body())
		}
	}
	f("GET", "/", 200, "text/html", "Live now")
	f("HEAD", "/", 200, "text/html", "")
	f("GET", "/watch/live/show", 200, "text/html", `id="video"`)
	f("GET", "/watch/live/show?token=a%26b", 200, "text/html", `id="video"`)
	f("GET", "/watch/live/show/deeper", 200, "text/html", `id="video"`)
	f("GET", "/watch/live%2Fshow", 200, "text/html", `id="video"`)
	f("GET", "/watch/player.js/show", 200, "text/html", `id="video"`)
	f("GET", "/watch/live/show.flv", 302, "", "")
	f("GET", "/watch", 302, "", "")
	f("GET", "/watch/", 302, "", "")
	f("GET", "/watch/live", 404, "text/plain", "two parts")
	f("GET", "/watch/live/", 404, "text/plain", "two parts")
	f("GET", "/other", 404, "text/plain", "/app/name.flv")
	f("GET", "/watch/mpegts.js", 200, "text/javascript", "mpegts")
	f("GET", "/watch/mpegts.js.LICENSE", 200, "text/plain", "Apache License")
	f("GET", "/watch/page.css", 200, "text/css", ":root")
	f("GET", "/watch/fetch.sh", 404, "text/plain", "two parts") // in the folder, not in the binary
	f("GET", "/watch/page.html", 404, "text/plain", "two parts")
	f("GET", "/favicon.ico", 200, "image/svg+xml", "<svg")
	f("GET", "/watch/streams.json", 200, "application/json", "[]")
	f("POST", "/", 405, "text/plain", "Only GET")
	f("DELETE", "/watch/live/show", 405, "text/plain", "Only GET")
}

// TestRedirect goes to a path of the node's own, with the query as it was.
func TestRedirect(t *testing.T) {
	w := newWatch(t, Options{})
	f := func(path, want string) {
		t.Helper()
		if got := header(ask(w, "GET", path), "Location"); got != want {
			t.Errorf("%s leads to %q, want %q", path, got, want)
		}
	}
	f("/watch/live/show.flv", "/watch/live/show")
	f("/watch/live/show.flv?expires=1&sign=ab%2F", "/watch/live/show?expires=1&sign=ab%2F")
	f("/watch/live/a%20b%0d%0aX:y.flv", "/watch/live/a%20b%0D%0AX:y")
	f("/watch", "/")
}

func TestEveryAnswerIsStrict(t *testing.T) {
	w := newWatch(t, Options{})
	for _, path := range []string{"/", "/watch/a/b", "/nothing", "/watch/watch.js", "/watch/streams.json"} {
		ctx := ask(w, "GET", path)
		csp := header(ctx, "Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "ws://example.test:8080") {
			t.Errorf("%s: policy %q", path, csp)
		}
		for _, bad := range []string{"unsafe", "*", "data:"} {
			if strings.Contains(csp, bad) {
				t.Errorf("%s: policy has %q: %s", path, bad, csp)
			}
		}
		if header(ctx, "X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: no nosniff", path)
		}
	}
}

// TestElsewhere: only where players are sent on may the page fetch from other nodes.
func TestElsewhere(t *testing.T) {
	csp := header(ask(newWatch(t, Options{Elsewhere: true}), "GET", "/watch/a/b"), "Content-Security-Policy")
	if !strings.Contains(csp, "connect-src 'self' http: https: ws://") || !strings.Contains(csp, "script-src 'self';") {
		t.Errorf("policy %q", csp)
	}
}

// TestHostCannotWriteThePolicy: what a client calls us is repeated only when plain.
func TestHostCannotWriteThePolicy(t *testing.T) {
	w := newWatch(t, Options{})
	for _, host := range []string{"a; script-src *", "a b", "", strings.Repeat("a", 300), "a'b", "a,b"} {
		ctx := ask(w, "GET", "/", "Host", host)
		if csp := header(ctx, "Content-Security-Policy"); !strings.Contains(csp, "connect-src 'self';") {
			t.Errorf("host %q is in the policy: %s", host, csp)
		}
	}
	if csp := header(ask(w, "GET", "/", "Host", "[::1]:8080"), "Content-Security-Policy"); !strings.Contains(csp, "ws://[::1]:8080") {
		t.Errorf("an IPv6 host is not in the policy: %s", csp)
	}
}

func TestCaching(t *testing.T) {
	w := newWatch(t, Options{})
	plain := ask(w, "GET", "/watch/mpegts.js")
	if got := header(plain, "Cache-Control"); got != "no-cache" {
		t.Errorf("without a version: %q, want no-cache", got)
	}
	versioned := ask(w, "GET", "/watch/mpegts.js?v=1")
	if got := header(versioned, "Cache-Control"); !strings.Contains(got, "immutable") {
		t.Errorf("with a version: %q, want immutable", got)
	}
	etag := header(plain, "ETag")
	again := ask(w, "GET", "/watch/mpegts.js", "If-None-Match", "W/"+etag)
	if got := again.Response.StatusCode(); got != 304 || len(again.Response.Body()) != 0 {
		t.Errorf("asked again: %d with %d bytes, want 304 with none", got, len(again.Response.Body()))
	}
	packed := ask(w, "GET", "/watch/mpegts.js", "Accept-Encoding", "gzip, br")
	if got := header(packed, "Content-Encoding"); got != "gzip" {
		t.Fatalf("content encoding %q, want gzip", got)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed.Response.Body()))
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(z)
	if err != nil || !bytes.Equal(unpacked, plain.Response.Body()) {
		t.Errorf("unpacked it is not the same: %v, %d and %d bytes", err, len(unpacked), len(plain.Response.Body()))
	}
}

// TestReferencesExist follows every address in pages and modules.
func TestReferencesExist(t *testing.T) {
	w := newWatch(t, Options{Streams: func() []Live { return nil }, RTMPPort: 1936})
	refs := regexp.MustCompile(`(?:src|href)="(/[^"]*)"|from "\./([^"]+)"`)
	seen := map[string]bool{}
	var follow func(path string)
	follow = func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		ctx := ask(w, "GET", path)
		if got := ctx.Response.StatusCode(); got != 200 {
			t.Errorf("%s is referred to, and answers %d", path, got)
		}
		if strings.Contains(path, "mpegts.js") {
			return
		}
		body := ctx.Response.Body()
		if bytes.Contains(body, []byte("http://")) && !strings.HasPrefix(path, "/watch/icon.svg") {
			t.Errorf("%s mentions another host", path)
		}
		if bytes.Contains(body, []byte("<style")) || regexp.MustCompile(`<script>|\son[a-z]+="|style="`).Match(body) {
			t.Errorf("%s has something inline, which the policy forbids", path)
		}
		for _, m := range refs.FindAllSubmatch(body, -1) {
			if len(m[2]) > 0 {
				follow("/watch/" + string(m[2]))
			} else {
				follow(string(m[1]))
			}
		}
	}
	follow("/")
	follow("/watch/live/show")
	for path := range seen {
		if strings.HasSuffix(path, ".js") {
			t.Errorf("%s is referred to without a version", path)
		}
	}
	if len(seen) < 9 {
		t.Errorf("only %d addresses found: %v", len(seen), seen)
	}
	if body := ask(w, "GET", "/watch/live/show").Response.Body(); !bytes.Contains(body, []byte(`data-rtmp-port="1936"`)) {
		t.Error("the page does not know the RTMP port")
	}
}

func TestList(t *testing.T) {
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := newWatch(t, Options{Streams: func() []Live {
		return []Live{{Name: "live/<b>", Since: since, Video: "h264", Width: 640, Height: 360, FPS: 30, Bitrate: 300000, Viewers: 2}}
	}})
	ctx := ask(w, "GET", "/watch/streams.json")
	var got []Live
	if err := json.Unmarshal(ctx.Response.Body(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Name != "live/<b>" || !got[0].Since.Equal(since) || got[0].Viewers != 2 {
		t.Errorf("got %+v", got)
	}
	if got := header(ctx, "Cache-Control"); got != "no-store" {
		t.Errorf("the list may be cached: %q", got)
	}
}

func TestPrivateList(t *testing.T) {
	w := newWatch(t, Options{})
	if got := ask(w, "GET", "/watch/streams.json").Response.StatusCode(); got != 404 {
		t.Errorf("a private list answers %d, want 404", got)
	}
	if body := ask(w, "GET", "/").Response.Body(); bytes.Contains(body, []byte(`id="streams"`)) {
		t.Error("the front page has a list although it is private")
	}
}

// TestPlayerIsTheReviewedOne compares mpegts.js with its recorded sum, as fetch.sh does.
func TestPlayerIsTheReviewedOne(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("assets", "mpegts.js.sha256"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := files.ReadFile("assets/mpegts.js")
	if err != nil {
		t.Fatal(err)
	}
	if got := sum(b); !strings.HasPrefix(string(want), got) {
		t.Errorf("mpegts.js has the sum %s, want %s", got, want)
	}
}
