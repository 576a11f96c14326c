package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/internal/console"
	"millrace/tools/cluster"
)

// consoleWeb is where the console's page is made.
const consoleWeb = "../../internal/console/web"

// npm readies what the page is built and tested with, and returns its folder. What
// package-lock.json says is installed once.
func npm(t *testing.T) string {
	t.Helper()
	program := Program(t, "npm")
	lock, err := os.ReadFile(filepath.Join(consoleWeb, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	stamp := filepath.Join(consoleWeb, "node_modules", ".of-lock")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == string(lock) {
		return consoleWeb
	}
	cmd := exec.CommandContext(t.Context(), program, "ci", "--no-fund", "--no-audit")
	cmd.Dir = consoleWeb
	if out, err := cmd.CombinedOutput(); err != nil {
		if os.Getenv(require) != "" {
			t.Fatalf("npm ci: %v\n%s", err, out)
		}
		t.Skipf("skipped: npm ci cannot install what tests of the page need: %v", err)
	}
	if err := os.WriteFile(stamp, lock, 0o644); err != nil {
		t.Fatal(err)
	}
	return consoleWeb
}

// TestConsoleIsBuilt: what is embedded is what the sources give, and they have the right
// types.
func TestConsoleIsBuilt(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), Program(t, "npm"), "run", "--silent", "check")
	cmd.Dir = npm(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("npm run check: %v\n%s", err, out)
	}
}

// onlooker may look at the console and change nothing.
var onlooker = cluster.Operator{Name: "ben", Password: "ben only looks", Role: console.Reader}

// consoleNetwork is a center, two relays in datacenters of their own, of which relay-1 is
// nearer, an edge with a stream that browsers play, one that is published there, and who
// sends clients there.
func consoleNetwork(t *testing.T) cluster.Topology {
	t.Helper()
	top, err := cluster.Read(strings.NewReader(`
seed: 1
cluster_key: a-key-of-these-tests
nodes:
  - {id: center-1, role: center, region: core, datacenter: core}
  - {id: relay-1, role: relay, region: north, datacenter: north, upstreams: [center-1]}
  - {id: relay-2, role: relay, region: east, datacenter: east, upstreams: [center-1]}
  - {id: edge-1, role: edge, region: city, datacenter: city, upstreams: [relay-1, relay-2], centers: [center-1]}
regions:
  - {name: core, near: {north: 5, east: 5, city: 150}}
  - {name: north, near: {city: 5, east: 10}}
  - {name: east, near: {city: 40}}
  - {name: city}
routers:
  - {id: router-1}
scheduler:
  domain: play.test
  clients:
    - {prefix: 203.0.113.0/24, region: city}
links:
  - {from: edge-1, to: relay-1, delay: 5ms}
  - {from: edge-1, to: relay-2, delay: 40ms}
  - {from: edge-1, to: center-1, delay: 150ms}
  - {from: "relay-*", to: center-1, delay: 5ms}
streams:
  - {name: live/demo, source: clip, at: [center-1]}
  - {name: live/away, source: clip, at: [edge-1]}
`))
	if err != nil {
		t.Fatal(err)
	}
	top.Streams = append(top.Streams, cluster.Feed{Name: hostileName, Source: cluster.Frames, Kbps: 100, At: []string{"edge-1"}})
	return top
}

// hostileName is a script to who does not quote it, ends in what a mark turns around, and
// is as long as a name may be.
var hostileName = `live/<img src=x onerror="window.ran=1">` + strings.Repeat("x", 206) + "\u202egnp.exe"

// TestConsolePage uses the console as operators do, in Chromium: web/test/steps.mjs has
// what must hold.
func TestConsolePage(t *testing.T) {
	node, chromium, web := Program(t, "node"), Program(t, "chromium"), npm(t)
	const stream, pushed = "live/demo", "live/away"
	s := startSystem(t, consoleNetwork(t))
	s.awaitPlan(t, "router-1")
	s.awaitStreams(t, stream, "edge-1")
	s.awaitStreams(t, pushed, "relay-2")
	s.view(t, url.PathEscape(hostileName), time.Hour, "relay-2")
	watching := s.view(t, stream, time.Hour, "edge-1")
	s.view(t, pushed, time.Hour, "relay-2")

	pictures := filepath.Join(os.TempDir(), "millrace-console")
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		t.Fatal(err)
	}
	user := func(o cluster.Operator) map[string]string {
		return map[string]string{"name": o.Name, "password": o.Password}
	}
	given, err := json.Marshal(map[string]any{
		"base": "http://" + s.Ports("router-1").HTTP, "stream": stream, "pushed": pushed, "hostile": hostileName, "chromium": chromium, "pictures": pictures,
		"operator": user(operator), "guest": user(onlooker), "patience": patience.Milliseconds(),
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "test/page.mjs", string(given))
	cmd.Dir = web
	var faults strings.Builder
	cmd.Stderr = &faults
	in, out := pipes(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		command, ok := strings.CutPrefix(lines.Text(), "do ")
		if !ok {
			t.Log(lines.Text())
			continue
		}
		answer := "done"
		if order, err := s.topology.Parse(command); err != nil {
			answer = err.Error()
		} else if err := s.Do(t.Context(), order); err != nil {
			answer = err.Error()
		}
		if _, err := io.WriteString(in, answer+"\n"); err != nil {
			t.Error(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, faults.String())
	}
	select {
	case <-watching.done:
		t.Errorf("the player that watched meanwhile has ended: %v", watching.err)
	default:
	}
	t.Logf("screenshots: %s", pictures)
}

// pipes returns the ends of a program's input and output that are here.
func pipes(t *testing.T, cmd *exec.Cmd) (io.Writer, io.Reader) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return in, out
}
