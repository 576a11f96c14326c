// Package runtest is what the tests of programs have in common: a program that runs until
// its test ends, a log that is read while it is written, requests, and waiting for what
// nothing announces.
package runtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"
)

// Main runs the tests of a program and fails when they leave goroutines behind.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m,
		// One for the whole process, for the Date header.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		// Sees at its next tick, ten seconds apart, that the server has ended.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

// Journal is a log in JSON that is written while it is read.
type Journal struct {
	// Guarded by mu.
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write adds lines to the log.
func (j *Journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(b)
}

// String returns the log.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// Lines returns the lines with the given msg.
func (j *Journal) Lines(t *testing.T, msg string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for l := range strings.Lines(j.String()) {
		var attrs map[string]any
		if err := json.Unmarshal([]byte(l), &attrs); err != nil {
			t.Fatalf("not JSON: %q: %v", l, err)
		}
		if attrs["msg"] == msg {
			out = append(out, attrs)
		}
	}
	return out
}

// Await waits for a line with the given msg and returns the first.
func (j *Journal) Await(t *testing.T, msg string) map[string]any {
	t.Helper()
	var lines []map[string]any
	if !comes(func() bool { lines = j.Lines(t, msg); return len(lines) > 0 }) {
		t.Fatalf("not in the log: %s\n%s", msg, j)
	}
	return lines[0]
}

// Until repeats f, which nothing announces, until it is true.
func Until(t *testing.T, what string, f func() bool) {
	t.Helper()
	if !comes(f) {
		t.Fatalf("still not: %s", what)
	}
}

// patience is how long is waited for what must come.
const patience = time.Minute

// comes repeats f until it is true, and reports whether it was in time.
func comes(f func() bool) bool {
	tick, limit := time.NewTicker(10*time.Millisecond), time.NewTimer(patience)
	defer tick.Stop()
	defer limit.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-limit.C:
			return false
		}
	}
	return true
}

// Write writes a file.
func Write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Client keeps no connection open, so that a program can end when its tests do.
var Client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}

// Get asks for a URL.
func Get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	res, err := Client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// AwaitGet asks for a URL until the answer has some text.
func AwaitGet(t *testing.T, url, want string) {
	t.Helper()
	var code int
	var body string
	if !comes(func() bool { code, body = Get(t, url); return code == http.StatusOK && strings.Contains(body, want) }) {
		t.Fatalf("%s answers %d %s, want %s", url, code, body, want)
	}
}

// Start runs a program. The function that it returns sends it so many signals and waits
// for its end; it is called at the end of the test if not before, and does that once.
func Start(t *testing.T, signals int, program func(end <-chan os.Signal) error) (stop func()) {
	t.Helper()
	end, over := make(chan os.Signal, signals), make(chan error, 1)
	go func() { over <- program(end) }()
	stop = sync.OnceFunc(func() {
		http.DefaultClient.CloseIdleConnections()
		for range signals {
			end <- syscall.SIGTERM
		}
		if err := <-over; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Serve answers requests with handle at a URL until stop, or the end of the test. closing
// has those answered that wait.
func Serve(t *testing.T, handle func(*fasthttp.RequestCtx) bool, closing func() error) (url string, stop func()) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) { handle(ctx) }, CloseOnShutdown: true}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	stop = sync.OnceFunc(func() {
		_ = closing()
		_ = s.Shutdown()
		<-done
	})
	t.Cleanup(stop)
	return "http://" + ln.Addr().String(), stop
}

// Broken is a listener that nothing can mend.
type Broken struct{}

// Accept fails.
func (*Broken) Accept() (net.Conn, error) { return nil, errors.New("broken") }

// Close does nothing.
func (*Broken) Close() error { return nil }

// Addr returns an address of this machine.
func (*Broken) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9} }
