package control

import (
	"math"
	"math/rand/v2"
	"time"

	"millrace/internal/stream"
)

// ledger is what a router has been told of the streams of this node.
type ledger struct {
	round   uint64
	entries map[stream.Name]*entry
}

// entry is what was said of a stream, and when.
type entry struct {
	Carried
	at    time.Time
	round uint64 // in which the node had it last
}

const (
	// viewersEvery is how often it is told that a stream has more or fewer viewers, or is
	// later: who plans looks at more than seconds.
	viewersEvery = 5 * time.Second
	// slight is the share of itself by which a figure may change without being told.
	slight = 0.25
	// slightDelay is likewise, in ms.
	slightDelay = 5
)

// changes returns what is to be told now that the node has these streams. Its base is
// left to the caller.
func (l *ledger) changes(streams []Carried, now time.Time) Carrying {
	var out Carrying
	l.round++
	seen := 0
	for i := range streams {
		c := &streams[i]
		e := l.entries[c.Name]
		if e != nil {
			if e.round != l.round {
				seen++
			}
			e.round = l.round
		}
		if e == nil || e.material(c, now) {
			out.Set = append(out.Set, *c)
		}
	}
	if seen == len(l.entries) {
		return out
	}
	for name, e := range l.entries {
		if e.round != l.round {
			out.Gone = append(out.Gone, name)
		}
	}
	return out
}

// material reports whether c is worth telling.
func (e *entry) material(c *Carried, now time.Time) bool {
	if e.Source != c.Source || e.Epoch != c.Epoch || e.From != c.From || differs(float64(e.Bitrate), float64(c.Bitrate), 0) {
		return true
	}
	return now.Sub(e.at) >= viewersEvery && (e.Viewers != c.Viewers || differs(e.Delay, c.Delay, slightDelay))
}

// differs reports whether b is another figure than a by more than is slight.
func differs(a, b, least float64) bool {
	return math.Abs(a-b) > max(slight*a, least)
}

// taken notes that c was taken. What it set may belong to the ledger afterwards.
func (l *ledger) taken(c *Carrying, now time.Time) {
	if c.Based == 0 || l.entries == nil {
		l.entries = make(map[stream.Name]*entry, len(c.Set))
	}
	for i := range c.Set {
		at := now
		if c.Based == 0 {
			// Those that were told together need not be told together again.
			at = now.Add(-rand.N(viewersEvery))
		}
		l.entries[c.Set[i].Name] = &entry{Carried: c.Set[i], at: at, round: l.round}
	}
	for _, name := range c.Gone {
		delete(l.entries, name)
	}
}
