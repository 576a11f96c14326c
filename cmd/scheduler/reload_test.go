package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"millrace/internal/config"
	"millrace/internal/runtest"
)

func TestReload(t *testing.T) {
	tr := built(t, "http:\n  ticket_life: 5s\n")
	runtest.Write(t, tr.file, "http:\n  ticket_life: 7s\nlog:\n  level: debug\n")
	tr.reload(tr.read())
	if tr.cfg.HTTP.TicketLife != 7*time.Second || tr.out.Level.Level() != slog.LevelDebug {
		t.Errorf("in force: life %v, level %v", tr.cfg.HTTP.TicketLife, tr.out.Level.Level())
	}
	if l := tr.log.Lines(t, "reloaded"); len(l) != 1 || l[0]["changes"] != 2.0 {
		t.Errorf("told: %v", l)
	}
	if l := tr.log.Lines(t, "changed"); len(l) != 2 || l[1]["setting"] != "http.ticket_life" || l[1]["old"] != "5s" || l[1]["new"] != "7s" {
		t.Errorf("told: %v", l)
	}
}

// TestBadReload: one fault anywhere, and nothing changes.
func TestBadReload(t *testing.T) {
	tr := built(t, "http:\n  ticket_life: 5s\n")
	before := tr.cfg
	for _, c := range []struct{ text, says string }{
		{"http:\n  ticket_life: 7s\n  ticket_lfe: 1s\n", "scheduler.yaml:3"},
		{"http:\n  ticket_life: 7h\n", "ticket_life"},
		{"http:\n  ticket_life: 7s\nlog:\n  level: loud\n", "log.level"},
		{"http:\n  ticket_life: 7s\ntls:\n  cert_file: /nowhere\n  key_file: /nowhere\n", "/nowhere"},
		{"http:\n  ticket_life: 7s\nadmin:\n  token: short\n", "token"},
		{"http:\n  ticket_life: 7s\ndns:\n  max_connections: 900\n", "scheduler.yaml:4: dns.max_connections is 900"},
	} {
		tr.rlimit = 1024 // whatever this machine allows
		runtest.Write(t, tr.file, c.text)
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

// TestRestartSettingsStay: what cannot change while the scheduler runs stays, and is
// told of.
func TestRestartSettingsStay(t *testing.T) {
	tr := built(t, "")
	runtest.Write(t, tr.file, "id: another\nprobe:\n  interval: 9s\nhttp:\n  ticket_life: 7s\n")
	tr.reload(tr.read())
	if tr.cfg.ID != "" || tr.cfg.Probe.Interval == 9*time.Second || tr.cfg.HTTP.TicketLife != 7*time.Second {
		t.Errorf("in force: %q %v %v", tr.cfg.ID, tr.cfg.Probe.Interval, tr.cfg.HTTP.TicketLife)
	}
	if l := tr.log.Lines(t, "changed, but only a restart puts it in force"); len(l) != 2 {
		t.Errorf("told %v", l)
	}
	if l := tr.log.Lines(t, "reloaded"); len(l) != 1 || l[0]["changes"] != 1.0 || l[0]["need_restart"] != 2.0 {
		t.Errorf("told %v", l)
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
