package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"millrace/internal/config"
	"millrace/internal/flv"
	"millrace/internal/stream"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// One for the whole process, for the Date header.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		// Sees at its next tick, ten seconds apart, that the server has ended.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

// journal is a log that is written while it is read.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// lines returns the lines with the given msg.
func (j *journal) lines(t *testing.T, msg string) []map[string]any {
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

// trial is a node in this process.
type trial struct {
	*node
	file string
	log  *journal
}

// built returns a node on ports of its own, with text as its file. It does not run;
// its listeners are closed at the end of the test.
func built(t *testing.T, text string) *trial {
	t.Helper()
	tr := &trial{file: filepath.Join(t.TempDir(), "node.yaml"), log: &journal{}}
	tr.write(t, text)
	src := config.Sources{File: tr.file}
	for _, scheme := range []string{"rtmp", "http", "admin"} {
		src.Flags = append(src.Flags, config.Flag{Name: "--" + scheme, Key: "address." + scheme, Text: "127.0.0.1:0"})
	}
	loaded, err := config.Load(src)
	if err != nil {
		t.Fatal(err)
	}
	if tr.node, err = build(loaded, src, newLog(loaded.Log, tr.log)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.close)
	return tr
}

func (tr *trial) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(tr.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// start runs the node until the test ends.
func (tr *trial) start(t *testing.T) {
	t.Helper()
	end, over := make(chan os.Signal, 2), make(chan error, 1)
	go func() { over <- tr.run(signals{end: end}) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		end <- syscall.SIGTERM
		end <- syscall.SIGTERM
		if err := <-over; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

// url returns an address at the listener of a scheme.
func (tr *trial) url(scheme, path string) string {
	for _, o := range tr.opened {
		if o.scheme == scheme {
			return "http://" + o.ln.Addr().String() + path
		}
	}
	return "nowhere:" + scheme
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
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

// publish makes a live stream without a connection.
func (tr *trial) publish(t *testing.T, name stream.Name) {
	t.Helper()
	p, err := tr.hub.Publish(time.Now(), name, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Write(time.Now(), flv.New(flv.Video, 0, []byte{0x17, 1, 0, 0, 0, 9})); err != nil {
		t.Fatal(err)
	}
}

// TestNamesOfPrivateStreams: the front page lists streams only where anyone may
// play them, also when that changes at a reload.
func TestNamesOfPrivateStreams(t *testing.T) {
	const secrets = "auth:\n  play_secrets: [0123456789abcdef0123456789abcdef]\n"
	open := built(t, "")
	open.publish(t, "live/hidden")
	list := open.liveList()
	if live := list(); len(live) != 1 || live[0].Name != "live/hidden" || live[0].Video != "h264" {
		t.Errorf("an open node lists %+v", live)
	}
	open.write(t, secrets)
	open.reload()
	if live := list(); len(live) != 0 {
		t.Errorf("after a reload with play_secrets it lists %+v", live)
	}
	open.write(t, "")
	open.reload()
	if live := list(); len(live) != 1 {
		t.Errorf("open again it lists %+v", live)
	}

	closed := built(t, secrets)
	closed.publish(t, "live/hidden")
	closed.start(t)
	if status, body := get(t, closed.url("http", "/watch/streams.json")); status != 404 || strings.Contains(body, "hidden") {
		t.Errorf("a private node answers %d %s", status, body)
	}
}

func TestBanner(t *testing.T) {
	tr := built(t, "")
	var b bytes.Buffer
	tr.banner(&b)
	for _, o := range tr.opened {
		if !strings.Contains(b.String(), o.ln.Addr().String()) {
			t.Errorf("the banner lacks %s of %s:\n%s", o.ln.Addr(), o.scheme, b.String())
		}
	}
	for _, want := range []string{"rtmp://", "/live/NAME.flv", "/watch/live/NAME", "/v1/streams"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the banner lacks %s:\n%s", want, b.String())
		}
	}
	for _, c := range []struct{ addr, want string }{
		{"[::]:1935", "127.0.0.1:1935"},
		{"0.0.0.0:8080", "127.0.0.1:8080"},
		{"192.0.2.1:80", "192.0.2.1:80"},
		{"[2001:db8::1]:80", "[2001:db8::1]:80"},
		{"a pipe", "a pipe"},
	} {
		if got := reachable(address(c.addr)); got != c.want {
			t.Errorf("%s can be reached at %s, want %s", c.addr, got, c.want)
		}
	}
}

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// TestProgram: a signal drains, and the exit code of the program tells a drain
// from a refusal.
func TestProgram(t *testing.T) {
	end := make(chan os.Signal, 1)
	end <- syscall.SIGTERM
	f := func(want int, says string, args ...string) {
		t.Helper()
		var out, errs journal
		if code := run(args, []string{"PATH=/bin"}, signals{end: end}, &out, &errs); code != want {
			t.Errorf("%v: exit code %d, want %d: %s", args, code, want, errs.String())
		}
		if !strings.Contains(out.String()+errs.String(), says) {
			t.Errorf("%v does not say %q: %s%s", args, says, out.String(), errs.String())
		}
	}
	f(exitOK, "millrace node", "--version")
	f(exitOK, "--check-config", "--help")
	f(exitOK, "good", "--check-config")
	f(exitRefused, "--nonsense", "--nonsense")
	f(exitRefused, "role", "--role", "centre")
	f(exitRefused, "KEY=VALUE", "--set", "nothing")
	f(exitRefused, "max_viewers", "--set", fmt.Sprintf("httpflv.max_viewers=%d", 1_000_000), "--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--admin", "")
	f(exitOK, `"msg":"drained: no viewer is left"`, "--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0")
}
