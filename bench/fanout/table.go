package main

import "fmt"

const mib = 1 << 20

// head prints the columns of row.
func (b *bench) head() {
	fmt.Fprintf(b.out, "%-14s %4s %9s %9s %9s %9s %9s %9s %9s %9s %9s %9s\n", "server", "run", "CPU s/GB", "CPU s", "GB",
		"p50 ms", "p99 ms", "max ms", "first50", "first99", "KiB/view", "RSS MiB")
}

// row prints what came of one run.
func (b *bench) row(o *outcome) {
	r, s := &o.Report, &o.Report.Servers[0]
	fmt.Fprintf(b.out, "%-14s %4d %9.3f %9.2f %9.3f %9.2f %9.2f %9.2f %9.2f %9.2f %9.1f %9.1f\n", o.Label, o.Rep+1, s.CPUPerGB, s.CPU,
		float64(r.Bytes)/1e9, r.Normal.Delay.P50, r.Normal.Delay.P99, r.Normal.Delay.Max, r.FirstFrame.P50, r.FirstFrame.P99,
		float64(s.RSSPerViewer)/1024, float64(s.RSSAfter)/mib)
}

// goal prints a figure, what was to be reached, and whether it was.
func (b *bench) goal(what string, got, limit float64, unit string) {
	word := "reached"
	if got > limit {
		word = "MISSED"
	}
	fmt.Fprintf(b.out, "%-62s %9.3f %-5s at most %7.3f  %s\n", what, got, unit, limit, word)
}

// note prints a figure that has no limit.
func (b *bench) note(what string, got float64, unit string) {
	fmt.Fprintf(b.out, "%-62s %9.3f %s\n", what, got, unit)
}

// Figures of an outcome, for median.
func cpuOf(o *outcome) float64 { return o.cpu() }
func p50Of(o *outcome) float64 { return o.Report.Normal.Delay.P50 }
func p99Of(o *outcome) float64 { return o.Report.Normal.Delay.P99 }
func rssOf(o *outcome) float64 { return float64(o.Report.Servers[0].RSSAfter) / mib }
