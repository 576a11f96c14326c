package main

import (
	"fmt"
	"html"
	"math"
	"strings"

	"millrace/tools/page"
)

// style gives the two ways of planning their colours.
const style = ".paths { --of: var(--blue); }\n.tree { --of: var(--orange); }\n"

// The measures of a chart, in units of its view box.
const (
	chartWidth  = 920
	chartHeight = 260
	left        = 52
	right       = 16
	top         = 16
	bottom      = 40
)

// The two ways of planning, which are classes of the style sheet as well.
var ways = [...]string{"tree", "paths"}

// html is the report as one page that needs nothing else.
func (r *result) html() string {
	var b strings.Builder
	page.Begin(&b, "Streams by tree and by paths", style)
	b.WriteString("<p>The same streams are brought to the same edges twice: through a tree of pools, and by a path for each stream and node.</p>\n<div class=\"figures\">\n")
	for _, g := range r.goals() {
		page.Figure(&b, fmt.Sprintf("%.1f %%", less(g.tree, g.flat)), "less "+g.name, fmt.Sprintf("cold streams, at least %.0f %%", goal))
	}
	b.WriteString("</div>\n")
	var names []string
	var backhaul, delay [2][]float64
	for _, c := range r.classes[:len(r.classes)-1] {
		names = append(names, c.name)
		for i, t := range [...]*tally{c.tree, c.flat} {
			backhaul[i] = append(backhaul[i], t.backhaul())
			delay[i] = append(delay[i], t.meanDelay())
		}
	}
	section(&b, "Back-haul", "MB/s between regions or ISPs, by how many edges have viewers of a stream", bars(names, backhaul))
	section(&b, "Delay", "ms from the source, the mean over edges with viewers, by how many edges have viewers of a stream", bars(names, delay))
	var spread [2][]float64
	for i, t := range [...]*tally{r.cold.tree, r.cold.flat} {
		for q := range 101 {
			spread[i] = append(spread[i], t.quantile(float64(q)/100))
		}
	}
	section(&b, "Delay of cold streams", "ms that a share of the edges does not exceed, %", lines(spread, 20))
	section(&b, "Choices that change", fmt.Sprintf("first choices of pools, and answers to the same %d questions, in each second; one link is slow from second %d to %d", r.churn.asked, slowFrom, slowTo),
		lines([2][]float64{floats(r.churn.pools), floats(r.churn.paths)}, 20))
	fmt.Fprintf(&b, "<section>\n<h2>All figures</h2>\n<pre>%s</pre>\n</section>\n", html.EscapeString(r.text()))
	page.End(&b)
	return b.String()
}

func section(b *strings.Builder, title, note, svg string) {
	page.Section(b, title, note)
	b.WriteString("<p class=\"legend\">")
	for _, way := range ways {
		fmt.Fprintf(b, `<span class="%s">%s</span>`, way, way)
	}
	fmt.Fprintf(b, "</p>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n%s</svg>\n</section>\n", chartWidth, chartHeight, html.EscapeString(title), svg)
}

func floats(list []int) (out []float64) {
	for _, v := range list {
		out = append(out, float64(v))
	}
	return out
}

// scale is the vertical axis of a chart.
type scale struct{ high, step float64 }

func newScale(values [2][]float64) scale {
	high := 1.0
	for _, list := range values {
		for _, v := range list {
			high = max(high, v)
		}
	}
	step := math.Pow(10, math.Floor(math.Log10(high)))
	for high/step < 4 {
		step /= 2
	}
	return scale{step * math.Ceil(high/step), step}
}

func (s scale) y(v float64) float64 { return top + (chartHeight-top-bottom)*(1-v/s.high) }

func (s scale) draw(b *strings.Builder) {
	for v := 0.0; v <= s.high*1.001; v += s.step {
		fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n",
			left, chartWidth-right, s.y(v), s.y(v), left-8, s.y(v)+4, v)
	}
}

// bars draws two bars for each name.
func bars(names []string, values [2][]float64) string {
	var b strings.Builder
	s := newScale(values)
	s.draw(&b)
	width := float64(chartWidth-left-right) / float64(len(names))
	for i, name := range names {
		at := left + width*float64(i)
		for k, way := range ways {
			v := values[k][i]
			fmt.Fprintf(&b, `<rect class="bar %s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s, %s: %.1f</title></rect>`+"\n",
				way, at+width*(0.2+0.3*float64(k)), s.y(v), width*0.28, s.y(0)-s.y(v), name, way, v)
		}
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", at+width/2, chartHeight-bottom+20, name)
	}
	return b.String()
}

// lines draws two courses, with a mark at every so many values.
func lines(values [2][]float64, every int) string {
	var b strings.Builder
	s := newScale(values)
	s.draw(&b)
	n := len(values[0])
	x := func(i int) float64 { return left + float64(chartWidth-left-right)*float64(i)/float64(max(n-1, 1)) }
	for i := 0; i < n; i += every {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x(i), chartHeight-bottom+20, i)
	}
	for k, way := range ways {
		fmt.Fprintf(&b, `<polyline class="line %s" points="`, way)
		for i, v := range values[k] {
			fmt.Fprintf(&b, "%.1f,%.1f ", x(i), s.y(v))
		}
		b.WriteString("\"/>\n")
	}
	return b.String()
}
