package console

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("time.Sleep")) // the clock of the HTTP library
}

// TestOverHTTP is a browser's way: a log-in, and live through a connection that the
// server gives away.
func TestOverHTTP(t *testing.T) {
	b := newBench(t, testConfig())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		if !b.Handle(ctx) {
			ctx.Error("not the console's\n", 404)
		}
	}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- srv.Serve(ln) }()
	go func() { done <- b.Run(ctx) }()
	transport := &http.Transport{}
	defer func() {
		cancel()
		_ = b.Close()
		_ = srv.Shutdown()
		transport.CloseIdleConnections()
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}()

	base := "http://" + ln.Addr().String()
	do := func(method, path, body, cookie string) *http.Response {
		t.Helper()
		q, err := http.NewRequestWithContext(ctx, method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Origin", base)
		q.Header.Set("Cookie", cookie)
		r, err := transport.RoundTrip(q) // it asks for gzip, and unpacks
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Body.Close() })
		return r
	}
	r := do("POST", "/api/login", `{"name":"ana","password":"`+password+`"}`, "")
	if r.StatusCode != 200 {
		t.Fatalf("log-in: %s", r.Status)
	}
	cookie, _, _ := strings.Cut(r.Header.Get("Set-Cookie"), ";")

	r = do("GET", "/api/live", "", cookie)
	h := r.Header
	if r.StatusCode != 200 || !r.Uncompressed || h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" ||
		h.Get("X-Content-Type-Options") != "nosniff" || r.ContentLength >= 0 {
		t.Errorf("live: %s %v, length %d", r.Status, h, r.ContentLength)
	}
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<20)
	for _, want := range []string{"retry: 1000", "", "event: network"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %.80q %v, want %q", lines.Text(), lines.Err(), want)
		}
	}
	b.fleet.happen("node_up")
	b.fleet.tick(1)
	for !strings.HasPrefix(lines.Text(), `data: {"events":[{`) {
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
	}
	if r := do("GET", "/api/live", "", "millrace=x"); r.StatusCode != 401 {
		t.Errorf("live for a stranger: %s", r.Status)
	}
	if r := do("GET", "/v1/snapshot", "", ""); r.StatusCode != 404 {
		t.Errorf("not the console's: %s", r.Status)
	}
	if r := do("HEAD", "/", "", ""); r.StatusCode != 200 || r.ContentLength <= 0 {
		t.Errorf("HEAD: %s, length %d", r.Status, r.ContentLength)
	}
}
