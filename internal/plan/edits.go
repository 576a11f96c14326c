package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"millrace/internal/stream"
)

// Edits are what operators say. Nodes are named by id, by dc:NAME for all of a
// datacenter, or by * for all.
type Edits struct {
	Pins       []Pin      `json:"pins,omitempty"`
	Bans       []Ban      `json:"bans,omitempty"`
	Weights    []Weight   `json:"weights,omitempty"`
	Prices     []Price    `json:"prices,omitempty"`
	Capacities []Capacity `json:"capacities,omitempty"`
	Drains     []Drain    `json:"drains,omitempty"`
	Frozen     *Freeze    `json:"frozen,omitempty"` // the plan stays as it is
}

// By says who made an edit, when, why and for how long.
type By struct {
	Author  string    `json:"author,omitempty"`
	Comment string    `json:"comment,omitempty"`
	At      time.Time `json:"at,omitzero"`
	Until   time.Time `json:"until,omitzero"` // zero: for good
}

// holds reports whether an edit is in force.
func (b *By) holds(now time.Time) bool { return b.Until.IsZero() || now.Before(b.Until) }

// Pin puts upstreams, in this order, before all others in the pool of a node; with a
// stream it does so for the paths of that stream only. Those that are dead, or of no
// tier above, are passed over; capacity, bans and drains are not asked.
type Pin struct {
	Node      string      `json:"node"`
	Stream    stream.Name `json:"stream,omitempty"`
	Upstreams []string    `json:"upstreams"` // ids
	By
}

// Ban keeps To from pulling from From.
type Ban struct {
	From string `json:"from"`
	To   string `json:"to"`
	By
}

// Weight divides what it costs To to pull from From: 2 attracts, 0.5 repels.
type Weight struct {
	From   string  `json:"from"`
	To     string  `json:"to"`
	Weight float64 `json:"weight"`
	By
}

// Price corrects the price of nodes.
type Price struct {
	Node  string  `json:"node"`
	Price float64 `json:"price"` // money per GB
	By
}

// Capacity corrects the capacity of nodes.
type Capacity struct {
	Node     string `json:"node"`
	Capacity int64  `json:"capacity"` // bytes/s
	By
}

// Drain takes work away from nodes.
type Drain struct {
	Node string `json:"node"`
	By
}

// Freeze keeps the plan as it is.
type Freeze struct{ By }

// MaxEdits bounds each list of Edits, and MaxEditBytes the JSON of all.
const (
	MaxEdits     = 1024
	MaxEditBytes = 4 << 20
)

// ParseEdits reads Edits from JSON, strictly: unknown keys and what [Edits.Validate]
// finds are errors.
func ParseEdits(b []byte) (*Edits, error) {
	if len(b) > MaxEditBytes {
		return nil, fmt.Errorf("edits: longer than %d bytes", MaxEditBytes)
	}
	e := &Edits{}
	if err := strict(b, e); err != nil {
		return nil, fmt.Errorf("edits: %w", err)
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	return e, nil
}

// Bounds of figures in edits.
const (
	minWeight = 0.01
	maxWeight = 100
	maxPrice  = 1e6
	maxWord   = 64
	maxText   = 1000
)

// Validate returns all faults of e, each with where it is and what to do. Nodes that
// do not exist are no fault: they may come later.
func (e *Edits) Validate() error {
	f := &faults{}
	f.count("pins", len(e.Pins))
	f.count("bans", len(e.Bans))
	f.count("weights", len(e.Weights))
	f.count("prices", len(e.Prices))
	f.count("capacities", len(e.Capacities))
	f.count("drains", len(e.Drains))
	if len(f.errs) > 0 {
		return f.join()
	}
	for i := range e.Pins {
		f.pin(fmt.Sprintf("pins[%d]", i), &e.Pins[i])
	}
	for i := range e.Bans {
		b, where := &e.Bans[i], fmt.Sprintf("bans[%d]", i)
		f.link(where, b.From, b.To)
		f.by(where, &b.By)
	}
	for i := range e.Weights {
		w, where := &e.Weights[i], fmt.Sprintf("weights[%d]", i)
		f.link(where, w.From, w.To)
		f.figure(where+": weight", w.Weight, minWeight, maxWeight)
		f.by(where, &w.By)
	}
	for i := range e.Prices {
		p, where := &e.Prices[i], fmt.Sprintf("prices[%d]", i)
		f.selector(where+": node", p.Node)
		f.figure(where+": price", p.Price, 0, maxPrice)
		f.by(where, &p.By)
	}
	for i := range e.Capacities {
		c, where := &e.Capacities[i], fmt.Sprintf("capacities[%d]", i)
		f.selector(where+": node", c.Node)
		f.figure(where+": capacity", float64(c.Capacity), 0, maxBytes)
		f.by(where, &c.By)
	}
	for i := range e.Drains {
		d, where := &e.Drains[i], fmt.Sprintf("drains[%d]", i)
		f.selector(where+": node", d.Node)
		f.by(where, &d.By)
	}
	if e.Frozen != nil {
		f.by("frozen", &e.Frozen.By)
	}
	return f.join()
}

// faults gathers what is wrong with Edits.
type faults struct {
	errs []error
	more int
}

// maxFaults is how many faults one error tells; who has more has one in all rows.
const maxFaults = 20

func (f *faults) add(where, format string, args ...any) {
	if len(f.errs) == maxFaults {
		f.more++
		return
	}
	f.errs = append(f.errs, fmt.Errorf("%s: %w", where, fmt.Errorf(format, args...)))
}

func (f *faults) join() error {
	if f.more > 0 {
		return errors.Join(append(f.errs, fmt.Errorf("and %d faults more", f.more))...)
	}
	return errors.Join(f.errs...)
}

func (f *faults) count(where string, n int) {
	if n > MaxEdits {
		f.add(where, "%d of them, at most %d are possible", n, MaxEdits)
	}
}

// word wants a name of ours: short, printable and without blanks.
func (f *faults) word(where, s string) {
	switch {
	case s == "":
		f.add(where, "is empty: give a node's id, dc:NAME or *")
	case len(s) > maxWord:
		f.add(where, "%.20q… is longer than %d bytes", s, maxWord)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }):
		f.add(where, "%q: blanks and control characters cannot stand in a name", s)
	}
}

// selector wants what names nodes.
func (f *faults) selector(where, s string) {
	if s == datacenterMark {
		f.add(where, "%q names no datacenter: write for example dc:fra", s)
		return
	}
	f.word(where, strings.TrimPrefix(s, datacenterMark))
}

func (f *faults) link(where, from, to string) {
	f.selector(where+": from", from)
	f.selector(where+": to", to)
	if from == all && to == all {
		f.add(where, "from and to are both *: it would be for every link, so that none is told apart")
	}
}

func (f *faults) pin(where string, p *Pin) {
	f.selector(where+": node", p.Node)
	if p.Stream != "" {
		if n, err := stream.ParsePath(string(p.Stream)); err != nil {
			f.add(where+": stream", "%w", err)
		} else if n != p.Stream {
			f.add(where+": stream", "%q: write it as %q", p.Stream, n)
		}
	}
	if len(p.Upstreams) == 0 || len(p.Upstreams) > maxPool {
		f.add(where+": upstreams", "%d of them: give one to %d", len(p.Upstreams), maxPool)
	}
	for i, u := range p.Upstreams[:min(len(p.Upstreams), maxPool)] {
		f.word(where+": upstreams", u)
		if u == all || strings.HasPrefix(u, datacenterMark) {
			f.add(where+": upstreams", "%q names more than one node: give ids", u)
		}
		if u == p.Node {
			f.add(where+": upstreams", "%s cannot pull from itself: remove it", u)
		}
		if slices.Contains(p.Upstreams[:i], u) {
			f.add(where+": upstreams", "%s is there twice: remove one", u)
		}
	}
	f.by(where, &p.By)
}

func (f *faults) by(where string, b *By) {
	for _, t := range [...]struct{ key, text string }{{"author", b.Author}, {"comment", b.Comment}} {
		if len(t.text) > maxText || !utf8.ValidString(t.text) {
			f.add(where+": "+t.key, "must be UTF-8 of at most %d bytes", maxText)
		}
	}
}

// figure wants a number of lo…hi.
func (f *faults) figure(where string, v, lo, hi float64) {
	if math.IsNaN(v) || v < lo || v > hi {
		f.add(where, "%v must be between %v and %v", v, lo, hi)
	}
}
