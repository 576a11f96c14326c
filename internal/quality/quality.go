// Package quality keeps how the players of an edge fare: what the edge itself sees of
// them, and what they say in reports.
//
//	edge ──── first byte, skips, closes ──▶ Book ── Take ──▶ whoever plans
//	player ── reports ── allowance ───────▶  │
//	                                         └─ Stats ──▶ metrics
//
// A [Book] has sums for each place, a region and an ISP, never anything about a single
// player: a place is as fine as planning needs it, and a sum can be added to others.
//
// # What a stranger can do
//
// Anybody can send a report, so none is worth much by itself: it is small, every figure
// in it has a bound, and an address has an allowance. Who lies can shift the mean of his
// own place, by as much as players at that address could.
//
// The package does no I/O and reads no clock.
package quality

import (
	"net/netip"
	"sync"
	"time"

	"millrace/internal/session"
)

// MaxPlaces is how many places a Book tells apart until they are taken, one of which is
// for all players beyond, and for those whose place is not known.
const MaxPlaces = 1024

// Place is where a player is. Both may be unknown, and are then empty.
type Place struct{ Region, ISP string }

// Sums is how the players of a place fared.
type Sums struct {
	Started   int                    // viewers that got a first byte
	FirstByte time.Duration          // of all of them
	Skips     int                    // times that tags were left out for a viewer that was too slow
	Closes    map[session.Reason]int // ends
	Reports   int                    // of players
	First     Mean                   // from asking to the first frame
	Delay     Mean                   // behind live
	Stalls    int                    // times that the picture stood still
	Stalled   time.Duration          // while it should have moved
	Played    time.Duration          // while it moved
}

// Mean is a sum and of how many.
type Mean struct {
	Of  int
	Sum time.Duration
}

func (m *Mean) add(d time.Duration) { m.Of, m.Sum = m.Of+1, m.Sum+d }

// Group is the Sums of a place.
type Group struct {
	Place
	Sums
}

// Book adds up how players fare. All methods may be called from any goroutine; a nil
// Book takes everything and keeps nothing.
type Book struct {
	// Fixed at construction.
	locate func(netip.Addr) Place

	// Guarded by mu.
	mu     sync.Mutex
	places map[Place]*Sums // since they were taken
	rate   allowances
	stats  Stats
}

// New returns a Book that asks locate for the place of a player, which must answer at
// once. Nil knows none.
func New(locate func(netip.Addr) Place) *Book {
	if locate == nil {
		locate = func(netip.Addr) Place { return Place{} }
	}
	return &Book{locate: locate, places: make(map[Place]*Sums)}
}

// Began notes that a viewer got its first byte, so long after it asked.
func (b *Book) Began(player netip.Addr, after time.Duration) {
	if b == nil {
		return
	}
	b.note(player, func(s *Sums) { s.Started, s.FirstByte = s.Started+1, s.FirstByte+max(0, after) })
}

// Skipped notes that a viewer was too slow, so that it was moved on.
func (b *Book) Skipped(player netip.Addr) {
	if b == nil {
		return
	}
	b.note(player, func(s *Sums) { s.Skips++ })
}

// Ended notes why a viewer has ended.
func (b *Book) Ended(player netip.Addr, r session.Reason) {
	if b == nil {
		return
	}
	b.note(player, func(s *Sums) {
		if s.Closes == nil {
			s.Closes = make(map[session.Reason]int)
		}
		s.Closes[r]++
	})
}

// Report takes in what a player says, and returns it. Its error is a [*Refused].
func (b *Book) Report(now time.Time, player netip.Addr, body []byte) (Report, error) {
	if b == nil {
		return Report{}, nil
	}
	b.mu.Lock()
	allowed := b.rate.take(now, player)
	b.mu.Unlock()
	var r Report
	var err error
	if !allowed {
		err = &Refused{TooMany, "more reports come from this address than players send: one each ten seconds does"}
	} else {
		r, err = Parse(body)
	}
	if err != nil {
		b.mu.Lock()
		b.stats.count(reasonOf(err))
		b.mu.Unlock()
		return Report{}, err
	}
	b.note(player, func(s *Sums) {
		b.stats.report(&r)
		s.report(&r)
	})
	return r, nil
}

// note has change made to the sums of where a player is.
func (b *Book) note(player netip.Addr, change func(*Sums)) {
	at := b.locate(player)
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.places[at]
	if s == nil && len(b.places) >= MaxPlaces-1 {
		at = Place{}
		s = b.places[at]
	}
	if s == nil {
		s = &Sums{}
		b.places[at] = s
	}
	change(s)
}

func (s *Sums) report(r *Report) {
	s.Reports++
	if r.FirstFrame > 0 {
		s.First.add(r.FirstFrame)
	}
	if r.HasDelay {
		s.Delay.add(r.Delay)
	}
	s.Stalls += r.Stalls
	s.Stalled += r.Stalled
	s.Played += r.Played
}

// Take returns the sums since they were taken, of at most limit places. What is left
// comes with the next call.
func (b *Book) Take(limit int) []Group {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Group, 0, min(limit, len(b.places)))
	for at, s := range b.places {
		if len(out) >= limit {
			break
		}
		out = append(out, Group{at, *s})
		delete(b.places, at)
	}
	return out
}
