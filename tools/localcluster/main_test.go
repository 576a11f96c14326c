package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/tools/cluster"
)

func TestRefusals(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		code := run(t.Context(), args, strings.NewReader(""), &out, &errs)
		if code != exitRefused || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: code %d and %q, want %d and %q", args, code, errs.String(), exitRefused, want)
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	f("takes flags only", "now")
	f("not defined", "--nodes", "3")
	f("--port 70000", "--port", "70000")
	f("--rtmp 1935: use HOST:PORT", "--rtmp", "1935")
	f("--http :0: use HOST:PORT", "--http", ":0")
	f("cannot be negative", "--for", "-1s")
	f("no such file", "--topology", none)
	f("make build", "--node", none, "--port", "0", "--logs", filepath.Join(t.TempDir(), "logs"))
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("nodes: [{id: a, role: king}]"), 0o644); err != nil {
		t.Fatal(err)
	}
	f("bad.yaml: a: role is \"king\"", "--topology", bad)
}

// TestPrintTopology: what is printed can be read again, and is what runs without a file.
func TestPrintTopology(t *testing.T) {
	var out bytes.Buffer
	if code := run(t.Context(), []string{"--print-topology"}, strings.NewReader(""), &out, io.Discard); code != exitOK {
		t.Fatalf("code %d", code)
	}
	got, err := cluster.Read(&out)
	if err != nil || len(got.Nodes) != 7 {
		t.Errorf("%d nodes and %v, want the seven of the default", len(got.Nodes), err)
	}
}

var snapshot = cluster.Snapshot{
	At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local), Running: 42 * time.Second,
	Nodes: []cluster.NodeState{
		{
			ID: "center-1", Role: "center", State: cluster.Running, Ports: cluster.Ports{HTTP: "127.0.0.1:21000"},
			Streams: []cluster.StreamState{
				{Name: "live/a", State: "live", From: cluster.Encoder, Viewers: 2, Nodes: 1, Kbps: 640},
				{Name: "live/b", State: "grace"},
			},
		},
		{
			ID: "edge-1", Role: "edge", Datacenter: "city", State: cluster.Running, Switches: 3, Ports: cluster.Ports{HTTP: "127.0.0.1:21004"},
			Streams: []cluster.StreamState{{
				Name: "live/a", State: "live", From: "relay-1", Path: []string{"relay-1", "center-1"}, Delay: 15500 * time.Microsecond,
			}},
		},
		{ID: "edge-2", Role: "edge", State: cluster.Killed},
		{ID: "edge-3", Role: "edge", State: cluster.Running, Silent: true},
	},
	Links: []cluster.LinkState{
		{Pair: cluster.Pair{From: "edge-1", To: "relay-1"}, Open: 1, Kbps: 700, Trouble: "frozen"},
		{Pair: cluster.Pair{From: "edge-1", To: "relay-2"}, Open: 1, Kbps: 3},
	},
	Copies: []cluster.Copies{
		{Stream: "live/a", Datacenter: "city", Copies: 1, Nodes: 3},
		{Stream: "live/a", Datacenter: "hub", Copies: 2, Nodes: 2},
		{Stream: "live/b", Datacenter: "city", Copies: 1, Nodes: 1},
	},
	Publishers: []cluster.PublishState{{Stream: "live/a", At: "center-1"}, {Stream: "live/b", Error: "at center-1: refused"}},
	Events: []cluster.Event{{
		At: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.Local), Node: "edge-1", Stream: "live/a", Kind: "switched",
		From: "relay-2", To: "relay-1", Reason: "silent", Detail: "1 s",
	}},
}

const wantTable = `NODE      ROLE    DC    STATE      STREAM  FROM     PATH                DELAY    VIEWERS  NODES  KBIT/S  SWITCHES  HTTP
center-1  center        running    live/a  encoder                               2        1      640     0         127.0.0.1:21000
                                   live/b  (grace)                               0        0      0
edge-1    edge    city  running    live/a  relay-1  relay-1 < center-1  15.5 ms  0        0      0       3         127.0.0.1:21004
edge-2    edge          killed                                                                           0
edge-3    edge          no answer                                                                        0

copies of live/a:  city 1 (nodes: 3)  hub 2 (nodes: 2)
copies of live/b:  city 1 (nodes: 1)
live/b is not published: at center-1: refused
link edge-1>relay-1  1 open  700 kbit/s  FROZEN`

const wantEvent = "03:04:05.006  edge-1  switched live/a from relay-2 to relay-1 (silent): 1 s"

func TestTable(t *testing.T) {
	if got := strings.Join(table(snapshot), "\n"); got != wantTable {
		t.Errorf("got\n%s\nwant\n%s", got, wantTable)
	}
	if got := watch(snapshot); got != "http://127.0.0.1:21004/watch/live/a" {
		t.Errorf("to watch: %q", got)
	}
	if got := watch(cluster.Snapshot{}); got != "" {
		t.Errorf("to watch, with nothing there: %q", got)
	}
	if got := event(snapshot.Events[0]); got != wantEvent {
		t.Errorf("got %q, want %q", got, wantEvent)
	}
}

func TestPrinted(t *testing.T) {
	var b bytes.Buffer
	p := &printed{out: &b}
	p.begin("Watch it\n")
	p.show(snapshot)
	p.answer("kill edge-1", "done in 1ms", nil)
	p.answer("kill x", "", errors.New("no such node"))
	p.answer("", "", nil)
	p.help(help())
	for _, want := range []string{"Watch it\n", "03:04:05, after 42s\nNODE", wantEvent, "kill edge-1: done in 1ms\n", "kill x: no such node\n", "half-open FROM>TO"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "half-open NODE") {
		t.Error("help shows half-open for a node")
	}
}

// TestPrintedWhenChanged: what never stands still is no reason to print a table again.
func TestPrintedWhenChanged(t *testing.T) {
	var b bytes.Buffer
	p := &printed{out: &b}
	prints := func(what string, want bool, change func(*cluster.Snapshot)) {
		t.Helper()
		s := snapshot
		s.Events, s.Nodes, s.Links = nil, slices.Clone(s.Nodes), slices.Clone(s.Links)
		for i := range s.Nodes {
			s.Nodes[i].Streams = slices.Clone(s.Nodes[i].Streams)
		}
		change(&s)
		b.Reset()
		if p.show(s); (b.Len() > 0) != want {
			t.Errorf("%s: printed %q", what, b.String())
		}
	}
	prints("the first", true, func(*cluster.Snapshot) {})
	prints("the same", false, func(*cluster.Snapshot) {})
	prints("figures", false, func(s *cluster.Snapshot) {
		s.Nodes[0].Streams[0].Kbps, s.Nodes[1].Streams[0].Delay, s.Links[0].Kbps, s.Links[1].Kbps = 1, 1, 1, 5000
	})
	prints("a viewer", true, func(s *cluster.Snapshot) { s.Nodes[0].Streams[0].Viewers++ })
	prints("a link heals", true, func(s *cluster.Snapshot) { s.Nodes[0].Streams[0].Viewers++; s.Links[0].Trouble = "" })
	if snapshot.Nodes[0].Streams[0].Kbps != 640 || snapshot.Links[0].Kbps != 700 {
		t.Error("what is shown was changed")
	}
}

func TestLines(t *testing.T) {
	var b bytes.Buffer
	l := &lines{out: &b}
	l.begin("Watch it\n")
	l.show(snapshot)
	l.answer("kill x", "", errors.New("no such node"))
	d := json.NewDecoder(&b)
	var first, second line
	if err := errors.Join(d.Decode(&first), d.Decode(&second)); err != nil {
		t.Fatal(err)
	}
	if first.Snapshot == nil || len(first.Snapshot.Nodes) != 4 || first.Command != "" {
		t.Errorf("the snapshot: %+v", first)
	}
	if second.Snapshot != nil || second.Command != "kill x" || second.Error != "no such node" {
		t.Errorf("the command: %+v", second)
	}
}

// TestScreen: drawing keeps to the terminal and leaves the prompt alone.
func TestScreen(t *testing.T) {
	var b bytes.Buffer
	s := &screen{out: &b, size: func() (int, int) { return 20, 10 }}
	s.begin("Watch it\n")
	if !strings.Contains(b.String(), "Watch it") {
		t.Errorf("it does not begin with the guide: %q", b.String())
	}
	s.answer("", "", nil)
	b.Reset()
	s.show(snapshot)
	drawn := b.String()
	if !strings.HasPrefix(drawn, saveCursor) || !strings.HasSuffix(drawn, oldCursor) || strings.Contains(drawn, "\x1b[2;1H") {
		t.Errorf("the cursor is not put back, or the prompt is touched: %q", drawn)
	}
	body := drawn[strings.Index(drawn, "\x1b[3;1H"):]
	if n := strings.Count(body, "\r\n"); n != 7 {
		t.Errorf("%d lines from the third of ten on, want 7, or it scrolls", n)
	}
	for row := range strings.SplitSeq(strings.TrimPrefix(body, "\x1b[3;1H"), clearRight+"\r\n") {
		if row = strings.TrimSuffix(row, clearBelow+oldCursor); len([]rune(row)) > 20 {
			t.Errorf("%q is wider than the terminal", row)
		}
	}
	b.Reset()
	s.help("some help")
	if help, table := strings.Index(b.String(), "some help"), strings.Index(b.String(), "NODE"); help < 0 || table < help {
		t.Errorf("help is not above the table: %q", b.String())
	}
	b.Reset()
	s.answer("kill", "", errors.New("kill what?"))
	if got := b.String(); !strings.HasPrefix(got, prompt) || !strings.Contains(got, "kill: kill what?") || strings.Contains(got, "some help") {
		t.Errorf("the answer: %q", got)
	}
	for range 20 {
		s.show(snapshot)
	}
	if len(s.events) != keepEvents {
		t.Errorf("%d events are kept", len(s.events))
	}
}

// notes is a face that remembers.
type notes struct {
	said  chan string // capacity 100, never closed
	shown chan cluster.Snapshot
}

func (n *notes) every() time.Duration { return time.Millisecond }
func (n *notes) begin(string)         {}
func (n *notes) end()                 {}

func (n *notes) help(text string) {
	if text != "the guide" {
		text = "help"
	}
	n.said <- text
}

func (n *notes) show(s cluster.Snapshot) {
	select {
	case n.shown <- s:
	default:
	}
}

func (n *notes) answer(command, text string, err error) {
	switch {
	case err != nil:
		text = err.Error()
	case strings.HasPrefix(text, "done"):
		text = "done"
	}
	n.said <- command + "|" + text
}

// toy is a system that fails for node b.
type toy struct{}

func (toy) Observe(context.Context) cluster.Snapshot {
	return cluster.Snapshot{Nodes: []cluster.NodeState{{ID: "a"}}}
}

func (toy) Do(_ context.Context, c cluster.Command) error {
	if c.From == "b" {
		return errors.New("no luck")
	}
	return nil
}

// TestLoop: commands are carried out in order, and quit ends it.
func TestLoop(t *testing.T) {
	top := cluster.Topology{Nodes: []cluster.Node{{ID: "a", Role: "center"}, {ID: "b", Role: "center"}}}
	n := &notes{said: make(chan string, 100), shown: make(chan cluster.Snapshot, 1)}
	in, typing := io.Pipe()
	ended := make(chan struct{})
	go func() {
		loop{system: toy{}, topology: top, face: n, guide: "the guide"}.run(context.Background(), in)
		close(ended)
	}()
	for typed, want := range map[string][]string{
		"help":   {"help"},
		"urls":   {"the guide"},
		"":       {"|"},
		"kill c": {`kill c|there is no node "c"`},
		"kill a": {"kill a|…", "kill a|done"},
		"heal b": {"heal b|…", "heal b|no luck"},
	} {
		io.WriteString(typing, typed+"\n")
		for _, want := range want {
			if got := <-n.said; got != want {
				t.Errorf("%q: got %q, want %q", typed, got, want)
			}
		}
	}
	if s := <-n.shown; len(s.Nodes) != 1 {
		t.Errorf("shown %+v", s)
	}
	io.WriteString(typing, "quit\n")
	<-ended
}

// TestEndOfInput is not the end of the program: a script may want to watch.
func TestEndOfInput(t *testing.T) {
	n := &notes{said: make(chan string, 100), shown: make(chan cluster.Snapshot, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		loop{system: toy{}, face: n}.run(ctx, strings.NewReader(""))
		close(ended)
	}()
	for range 10 {
		<-n.shown
	}
	select {
	case <-ended:
		t.Error("it has ended with its input")
	default:
	}
	cancel()
	<-ended
}
