package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"millrace/internal/config"
	"millrace/internal/run"
)

func TestFitDescriptors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.yaml")
	if err := os.WriteFile(file, []byte("# all that fits\nhttpflv:\n  max_viewers: 5000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	defaults := config.DefaultNode()
	f := func(name string, src config.Sources, limit int, viewers, connections int, lowered []string, refusal ...string) {
		t.Helper()
		l, err := config.Load(config.DefaultNode(), src)
		if err != nil {
			t.Fatal(err)
		}
		got, low, err := fitDescriptors(l, limit)
		if len(refusal) > 0 {
			for _, want := range refusal {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: got %v, want %q", name, err, want)
				}
			}
			return
		}
		if err != nil || got.HTTPFLV.MaxViewers != viewers || got.Listen.MaxConnections != connections || !slices.Equal(keys(low), lowered) {
			t.Errorf("%s: got %d, %d, %v, %v; want %d, %d, %v", name, got.HTTPFLV.MaxViewers, got.Listen.MaxConnections, low, err, viewers, connections, lowered)
		}
	}
	both := []string{"httpflv.max_viewers", "listen.max_connections"}
	const plenty, spareDescriptors, leastRoom = 2 << 20, run.SpareDescriptors, 32
	byFile := config.Sources{File: file}
	f("plenty", config.Sources{}, plenty, defaults.HTTPFLV.MaxViewers, defaults.Listen.MaxConnections, nil)
	f("defaults are lowered", config.Sources{}, 1024, 1024-spareDescriptors, 1024-spareDescriptors, both)
	f("what is asked for and fits", byFile, 5000+spareDescriptors, 5000, 5000, both[1:])
	f("what is asked for and does not", byFile, 4999+spareDescriptors, 0, 0, nil,
		file+":3: httpflv.max_viewers is 5000", "use 4999 or less", "LimitNOFILE")
	f("by a variable", config.Sources{Environ: []string{"MILLRACE_LISTEN_MAX_CONNECTIONS=2000"}}, 1024, 0, 0, nil,
		"MILLRACE_LISTEN_MAX_CONNECTIONS: listen.max_connections is 2000", "use 768 or less")
	f("by a flag", config.Sources{Flags: []config.Flag{{Name: "--set", Key: "httpflv.max_viewers", Text: "2000"}}}, 1024, 0, 0, nil, "--set: httpflv.max_viewers is 2000")
	pull := config.Sources{Flags: []config.Flag{{Name: "--upstream", Key: "upstream.pool", Text: "http://center:8080"}}}
	f("room for upstreams", pull, 1024, 1024-spareDescriptors-128, 1024-spareDescriptors-128, both)
	f("the least", config.Sources{}, spareDescriptors+leastRoom, leastRoom, leastRoom, both)
	f("too few", config.Sources{}, spareDescriptors+leastRoom-1, 0, 0, nil, "only 287 file descriptors are allowed, 288 are needed")
	f("none", config.Sources{}, 0, 0, 0, nil, "only 0 file descriptors")
}

func keys(lowered []run.Lowered) (out []string) {
	for _, l := range lowered {
		out = append(out, l.Key)
	}
	return out
}
