package measure

import (
	"time"

	"millrace/internal/upstream"
)

const (
	// slotTime and slots make the ten minutes over which stalls and switches are counted:
	// one stall within a second is not 3,600 an hour.
	slotTime = 10 * time.Second
	slots    = 60
	// leastTime is by how much time with a stream they are divided at least, for the same
	// reason.
	leastTime = slots * slotTime
)

// history is what happened on a link in the last ten minutes.
type history struct {
	ring   [slots]slot
	newest int64 // number of the newest slot
	used   time.Time
	probed time.Time // when a probe was answered last
}

// slot is what happened in a slot of time.
type slot struct {
	stalls, switches int
	streams          time.Duration // time with a stream, of all streams together
}

// add takes in what is new.
func (h *history) add(now time.Time, f *upstream.LinkFigures) {
	h.advance(now)
	s := &h.ring[h.newest%slots]
	s.stalls += f.Stalls
	s.switches += f.Switches
	s.streams += f.Over * time.Duration(f.Streams)
	h.used = now
}

// advance clears the slots that are over.
func (h *history) advance(now time.Time) {
	n := now.UnixNano() / int64(slotTime)
	if n-h.newest >= slots {
		h.ring, h.newest = [slots]slot{}, n
	}
	for h.newest < n {
		h.newest++
		h.ring[h.newest%slots] = slot{}
	}
}

// rates returns how many stalls and switches there were in an hour of a stream.
func (h *history) rates(now time.Time) (stalls, switches float64) {
	h.advance(now)
	var sum slot
	for _, s := range h.ring {
		sum.stalls += s.stalls
		sum.switches += s.switches
		sum.streams += s.streams
	}
	hours := max(sum.streams, leastTime).Hours()
	return float64(sum.stalls) / hours, float64(sum.switches) / hours
}

// idle reports whether there is nothing left worth remembering.
func (h *history) idle(now time.Time) bool {
	return now.Sub(h.used) >= leastTime && now.Sub(h.probed) >= leastTime
}
