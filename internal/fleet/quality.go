package fleet

import (
	"cmp"
	"slices"
	"time"
)

// Quality returns how players fare, by region, ISP and node.
func (f *Fleet) Quality() []QualityRow {
	return f.quality(f.frame.Load(), func(*group) bool { return true })
}

func (f *Fleet) quality(fr *frame, takes func(*group) bool) []QualityRow {
	rows := f.players.rows(time.Now(), takes)
	if fr != nil {
		for i := range rows {
			if n := fr.node(rows[i].Node); n != nil {
				rows[i].Datacenter = n.identity.Datacenter
			}
		}
	}
	return rows
}

// Rechecks returns what edges found when they looked again at players that came, by
// region and ISP.
func (f *Fleet) Rechecks() []RecheckRow {
	sums := map[RecheckRow]uint64{}
	f.nodes.mu.RLock()
	for _, m := range f.nodes.nodes {
		for i := range m.rechecks {
			r := &m.rechecks[i]
			sums[RecheckRow{Region: r.Region, ISP: r.ISP, Way: r.Way, Outcome: r.Outcome}] += r.Count
		}
	}
	f.nodes.mu.RUnlock()
	out := make([]RecheckRow, 0, len(sums))
	for row, n := range sums {
		row.Count = n
		out = append(out, row)
	}
	slices.SortFunc(out, func(a, b RecheckRow) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.ISP, b.ISP), cmp.Compare(a.Way, b.Way), cmp.Compare(a.Outcome, b.Outcome))
	})
	return out
}
