package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"golang.org/x/sys/unix"
)

// TestOutOfDescriptors floods both ports of a node that may have few descriptors:
// operators still get in, viewers who play go on, and the node lives.
func TestOutOfDescriptors(t *testing.T) {
	const limit = 600 // 344 of them for connections, less than two ports could take otherwise
	n := StartNodeLimited(t, limit)
	stop := publish(t, n.URL("rtmp", "/live/a"))
	defer stop()
	resp, tags := watch(t, n.URL("http", "/live/a.flv"))
	defer resp.Body.Close()
	for _, scheme := range []string{"rtmp", "http"} {
		for range limit {
			c, err := net.Dial("tcp", n.Addr(scheme))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
	}
	n.AwaitMessage(t, "connection refused", "reason", "over_limit")
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	for range 5 {
		resp, err := client.Get(n.URL("admin", "/healthz"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	for range 50 {
		if _, err := tags.Read(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEndInTime ends a node whose viewers, on shards and not, are to be closed over
// more time than there is: it ends by its deadline, and at once after a second signal.
func TestEndInTime(t *testing.T) {
	for _, tt := range []struct {
		name   string
		second bool
	}{
		{"by the deadline", false},
		{"a second signal while viewers are being closed", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			deadline := "5s"
			if tt.second {
				deadline = "62s" // the spread begins at once
			}
			n := StartNode(t, "--set", "drain.deadline="+deadline, "--set", "httpflv.drain_spread=60s")
			defer publish(t, n.URL("rtmp", "/live/a"))()
			for range 10 {
				resp, tags := watch(t, n.URL("http", "/live/a.flv"))
				defer resp.Body.Close()
				go func() {
					for err := error(nil); err == nil; {
						_, err = tags.Read()
					}
				}()
				conn, _, _, err := ws.Dial(t.Context(), n.URL("ws", "/live/a.flv"))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				go func() { _, _ = io.Copy(io.Discard, conn) }()
			}
			began := time.Now()
			n.Signal(t, syscall.SIGTERM)
			n.AwaitMessage(t, "draining: nobody new is let in; a second signal ends at once")
			if tt.second {
				n.AwaitMessage(t, "the time of the viewers is over: those who remain are closed")
				n.Signal(t, syscall.SIGTERM)
			}
			if code := n.Exit(t); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if took := time.Since(began); took > 50*time.Second { // the spread is 60 s
				t.Errorf("took %v", took)
			}
		})
	}
}

// TestStuckLog stops reading what the node logs: it serves on, and ends when told to.
func TestStuckLog(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const size = 4096
	if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, size); err != nil {
		t.Skipf("skipped: a pipe cannot be made small: %v", err)
	}
	node := exec.Command(Build(t, "cmd/node"), nodePorts...)
	node.Stderr = w
	node.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- node.Wait() }()
	defer node.Process.Kill()
	w.Close()

	admin := ""
	for s := bufio.NewScanner(r); s.Scan(); {
		var l Line
		_ = json.Unmarshal(s.Bytes(), &l)
		if l.Text("scheme") == "admin" {
			admin = "http://" + l.Text("addr")
		}
		if l.Text("msg") == "ready" {
			break
		}
	}
	for range 3 * size / 100 { // a reload has a line of 100 bytes
		if err := node.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		if code, body := get(t, admin+"/healthz"); code != http.StatusOK {
			t.Fatalf("healthz says %d %q", code, body)
		}
	}
	if err := node.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("it runs on")
	}
}
