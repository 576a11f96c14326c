package cluster

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// fake is the variable that makes the test binary a node that only answers about
// itself; whatever its value.
const fake = "CLUSTER_TEST_NODE"

func TestMain(m *testing.M) {
	if addr := os.Getenv(listen); addr != "" {
		fmt.Fprintln(os.Stderr, listenForever(addr))
		os.Exit(3)
	}
	if os.Getenv(fake) != "" {
		fmt.Fprintln(os.Stderr, fakeNode(os.Args[1:]))
		os.Exit(3)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.Exit(code)
	}))
}

// fakeNode serves HTTP and admin until it is ended: center carries live/x, others
// have it from their first upstream.
func fakeNode(args []string) error {
	f := flag.NewFlagSet("node", flag.ContinueOnError)
	value := map[string]*string{}
	for _, name := range []string{"id", "role", "http", "rtmp", "admin", "log-format", "set", "upstream", "datacenter", "internal", "config", "dns", "nodes", "domains", "coverage", "router", "state", "redis"} {
		value[name] = f.String(name, "", "")
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	if *value["id"] == "broken" {
		return errors.New("no luck today")
	}
	if *value["config"] != "" {
		hup := make(chan os.Signal, 1)
		signal.Notify(hup, syscall.SIGHUP)
		go func() { // until the process ends
			for range hup {
				b, err := os.ReadFile(*value["config"])
				fmt.Fprintf(os.Stderr, "level=INFO msg=reloaded file=%q err=%v\n", b, err)
			}
		}()
	}
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 1
	mux := http.NewServeMux()
	answer := func(path string, v any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(v) })
	}
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/through", func(w http.ResponseWriter, _ *http.Request) { // asks the upstream who it is
		res, err := http.Get(*value["upstream"] + "/id")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer res.Body.Close()
		io.Copy(w, res.Body)
	})
	stream := map[string]any{"name": "live/x", "state": "live", "bitrate_bps": 500_000, "viewers": 2}
	var hops, events, feeds []any
	if up := *value["upstream"]; up == "" {
		stream["publisher"] = map[string]any{}
	} else {
		hops = []any{map[string]any{"node": "center", "delay_ns": 2_000_000}}
		feeds = []any{
			map[string]any{"node": "center", "upstream": up, "current": true, "tags": 100},
			map[string]any{"upstream": up, "tags": 10},
			map[string]any{"upstream": "http://nowhere"},
		}
		at := time.Now().UTC()
		for i, reason := range []string{"first", "overlap"} {
			events = append(events, map[string]any{"at": at.Add(time.Duration(i)), "stream": "live/x", "kind": "spliced", "reason": reason, "to": up})
		}
	}
	answer("/v1/streams", map[string]any{"streams": []any{stream}})
	answer("/v1/streams/live/x/path", map[string]any{"hops": hops, "feeds": feeds})
	answer("/v1/events", map[string]any{"events": events})
	mux.HandleFunc("/id", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, *value["id"]) })
	ln, err := net.Listen("tcp", *value["http"])
	if err != nil {
		return err
	}
	go http.Serve(ln, mux)
	return http.ListenAndServe(*value["admin"], mux)
}

func small() Topology {
	return Topology{
		Nodes:   []Node{{ID: "center", Role: "center"}, {ID: "edge", Role: "edge", Datacenter: "city", Upstreams: []string{"center"}}},
		Streams: []Feed{{Name: "live/y", Source: Frames, At: []string{"center"}}},
	}
}

func start(t *testing.T, top Topology) (*Cluster, string, error) {
	t.Helper()
	t.Setenv(fake, "1")
	logs := t.TempDir()
	c, err := Start(t.Context(), top, Options{Program: os.Args[0], Logs: logs})
	if err == nil {
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			http.DefaultClient.CloseIdleConnections()
		})
	}
	return c, logs, err
}

// through asks the edge to ask the center who it is.
func through(t *testing.T, c *Cluster, within time.Duration) (string, error) {
	t.Helper()
	client := http.Client{Timeout: within, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get("http://" + c.Ports("edge").Admin + "/through")
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK {
		return "", errors.New(string(b))
	}
	return string(b), err
}

func do(t *testing.T, c *Cluster, text string) {
	t.Helper()
	cmd, err := c.topology.Parse(text)
	if err == nil {
		err = c.Do(t.Context(), cmd)
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func TestCluster(t *testing.T) {
	c, _, err := start(t, small())
	if err != nil {
		t.Fatal(err)
	}
	reached := func(want bool) {
		t.Helper()
		within := time.Minute
		if !want {
			within = 500 * time.Millisecond
		}
		got, err := through(t, c, within)
		if want && (err != nil || got != "center") || !want && err == nil {
			t.Fatalf("the edge got %q and %v from the center, want reached: %v", got, err, want)
		}
	}
	state := func(id string, want State, trouble string) Snapshot {
		t.Helper()
		s := c.Observe(t.Context())
		for _, n := range s.Nodes {
			if n.ID == id && (n.State != want || (n.PID == 0) == (want == Running || want == Frozen)) {
				t.Fatalf("%s is %s with pid %d, want %s", id, n.State, n.PID, want)
			}
		}
		if len(s.Links) != 1 || s.Links[0].Trouble != trouble {
			t.Fatalf("links %+v, want trouble %q", s.Links, trouble)
		}
		return s
	}
	reached(true)
	s := state("edge", Running, "")
	for seen := s.Events; len(s.Nodes[1].Streams) == 0 || len(s.Nodes[0].Streams) == 0; seen = s.Events { // who answers late is left out
		s = state("edge", Running, "")
		s.Events = append(seen, s.Events...)
	}
	edge := s.Nodes[1]
	if len(edge.Streams) != 1 || edge.Streams[0].From != "center" || edge.Streams[0].Delay != 2*time.Millisecond || edge.Switches != 1 {
		t.Errorf("the edge: %+v", edge)
	}
	if got := edge.Streams[0].Beside; len(got) != 1 || got[0] != "center" {
		t.Errorf("beside it: %v", got)
	}
	if from := s.Nodes[0].Streams[0].From; from != Encoder {
		t.Errorf("the center has its stream from %q", from)
	}
	if len(s.Events) != 2 || s.Events[1].To != "center" || s.Events[1].Node != "edge" {
		t.Errorf("events %+v, want two, with names for URLs", s.Events)
	}
	if len(s.Copies) != 1 || s.Copies[0] != (Copies{Stream: "live/x", Datacenter: "city", Copies: 2, Nodes: 1}) {
		t.Errorf("copies %+v", s.Copies)
	}
	if s := c.Observe(t.Context()); len(s.Events) != 0 || s.Nodes[1].Switches != 1 {
		t.Errorf("the same events came again: %+v", s.Events)
	}

	do(t, c, "kill edge>center")
	reached(false)
	state("center", Running, "killed")
	do(t, c, "restart edge>center")
	reached(true)
	do(t, c, "freeze edge>center")
	reached(false)
	state("center", Running, "frozen")
	do(t, c, "heal edge>center")
	reached(true)
	do(t, c, "slow edge>center 80")
	state("center", Running, "80 kbit/s up, 80 kbit/s down")
	do(t, c, "heal center")
	do(t, c, "slow center 8")
	state("center", Running, "8 kbit/s down")
	do(t, c, "heal center")
	do(t, c, "half-open edge>center")
	reached(false) // over the connection that the edge kept open, and thinks well of
	reached(true)  // over another

	do(t, c, "freeze center")
	state("center", Frozen, "")
	reached(false)
	do(t, c, "heal center")
	reached(true)
	pid := c.PID("center")
	do(t, c, "kill center")
	state("center", Killed, "")
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
	reached(false)
	if cmd, _ := c.topology.Parse("heal center"); !errors.Is(c.Do(t.Context(), cmd), errNotRunning) {
		t.Error("a dead node was healed")
	}
	do(t, c, "restart center")
	state("center", Running, "")
	reached(true)
}

// TestEndByItself: a node that dies is seen, and can be started again.
func TestEndByItself(t *testing.T) {
	c, _, err := start(t, small())
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	p := c.nodes["edge"]
	c.mu.Unlock()
	syscall.Kill(c.PID("edge"), syscall.SIGKILL)
	<-p.done
	if s := c.Observe(t.Context()); s.Nodes[1].State != Ended || s.Nodes[1].PID != 0 {
		t.Errorf("state %+v, want ended", s.Nodes[1])
	}
	do(t, c, "kill edge")
	do(t, c, "restart edge")
	if s := c.Observe(t.Context()); s.Nodes[1].State != Running {
		t.Errorf("state %+v, want running", s.Nodes[1])
	}
}

func TestStartFails(t *testing.T) {
	f := func(change func(*Topology), want string) {
		t.Helper()
		top := small()
		change(&top)
		if _, _, err := start(t, top); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f(func(top *Topology) { top.Nodes = append(top.Nodes, Node{ID: "broken", Role: "edge"}) }, "broken has ended at once: no luck today")
	f(func(top *Topology) { top.Nodes = nil }, "there are 0")
	if _, err := Start(t.Context(), small(), Options{Program: filepath.Join(t.TempDir(), "none"), Logs: t.TempDir()}); err == nil ||
		!strings.Contains(err.Error(), "make build") {
		t.Errorf("without a program: %v", err)
	}
	if _, err := Start(t.Context(), small(), Options{Program: os.Args[0], Logs: t.TempDir(), Port: 65535}); err == nil ||
		!strings.Contains(err.Error(), "a port for center") {
		t.Errorf("without ports: %v", err)
	}
}

// TestPublisherMovesOn: a node that takes nothing is left for the next one.
func TestPublisherMovesOn(t *testing.T) {
	c, _, err := start(t, small())
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		s := c.Observe(t.Context()).Publishers
		if len(s) == 1 && s[0].At == "" && strings.Contains(s[0].Error, "at center: ") {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("publishers %+v, want the refusal of center", s)
		case <-tick.C:
		}
	}
}
