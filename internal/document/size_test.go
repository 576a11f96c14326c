package document

import (
	"math"
	"testing"
	"testing/quick"
)

func TestSizes(t *testing.T) {
	f := func(text string, want int64, ok bool) {
		t.Helper()
		got, err := ParseSize(text)
		if (err == nil) != ok || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	f("0", 0, true)
	f("4096", 4096, true)
	f("512B", 512, true)
	f("8MB", 8e6, true)
	f("8MiB", 8<<20, true)
	f("8 MiB", 8<<20, true)
	f("1.5GiB", 3<<29, true)
	f("64kB", 64000, true)
	f("64KB", 64000, true)
	f("1TiB", 1<<40, true)
	f("-1MB", -1e6, true) // the package that owns the setting refuses it
	f("", 0, false)
	f("MB", 0, false)
	f("1.5", 0, false)
	f("8M", 0, false)
	f("8mb", 0, false)
	f("1e3MB", 0, false)
	f("0x10", 0, false)
	f("NaNMB", 0, false)
	f("InfMB", 0, false)
	f("9223372036854775807", math.MaxInt64, true)
	f("9223372036854775807kB", 0, false)
	f("99999999999999999999.0TiB", 0, false)

	if err := quick.Check(func(n int64) bool {
		got, err := ParseSize(FormatSize(n))
		return err == nil && got == n
	}, nil); err != nil {
		t.Error(err)
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1: "1", 1000: "1kB", 1024: "1KiB", 8e6: "8MB", 8 << 20: "8MiB", 60_000: "60kB", 1001: "1001"} {
		if got := FormatSize(n); got != want {
			t.Errorf("FormatSize(%d) = %s, want %s", n, got, want)
		}
	}
}
