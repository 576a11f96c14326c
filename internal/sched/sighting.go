package sched

import "time"

const (
	// maxObservers bounds who is listened to about one node: the schedulers of a
	// cluster and the node itself.
	maxObservers = 32
	// maxFlaps bounds how often the wait of a flapping node is doubled.
	maxFlaps = 4
	// flapTime is how soon a node has to fall again to count as flapping.
	flapTime = 2 * time.Minute
)

// sighting is how one observer sees a node over one family. It follows the node with
// some inertia: Fall bad observations in a row take it down and Rise good ones bring
// it up. Each time that it falls again within flapTime of having come up, it has to
// show twice as many good ones.
//
//	up ──Fall bad──▶ down ──Rise × 2^flaps good──▶ up
type sighting struct {
	observer string
	at       time.Time // of the newest observation
	seenUp   time.Time // of the newest good one while it was up
	changed  time.Time // when it came up or went down
	up       bool
	against  int // observations in a row that say the opposite
	flaps    int
}

// sightings are those of all observers.
type sightings []sighting

// note takes in an observation.
func (s *sightings) note(o *Observation, c *HealthConfig) {
	for i := range *s {
		if v := &(*s)[i]; v.observer == o.Observer {
			if o.At.After(v.at) {
				v.note(o.At, o.Up, c)
			}
			return
		}
	}
	v := sighting{observer: o.Observer, at: o.At, changed: o.At, up: o.Up}
	if o.Up { // the first is believed at once: a scheduler that starts has to answer
		v.seenUp = o.At
	}
	if len(*s) < maxObservers {
		*s = append(*s, v)
		return
	}
	oldest := &(*s)[0]
	for i := range *s {
		if (*s)[i].at.Before(oldest.at) {
			oldest = &(*s)[i]
		}
	}
	if oldest.at.Before(o.At) {
		*oldest = v
	}
}

func (v *sighting) note(at time.Time, up bool, c *HealthConfig) {
	v.at = at
	if up != v.up {
		v.against++
		if v.against < v.needed(c) {
			return
		}
		v.turn(at)
	}
	v.against = 0
	if v.up {
		v.seenUp = at
	}
}

// needed returns how many observations in a row turn it.
func (v *sighting) needed(c *HealthConfig) int {
	if v.up {
		return c.Fall
	}
	return c.Rise << v.flaps
}

// turn takes it from up to down or back.
func (v *sighting) turn(at time.Time) {
	if v.up {
		if at.Sub(v.changed) < flapTime {
			v.flaps = min(v.flaps+1, maxFlaps)
		} else {
			v.flaps = 0
		}
	}
	v.up, v.changed = !v.up, at
}

// health merges what the observers say: up if one that looked lately says so, unknown
// if none looked lately. Observations from the future are of a clock that is wrong.
func (s sightings) health(now time.Time, c *HealthConfig) (h Health) {
	for i := range s {
		v := &s[i]
		if v.at.After(h.At) {
			h.At = v.at
		}
		if v.seenUp.After(h.Up) {
			h.Up = v.seenUp
		}
		fresh := now.Sub(v.at).Abs() <= time.Duration(c.Fresh)
		switch {
		case fresh && v.up:
			h.Status = Up
		case fresh && h.Status == Unknown:
			h.Status = Down
		}
	}
	return h
}
