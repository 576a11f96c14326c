package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// What is to be shown of cold streams: so much less by paths than by the tree.
const goal = 40.0 // %

// less is by how many % flat is less than tree.
func less(tree, flat float64) float64 {
	if tree == 0 {
		return 0
	}
	return 100 * (tree - flat) / tree
}

// figure is a line of a comparison.
type figure struct {
	name       string
	unit       string
	tree, flat float64
}

func (p pair) figures() []figure {
	return []figure{
		{"back-haul (between regions or ISPs)", "MB/s", p.tree.backhaul(), p.flat.backhaul()},
		{"all that nodes send to nodes", "MB/s", p.tree.sent(), p.flat.sent()},
		{"money for it", "per hour", 3600 * float64(p.tree.money) / 1e15, 3600 * float64(p.flat.money) / 1e15},
		{"delay, mean", "ms", p.tree.meanDelay(), p.flat.meanDelay()},
		{"delay, 95 % below", "ms", p.tree.quantile(0.95), p.flat.quantile(0.95)},
		{"hops, mean", "", p.tree.meanHops(), p.flat.meanHops()},
		{"busiest node", "% of its capacity", 100 * p.tree.peak, 100 * p.flat.peak},
	}
}

func (r *result) command() string {
	return fmt.Sprintf("go run ./tools/plansim --streams %d --viewers %d --edges %d --cold %d --seed %d", r.streams, r.viewers, r.edges, r.options.cold, r.seed)
}

// goals are what was promised of cold streams.
func (r *result) goals() []figure {
	f := r.cold.figures()
	return []figure{f[0], f[3]}
}

// text is the report as tables.
func (r *result) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plansim: streams by a tree of pools, and by flat paths per stream\nrepeat with: %s\n\n", r.command())
	for _, g := range r.goals() {
		verdict := "reached"
		if less(g.tree, g.flat) < goal {
			verdict = "missed"
		}
		fmt.Fprintf(&b, "cold streams, %s: %.1f %% less by paths than by the tree; at least %.0f %%: %s\n", g.name, less(g.tree, g.flat), goal, verdict)
	}
	fmt.Fprintf(&b, "\n%d cold streams, each with viewers on 20 edges of four regions and two ISPs\n\n", r.options.cold)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	writeFigures(w, r.cold)
	fmt.Fprintf(&b, "\n%d streams with %d viewers in twelve regions with three ISPs, %d nodes, by the number of edges that have viewers\n\n", r.streams, r.viewers, r.nodes)
	fmt.Fprintf(w, "edges\tpulls\tback-haul MB/s\t\t\tdelay ms\t\t\thops\t\n\t\ttree\tpaths\tless\ttree\tpaths\tless\ttree\tpaths\n")
	for _, c := range r.classes {
		t, f := c.tree, c.flat
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%.0f %%\t%.1f\t%.1f\t%.0f %%\t%.2f\t%.2f\n", c.name, t.pulls,
			t.backhaul(), f.backhaul(), less(t.backhaul(), f.backhaul()), t.meanDelay(), f.meanDelay(), less(t.meanDelay(), f.meanDelay()), t.meanHops(), f.meanHops())
	}
	w.Flush()
	b.WriteString("\nall of them\n\n")
	writeFigures(w, r.classes[len(r.classes)-1].pair)
	b.WriteString("\nwhat dies, and what edges with viewers miss until they go on from their next choice, without a new plan\n\n")
	fmt.Fprintf(w, "what dies\tplanning\tpulls moved\tedges that miss a stream\tmedian s\tmost s\twithout a choice\n")
	for _, o := range r.outages {
		for i, name := range [...]string{"tree", "paths"} {
			median, most := o[i].times()
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%.1f\t%.1f\t%d\n", o[i].name, name, o[i].pulls, len(o[i].lost), median, most, o[i].stranded)
		}
	}
	w.Flush()
	c := &r.churn
	fmt.Fprintf(&b, "\ntwo minutes of noise (round trips ±10 %%, lost probes, loads ±10 %%), one link 150 ms slower from second %d to %d:\n", slowFrom, slowTo)
	fmt.Fprintf(&b, "first choices of pools that changed: %d, of %d nodes in %d plans\n", sum(c.pools), c.nodes, len(c.pools))
	fmt.Fprintf(&b, "answers to the same questions that changed: %d, of %d questions asked %d times\n", sum(c.paths), c.asked, len(c.paths))
	return b.String()
}

func (o *outage) times() (median, most float64) {
	if n := len(o.lost); n > 0 {
		return o.lost[n/2] / 1000, o.lost[n-1] / 1000
	}
	return 0, 0
}

func sum(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}

func writeFigures(w *tabwriter.Writer, p pair) {
	fmt.Fprintf(w, "\ttree\tpaths\tless\t\n")
	for _, f := range p.figures() {
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.0f %%\t%s\n", f.name, f.tree, f.flat, less(f.tree, f.flat), f.unit)
	}
	w.Flush()
}
