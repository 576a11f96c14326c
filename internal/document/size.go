package document

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units are the suffixes of sizes, longest first.
var units = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"kB", 1e3},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
}

// ParseSize reads a number of bytes: "8MB" is 8,000,000 and "8MiB" 8,388,608. A
// number without a unit is bytes, and fractions are allowed ("1.5GiB").
func ParseSize(text string) (int64, error) {
	bad := fmt.Errorf("%q is not a size; write for example 4096, 64KiB, 8MB or 1.5GiB", text)
	number, unit := text, int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		if n > math.MaxInt64/unit || n < math.MinInt64/unit {
			return 0, outOfRange(text)
		}
		return n * unit, nil
	}
	if strings.ContainsFunc(number, func(c rune) bool { return (c < '0' || c > '9') && c != '.' && c != '-' }) {
		return 0, bad
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || unit == 1 {
		return 0, bad
	}
	if f *= float64(unit); math.Abs(f) >= math.MaxInt64 {
		return 0, outOfRange(text)
	}
	return int64(f), nil
}

// FormatSize writes n with the largest unit that divides it.
func FormatSize(n int64) string {
	best, unit := n, ""
	for _, u := range units {
		if u.bytes > 1 && n != 0 && n%u.bytes == 0 && abs(n/u.bytes) < abs(best) {
			best, unit = n/u.bytes, u.suffix
		}
	}
	return strconv.FormatInt(best, 10) + unit
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
