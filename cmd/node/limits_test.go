package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"millrace/internal/config"
)

func TestFitDescriptors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.yaml")
	if err := os.WriteFile(file, []byte("# all that fits\nhttpflv:\n  max_viewers: 5000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	defaults := config.Default()
	f := func(name string, src config.Sources, limit int, viewers, connections int, lowered []string, refusal ...string) {
		t.Helper()
		l, err := config.Load(src)
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
		if err != nil || got.HTTPFLV.MaxViewers != viewers || got.Listen.MaxConnections != connections || !slices.Equal(low, lowered) {
			t.Errorf("%s: got %d, %d, %v, %v; want %d, %d, %v", name, got.HTTPFLV.MaxViewers, got.Listen.MaxConnections, low, err, viewers, connections, lowered)
		}
	}
	both := []string{"httpflv.max_viewers", "listen.max_connections"}
	byFile := config.Sources{File: file}
	f("plenty", config.Sources{}, mostDescriptors, defaults.HTTPFLV.MaxViewers, defaults.Listen.MaxConnections, nil)
	f("defaults are lowered", config.Sources{}, 1024, 1024-spareDescriptors, 1024-spareDescriptors, both)
	f("what is asked for and fits", byFile, 5000+spareDescriptors, 5000, 5000, both[1:])
	f("what is asked for and does not", byFile, 4999+spareDescriptors, 0, 0, nil,
		file+":3: httpflv.max_viewers is 5000", "use 4999 or less", "LimitNOFILE")
	f("by a variable", config.Sources{Environ: []string{"MILLRACE_LISTEN_MAX_CONNECTIONS=2000"}}, 1024, 0, 0, nil,
		"MILLRACE_LISTEN_MAX_CONNECTIONS: listen.max_connections is 2000", "use 768 or less")
	f("by a flag", config.Sources{Flags: []config.Flag{{Name: "--set", Key: "httpflv.max_viewers", Text: "2000"}}}, 1024, 0, 0, nil, "--set: httpflv.max_viewers is 2000")
	f("the least", config.Sources{}, spareDescriptors+1, 1, 1, both)
	f("too few", config.Sources{}, spareDescriptors, 0, 0, nil, "only 256 file descriptors are allowed, 257 are needed")
	f("none", config.Sources{}, 0, 0, 0, nil, "only 0 file descriptors")
}

// TestRaiseDescriptors: no limit, whatever a container runtime sets, is believed to
// be endless or less than what the process has.
func TestRaiseDescriptors(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	})
	lower := unix.Rlimit{Cur: min(before.Cur, 512), Max: before.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &lower); err != nil {
		t.Fatal(err)
	}
	got := raiseDescriptors(slog.New(slog.DiscardHandler))
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	if got < int(lower.Cur) || got > mostDescriptors || uint64(got) > now.Cur || now.Max != before.Max {
		t.Errorf("got %d; the limit was %+v and is %+v", got, lower, now)
	}
	if again := raiseDescriptors(slog.New(slog.DiscardHandler)); again != got {
		t.Errorf("the second time %d, the first %d", again, got)
	}
}
