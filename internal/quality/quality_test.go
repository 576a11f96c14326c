package quality

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/internal/session"
)

var (
	now   = time.Unix(1_000, 0)
	south = netip.MustParseAddr("192.0.2.1")
	north = netip.MustParseAddr("2001:db8::1")
)

// place knows two players.
func place(a netip.Addr) Place {
	switch a {
	case south:
		return Place{"south", "isp-1"}
	case north:
		return Place{"north", ""}
	}
	return Place{}
}

// take returns all sums by place.
func take(t *testing.T, b *Book) map[Place]Sums {
	t.Helper()
	out := map[Place]Sums{}
	for _, g := range b.Take(MaxPlaces) {
		if _, twice := out[g.Place]; twice {
			t.Errorf("%v is there twice", g.Place)
		}
		out[g.Place] = g.Sums
	}
	return out
}

func TestBook(t *testing.T) {
	b := New(place)
	b.Began(south, 20*time.Millisecond)
	b.Began(south, 40*time.Millisecond)
	b.Began(north, -time.Second) // a clock was set
	b.Skipped(south)
	b.Ended(south, session.PeerClosed)
	b.Ended(south, session.Stalled)
	b.Ended(south, session.PeerClosed)
	report := func(a netip.Addr, text string) {
		t.Helper()
		if _, err := b.Report(now, a, []byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	report(south, `{"stream": "live/a", "first_frame_ms": 300, "played_ms": 9000, "delay_ms": 0}`)
	report(south, `{"stream": "live/a", "stalls": 2, "stalled_ms": 1500.5, "played_ms": 8500, "delay_ms": 900}`)
	report(south, `{"stream": "live/a", "played_ms": 10000, "delay_ms": null}`)

	got := take(t, b)
	s := got[Place{"south", "isp-1"}]
	if len(got) != 2 || s.Started != 2 || s.FirstByte != 60*time.Millisecond || s.Skips != 1 ||
		len(s.Closes) != 2 || s.Closes[session.PeerClosed] != 2 || s.Closes[session.Stalled] != 1 {
		t.Errorf("the edge sees %+v", got)
	}
	if s.Reports != 3 || s.First != (Mean{1, 300 * time.Millisecond}) || s.Delay != (Mean{2, 900 * time.Millisecond}) ||
		s.Stalls != 2 || s.Stalled != 1500500*time.Microsecond || s.Played != 27500*time.Millisecond {
		t.Errorf("the players say %+v", s)
	}
	if n := got[Place{"north", ""}]; n.Started != 1 || n.FirstByte != 0 {
		t.Errorf("north is %+v", n)
	}
	if got := take(t, b); len(got) != 0 {
		t.Errorf("taken twice: %+v", got)
	}
	if st := b.Stats(); st.Reports[Accepted] != 3 || st.Stalls != 2 || st.Played != 27500*time.Millisecond || st.First.Of != 1 {
		t.Errorf("the totals are %+v", st)
	}
}

// TestTakeSome: what does not fit is there the next time.
func TestTakeSome(t *testing.T) {
	b := New(func(a netip.Addr) Place { return Place{Region: a.String()} })
	for i := range 10 {
		b.Skipped(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
	}
	seen := map[Place]bool{}
	for _, n := range []int{4, 0, 4, 4} {
		for _, g := range b.Take(n) {
			seen[g.Place] = true
		}
	}
	if len(seen) != 10 {
		t.Errorf("%d places are told of, want 10", len(seen))
	}
}

// TestTooManyPlaces: players beyond the bound are counted, without a place.
func TestTooManyPlaces(t *testing.T) {
	b := New(func(a netip.Addr) Place { return Place{Region: a.String()} })
	for i := range MaxPlaces + 50 {
		b.Skipped(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
	}
	got := take(t, b)
	if len(got) != MaxPlaces || got[Place{}].Skips != 51 {
		t.Errorf("%d places, %d players without one", len(got), got[Place{}].Skips)
	}
}

// TestRefusalsAreCounted, and change no sum.
func TestRefusalsAreCounted(t *testing.T) {
	b := New(place)
	for range perAddress {
		if _, err := b.Report(now, south, []byte(`{`)); reasonOf(err) != Malformed {
			t.Fatal(err)
		}
	}
	if _, err := b.Report(now, south, []byte(`{"stream": "live/a"}`)); reasonOf(err) != TooMany {
		t.Errorf("got %v, want too_many", err)
	}
	if st := b.Stats(); st.Reports[Malformed] != perAddress || st.Reports[TooMany] != 1 || st.Reports[Accepted] != 0 {
		t.Errorf("counted %v", st.Reports)
	}
	if got := take(t, b); len(got) != 0 {
		t.Errorf("refused reports are in %v", got)
	}
}

func TestReasonsHaveWords(t *testing.T) {
	var words []string
	for _, r := range Reasons() {
		words = append(words, r.String())
	}
	if slices.Contains(words, "") || len(slices.Compact(slices.Sorted(slices.Values(words)))) != int(reasons) {
		t.Errorf("the words are %q", words)
	}
}

// TestNilBook keeps nothing, for servers without one.
func TestNilBook(t *testing.T) {
	var b *Book
	b.Began(south, 1)
	b.Skipped(south)
	b.Ended(south, session.Stalled)
	if _, err := b.Report(now, south, nil); err != nil {
		t.Error(err)
	}
}

// TestTogether: many at once lose nothing.
func TestTogether(t *testing.T) {
	b := New(nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				b.Began(south, time.Millisecond)
				b.Ended(north, session.PeerClosed)
			}
		})
	}
	started := 0
	for range 20 {
		for _, g := range b.Take(1) {
			started += g.Started
		}
	}
	wg.Wait()
	for _, g := range b.Take(1) {
		started += g.Started
	}
	if started != 2000 {
		t.Errorf("%d have started, want 2000", started)
	}
}

// TestSumsAdd: sums that are taken now and then come to those of one time.
func TestSumsAdd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, players := New(place), []netip.Addr{south, north, netip.IPv6Unspecified()}
		var started, skips, closes, played, wantPlayed int
		steps := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 60).Draw(t, "steps")
		counts := [5]int{}
		for i, step := range steps {
			a := players[i%len(players)]
			counts[step]++
			switch step {
			case 0:
				b.Began(a, time.Duration(i))
			case 1:
				b.Skipped(a)
			case 2:
				b.Ended(a, session.Stalled)
			case 3:
				wantPlayed += i
				if _, err := b.Report(now, a, fmt.Appendf(nil, `{"stream":"live/a","played_ms":%d}`, i)); err != nil {
					t.Fatal(err)
				}
			}
			if step != 4 && i < len(steps)-1 {
				continue
			}
			for range len(players) { // one at a time
				for _, g := range b.Take(1) {
					started, skips, closes = started+g.Started, skips+g.Skips, closes+g.Closes[session.Stalled]
					played += int(g.Played / time.Millisecond)
				}
			}
		}
		if started != counts[0] || skips != counts[1] || closes != counts[2] || played != wantPlayed {
			t.Errorf("%d %d %d %d, want %v and %d", started, skips, closes, played, counts, wantPlayed)
		}
	})
}

// TestNoAllocation: a viewer that comes or goes leaves no garbage.
func TestNoAllocation(t *testing.T) {
	b := New(place)
	b.Ended(south, session.Stalled)
	got := testing.AllocsPerRun(100, func() {
		b.Began(south, time.Millisecond)
		b.Skipped(south)
		b.Ended(south, session.Stalled)
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkReport(b *testing.B) {
	book := New(place)
	body := []byte(`{"stream": "live/a", "session": "abcdef", "stalls": 1, "stalled_ms": 200, "played_ms": 9800, "delay_ms": 900}`)
	at := now
	b.ReportAllocs()
	for b.Loop() {
		at = at.Add(window)
		if _, err := book.Report(at, south, body); err != nil {
			b.Fatal(err)
		}
	}
}
