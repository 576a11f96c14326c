package e2e

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"millrace/internal/flv"
	"millrace/internal/rtmp"
)

// get returns status and body of a GET.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// publish publishes a small stream by hand until stop is called: a keyframe, then a
// frame each 20 ms.
func publish(t *testing.T, url string) (stop func()) {
	t.Helper()
	return publishBy(t, rtmp.DefaultClientConfig(), url)
}

// publishBy is publish with a client of its own settings.
func publishBy(t *testing.T, cfg rtmp.ClientConfig, url string) (stop func()) {
	t.Helper()
	cfg.Timeout = patience
	ctx, cancel := context.WithCancel(t.Context())
	c, err := rtmp.Dial(ctx, url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Publish(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer c.Close()
		for i, tick := int64(0), time.NewTicker(20*time.Millisecond); ; i++ {
			head := byte(0x27)
			if i%50 == 0 {
				head = 0x17
			}
			if c.Write(flv.New(flv.Video, 20*i, append([]byte{head, 1, 0, 0, 0}, make([]byte, 400)...))) != nil {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				tick.Stop()
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

// watch opens a stream and returns its tags as they are read.
func watch(t *testing.T, url string) (*http.Response, *flv.Reader) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s: %s: %s", url, resp.Status, b)
	}
	r := flv.NewReader(resp.Body, 1<<20)
	if _, err := r.Read(); err != nil {
		t.Fatal(err)
	}
	return resp, r
}

func TestFlagsOfTheProgram(t *testing.T) {
	node := Build(t, "cmd/node")
	run := func(env []string, args ...string) (int, string) {
		cmd := exec.Command(node, args...)
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("role: center\nrtmp:\n  handshake_timeot: 5s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()

	for name, c := range map[string]struct {
		env  []string
		args []string
		code int
		says []string
	}{
		"version":        {nil, []string{"--version"}, 0, []string{"millrace node"}},
		"help":           {nil, []string{"--help"}, 0, []string{"--check-config", "--config"}},
		"check":          {nil, []string{"--check-config"}, 0, []string{"good"}},
		"unknown flag":   {nil, []string{"--rmtp", "x"}, 2, []string{"--rmtp"}},
		"unknown role":   {nil, []string{"--role", "centre", "--check-config"}, 2, []string{"--role", "center, relay or edge"}},
		"unknown key":    {nil, []string{"--config", bad, "--check-config"}, 2, []string{"bad.yaml:3", "handshake_timeot", "handshake_timeout"}},
		"no such file":   {nil, []string{"--config", "/nowhere.yaml"}, 2, []string{"/nowhere.yaml"}},
		"bad variable":   {[]string{"MILLRACE_STREAM_GRACE=-1s"}, []string{"--check-config"}, 2, []string{"MILLRACE_STREAM_GRACE", "grace", "0s to 10m"}},
		"typo in --set":  {nil, []string{"--set", "stream.grce=5s", "--check-config"}, 2, []string{"stream.grce", "stream.grace"}},
		"set of nothing": {nil, []string{"--set", "stream.grace", "--check-config"}, 2, []string{"KEY=VALUE"}},
		"address in use": {nil, []string{"--rtmp", taken.Addr().String(), "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, 2, []string{"address.rtmp", "address already in use: use --rtmp 127.0.0.1:"}},
		"checked viewers": {
			nil, []string{"--set", "httpflv.max_viewers=900000", "--check-config"}, 2, []string{"httpflv.max_viewers", "descriptors"},
		},
		"open admin": {nil, []string{"--admin", "0.0.0.0:0"}, 2, []string{"admin.token"}},
		"too many viewers for the descriptors": {
			nil,
			[]string{"--set", "httpflv.max_viewers=900000", "--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"},
			2,
			[]string{"httpflv.max_viewers", "descriptors"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			code, out := run(c.env, c.args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, s := range c.says {
				if !strings.Contains(out, s) {
					t.Errorf("does not say %q:\n%s", s, out)
				}
			}
		})
	}
}

func TestReloadTouchesNoConnection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("auth:\n  publish_keys: {live: [first-key]}\n")
	n := StartNode(t, "--config", file)
	defer publish(t, n.URL("rtmp", "/live/a?key=first-key"))()
	_, viewer := watch(t, n.URL("http", "/live/a.flv"))

	write("auth:\n  publish_keys: {live: [second-key]}\nlog:\n  level: debug\n")
	n.Signal(t, syscall.SIGHUP)
	n.AwaitMessage(t, "reloaded", "changes", "2")
	for _, key := range []string{"first-key", "second-key"} {
		if line := n.Output(); strings.Contains(line, key) {
			t.Errorf("the log shows the key %q", key)
		}
	}
	for range 50 {
		if _, err := viewer.Read(); err != nil {
			t.Fatalf("the viewer after the reload: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := rtmp.Dial(ctx, n.URL("rtmp", "/live/b?key=first-key"), rtmp.DefaultClientConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Publish(ctx); err == nil {
		t.Error("the old key still lets a publisher in")
	}
	publish(t, n.URL("rtmp", "/live/b?key=second-key"))()

	write("auth:\n  publish_kys: {}\n")
	n.Signal(t, syscall.SIGHUP)
	l := n.AwaitMessage(t, "reload refused, the old settings stay")
	if !strings.Contains(l.Text("err"), "publish_kys") {
		t.Errorf("the refusal says %q", l.Text("err"))
	}
	publish(t, n.URL("rtmp", "/live/c?key=second-key"))()
	if _, err := viewer.Read(); err != nil {
		t.Errorf("the viewer after the refused reload: %v", err)
	}
}

func TestDrain(t *testing.T) {
	n := StartNode(t, "--set", "drain.deadline=2m", "--set", "httpflv.drain_spread=100ms")
	defer publish(t, n.URL("rtmp", "/live/a"))()
	resp, viewer := watch(t, n.URL("http", "/live/a.flv"))
	if code, _ := get(t, n.URL("admin", "/healthz")); code != http.StatusOK {
		t.Errorf("healthz says %d before", code)
	}

	n.Signal(t, syscall.SIGTERM)
	n.AwaitMessage(t, "draining: nobody new is let in; a second signal ends at once")
	if code, body := get(t, n.URL("admin", "/healthz")); code != http.StatusServiceUnavailable || !strings.Contains(body, "draining") {
		t.Errorf("healthz says %d %q while draining", code, body)
	}
	if code, _ := get(t, n.URL("http", "/live/a.flv")); code != http.StatusServiceUnavailable {
		t.Errorf("a new viewer gets %d, want 503", code)
	}
	for range 20 {
		if _, err := viewer.Read(); err != nil {
			t.Fatalf("a viewer that was there: %v", err)
		}
	}
	resp.Body.Close() // the last viewer leaves, which ends the drain
	if code := n.Exit(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	n := StartNode(t, "--set", "drain.deadline=1h", "--set", "httpflv.drain_spread=0s")
	defer publish(t, n.URL("rtmp", "/live/a"))()
	_, viewer := watch(t, n.URL("http", "/live/a.flv"))
	n.Signal(t, syscall.SIGTERM)
	n.AwaitMessage(t, "draining: nobody new is let in; a second signal ends at once")
	n.Signal(t, syscall.SIGINT)
	var err error
	for err == nil {
		_, err = viewer.Read()
	}
	if err == io.EOF {
		t.Error("the viewer's body ends properly: a player would take that for the end of the programme")
	}
	if code := n.Exit(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	n.AwaitMessage(t, "viewer left", "reason", "draining")
}

func TestDeadlineClosesWhoStays(t *testing.T) {
	n := StartNode(t, "--set", "drain.deadline=1s", "--set", "httpflv.drain_spread=0s")
	defer publish(t, n.URL("rtmp", "/live/a"))()
	watch(t, n.URL("http", "/live/a.flv"))
	n.Signal(t, syscall.SIGTERM)
	if code := n.Exit(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	n.AwaitMessage(t, "viewer left", "reason", "draining")
	n.AwaitMessage(t, "rtmp connection ended", "reason", "draining")
}
