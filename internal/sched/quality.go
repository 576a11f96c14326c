package sched

import (
	"math"
	"time"
)

// measured is the quality rows of a Snapshot, to be asked by place and node.
type measured struct {
	costs   *Costs
	rows    map[measureKey]*Quality
	regions map[int32]bool // that have rows
	alone   map[string]bool
	dcs     map[string]int32
	latest  time.Time // the newest of them
}

// measureKey is what a row is about. An ISP that is unknown stands for all.
type measureKey struct {
	placeKey
	node, dc int32 // one of them; -1: not this
}

func newMeasured(s *Snapshot, a *atlas, byID map[string]int32, costs *Costs) *measured {
	m := &measured{
		costs: costs, rows: make(map[measureKey]*Quality, len(s.Quality)),
		regions: map[int32]bool{}, alone: map[string]bool{}, dcs: map[string]int32{},
	}
	for i := range s.Quality {
		q := &s.Quality[i]
		k := measureKey{placeKey{a.regions[q.Region], a.isp(q.ISP), q.Access}, -1, -1}
		if q.Node != "" {
			n, ok := byID[q.Node]
			if !ok {
				continue // it is gone
			}
			k.node = n
			m.alone[q.Node] = true
		} else {
			k.dc = m.datacenter(q.Datacenter)
		}
		m.rows[k] = q
		m.regions[k.region] = true
		if q.At.After(m.latest) {
			m.latest = q.At
		}
	}
	return m
}

func (m *measured) datacenter(name string) int32 {
	i, ok := m.dcs[name]
	if !ok {
		i = int32(len(m.dcs))
		m.dcs[name] = i
	}
	return i
}

// accesses returns how many kinds of access the rows tell apart.
func (m *measured) accesses() int {
	for k := range m.rows {
		if k.access != AccessUnknown {
			return int(accesses)
		}
	}
	return 1
}

// find returns the row for node n and clients of k: of the node rather than of its
// datacenter, of the ISP rather than of all, of the kind of access rather than of all.
func (m *measured) find(k placeKey, n int32, dc string) *Quality {
	if !m.regions[k.region] {
		return nil
	}
	try := measureKey{k, n, -1}
	for range 2 {
		for _, isp := range [...]int32{k.isp, unknownISP} {
			for _, access := range [...]Access{k.access, AccessUnknown} {
				try.isp, try.access = isp, access
				if q := m.rows[try]; q != nil {
					return q
				}
			}
		}
		i, ok := m.dcs[dc]
		if !ok {
			return nil
		}
		try.node, try.dc = -1, i
	}
	return nil
}

// of returns what quality adds to the coverage of node n for clients of k, as if the
// newest of all measurements were of now.
func (m *measured) of(k placeKey, n int32, dc string, coverage float64) float64 {
	q := m.find(k, n, dc)
	if q == nil {
		return 0
	}
	d := max(-m.costs.QualityBest, min(m.costs.excess(q, coverage), m.costs.QualityWorst))
	return d * m.costs.trust(q.Samples) * half(m.latest.Sub(q.At), m.costs.QualityHalf)
}

// excess returns the ms by which a measurement is worse than what coverage promises.
// What was not measured, and is 0, is as promised.
func (c *Costs) excess(q *Quality, coverage float64) (ms float64) {
	if q.Delay > 0 {
		ms += q.Delay - c.GoodDelay - coverage
	}
	if q.FirstFrame > 0 {
		ms += (q.FirstFrame - c.GoodFirstFrame) * c.FirstFrame
	}
	return ms + q.Stalls*c.Stall + q.Loss*c.Loss
}

// trust returns how much a measurement of so many samples counts, 0…1.
func (c *Costs) trust(samples int) float64 {
	if samples <= 0 {
		return 0
	}
	return float64(samples) / (float64(samples) + c.QualitySamples)
}

// half returns 1 for an age of 0 or less, 0.5 for one half life, and so on.
func half(age time.Duration, life Duration) float64 {
	if age <= 0 {
		return 1
	}
	return math.Exp2(-float64(age) / float64(life))
}
