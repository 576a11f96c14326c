package main

import (
	"testing"
	"time"
)

// TestMemoryIsGivenBackNowAndThen: when much was let go of, and not all the time.
func TestMemoryIsGivenBackNowAndThen(t *testing.T) {
	var m thrift
	now := time.Unix(1_700_000_000, 0)
	for _, step := range []struct {
		after time.Duration
		mib   int64 // cleared in all
		want  bool
	}{
		{0, 0, false},
		{0, 63, false},
		{0, 64, true},
		{time.Second, 64, false},
		{time.Second, 300, false},
		{giveBackEvery - time.Second, 300, false},
		{giveBackEvery, 300, true},
		{time.Hour, 363, false},
		{time.Hour, 364, true},
	} {
		if got := m.due(now.Add(step.after), step.mib<<20); got != step.want {
			t.Errorf("after %v with %d MiB: %v", step.after, step.mib, got)
		}
	}
}
