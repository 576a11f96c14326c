package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// readRepo returns a file of the repository.
func readRepo(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// freePort returns an address that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// TestDemo runs what `make demo` runs: it must say where to look, a stream must be
// there, and Ctrl-C must end it and the node.
func TestDemo(t *testing.T) {
	rtmp, http, admin := freePort(t), freePort(t), freePort(t)
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd := exec.Command(Build(t, "tools/demo"), "--node", Build(t, "cmd/node"), "--rtmp", rtmp, "--http", http, "--admin", admin)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill()
	text := func() string {
		b, err := os.ReadFile(said.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}

	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); !strings.Contains(text(), "Ctrl-C ends it"); <-look.C {
		if time.Now().After(end) {
			t.Fatalf("the demo is not ready after %v:\n%s", patience, text())
		}
	}
	awaitURL(t, "http://"+admin+"/v1/streams/live/demo")
	for _, url := range []string{
		"http://" + http + "/watch/live/demo", "http://" + http + "/live/demo.flv",
		"rtmp://" + rtmp + "/live/demo", "http://" + admin + "/v1/streams",
	} {
		if !strings.Contains(text(), url) {
			t.Errorf("the demo does not name %s:\n%s", url, text())
		}
	}
	_, r := watch(t, "http://"+http+"/live/demo.flv")
	for range 100 {
		if _, err := r.Read(); err != nil {
			t.Fatalf("read the demo's stream: %v", err)
		}
	}

	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("after Ctrl-C: %v\n%s", err, text())
		}
	case <-time.After(patience):
		t.Fatalf("the demo did not end within %v of Ctrl-C:\n%s", patience, text())
	}
	if c, err := net.Dial("tcp", http); err == nil {
		c.Close()
		t.Error("the demo has ended and the node has not")
	}
}

// awaitURL waits until a URL answers 200.
func awaitURL(t *testing.T, url string) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-look.C {
		if status, _ := get(t, url); status == 200 {
			return
		}
	}
	t.Fatalf("%s does not answer 200 after %v", url, patience)
}
