package procstat

import (
	"os"
	"testing"
	"time"
)

func TestParseCPU(t *testing.T) {
	f := func(stat string, want time.Duration, ok bool) {
		t.Helper()
		got, err := parseCPU([]byte(stat))
		if got != want || (err == nil) != ok {
			t.Errorf("%q: got %v, %v", stat, got, err)
		}
	}
	f("7 (node) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 0 0 20 0", 2*time.Second, true)
	f("7 (a ) b) S 1 7 7 0 -1 4194560 1 0 0 0 1 2 0 0 20 0", 30*time.Millisecond, true)
	f("7 (node) S 1 7", 0, false)
	f("7 (node) S 1 7 7 0 -1 4194560 1 0 0 0 x 50 0 0 20 0", 0, false)
	f("", 0, false)
}

func TestParseMemory(t *testing.T) {
	m, err := parseMemory("55-7f [rollup]\nRss:      2048 kB\nPss:       1024 kB\nPss_Dirty:  3 kB\n")
	if err != nil || m.RSS != 2<<20 || m.PSS != 1<<20 {
		t.Errorf("got %+v, %v", m, err)
	}
	for _, bad := range []string{"", "Rss: 1 kB\n", "Rss: x kB\nPss: 1 kB\n"} {
		if m, err := parseMemory(bad); err == nil {
			t.Errorf("%q: got %+v", bad, m)
		}
	}
}

func TestOwnProcess(t *testing.T) {
	pid := os.Getpid()
	m, err := ReadMemory(pid)
	if err != nil || m.RSS < 1<<20 || m.PSS <= 0 || m.PSS > m.RSS {
		t.Errorf("memory %+v, %v", m, err)
	}
	if n, err := Descriptors(pid); err != nil || n < 3 {
		t.Errorf("%d descriptors, %v", n, err)
	}
	if _, err := CPU(pid); err != nil {
		t.Error(err)
	}
	if _, err := CPU(-1); err == nil {
		t.Error("no error for a process that is not there")
	}
}
