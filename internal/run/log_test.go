package run

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"millrace/internal/runtest"
)

// terminal returns both ends of a new terminal: what is written to slave is shown
// at master.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("skipped: no terminal to be had: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("skipped: no terminal to be had: %v", err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

func TestLogFormat(t *testing.T) {
	master, slave := terminal(t)
	shown := bufio.NewReader(master)
	onTerminal := func(format string) (string, bool) {
		t.Helper()
		out := NewLog(slog.LevelInfo, format, slave)
		out.Log.Info("hello", "took", 1500*time.Millisecond)
		line, err := shown.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line, out.Terminal
	}
	elsewhere := func(format string) (string, bool) {
		var j runtest.Journal
		out := NewLog(slog.LevelInfo, format, &j)
		out.Log.Info("hello", "took", 1500*time.Millisecond)
		return j.String(), out.Terminal
	}
	for _, c := range []struct {
		name, format    string
		write           func(string) (string, bool)
		asJSON, aPerson bool
	}{
		{"a terminal", "auto", onTerminal, false, true},
		{"a terminal", "text", onTerminal, false, true},
		{"a terminal", "json", onTerminal, true, false},
		{"a pipe", "auto", elsewhere, true, false},
		{"a pipe", "text", elsewhere, false, false},
		{"a pipe", "json", elsewhere, true, false},
	} {
		line, person := c.write(c.format)
		var attrs map[string]any
		isJSON := json.Unmarshal([]byte(line), &attrs) == nil
		if isJSON != c.asJSON || person != c.aPerson {
			t.Errorf("%s on %s: JSON %v, want %v; a person reads %v, want %v: %s", c.format, c.name, isJSON, c.asJSON, person, c.aPerson, line)
		}
		if isJSON && attrs["took"] != "1.5s" || !isJSON && !strings.Contains(line, "took=1.5s") {
			t.Errorf("%s on %s: a duration reads as %s", c.format, c.name, line)
		}
	}
}
