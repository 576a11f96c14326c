package run

import (
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

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
	got := RaiseDescriptors(slog.New(slog.DiscardHandler))
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	if got < int(lower.Cur) || got > mostDescriptors || uint64(got) > now.Cur || now.Max != before.Max {
		t.Errorf("got %d; the limit was %+v and is %+v", got, lower, now)
	}
	if again := RaiseDescriptors(slog.New(slog.DiscardHandler)); again != got {
		t.Errorf("the second time %d, the first %d", again, got)
	}
}

func TestFitDescriptors(t *testing.T) {
	f := func(limit, value int, asked string, want int, refusal string) {
		t.Helper()
		lowered, err := FitDescriptors(limit, 100, []Capacity{{"things.max", &value, asked}})
		switch {
		case refusal != "":
			if err == nil || !strings.Contains(err.Error(), refusal) {
				t.Errorf("%d of %d: got %v, want %q", value, limit, err, refusal)
			}
		case err != nil || value != want || len(lowered) > 0 && lowered[0].To != want:
			t.Errorf("%d of %d: %v, %v", value, limit, lowered, err)
		}
	}
	f(1100, 1000, "", 1000, "")
	f(1100, 1000, "--set", 1000, "")
	f(1099, 1000, "", 999, "")
	f(1099, 1000, "--set", 0, "--set: things.max is 1000, but only 1099 file descriptors are allowed, 100 of which the program keeps for itself: use 999 or less")
	f(131, 10, "", 0, "only 131 file descriptors are allowed, 132 are needed")
}
