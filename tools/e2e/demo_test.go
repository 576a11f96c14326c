package e2e

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"millrace/internal/fleet"
	"millrace/tools/cluster"
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

// TestDemo runs what `make demo` runs, without a terminal: it must say where to look,
// every edge must have the stream, and one that is published at an edge; the scheduler
// sends players to them; whoever logs in to the console sees them; a relay may die; and
// Ctrl-C must end it and the nodes.
func TestDemo(t *testing.T) {
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	Build(t, "cmd/node") // the demo looks for them beside itself
	Build(t, "cmd/scheduler")
	Build(t, "cmd/router")
	cmd := exec.Command(Build(t, "tools/localcluster"), "--port", "0")
	cmd.Stdout, cmd.Stderr = said, said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
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
	await := func(what string) {
		t.Helper()
		for end := time.Now().Add(patience); !strings.Contains(strings.Join(strings.Fields(text()), " "), what); <-look.C {
			if time.Now().After(end) {
				t.Fatalf("the demo has not said %q after %v:\n%s", what, patience, text())
			}
		}
	}

	await("quit: the end")
	pages := regexp.MustCompile(`http://(\S+)/watch/live/demo\n`).FindAllStringSubmatch(text(), -1)
	path := regexp.MustCompile(`http://\S+/v1/streams/live/demo/path`).FindString(text())
	ingest := regexp.MustCompile(`rtmp://\S+/live/mine`).FindString(text())
	if len(pages) != 3 || path == "" || ingest == "" {
		t.Fatalf("%d pages to watch, want one at each edge; path at %q; publish to %q:\n%s", len(pages), path, ingest, text())
	}
	await("live/demo encoder")
	stop := publishClip(t, ingest)
	for _, page := range pages {
		for _, stream := range []string{"live/demo", "live/mine"} {
			url := "http://" + page[1] + "/" + stream + ".flv"
			_, r := watch(t, url)
			for range 100 {
				if _, err := r.Read(); err != nil {
					t.Fatalf("read %s: %v", url, err)
				}
			}
		}
	}
	stop()
	awaitURL(t, path)
	t.Run("scheduler", func(t *testing.T) { demoScheduler(t, text()) })
	t.Run("console", func(t *testing.T) { demoConsole(t, text()) })
	io.WriteString(stdin, "kill relay-1\n")
	await("kill relay-1: done")
	await("relay-1 relay hub killed")

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
	if c, err := net.Dial("tcp", pages[0][1]); err == nil {
		c.Close()
		t.Error("the demo has ended and the edge has not")
	}
}

// demoScheduler types what the demo says of its scheduler: a player of the west is sent
// to the edge there, by DNS and by 302.
func demoScheduler(t *testing.T, said string) {
	line := func(form string) []string {
		t.Helper()
		words := strings.Fields(regexp.MustCompile(form).FindString(said))
		if len(words) == 0 {
			t.Fatalf("the demo shows no %s:\n%s", form, said)
		}
		return words
	}
	dig := line(`dig @.* \+subnet=.*`)
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for end, got := time.Now().Add(patience), ""; got != "127.0.0.3\n"; <-look.C { // the edge is seen up, and is in the next view
		if got = output(t, dig[0], dig[1:]...); time.Now().After(end) {
			t.Fatalf("%v: %q after %v, want the edge of the west", dig, got, patience)
		}
	}
	redirect := line(`curl -i .* -H .*`)[2:]
	for end, got := time.Now().Add(patience), ""; !strings.HasPrefix(got, "http://127.0.0.3:"); <-look.C { // it is heard which streams the edge has
		_, header, _ := curl(t, redirect...)
		if got = header["location"]; time.Now().After(end) {
			t.Fatalf("the redirect leads to %q after %v, want the edge of the west", got, patience)
		}
	}
	if _, why := get(t, line(`http://\S+/v1/explain\S+`)[0]); !strings.Contains(why, `"edge-3"`) {
		t.Errorf("it is explained with %s", why)
	}
}

// demoConsole logs in to the console as the demo says, and wants to see all of it there.
func demoConsole(t *testing.T, said string) {
	address := regexp.MustCompile(`console of the router:\n  http://(\S+)/\n`).FindStringSubmatch(said)
	login := regexp.MustCompile(`log in as (\S+) with (\S+) \(operator\)`).FindStringSubmatch(said)
	if address == nil || login == nil {
		t.Fatalf("the demo shows no console:\n%s", said)
	}
	p := &operating{t: t, base: "http://" + address[1]}
	p.logIn(cluster.Operator{Name: login[1], Password: login[2]})
	var n fleet.Network
	await(t, "seven nodes are up", patience, func() bool {
		status, body := p.ask(http.MethodGet, "/api/network", nil)
		return status == http.StatusOK && json.Unmarshal(body, &n) == nil && n.Totals.Up == 7
	})
	places := map[string]bool{}
	for _, d := range n.Datacenters {
		if d.Name != "" {
			places[d.Name] = true
		}
	}
	if len(places) != 3 || len(n.Routers) != 1 || n.Plan == 0 {
		t.Errorf("datacenters %v, %d routers, plan %d", places, len(n.Routers), n.Plan)
	}
	if status, body := get(t, p.base+"/"); status != http.StatusOK || !strings.Contains(body, "<html") {
		t.Errorf("the page: %d %.200s", status, body)
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
