package fleet

import (
	"cmp"
	"math"
	"slices"
	"time"

	"millrace/internal/plan"
	"millrace/internal/sched"
)

// silentWord is the error of a node that nobody hears.
const silentWord = "silent"

// observations is what the heartbeats tell of edges, for each family that they have an
// address of. A node that was not heard since this router began is not spoken of.
func (f *Fleet) observations(fr *frame) []sched.Observation {
	out := make([]sched.Observation, 0, len(fr.nodes))
	for i := range fr.nodes {
		n := &fr.nodes[i]
		if n.identity.Role != plan.Edge || n.seed {
			continue
		}
		figures := &sched.Figures{Load: n.load, Viewers: n.viewers, Refused: n.refused, Streams: n.names}
		if n.full {
			figures.Load = max(figures.Load, n.capacity) // it takes no more, whatever its load
		}
		told := sched.Families(0)
		for _, a := range n.identity.Addresses {
			family := sched.FamilyOf(a)
			if told&family != 0 {
				continue
			}
			told |= family
			o := sched.Observation{Observer: f.cfg.Router, Node: n.identity.ID, Family: family, At: n.heard, Up: !n.down, Draining: n.draining}
			if n.down {
				o.At, o.Error = fr.at, silentWord
			} else {
				o.Figures = figures
			}
			out = append(out, o)
		}
	}
	return out
}

const (
	// qualityEvery is how often the quality that players report is published at most.
	qualityEvery = time.Minute
	// fewReports is how many reports tell something of a place.
	fewReports = 5
	// manyReports is how many tell as much as any.
	manyReports = 100
	// qualityShare and qualityMS are by how much a figure has to differ to be news.
	qualityShare = 0.2
	qualityMS    = 20
	// maxQuality bounds the rows of players in a bundle.
	maxQuality = 20_000
)

// qualityKept is the quality of players as it is in bundles: it changes slowly, because
// every change is sent to all schedulers and edges.
type qualityKept struct {
	at   time.Time
	list []sched.Quality
}

// rows returns the rows for a bundle of which the nodes are known; given are those of
// operators, which count before what players report.
func (q *qualityKept) rows(now time.Time, f *Fleet, known map[string]bool, given []sched.Quality) []sched.Quality {
	if now.Sub(q.at) >= qualityEvery {
		q.at = now
		fresh := reported(f.players.rows(now, func(*group) bool { return true }))
		if !alike(q.list, fresh) {
			q.list = fresh
		}
	}
	var out []sched.Quality
	for i := range q.list {
		r := &q.list[i]
		same := func(o sched.Quality) bool {
			return o.Region == r.Region && o.ISP == r.ISP && o.Node == r.Node && o.Access == r.Access
		}
		if known[r.Node] && !slices.ContainsFunc(given, same) {
			out = append(out, *r)
		}
	}
	return out
}

// reported turns what players report into rows of a snapshot.
func reported(rows []QualityRow) []sched.Quality {
	var out []sched.Quality
	for i := range rows {
		r := &rows[i]
		if r.Region == "" || r.ISP == "*" || r.Reports < fewReports {
			continue
		}
		out = append(out, sched.Quality{
			Region: r.Region, ISP: r.ISP, Node: r.Node, FirstFrame: math.Round(min(r.FirstFrame, 1e6)), Stalls: math.Round(min(r.Stalls, 1e6)*10) / 10,
			Samples: r.Reports, At: r.At.Truncate(time.Second),
		})
	}
	if len(out) > maxQuality {
		slices.SortStableFunc(out, func(a, b sched.Quality) int { return cmp.Compare(b.Samples, a.Samples) })
		out = out[:maxQuality]
	}
	return out
}

// enough is how much the reports of a row tell; more than manyReports tell no more.
func enough(q sched.Quality) float64 { return float64(min(q.Samples, manyReports)) }

// alike reports whether two lists of rows say nearly the same.
func alike(a, b []sched.Quality) bool {
	return slices.EqualFunc(a, b, func(x, y sched.Quality) bool {
		near := func(v, w, free float64) bool { return math.Abs(v-w) <= max(free, qualityShare*max(v, w)) }
		return x.Region == y.Region && x.ISP == y.ISP && x.Node == y.Node && near(x.FirstFrame, y.FirstFrame, qualityMS) &&
			near(x.Stalls, y.Stalls, 1) && near(enough(x), enough(y), enough(x)/2) &&
			y.At.Sub(x.At) < 10*time.Minute
	})
}
