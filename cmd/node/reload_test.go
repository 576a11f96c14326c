package main

import (
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"millrace/internal/config"
	"millrace/internal/run"
)

func TestReload(t *testing.T) {
	tr := built(t, "stream:\n  grace: 5s\n")
	tr.write(t, "stream:\n  grace: 7s\nlog:\n  level: debug\n")
	tr.reload(tr.read())
	if tr.cfg.Stream.Grace != 7*time.Second || tr.out.Level.Level() != slog.LevelDebug {
		t.Errorf("in force: grace %v, level %v", tr.cfg.Stream.Grace, tr.out.Level.Level())
	}
	if l := tr.log.Lines(t, "reloaded"); len(l) != 1 || l[0]["changes"] != 2.0 {
		t.Errorf("told: %v", l)
	}
	if l := tr.log.Lines(t, "changed"); len(l) != 2 || l[1]["setting"] != "stream.grace" || l[1]["old"] != "5s" || l[1]["new"] != "7s" {
		t.Errorf("told: %v", l)
	}
}

// TestBadReload: one fault anywhere, and nothing changes.
func TestBadReload(t *testing.T) {
	const good = "stream:\n  grace: 5s\n"
	tr := built(t, good)
	before := tr.cfg
	for _, c := range []struct{ text, says string }{
		{"stream:\n  grace: 7s\n  grce: 1s\n", "node.yaml:3"},
		{"stream:\n  grace: 7h\n", "grace"},
		{"stream:\n  grace: 7s\nlog:\n  level: loud\n", "log.level"},
		{"stream:\n  grace: 7s\ntls:\n  cert_file: /nowhere\n  key_file: /nowhere\n", "/nowhere"},
		{"stream:\n  grace: 7s\nadmin:\n  token: short\n", "token"},
		{"stream: [", "node.yaml"},
		{"stream:\n  grace: 7s\nhttpflv:\n  max_viewers: 900\n", "node.yaml:4: httpflv.max_viewers is 900"},
	} {
		tr.rlimit = 1024 // whatever this machine allows
		tr.write(t, c.text)
		tr.reload(tr.read())
		refusals := tr.log.Lines(t, "reload refused, the old settings stay")
		if len(refusals) == 0 {
			t.Fatalf("%q is not refused", c.text)
		}
		if text, _ := refusals[len(refusals)-1]["err"].(string); !strings.Contains(text, c.says) {
			t.Errorf("%q is refused with %q, want %q", c.text, text, c.says)
		}
		if changes := config.Changes(before, tr.cfg); len(changes) > 0 {
			t.Errorf("%q changes %v", c.text, changes)
		}
	}
	if l := tr.log.Lines(t, "reloaded"); len(l) > 0 {
		t.Errorf("told: %v", l)
	}
}

// TestRestartSettingsStay: what cannot change while the node runs stays, is told of,
// and is told of again at the next reload.
func TestRestartSettingsStay(t *testing.T) {
	tr := built(t, "")
	tr.write(t, "role: edge\nlog:\n  format: text\nstream:\n  grace: 7s\n")
	for round := 1; round <= 2; round++ {
		tr.reload(tr.read())
		if tr.cfg.Role != config.Center || tr.cfg.Log.Format != "auto" || tr.cfg.Stream.Grace != 7*time.Second {
			t.Errorf("round %d: %v %v %v", round, tr.cfg.Role, tr.cfg.Log.Format, tr.cfg.Stream.Grace)
		}
		if l := tr.log.Lines(t, "changed, but only a restart puts it in force"); len(l) != 2*round {
			t.Errorf("round %d: told %v", round, l)
		}
		if l := tr.log.Lines(t, "reloaded"); l[round-1]["changes"] != float64(2-round) || l[round-1]["need_restart"] != 2.0 {
			t.Errorf("round %d: told %v", round, l)
		}
	}
}

// TestReloadWithoutFile says what is missing.
func TestReloadWithoutFile(t *testing.T) {
	tr := built(t, "")
	tr.src.File = ""
	tr.reload(tr.read())
	if l := tr.log.Lines(t, "reloaded"); len(l) != 0 || !strings.Contains(tr.log.String(), "no configuration file to read") {
		t.Errorf("told %s", tr.log.String())
	}
}

// TestReloadFitsDescriptors: defaults that are above the limit are lowered at a
// reload as at the start; each is told of when it begins to be.
func TestReloadFitsDescriptors(t *testing.T) {
	tr := built(t, "httpflv: {max_viewers: 400}\nlisten: {max_connections: 500}\n")
	tr.rlimit = 1024
	told := func() (out []any) {
		for _, l := range tr.log.Lines(t, "lowered to what the limit of file descriptors allows: raise it with ulimit -n or LimitNOFILE=") {
			out = append(out, l["setting"])
			if l["from"] == l["to"] || l["to"] != 768.0 {
				t.Errorf("lowered from %v to %v", l["from"], l["to"])
			}
		}
		return out
	}
	f := func(text string, viewers, connections int, says ...any) {
		t.Helper()
		tr.write(t, text)
		tr.reload(tr.read())
		if tr.cfg.HTTPFLV.MaxViewers != viewers || tr.cfg.Listen.MaxConnections != connections {
			t.Errorf("%q: %d and %d, want %d and %d", text, tr.cfg.HTTPFLV.MaxViewers, tr.cfg.Listen.MaxConnections, viewers, connections)
		}
		if got := told(); !slices.Equal(got, says) {
			t.Errorf("%q: told of %v, want %v", text, got, says)
		}
	}
	f("listen: {max_connections: 500}\n", 768, 500, "httpflv.max_viewers")
	f("listen: {max_connections: 500}\n# the same\n", 768, 500, "httpflv.max_viewers")
	// A refused one forgets nothing.
	f("listen: {max_connections: 5000}\n", 768, 500, "httpflv.max_viewers")
	f("", 768, 768, "httpflv.max_viewers", "listen.max_connections")
	f("httpflv: {max_viewers: 10}\n", 10, 768, "httpflv.max_viewers", "listen.max_connections")
}

// TestMemoryLimitComesAndGoes: without the setting the limit is what it was before.
func TestMemoryLimitComesAndGoes(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	tr := built(t, "")
	f := func(text string, want int64) {
		t.Helper()
		tr.write(t, text)
		tr.reload(tr.read())
		if got := debug.SetMemoryLimit(-1); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	f("memory_limit: 4GiB\n", 4<<30)
	f("memory_limit: 2GiB\n", 2<<30)
	f("", before)
}

// TestReloadOfNoFile: what would hold up whoever reads it is not read.
func TestReloadOfNoFile(t *testing.T) {
	tr := built(t, "")
	if err := os.Remove(tr.file); err != nil {
		t.Fatal(err)
	}
	f := func(want string) {
		t.Helper()
		tr.reload(tr.read())
		refusals := tr.log.Lines(t, "reload refused, the old settings stay")
		if len(refusals) == 0 || !strings.Contains(fmt.Sprint(refusals[len(refusals)-1]["err"]), want) {
			t.Errorf("got %v, want %q", refusals, want)
		}
	}
	f("no such file")
	if err := unix.Mkfifo(tr.file, 0o600); err != nil {
		t.Fatal(err)
	}
	f("is no regular file")
}

// TestReloadsInTheBackground sends signals faster than the file is read.
func TestReloadsInTheBackground(t *testing.T) {
	tr := built(t, "")
	reload, end, over := make(chan os.Signal, 1), make(chan os.Signal, 3), make(chan error, 1)
	go func() { over <- tr.Run(run.Signals{Reload: reload, End: end}) }()
	for range 20 {
		reload <- syscall.SIGHUP
	}
	tr.log.Await(t, "reloaded")
	end <- syscall.SIGTERM
	if err := <-over; err != nil {
		t.Error(err)
	}
}
