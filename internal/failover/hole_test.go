package failover

import (
	"testing"
	"time"

	"millrace/internal/flv"
)

// A connection that is behind, on the same clock, sends what the joint before has left
// out: its time is over, and it is nothing new.
func TestJoinWithinAHole(t *testing.T) {
	s := NewSplicer()
	take := func(now time.Time, tags []flv.Tag) (out []flv.Tag) {
		for _, x := range tags {
			out = append(out, s.Take(now, x, nil)...)
		}
		return out
	}
	want := func(what string, got []flv.Tag, from, to int) {
		t.Helper()
		if all := pictures(from, to, 0); len(got) != len(all) || len(all) > 0 && (got[0].DTS != all[0].DTS || got[len(got)-1].DTS != all[len(all)-1].DTS) {
			t.Errorf("%s: %v, want %v", what, times(got), times(all))
		}
	}
	want("before", take(at(0), pictures(0, 50, 0)), 0, 50)
	out := s.Join(at(1000), nil, true, nil)
	out = append(out, take(at(1000), pictures(100, 150, 0))...)
	want("behind the hole", append(out, s.Poll(at(2000), nil)...), 100, 150)

	out = s.Join(at(3000), pictures(50, 75, 0), true, nil)
	out = append(out, s.Poll(at(3000+int(oldPatience.Milliseconds())), nil)...)
	want("within the hole", append(out, take(at(7000), pictures(75, 100, 0))...), 0, 0)
	want("what was there", take(at(7000), pictures(100, 150, 0)), 0, 0)
	want("behind that", take(at(7000), pictures(150, 200, 0)), 150, 200)
}
