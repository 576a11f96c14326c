package sched

import (
	"math"
	"time"
)

const (
	// usualTime is over what time the usual rate of refusals is learned.
	usualTime = 5 * time.Minute
	// leastSpan is the least time between two readings that a rate is made of: several
	// observers read the same counter, and their clocks differ a little.
	leastSpan = 500 * time.Millisecond
	// hotReadings is how many readings in a row make an attack: one can be chance.
	hotReadings = 2
)

// alarm watches how many connections a node refuses. It is quiet, then hot for
// hotReadings while the rate is above its bound, then ringing until the rate has been
// under half of the bound for AttackCalm. The bound is AttackFloor, or AttackRise times
// the usual rate if that is more.
type alarm struct {
	at     time.Time // of the newest reading; zero: none yet
	total  uint64
	rate   float64 // per second
	usual  float64
	hot    int
	rings  bool
	calmed time.Time // since when it is calm while it rings; zero: it is not
}

// note takes in a reading of the counter.
func (a *alarm) note(at time.Time, total uint64, c *HealthConfig) {
	span := at.Sub(a.at)
	if a.at.IsZero() || total < a.total { // the first, or the node was restarted
		a.at, a.total = at, total
		return
	}
	if span < leastSpan {
		return
	}
	a.rate = float64(total-a.total) / span.Seconds()
	a.at, a.total = at, total
	bound := max(c.AttackFloor, c.AttackRise*a.usual)
	if a.rings {
		a.calm(bound, c)
		return
	}
	if a.rate <= bound {
		a.hot = 0
		a.usual += (a.rate - a.usual) * (1 - math.Exp(-span.Seconds()/usualTime.Seconds()))
		return
	}
	if a.hot++; a.hot >= hotReadings {
		a.rings, a.calmed = true, time.Time{}
	}
}

// calm lets the alarm end when the rate has been low for long enough.
func (a *alarm) calm(bound float64, c *HealthConfig) {
	switch {
	case a.rate > bound/2:
		a.calmed = time.Time{}
	case a.calmed.IsZero():
		a.calmed = a.at
	case a.at.Sub(a.calmed) >= time.Duration(c.AttackCalm):
		a.rings, a.hot = false, 0
	}
}

// active reports whether the node is under attack at now. An alarm without readings
// ends by itself: who tells nothing any more is judged by its health.
func (a *alarm) active(now time.Time, c *HealthConfig) bool {
	return a.rings && now.Sub(a.at) < 2*time.Duration(c.AttackCalm)
}
