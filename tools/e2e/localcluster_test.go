package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"millrace/tools/cluster"
	"millrace/tools/pull"
)

// tree is a running localcluster.
type tree struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	seen  chan cluster.Snapshot // closed at the end of the program
	ended chan error
}

// startTree runs localcluster with the default topology.
func startTree(t *testing.T) *tree {
	t.Helper()
	logs := t.TempDir()
	Build(t, "cmd/node") // localcluster looks for them beside itself
	Build(t, "cmd/scheduler")
	Build(t, "cmd/router")
	x := &tree{
		cmd:  exec.Command(Build(t, "tools/localcluster"), "--json", "--port", "0", "--every", "200ms", "--logs", logs),
		seen: make(chan cluster.Snapshot), ended: make(chan error, 1),
	}
	x.cmd.Stderr = os.Stderr
	var err error
	if x.stdin, err = x.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := x.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(x.seen)
		for d := json.NewDecoder(out); ; {
			var line struct {
				Snapshot *cluster.Snapshot
				Error    string
			}
			if err := d.Decode(&line); err != nil {
				x.ended <- x.cmd.Wait()
				return
			}
			if line.Error != "" {
				t.Error(line.Error)
			}
			if line.Snapshot != nil {
				x.seen <- *line.Snapshot
			}
		}
	}()
	t.Cleanup(func() {
		x.cmd.Process.Kill()
		for range x.seen {
		}
		if t.Failed() {
			showLogs(t, logs)
		}
	})
	return x
}

// await returns the first snapshot for which ok holds.
func (x *tree) await(t *testing.T, what string, ok func(cluster.Snapshot) bool) cluster.Snapshot {
	t.Helper()
	timeout := time.After(patience)
	var last cluster.Snapshot
	for {
		select {
		case s, more := <-x.seen:
			if !more {
				t.Fatalf("%s: localcluster has ended", what)
			}
			if last = s; ok(s) {
				return s
			}
		case <-timeout:
			b, _ := json.MarshalIndent(last, "", "  ")
			t.Fatalf("%s: not after %v, but\n%s", what, patience, b)
		}
	}
}

// from returns where a node has a stream from, "" when it has not.
func from(s cluster.Snapshot, node, stream string) string {
	for _, n := range s.Nodes {
		for _, st := range n.Streams {
			if n.ID == node && st.Name == stream {
				return st.From
			}
		}
	}
	return ""
}

// isNode reports whether id is a node of the tree: an upstream that has not said yet who it
// is goes by its address.
func isNode(s cluster.Snapshot, id string) bool {
	return slices.ContainsFunc(s.Nodes, func(n cluster.NodeState) bool { return n.ID == id })
}

// copiesIn returns how often a stream enters a datacenter.
func copiesIn(s cluster.Snapshot, dc, stream string) int {
	i := slices.IndexFunc(s.Copies, func(c cluster.Copies) bool { return c.Datacenter == dc && c.Stream == stream })
	if i < 0 {
		return 0
	}
	return s.Copies[i].Copies
}

// TestLocalCluster starts the tree of the README, kills a relay under the eyes of
// viewers at every edge, and wants no frame missing and no node left.
func TestLocalCluster(t *testing.T) {
	const stream = "live/test"
	x := startTree(t)
	s := x.await(t, "it is published", func(s cluster.Snapshot) bool {
		return !slices.ContainsFunc(s.Publishers, func(p cluster.PublishState) bool { return p.At == "" })
	})
	cfg := pull.DefaultConfig()
	cfg.Viewers, cfg.Verify, cfg.Duration = 3, 3, 8*time.Second
	var edges []string
	for _, n := range s.Nodes {
		if n.Role == "edge" {
			edges = append(edges, n.ID)
			cfg.URLs = append(cfg.URLs, fmt.Sprintf("http://%s/%s.flv", n.Ports.HTTP, stream))
		}
	}
	var report *pull.Report
	var failed error
	pulled := make(chan struct{})
	go func() {
		defer close(pulled)
		report, failed = pull.Run(t.Context(), cfg)
	}()

	s = x.await(t, "every edge has the stream, the datacenter once", func(s cluster.Snapshot) bool {
		return copiesIn(s, "city", stream) == 1 && copiesIn(s, "hub", stream) == 1 &&
			!slices.ContainsFunc(edges, func(id string) bool { return !isNode(s, from(s, id, stream)) })
	})
	owner := edges[slices.IndexFunc(edges, func(id string) bool { return !slices.Contains(edges, from(s, id, stream)) })]
	relay := from(s, owner, stream)
	fmt.Fprintf(x.stdin, "kill %s\n", relay)
	x.await(t, owner+" has it from the other relay", func(s cluster.Snapshot) bool {
		now := from(s, owner, stream)
		return isNode(s, now) && now != relay && !slices.Contains(edges, now) && copiesIn(s, "city", stream) == 1
	})
	fmt.Fprintf(x.stdin, "restart %s\n", relay)
	s = x.await(t, relay+" is back", func(s cluster.Snapshot) bool {
		i := slices.IndexFunc(s.Nodes, func(n cluster.NodeState) bool { return n.ID == relay })
		return s.Nodes[i].State == cluster.Running && !s.Nodes[i].Silent
	})
	for done := false; !done; {
		select {
		case <-pulled:
			done = true
		case <-x.seen:
		}
	}
	if failed != nil || !report.OK() || report.Normal.FirstFrames != len(edges) {
		t.Errorf("the viewers: %v, %+v", failed, report)
	}

	io.WriteString(x.stdin, "quit\n")
	for range x.seen {
	}
	if err := <-x.ended; err != nil {
		t.Errorf("after quit: %v", err)
	}
	for _, n := range s.Nodes {
		if err := syscall.Kill(n.PID, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s, process %d, is left: %v", n.ID, n.PID, err)
		}
	}
}
