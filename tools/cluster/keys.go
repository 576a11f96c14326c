package cluster

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"
)

// file is the configuration file of a program.
func (c *Cluster) file(id string) string { return filepath.Join(c.private, id+".yaml") }

// keys returns what programs sign with at first.
func (t Topology) keys() []string {
	if t.ClusterKey == "" {
		return nil
	}
	return []string{t.ClusterKey}
}

// writeKeys gives a program keys for when it reads its configuration next, beside the
// settings that it has there.
func (c *Cluster) writeKeys(id string, keys []string) error {
	file := map[string]any{}
	maps.Copy(file, c.settings[id])
	if len(keys) > 0 {
		file["cluster"] = map[string]any{"keys": keys}
	}
	b, err := yaml.Marshal(file)
	if err != nil {
		return err
	}
	return os.WriteFile(c.file(id), b, 0o600)
}

// SetKeys gives a running node other keys of the cluster, of which the first one signs,
// and returns when they are in force: SIGHUP has it read them. The cluster must have had
// a key from the beginning.
func (c *Cluster) SetKeys(ctx context.Context, id string, keys ...string) error {
	if c.topology.ClusterKey == "" {
		return fmt.Errorf("keys for %s: the topology has none", id)
	}
	if err := c.writeKeys(id, keys); err != nil {
		return err
	}
	p := c.nodes[id]
	had, err := p.said(reloaded)
	if err != nil {
		return err
	}
	if err := p.signal(syscall.SIGHUP, Running); err != nil {
		return fmt.Errorf("keys for %s: %w", id, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		n, err := p.said(reloaded)
		if err != nil || n > had {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("keys for %s: not read: %w", id, ctx.Err())
		case <-tick.C:
		}
	}
}

// reloaded is what a node writes when it has read its configuration, and what it read is
// in force.
const reloaded = " msg=reloaded "

// said returns how often the program has written a text.
func (p *process) said(text string) (int, error) {
	b, err := os.ReadFile(p.log)
	return bytes.Count(b, []byte(text)), err
}
