package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"millrace/tools/drill"
)

// write prints what the runs of a case showed, and reports whether all that is
// promised was kept.
func write(w io.Writer, c drill.Case, runs []drill.Result) bool {
	t := table{w: w, good: true}
	var views []drill.View
	var seconds, switches, trials []float64
	figures := map[string][]float64{}
	for _, r := range runs {
		views = append(views, r.Views...)
		seconds = append(seconds, r.Seconds)
		switches = append(switches, float64(r.Switches))
		trials = append(trials, float64(r.Trials))
		for name, v := range r.Figures {
			figures[name] = append(figures[name], v)
		}
	}
	column := func(of func(drill.View) float64) (out []float64) {
		for _, v := range views {
			out = append(out, of(v))
		}
		return out
	}
	gaps := column(func(v drill.View) float64 { return v.Gap })
	first := column(func(v drill.View) float64 { return v.First })
	stalls := column(func(v drill.View) float64 { return float64(v.Stalls) })

	fmt.Fprintf(w, "%d runs with %d viewers that count, %.0f s in all\n\n", len(runs), len(views), sum(seconds))
	fmt.Fprintf(w, "%-44s %6s %9s %9s %9s %9s %9s\n", "", "n", "least", "p50", "p90", "p99", "max")
	if sum(gaps) > 0 {
		t.row("gap after the fault, ms", gaps)
	}
	t.row("gap before it, ms", column(func(v drill.View) float64 { return v.Before }))
	t.row("first frame, ms", first)
	t.row("stalls of a player with 1 s, a viewer", stalls)
	t.row("of that it stood, ms", column(func(v drill.View) float64 { return v.Stalled }))
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		t.row(name, figures[name])
	}
	t.row("switches of all streams, a run", switches)
	t.row("trials of all streams, a run", trials)
	fmt.Fprintln(w)

	t.count("frames repeated", views, func(v drill.View) uint64 { return v.Repeated })
	t.count("frames missing", views, func(v drill.View) uint64 { return v.Missing })
	t.count("frames with a wrong time", views, func(v drill.View) uint64 { return v.Clock })
	t.count("other faults of frames", views, func(v drill.View) uint64 { return v.Other })
	if c.Gap > 0 {
		what, got := "longest gap, ms", quantile(gaps, 1)
		if c.P99 {
			what, got = "p99 of the gap, ms", quantile(gaps, 0.99)
		}
		t.goal(what, got, ms(c.Gap))
	}
	if c.First > 0 {
		t.goal("longest time to the first frame, ms", quantile(first, 1), ms(c.First))
	}
	if c.Stalls {
		t.goal("stalls", sum(stalls), 0)
	}
	t.broken(runs)
	return t.good
}

// table is what is being written.
type table struct {
	w    io.Writer
	good bool
}

func (t *table) row(name string, v []float64) {
	if len(v) == 0 {
		return
	}
	fmt.Fprintf(t.w, "%-44s %6d %9.1f %9.1f %9.1f %9.1f %9.1f\n", name, len(v),
		quantile(v, 0), quantile(v, 0.5), quantile(v, 0.9), quantile(v, 0.99), quantile(v, 1))
}

func (t *table) count(what string, views []drill.View, of func(drill.View) uint64) {
	var n uint64
	for _, v := range views {
		n += of(v)
	}
	t.goal(what, float64(n), 0)
}

// goal prints a figure, what was promised, and whether that was kept.
func (t *table) goal(what string, got, limit float64) {
	word := "reached"
	if got > limit {
		word, t.good = "MISSED", false
	}
	fmt.Fprintf(t.w, "%-44s %9.1f   at most %7.1f  %s\n", what, got, limit, word)
}

// broken prints the promises that single runs broke.
func (t *table) broken(runs []drill.Result) {
	n := 0
	var lines []string
	for _, r := range runs {
		if len(r.Broken) > 0 {
			n++
			lines = append(lines, fmt.Sprintf("seed %d: %s", r.Seed, strings.Join(r.Broken, "; ")))
		}
	}
	t.goal("runs that broke a promise", float64(n), 0)
	for _, l := range lines {
		fmt.Fprintln(t.w, l)
	}
}

// quantile returns the value below or at which the share q of all values is.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
