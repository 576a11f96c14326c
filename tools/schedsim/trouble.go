package main

import (
	"slices"
	"time"
)

// trouble is a time in which something is not as usual.
type trouble struct {
	name       string
	from, to   time.Duration
	begin, end func(*sim, time.Duration)
}

// plans returns the troubles of a run. Each is over long before the next.
func (s *sim) plans() (out []trouble) {
	at := func(share float64) time.Duration {
		return time.Duration(share * float64(s.duration)).Truncate(time.Second)
	}
	add := func(name string, from, to float64, begin, end func(*sim, time.Duration)) {
		out = append(out, trouble{name, at(from), at(to), begin, end})
	}

	// The datacenter with most capacity loses its power.
	size := map[string]int64{}
	largest := ""
	for _, e := range s.edges {
		dc := e.node.Datacenter
		if size[dc] += e.node.Capacity; size[dc] > size[largest] {
			largest = dc
		}
	}
	all := func(up bool) func(*sim, time.Duration) {
		return func(s *sim, at time.Duration) {
			for _, e := range s.edges {
				if e.node.Datacenter == largest {
					s.set(e, up, at)
				}
			}
		}
	}
	add("datacenter "+largest+" dies", 0.20, 0.32, all(false), all(true))

	// One edge in eight is drained and restarted, a few at a time.
	const (
		waves    = 4
		restarts = "edges are drained and restarted"
	)
	for i := range waves {
		wave := func(s *sim) (out []*edge) {
			for j := i; j < len(s.edges)/8; j += waves {
				out = append(out, s.edges[j*8])
			}
			return out
		}
		from := 0.42 + 0.04*float64(i)
		add(restarts, from, from+0.02, func(s *sim, _ time.Duration) {
			for _, e := range wave(s) {
				e.draining = true
			}
		}, nil)
		add(restarts, from+0.02, from+0.04, func(s *sim, at time.Duration) {
			for _, e := range wave(s) {
				s.set(e, false, at)
			}
		}, func(s *sim, at time.Duration) {
			for _, e := range wave(s) {
				e.draining = false
				s.set(e, true, at)
			}
		})
	}

	const crowded = 3 // chengdu: no edges of another region are near
	add("rush in "+regions[crowded].name, 0.70, 0.85,
		func(s *sim, at time.Duration) { s.setRush(crowded, at) },
		func(s *sim, at time.Duration) { s.setRush(-1, at) })
	return out
}

// makeTrouble begins and ends what is due.
func (s *sim) makeTrouble(at time.Duration) {
	for i := range s.trouble {
		t := &s.trouble[i]
		if t.to == at && t.end != nil {
			t.end(s, at)
		}
	}
	for i := range s.trouble {
		t := &s.trouble[i]
		if t.from == at {
			t.begin(s, at)
		}
	}
}

// set brings an edge up or down. Its viewers notice within two seconds, and come again.
func (s *sim) set(e *edge, up bool, at time.Duration) {
	e.up = up
	if up {
		return
	}
	gone := slices.Clone(e.viewers)
	for _, p := range gone {
		e.remove(p)
		s.later(at+time.Duration(s.chance.Int64N(int64(2*time.Second))), p)
	}
	s.tally.broken += len(gone)
}

// setRush lets everybody of a region who does not watch want to, -1 for none.
func (s *sim) setRush(region int, at time.Duration) {
	s.rush = region
	for i := range s.players {
		if p := &s.players[i]; p.pair.region == region && p.edge == nil {
			s.later(at+time.Duration(s.chance.Int64N(int64(20*time.Second))), p)
		}
	}
}
