package main

import (
	"fmt"
	"slices"
)

// head prints the columns of row.
func (b *bench) head() {
	fmt.Fprintf(b.out, "%-8s %4s %12s %10s %12s %8s %9s %9s %12s\n",
		"server", "run", "µs CPU/query", "q/s core", "q/s seen", "lost %", "p50 ms", "p99 ms", "µs CPU paced")
}

// row prints what came of one run.
func (b *bench) row(name string, rep int, o outcome) {
	fmt.Fprintf(b.out, "%-8s %4d %12.2f %10.0f %12.0f %8.3f %9.3f %9.3f %12.2f\n",
		name, rep+1, o.cpu, 1e6/o.cpu, o.perSecond, 100*o.lost, o.p50, o.p99, o.pacedCPU)
}

// goals prints what was to be reached, and whether it was.
func (b *bench) goals(got map[string][]outcome) {
	cpu := func(o outcome) float64 { return o.cpu }
	atLeast := func(peer string, want float64) {
		if len(got["ours"]) == 0 || len(got[peer]) == 0 {
			return
		}
		b.goal("answers per second per core, times those of "+peer, median(got[peer], cpu)/median(got["ours"], cpu), want, true)
	}
	atLeast("fixed", 0.9)
	atLeast("coredns", 1.5)
	if len(got["ours"]) > 0 {
		b.goal(fmt.Sprintf("p99 at %d queries per second, ms", b.paced), median(got["ours"], func(o outcome) float64 { return o.p99 }), 2, false)
	}
}

// goal prints a figure, what was to be reached, and whether it was.
func (b *bench) goal(what string, got, want float64, atLeast bool) {
	limit, word := "at most", "reached"
	if atLeast {
		limit = "at least"
	}
	if atLeast && got < want || !atLeast && got > want {
		word = "MISSED"
	}
	fmt.Fprintf(b.out, "%-52s %8.3f  %s %5.2f  %s\n", what, got, limit, want, word)
}

func median(list []outcome, of func(outcome) float64) float64 {
	var v []float64
	for _, o := range list {
		v = append(v, of(o))
	}
	slices.Sort(v)
	return v[len(v)/2]
}
