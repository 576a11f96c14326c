package upstream

import "time"

const (
	// lagSpan is for how long the quickest that something came is remembered, at least.
	// Clocks of publishers drift by far less than a frame in it.
	lagSpan = 5 * time.Minute
	// maxLag bounds what is taken for a lag, and not for a clock that was changed.
	maxLag = 15 * time.Second
)

// lag measures how far behind the frames are that are forwarded: how much later they come,
// by their own times, than the quickest have come. Somebody may be behind and never
// silent.
type lag struct {
	began  time.Time
	newest int64            // time of the newest frame, in ms on the forwarded clock
	least  [2]time.Duration // by which a frame was later than its time, in this span and the one before
	span   time.Time        // when this one began
	known  bool
}

// came takes in that a frame of the time dts was forwarded.
func (l *lag) came(now time.Time, dts int64) {
	if !l.known {
		*l = lag{began: now, newest: dts, span: now, known: true}
		l.least = [2]time.Duration{l.late(now), l.late(now)}
		return
	}
	l.newest = max(l.newest, dts)
	if now.Sub(l.span) >= lagSpan {
		l.least[1], l.least[0], l.span = l.least[0], l.late(now), now
	}
	l.least[0] = min(l.least[0], l.late(now))
}

func (l *lag) late(now time.Time) time.Duration {
	return now.Sub(l.began) - time.Duration(l.newest)*time.Millisecond
}

// at returns how far behind what was forwarded is now, 0 if that is not known.
func (l *lag) at(now time.Time) time.Duration {
	if !l.known {
		return 0
	}
	return min(l.late(now)-min(l.least[0], l.least[1]), maxLag)
}
