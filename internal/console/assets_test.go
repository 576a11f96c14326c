package console

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/gzip"
)

func TestPage(t *testing.T) {
	b := newBench(t, testConfig())
	files, err := loadFiles(fstest.MapFS{
		"index.html":             {Data: []byte("<!doctype html>" + strings.Repeat(" ", 100))},
		"assets/main-ABCDEF.js":  {Data: []byte(strings.Repeat("let x;", 100))},
		"assets/pic-ABCDEF.webp": {Data: []byte{1, 2, 3}},
		"icon.svg":               {Data: []byte("<svg/>")},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.files = files
	f := func(path string, status int, kind, cache, body string) {
		t.Helper()
		a := b.ask("GET", path, "")
		if a.status != status || a.head.Get("Content-Type") != kind || a.head.Get("Cache-Control") != cache || !strings.HasPrefix(a.body, body) {
			t.Errorf("%s: %d %s %s %.40q", path, a.status, a.head.Get("Content-Type"), a.head.Get("Cache-Control"), a.body)
		}
	}
	const html, forever = "text/html; charset=utf-8", "public, max-age=31536000, immutable"
	f("/", 200, html, "no-cache", "<!doctype html>")
	f("/index.html", 200, html, "no-cache", "<!doctype html>")
	f("/streams/live/show", 200, html, "no-cache", "<!doctype html>")
	f("/icon.svg", 200, "image/svg+xml", "no-cache", "<svg/>")
	f("/assets/main-ABCDEF.js", 200, "text/javascript; charset=utf-8", forever, "let x;")
	f("/assets/pic-ABCDEF.webp", 200, "application/octet-stream", forever, "\x01\x02\x03")
	f("/assets/main-OLDONE.js", 404, "text/plain; charset=utf-8", "", "no such part")
	f("/../../etc/passwd", 200, html, "no-cache", "<!doctype html>")
	for _, address := range []string{
		"/network/nodes/edge-1.example", "/network/links/relay-1/edge-1", "/plan/nodes/edge-1", "/plan/history", "/streams/live/show.flv", "/streams/live/a%2Fb%3F%23%25",
		"/streams/assets/x", "/events?kind=switch&node=edge-1", "/scheduling?domain=play.example&ip=192.0.2.1", "/documents/coverage", "/nothing", "/%00",
	} {
		f(address, 200, html, "no-cache", "<!doctype html>")
	}
	for _, address := range []string{"/favicon.ico", "/robots.txt", "/.env", "/console-OLDONE.js"} {
		f(address, 404, "text/plain; charset=utf-8", "", "no such part")
	}
	if a := b.ask("GET", "/api/streams/live/show", ""); a.status != 404 || a.head.Get("Content-Type") != "application/json" {
		t.Errorf("an unknown path of the API: %d %v", a.status, a.head)
	}

	a := b.ask("GET", "/assets/main-ABCDEF.js", "", "Accept-Encoding", "gzip")
	if r, err := gzip.NewReader(strings.NewReader(a.body)); err != nil || a.head.Get("Content-Encoding") != "gzip" {
		t.Errorf("packed: %v %v %v", r, err, a.head)
	}
	if a := b.ask("GET", "/assets/pic-ABCDEF.webp", "", "Accept-Encoding", "gzip"); a.head.Get("Content-Encoding") != "" {
		t.Error("packed though that makes it larger")
	}
	if a := b.ask("GET", "/icon.svg", "", "If-None-Match", a.head.Get("Etag")+", "+files["/icon.svg"].etag); a.status != 304 || a.body != "" {
		t.Errorf("asked again: %d %q", a.status, a.body)
	}
}

// TestNotOurs leaves to others what is theirs.
func TestNotOurs(t *testing.T) {
	b := newBench(t, testConfig())
	for _, r := range [][2]string{{"GET", "/v1/snapshot"}, {"POST", "/v1/heartbeat"}, {"POST", "/"}, {"PUT", "/plan"}, {"OPTIONS", "/x"}} {
		if a := b.ask(r[0], r[1], ""); a.status != -1 {
			t.Errorf("%s %s is answered: %d", r[0], r[1], a.status)
		}
	}
}

// TestEmbedded has what a browser needs to begin.
func TestEmbedded(t *testing.T) {
	a := newBench(t, testConfig()).ask("GET", "/", "")
	if a.status != 200 || !strings.Contains(a.body, "<html") {
		t.Errorf("the page: %d %.80q", a.status, a.body)
	}
}
