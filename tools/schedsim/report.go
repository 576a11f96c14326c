package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What is to be shown.
const (
	goalRight     = 99.0 // % of plays that end on the right edge, at least
	goalRedirects = 1    // in a row, at most
)

// report is two simulations of the same players.
type report struct {
	options
	without, with *tally
}

// goal is a figure that was promised.
type goal struct {
	name, value, bound string
	reached            bool
}

func (r *report) goals() []goal {
	right, chain := share(r.with.all.right, r.with.all.served), r.with.longest()
	return []goal{
		{"plays on the edge that the policy wants", fmt.Sprintf("%.2f %%", right), fmt.Sprintf("at least %.0f %%", goalRight), right >= goalRight},
		{"most redirects in a row", fmt.Sprint(chain), fmt.Sprintf("at most %d", goalRedirects), chain <= goalRedirects},
	}
}

// longest is how many redirects in a row a player met at most.
func (t *tally) longest() (n int) {
	for i, c := range t.chains {
		if c > 0 {
			n = i
		}
	}
	return n
}

// row is a line of a table: a name and its cells.
type row struct {
	name  string
	cells []string
}

// tabular is a table of the report.
type tabular struct {
	title, note string
	head        []string
	rows        []row
}

func (r *report) tables() []tabular {
	return []tabular{r.kinds(), r.regions(), r.ways(), r.balance(), r.course()}
}

// number writes n with its thousands apart.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func percent(part, whole int) string { return fmt.Sprintf("%.2f", share(part, whole)) }

func per(part, whole int) string { return fmt.Sprintf("%.3f", share(part, whole)/100) }

// accuracy is the cells that tell how right some plays were.
func accuracy(without, with *counts) []string {
	return []string{
		number(with.served), percent(without.right, without.served), percent(with.byDNS, with.first),
		percent(with.right, with.served), percent(with.exact, with.served), percent(with.truly, with.served), per(with.redirects, with.served),
	}
}

var accuracyHead = []string{"plays", "DNS alone", "DNS led to", "re-checked", "very edge", "in truth", "redirects"}

func (r *report) kinds() tabular {
	t := tabular{
		title: "On the right edge, by what the player's resolver is like",
		note: "% of plays. DNS alone: a run without the re-check. The others are of the run with it: what DNS led to, what the re-check made of it, " +
			"how many are on the very edge that the policy names first, and how many are right by what is true in that second. Redirects are per play.",
		head: accuracyHead,
	}
	for k := range kinds {
		t.rows = append(t.rows, row{kindWords[k], accuracy(&r.without.byKind[k], &r.with.byKind[k])})
	}
	t.rows = append(t.rows, row{"all", accuracy(&r.without.all, &r.with.all)})
	return t
}

func (r *report) regions() tabular {
	t := tabular{title: "The same by region of the player", head: accuracyHead}
	for i := range regions {
		t.rows = append(t.rows, row{regions[i].name, accuracy(&r.without.byRegion[i], &r.with.byRegion[i])})
	}
	return t
}

// both is a line with a cell of each run.
func (r *report) both(name string, f func(*tally) string) row {
	return row{name, []string{f(r.without), f(r.with)}}
}

var bothHead = []string{"DNS alone", "re-checked"}

func (r *report) ways() tabular {
	count := func(name string, f func(*tally) int) row {
		return r.both(name, func(t *tally) string { return number(f(t)) })
	}
	return tabular{
		title: "What happened",
		head:  bothHead,
		rows: []row{
			count("plays served", func(t *tally) int { return t.all.served }),
			count("plays that broke off because the edge went away", func(t *tally) int { return t.broken }),
			count("plays that had to wait for an edge", func(t *tally) int { return t.waits }),
			r.both("seconds they waited, mean", func(t *tally) string {
				if t.waits == 0 {
					return "0"
				}
				return fmt.Sprintf("%.1f", t.waitSum.Seconds()/float64(t.waits))
			}),
			r.both("seconds they waited, most", func(t *tally) string { return fmt.Sprintf("%.1f", t.waitMost.Seconds()) }),
			count("edges asked that were down", func(t *tally) int { return t.all.dead }),
			count("edges asked that had no room", func(t *tally) int { return t.all.refused }),
			count("redirects", func(t *tally) int { return t.all.redirects }),
			count("most redirects in a row", (*tally).longest),
			count("DNS queries to the scheduler", func(t *tally) int { return t.queries }),
		},
	}
}

func (r *report) balance() tabular {
	mean := func(f func(*bin) float64) func(*tally) string {
		return func(t *tally) string { return fmt.Sprintf("%.2f", t.mean(f)) }
	}
	return tabular{
		title: "How evenly edges are filled",
		note:  "Means over the seconds of the run; edges that are down or drained do not count. Uneven demand of regions is in the figure of all edges.",
		head:  bothHead,
		rows: []row{
			r.both("use of the fullest edge", mean(func(b *bin) float64 { return b.fullest })),
			r.both("fullest / mean of all edges", mean(func(b *bin) float64 { return b.imbalance })),
			r.both("fullest / mean inside datacenters", mean(func(b *bin) float64 { return b.inside })),
		},
	}
}

// mean is the mean over all seconds of what f sums over those of a bin.
func (t *tally) mean(f func(*bin) float64) float64 {
	sum, seconds := 0.0, 0
	for i := range t.bins {
		sum += f(&t.bins[i])
		seconds += t.bins[i].seconds
	}
	return sum / float64(seconds)
}

// course is the run in twenty steps.
func (r *report) course() tabular {
	t := tabular{
		title: "The course of it",
		note:  "Right in % of the plays that began in that time, DNS alone and re-checked; redirects per play, viewers and the fullest edge with the re-check.",
		head:  []string{"DNS alone", "re-checked", "redirects", "viewers", "fullest", "what"},
	}
	const steps = 20
	size := (len(r.with.bins) + steps - 1) / steps
	for from := 0; from < len(r.with.bins); from += size {
		to := min(from+size, len(r.with.bins))
		without, with := sum(r.without.bins[from:to]), sum(r.with.bins[from:to])
		at, end := time.Duration(from)*r.with.width, time.Duration(to)*r.with.width
		t.rows = append(t.rows, row{clockText(at), []string{
			percent(without.right, without.served), percent(with.right, with.served), per(with.redirects, with.served),
			number(int(math.Round(with.viewers / float64(with.seconds)))), fmt.Sprintf("%.2f", with.fullest/float64(with.seconds)), r.with.during(at, end),
		}})
	}
	return t
}

// sum adds up bins.
func sum(bins []bin) (out bin) {
	for i := range bins {
		b := &bins[i]
		out.served += b.served
		out.right += b.right
		out.redirects += b.redirects
		out.seconds += b.seconds
		out.viewers += b.viewers
		out.fullest += b.fullest
	}
	return out
}

// during names the troubles between two times.
func (t *tally) during(from, to time.Duration) string {
	var names []string
	for _, tr := range t.trouble {
		if tr.from < to && tr.to > from && !slices.Contains(names, tr.name) {
			names = append(names, tr.name)
		}
	}
	return strings.Join(names, ", ")
}

// world is what was simulated, in a sentence.
func (r *report) world() string {
	datacenters := map[string]bool{}
	for _, e := range r.with.edges {
		datacenters[e.node.Datacenter] = true
	}
	return fmt.Sprintf("%s players in %d regions at %d ISPs and %d edges in %d datacenters over %g minutes. "+
		"%.0f %% of the players have a far resolver, and %.0f %% of those send the client subnet; %.0f %% use IPv6. "+
		"On average %.0f %% of the edges' capacity is used. The re-check moves a player when another edge is more than %g ms better.",
		number(r.clients), len(regions), len(isps), len(r.with.edges), len(datacenters), r.duration.Minutes(),
		100*r.far, 100*r.ecs, 100*r.v6, 100*r.use, r.recheck)
}

func (r *report) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "schedsim: who ends on the right edge\nrepeat with: %s\n%s\n", r.command(), wrap(r.world(), 110))
	for _, t := range r.tables() {
		t.write(&b)
	}
	b.WriteString("\n")
	for _, g := range r.goals() {
		verdict := "MISSED"
		if g.reached {
			verdict = "reached"
		}
		fmt.Fprintf(&b, "%-45s %10s   %-16s %s\n", g.name, g.value, g.bound, verdict)
	}
	return b.String()
}

func (t *tabular) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s\n", t.title)
	if t.note != "" {
		fmt.Fprintf(b, "%s\n", wrap(t.note, 110))
	}
	wide := 0
	for _, r := range t.rows {
		wide = max(wide, len(r.name))
	}
	line := func(name string, cells []string) {
		s := fmt.Sprintf("%-*s", wide, name)
		for i, c := range cells {
			if i == len(cells)-1 && t.head[i] == "what" {
				s += "  " + c
			} else {
				s += fmt.Sprintf("  %*s", max(len(t.head[i]), 7), c)
			}
		}
		b.WriteString(strings.TrimRight(s, " ") + "\n")
	}
	line("", t.head)
	for _, r := range t.rows {
		line(r.name, r.cells)
	}
}

// wrap breaks s into lines of at most so many bytes.
func wrap(s string, width int) string {
	var b strings.Builder
	n := 0
	for w := range strings.FieldsSeq(s) {
		switch {
		case n == 0:
		case n+1+len(w) > width:
			b.WriteByte('\n')
			n = 0
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(w)
		n += len(w)
	}
	return b.String()
}
