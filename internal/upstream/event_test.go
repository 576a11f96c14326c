package upstream

import (
	"testing"
	"time"
)

// Thousands of names that are nowhere leave some events and how many there were; what
// happens to streams that are there is all kept.
func TestSearchesDoNotFillTheJournal(t *testing.T) {
	var j journal
	now := time.Now()
	j.left(now)
	const many = 5000
	for range many {
		j.add(Event{Stream: "live/none", Kind: Started, search: true})
	}
	for range 100 {
		if !j.add(Event{Stream: "live/a", Kind: Started}) {
			t.Fatal("an event of a stream that is there is not kept")
		}
	}
	if n := len(j.events()); n != freeSearches+100 {
		t.Errorf("%d events are kept, want %d", n, freeSearches+100)
	}
	if n := j.totals()[Count{Kind: Started}]; n != many+100 {
		t.Errorf("%d events are counted, want %d", n, many+100)
	}
	if n := j.left(now.Add(999 * time.Millisecond))[Started]; n != 0 {
		t.Errorf("%d are told before the second is over", n)
	}
	if n := j.left(now.Add(time.Second))[Started]; n != many-freeSearches {
		t.Errorf("%d are told of as not kept, want %d", n, many-freeSearches)
	}
	if !j.add(Event{Kind: Started, search: true}) {
		t.Error("the next second begins without room")
	}
}

// TestEventsAfter: whoever remembers the last number gets what came since, in order,
// as far as it is remembered.
func TestEventsAfter(t *testing.T) {
	var j journal
	f := func(n uint64, limit int, first, last uint64) {
		t.Helper()
		got := j.after(n, limit)
		if first == 0 {
			if len(got) != 0 {
				t.Errorf("after %d: %v, want none", n, got)
			}
			return
		}
		if len(got) == 0 || got[0].Number != first || got[len(got)-1].Number != last || len(got) != int(last-first)+1 {
			t.Errorf("after %d, at most %d: %d events, want %d to %d", n, limit, len(got), first, last)
		}
	}
	f(0, 10, 0, 0)
	for range 3 {
		j.add(Event{Kind: Started})
	}
	f(0, 10, 1, 3)
	f(0, 2, 1, 2)
	f(2, 10, 3, 3)
	f(3, 10, 0, 0)
	f(99, 10, 0, 0)
	for range keepEvents {
		j.add(Event{Kind: Started})
	}
	f(0, 10, 4, 13)
	f(keepEvents, 10, keepEvents+1, keepEvents+3)
	f(1, 2*keepEvents, 4, keepEvents+3)
	f(3, 0, 0, 0)
}
