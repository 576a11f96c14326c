package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSetKeys: a node has read its keys when SetKeys returns, and nothing of them is on a
// command line or left behind.
func TestSetKeys(t *testing.T) {
	top := small()
	top.ClusterKey = "sixteen-letters!"
	c, logs, err := start(t, top)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range c.nodes {
		if strings.Contains(strings.Join(p.args, " "), top.ClusterKey) {
			t.Errorf("the key is on the command line: %v", p.args)
		}
	}
	for _, keys := range [][]string{{"a-key-that-is-new", top.ClusterKey}, {"a-key-that-is-new"}} {
		if err := c.SetKeys(t.Context(), "edge", keys...); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(logs, "edge.log"))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		last := lines[len(lines)-1]
		at := -1
		for _, k := range keys {
			if i := strings.Index(last, k); i <= at {
				t.Errorf("the edge has read %s, want %v", last, keys)
			} else {
				at = i
			}
		}
		if strings.Count(last, "- ") != len(keys) {
			t.Errorf("the edge has read %s, want %v", last, keys)
		}
	}
	do(t, c, "kill edge")
	if err := c.SetKeys(t.Context(), "edge", top.ClusterKey); err == nil {
		t.Error("a node that does not run has other keys")
	}
	dir := c.private
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the keys are left behind: %v", err)
	}

	plain, _, err := start(t, small())
	if err != nil {
		t.Fatal(err)
	}
	if err := plain.SetKeys(t.Context(), "edge", top.ClusterKey); err == nil {
		t.Error("a cluster without keys has got one")
	}
}
