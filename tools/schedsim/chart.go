package main

import (
	"fmt"
	"html"
	"math"
	"strings"
	"time"
)

// The measures of a chart, in units of its view box.
const (
	chartWidth  = 920
	chartHeight = 250
	left        = 52
	right       = 26
	top         = 26
	bottom      = 30
)

// line is one course of a chart. Its name is a class of the style sheet as well.
type line struct {
	name, class string
	values      []float64 // by bin; NaN is a gap
}

// chart is values over the time of a run.
type chart struct {
	title, note string
	low, high   float64 // of the axis
	step        float64 // between its marks
	format      string  // of a mark
	mark        float64 // a bound that is drawn; NaN is none
	markName    string
	lines       []line
}

func (c *chart) y(v float64) float64 {
	v = min(max(v, c.low), c.high)
	return top + (chartHeight-top-bottom)*(c.high-v)/(c.high-c.low)
}

// x is where a share of the run is.
func x(share float64) float64 { return left + (chartWidth-left-right)*share }

// svg draws c.
func (c *chart) svg(b *strings.Builder, t *tally) {
	fmt.Fprintf(b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n", chartWidth, chartHeight, html.EscapeString(c.title))
	duration := float64(len(t.bins)) * float64(t.width)
	drawTroubles(b, t, duration)
	for v := c.low; v <= c.high+c.step/1000; v += c.step {
		fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">`+c.format+"</text>\n",
			left, chartWidth-right, c.y(v), c.y(v), left-8, c.y(v)+4, v)
	}
	for at, step := time.Duration(0), clock(time.Duration(duration)); float64(at) <= duration; at += step {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			x(float64(at)/duration), chartHeight-bottom+18, clockText(at))
	}
	if !math.IsNaN(c.mark) {
		fmt.Fprintf(b, `<line class="goal" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text class="goal" x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, chartWidth-right, c.y(c.mark), c.y(c.mark), chartWidth-right, c.y(c.mark)+13, html.EscapeString(c.markName))
	}
	for _, l := range c.lines {
		fmt.Fprintf(b, `<path class="line %s" d="%s"/>`+"\n", l.class, c.path(l.values))
	}
	b.WriteString("</svg>\n")
}

// path is the course of values, each in the middle of its bin.
func (c *chart) path(values []float64) string {
	var b strings.Builder
	pen := "M"
	for i, v := range values {
		if math.IsNaN(v) {
			pen = "M"
			continue
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", pen, x((float64(i)+0.5)/float64(len(values))), c.y(v))
		pen = "L"
	}
	return b.String()
}

// drawTroubles shades the times of troubles; those of one name that follow each other
// are one.
func drawTroubles(b *strings.Builder, t *tally, duration float64) {
	for i := 0; i < len(t.trouble); {
		from, to, name := t.trouble[i].from, t.trouble[i].to, t.trouble[i].name
		for i++; i < len(t.trouble) && t.trouble[i].name == name; i++ {
			to = t.trouble[i].to
		}
		x1, x2 := x(float64(from)/duration), x(float64(to)/duration)
		fmt.Fprintf(b, `<rect class="trouble" x="%.1f" y="%d" width="%.1f" height="%d"/><text class="trouble" x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			x1, top, x2-x1, chartHeight-top-bottom, (x1+x2)/2, top-8, html.EscapeString(name))
	}
}

// clock is the time between the marks of an axis.
func clock(duration time.Duration) time.Duration {
	for _, step := range []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour} {
		if duration/step <= 12 {
			return step
		}
	}
	return 4 * time.Hour
}

func clockText(at time.Duration) string {
	if at >= time.Hour {
		return fmt.Sprintf("%d:%02d h", int(at.Hours()), int(at.Minutes())%60)
	}
	return fmt.Sprintf("%d:%02d", int(at.Minutes()), int(at.Seconds())%60)
}

// bars is a chart of groups of bars from 0 to 100 %.
type bars struct {
	groups []string
	lines  []line // the values of each are by group
}

const (
	barHeight = 18
	barLeft   = 150
)

func (c *bars) svg(b *strings.Builder, title string) {
	group := barHeight*len(c.lines) + 16
	height := group * len(c.groups)
	fmt.Fprintf(b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n", chartWidth, height, html.EscapeString(title))
	for g, name := range c.groups {
		y := group * g
		fmt.Fprintf(b, `<text class="label" x="%d" y="%d" text-anchor="end">%s</text>`+"\n",
			barLeft-12, y+barHeight*len(c.lines)/2+5, html.EscapeString(name))
		for i, l := range c.lines {
			width := (chartWidth - barLeft - 70) * l.values[g] / 100
			fmt.Fprintf(b, `<rect class="bar %s" x="%d" y="%d" width="%.1f" height="%d" rx="2"/><text x="%.1f" y="%d">%.1f %%</text>`+"\n",
				l.class, barLeft, y+barHeight*i, width, barHeight-3, barLeft+width+8, y+barHeight*i+12, l.values[g])
		}
	}
	b.WriteString("</svg>\n")
}
