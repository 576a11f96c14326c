package main

import (
	"testing"
	"time"
)

// TestSchedule: whatever the settings, all viewers are closed in time for the rest to
// end by the deadline.
func TestSchedule(t *testing.T) {
	now := time.Unix(1000, 0)
	f := func(deadline, spread, wait, closeBy, over time.Duration) {
		t.Helper()
		got := schedule(now, deadline, spread)
		if got.wait != wait || got.closeBy != now.Add(closeBy) || got.over != now.Add(over) {
			t.Errorf("deadline %v, spread %v: wait %v, close by %v, over %v", deadline, spread, got.wait, got.closeBy.Sub(now), got.over.Sub(now))
		}
	}
	s := time.Second
	f(25*s, 2*s, 21*s, 23*s, 25*s)
	f(25*s, 0, 23*s, 23*s, 25*s)
	f(4*s, 2*s, 0, 2*s, 4*s)
	f(3*s, 60*s, 0, s, 3*s)
	f(2*s, 8*s, 0, 0, 2*s)
	f(s, 2*s, 0, 0, 2*s)
	f(0, 2*s, 0, 0, 2*s)
}
