package setting

import (
	"cmp"
	"math"
	"testing"
	"time"
)

func TestWithin(t *testing.T) {
	wants(t, 4, 4, 64, "")
	wants(t, 64, 4, 64, "")
	wants(t, 3, 4, 64, "key: is 3, must be 4 to 64")
	wants(t, 65, 4, 64, "key: is 65, must be 4 to 64")
	wants(t, 2*time.Minute, time.Second, time.Minute, "key: is 2m0s, must be 1s to 1m0s")
	wants(t, math.NaN(), 0, 1, "key: is NaN, must be 0 to 1")
}

func wants[T cmp.Ordered](t *testing.T, v, lo, hi T, want string) {
	t.Helper()
	got := ""
	if err := Within("key", v, lo, hi); err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("%v of %v to %v: %q, want %q", v, lo, hi, got, want)
	}
}
