package main

import "slices"

// tally is what a flow costs.
type tally struct {
	pulls    int     // of edges with viewers
	links    int     // that carry a stream
	crossing int     // of them, between regions or ISPs
	money    int64   // per second, in 1e-15; whole, so that the order of adding does not count
	delay    float64 // ms, summed over pulls
	hops     int
	delays   []float64
	reasons  map[string]int
	peak     float64 // share of its capacity that the busiest node uses
}

func (t *tally) backhaul() float64  { return float64(t.crossing) * bitrate / 1e6 } // MB/s
func (t *tally) sent() float64      { return float64(t.links) * bitrate / 1e6 }
func (t *tally) meanDelay() float64 { return t.delay / float64(t.pulls) }
func (t *tally) meanHops() float64  { return float64(t.hops) / float64(t.pulls) }

// quantile is a delay that a share of the pulls does not exceed.
func (t *tally) quantile(share float64) float64 {
	if len(t.delays) == 0 {
		return 0
	}
	slices.Sort(t.delays)
	return t.delays[min(int(share*float64(len(t.delays))), len(t.delays)-1)]
}

// tally sums up the shows that which names.
func (f *flow) tally(shows []show, which func(*show) bool) *tally {
	t := &tally{reasons: map[string]int{}}
	for i := range shows {
		s := &shows[i]
		if !which(s) {
			continue
		}
		at := f.streams[s.name]
		for node, up := range at.Carriers {
			if up == "" {
				continue
			}
			t.links++
			if f.w.crosses(up, node) {
				t.crossing++
				t.money += int64(f.w.node(up).Price*1e6) * bitrate
			}
		}
		for _, e := range s.edges {
			ms, hops := 0.0, 0
			for node := e; node != s.source; node = at.Carriers[node] {
				ms += f.w.delay(at.Carriers[node], node) + hand
				hops++
			}
			t.pulls++
			t.delay += ms
			t.hops += hops
			t.delays = append(t.delays, ms)
		}
	}
	for id, load := range f.load {
		t.peak = max(t.peak, float64(load)/float64(f.w.node(id).Capacity))
	}
	return t
}

// outage is what a death does to streams.
type outage struct {
	name     string
	pulls    int       // links of which the upper end died
	lost     []float64 // ms that an edge with viewers misses a stream
	stranded int       // pulls with no choice left that is alive: they wait for the next plan
}

const (
	notice = 1000 // ms until a node notices that an upstream is gone
	tryout = 1000 // ms until it gives up another one that is dead too
)

// kill finds out what happens when nodes die, without a new plan: nodes go to their next choices.
func (f *flow) kill(name string, shows []show, dead func(id string) bool) outage {
	o := outage{name: name}
	for i := range shows {
		s := &shows[i]
		if dead(s.source) {
			continue // that ends the stream, whatever the plan
		}
		at := f.streams[s.name]
		gap := map[string]float64{} // of a node, and so of all below it
		for node, up := range at.Carriers {
			if up == "" || dead(node) || !dead(up) {
				continue
			}
			o.pulls++
			gap[node] = f.recover(s, node, dead, &o)
		}
		for _, e := range s.edges {
			if dead(e) {
				continue
			}
			ms := 0.0
			for node := e; node != s.source && node != ""; node = at.Carriers[node] {
				if dead(at.Carriers[node]) {
					ms = gap[node]
					break
				}
			}
			if ms > 0 {
				o.lost = append(o.lost, ms)
			}
		}
	}
	slices.Sort(o.lost)
	return o
}

// recover is how long a node misses a stream whose upstream died.
func (f *flow) recover(s *show, node string, dead func(string) bool, o *outage) float64 {
	ms := float64(notice)
	for _, up := range f.choices(s, node) {
		if dead(up) {
			if up != f.streams[s.name].Carriers[node] {
				ms += tryout
			}
			continue
		}
		ms += 3 * f.w.delay(up, node)
		// An upstream that does not have it, or has lost it as well, has to get it first.
		for range 6 {
			from, carries := f.streams[s.name].Carriers[up]
			if carries && (from == "" || !dead(from)) {
				return ms
			}
			next := ""
			for _, c := range f.choices(s, up) {
				if !dead(c) {
					next = c
					break
				}
			}
			if next == "" {
				break
			}
			if carries {
				ms += notice
			}
			ms += 3 * f.w.delay(next, up)
			up = next
		}
		return ms
	}
	o.stranded++
	return ms + 4000 // a heartbeat is missed for three seconds, and the next plan is made within one
}
