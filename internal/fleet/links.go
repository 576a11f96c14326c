package fleet

import (
	"cmp"
	"slices"
	"time"
)

// maxLinkRows bounds the links on the map: those that carry the most.
const maxLinkRows = 20_000

// Grades by what a link costs: as promised or a little more is good, several times as much
// is poor.
const (
	fairShare, fairMS = 1.5, 10
	poorShare, poorMS = 3, 50
)

// gradeOf returns the word for what a link costs against what its distance promises.
func gradeOf(cost, promised float64, measured bool) Grade {
	switch {
	case !measured:
		return GradeUnknown
	case cost <= fairShare*promised+fairMS:
		return GradeGood
	case cost <= poorShare*promised+poorMS:
		return GradeFair
	}
	return GradePoor
}

// linkRows returns the links that are in use or first in a pool. The lock of the scores
// is held.
func (f *Fleet) linkRows(fr *frame, now time.Time) []LinkRow {
	var out []LinkRow
	for i := range fr.nodes {
		n := &fr.nodes[i]
		if n.down {
			continue
		}
		first := ""
		if fr.published != nil {
			if pool := fr.published.plan.Pools[n.identity.ID]; len(pool) > 0 {
				first = pool[0].Upstream
			}
		}
		for from, u := range n.uses {
			if row, ok := f.linkRow(fr, now, from, n.identity.ID); ok {
				row.Streams, row.Rate = u.streams, u.rate
				out = append(out, row)
			}
		}
		if _, used := n.uses[first]; first != "" && !used {
			if row, ok := f.linkRow(fr, now, first, n.identity.ID); ok {
				out = append(out, row)
			}
		}
	}
	slices.SortFunc(out, func(a, b LinkRow) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(uint(a.Place-1), uint(b.Place-1)), cmp.Compare(a.From, b.From))
	})
	return out
}

// linkRow returns a link without what it carries. The lock of the scores is held.
func (f *Fleet) linkRow(fr *frame, now time.Time, from, to string) (LinkRow, bool) {
	hop, ok := fr.view.Hop(from, to)
	if !ok {
		return LinkRow{}, false
	}
	row := LinkRow{
		From: from, To: to, Place: fr.placeOf(from, to), Cost: hop.Cost, Promised: hop.Promised, Crosses: hop.Crosses,
		Grade: gradeOf(hop.Cost, hop.Promised, hop.Measured),
	}
	if l := f.scores.links.Link(from, to); l != nil {
		figures := l.Figures(now, &f.cfg.Plan)
		row.RTT, row.Loss = figures.RTT, max(figures.Loss, figures.Retransmits)
	}
	return row, true
}

// placeOf returns the place of an upstream in the pool of a node, from 1; 0 if it has none.
func (fr *frame) placeOf(from, to string) int {
	if fr.published == nil {
		return 0
	}
	for i, c := range fr.published.plan.Pools[to] {
		if c.Upstream == from {
			return i + 1
		}
	}
	return 0
}
