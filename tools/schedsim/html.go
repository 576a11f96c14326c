package main

import (
	_ "embed"
	"fmt"
	"html"
	"math"
	"strings"

	"millrace/tools/page"
)

//go:embed style.css
var style string

// The two runs, in words and in the style sheet.
const (
	withoutName, withoutClass = "DNS alone", "without"
	withName, withClass       = "with the re-check", "with"
)

// html is the report as one page that needs nothing else.
func (r *report) html() string {
	var b strings.Builder
	page.Begin(&b, "Who ends on the right edge", style)
	fmt.Fprintf(&b, "<p>%s</p>\n", html.EscapeString(r.world()))
	b.WriteString("<p>An edge is right if it is the one that the policy wants for the player's true address, by what the scheduler knows at that moment, or not worse by more than the threshold. " +
		"The same players are simulated twice: without the re-check, and with it.</p>\n")
	r.writeGoals(&b)
	r.writeKinds(&b)
	for _, c := range r.charts() {
		page.Section(&b, c.title, c.note)
		writeLegend(&b, c.lines)
		c.svg(&b, r.with)
		b.WriteString("</section>\n")
	}
	for _, t := range r.tables() {
		t.writeHTML(&b)
	}
	fmt.Fprintf(&b, "<p class=\"note\">Repeat with</p>\n<pre>%s</pre>\n", html.EscapeString(r.command()))
	page.End(&b)
	return b.String()
}

func (r *report) writeGoals(b *strings.Builder) {
	b.WriteString("<div class=\"figures\">\n")
	for _, g := range r.goals() {
		verdict := "missed"
		if g.reached {
			verdict = "reached"
		}
		page.Figure(b, g.value, g.name, g.bound+": "+verdict)
	}
	page.Figure(b, fmt.Sprintf("%.1f %%", share(r.without.all.right, r.without.all.served)), "on the right edge by DNS alone", "without the re-check")
	page.Figure(b, per(r.with.all.redirects, r.with.all.served), "redirects per play", "with the re-check")
	b.WriteString("</div>\n")
}

func (r *report) writeKinds(b *strings.Builder) {
	c := bars{lines: []line{{name: withoutName, class: withoutClass}, {name: withName, class: withClass}}}
	add := func(name string, without, with *counts) {
		c.groups = append(c.groups, name)
		c.lines[0].values = append(c.lines[0].values, share(without.right, without.served))
		c.lines[1].values = append(c.lines[1].values, share(with.right, with.served))
	}
	for k := range kinds {
		add(kindWords[k], &r.without.byKind[k], &r.with.byKind[k])
	}
	add("all players", &r.without.all, &r.with.all)
	const title = "Plays on the right edge, by resolver"
	page.Section(b, title, "Near: at the player's own ISP, in its region. Far: in another region, with or without the client subnet (ECS).")
	writeLegend(b, c.lines)
	c.svg(b, title)
	b.WriteString("</section>\n")
}

func writeLegend(b *strings.Builder, lines []line) {
	b.WriteString("<p class=\"legend\">")
	for _, l := range lines {
		fmt.Fprintf(b, "<span class=\"%s\">%s</span>", l.class, html.EscapeString(l.name))
	}
	b.WriteString("</p>\n")
}

// charts are the courses of the runs.
func (r *report) charts() []chart {
	both := func(f func(*bin) float64) []line {
		return []line{
			{withoutName, withoutClass, r.without.values(f)},
			{withName, withClass, r.with.values(f)},
		}
	}
	fullest := both(func(b *bin) float64 { return ratio(100*b.fullest, float64(b.seconds)) })
	uneven := both(func(b *bin) float64 { return ratio(b.imbalance, float64(b.seconds)) })
	redirects := []line{{withName, withClass, r.with.values(func(b *bin) float64 { return ratio(float64(b.redirects), float64(b.served)) })}}
	right := both(func(b *bin) float64 { return ratio(100*float64(b.right), float64(b.served)) })
	lost := both(func(b *bin) float64 { return ratio(float64(b.dead+b.refused), float64(b.seconds)) })
	step := marks(ceiling(lost, 10))
	none := math.NaN()
	return []chart{
		{
			title: "On the right edge over time", note: "% of the plays that began in each stretch of time.",
			high: 100, step: 20, format: "%.0f", mark: none, lines: right,
		},
		{
			title: "The same, from 90 % on", note: "What is missing is moments in which an edge's copy is behind the scheduler's: just after an edge died or came back, or the difference to another edge has just passed the threshold.",
			low: 90, high: 100, step: 2, format: "%.0f", mark: goalRight, markName: "goal: 99 %", lines: right[1:],
		},
		{
			title: "Redirects per play", note: "With the re-check: what the second look costs.",
			high: ceiling(redirects, 0.25), step: 0.25, format: "%.2f", mark: none, lines: redirects,
		},
		{
			title: "The fullest edge", note: "Load in % of capacity; an edge at 100 % refuses.",
			high: 100, step: 20, format: "%.0f", mark: none, lines: fullest,
		},
		{
			title: "Fullest edge over the mean of all", note: "1 is perfectly even. Demand is uneven between regions, so it cannot be reached.",
			low: 1, high: ceiling(uneven, 0.5), step: 0.5, format: "%.1f", mark: none, lines: uneven,
		},
		{
			title: "Edges asked in vain, per second", note: "Edges that were down or had no room: players try the next address of their DNS answer, and then again.",
			high: ceiling(lost, step), step: step, format: "%.0f", mark: none, lines: lost,
		},
	}
}

// values is f of each bin.
func (t *tally) values(f func(*bin) float64) (out []float64) {
	for i := range t.bins {
		out = append(out, f(&t.bins[i]))
	}
	return out
}

// ratio is a/b, a gap where b is nothing.
func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

// ceiling is the end of an axis for lines: a whole number of units, one at least. A
// first value far above the others, of an almost empty world, does not count.
func ceiling(lines []line, unit float64) float64 {
	most := 0.0
	for _, l := range lines {
		for i, v := range l.values {
			if i > 2 && !math.IsNaN(v) {
				most = max(most, v)
			}
		}
	}
	return unit * max(2, math.Ceil(most/unit))
}

// marks is the step of an axis to high: at most five of them.
func marks(high float64) float64 {
	for _, step := range []float64{1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000} {
		if high/step <= 5 {
			return step
		}
	}
	return high
}

func (t *tabular) writeHTML(b *strings.Builder) {
	page.Section(b, t.title, t.note)
	b.WriteString("<div class=\"wide\"><table>\n<tr><th></th>")
	for _, h := range t.head {
		fmt.Fprintf(b, "<th>%s</th>", html.EscapeString(h))
	}
	b.WriteString("</tr>\n")
	for _, r := range t.rows {
		fmt.Fprintf(b, "<tr><th>%s</th>", html.EscapeString(r.name))
		for _, c := range r.cells {
			fmt.Fprintf(b, "<td>%s</td>", html.EscapeString(c))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table></div>\n</section>\n")
}
