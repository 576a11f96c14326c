package control

import (
	"time"
	"unicode/utf8"
)

func (h *Heartbeat) checkPlayers() error {
	for i := range h.Players {
		p := &h.Players[i]
		if p.Region != "" && !isName(p.Region) || p.ISP != "" && !isName(p.ISP) {
			return deny(Absurd, "players: region %.80q and ISP %.80q: names are short and have no blanks", p.Region, p.ISP)
		}
		if min(p.Started, p.Skips, p.Reports, p.FirstFrames, p.Stalls, p.Delays) < 0 ||
			max(p.Started, p.Skips, p.Reports, p.FirstFrames, p.Stalls, p.Delays) > maxViewers ||
			!finite(p.FirstByte, p.FirstFrame, p.Stalled, p.Played, p.Delay) {
			return deny(Absurd, "players: a figure of region %q and ISP %q is below 0, or far too big", p.Region, p.ISP)
		}
		if p.FirstFrames > p.Reports || p.Delays > p.Reports {
			return deny(Absurd, "players: region %q and ISP %q have %d first frames and %d delays of %d reports", p.Region, p.ISP, p.FirstFrames, p.Delays, p.Reports)
		}
		if len(p.Closes) > maxWords {
			return deny(TooBig, "players: %d reasons of closes, at most %d are possible", len(p.Closes), maxWords)
		}
		for reason, n := range p.Closes {
			if !isWord(reason) || n < 0 || n > maxViewers {
				return deny(Absurd, "players: %d closes for %.80q", n, reason)
			}
		}
	}
	return nil
}

func (h *Heartbeat) checkRechecks() error {
	for i := range h.Rechecks {
		r := &h.Rechecks[i]
		if r.Region != "" && !isName(r.Region) || r.ISP != "" && !isName(r.ISP) || !isWord(r.Way) || !isWord(r.Outcome) || r.Count > 1<<53 {
			return deny(Absurd, "rechecks: %d of way %.80q, outcome %.80q, region %.80q and ISP %.80q", r.Count, r.Way, r.Outcome, r.Region, r.ISP)
		}
	}
	return nil
}

func (h *Heartbeat) checkEvents(now time.Time) error {
	last := uint64(0)
	for i := range h.Events {
		e := &h.Events[i]
		switch {
		case e.Number <= last:
			return deny(Absurd, "events: number %d comes after %d: numbers rise", e.Number, last)
		case e.At.After(now.Add(maxClock)):
			return deny(Absurd, "events: number %d is of %v, which is to come", e.Number, e.At)
		case !isWord(e.Kind) || e.Reason != "" && !isWord(e.Reason):
			return deny(Absurd, "events: number %d has the kind %.80q and the reason %.80q, which are no words", e.Number, e.Kind, e.Reason)
		case e.Stream != "" && !validName(e.Stream):
			return deny(Absurd, "events: %.80q is not the name of a stream", string(e.Stream))
		case !utf8.ValidString(e.From + e.To + e.Detail):
			return deny(Absurd, "events: number %d has bytes that are no text", e.Number)
		case len(e.From)+len(e.To)+len(e.Detail) > maxDetail:
			return deny(TooBig, "events: number %d has %d bytes of text, at most %d are possible", e.Number, len(e.From)+len(e.To)+len(e.Detail), maxDetail)
		case len(e.Figures) > maxWords:
			return deny(TooBig, "events: number %d has %d figures, at most %d are possible", e.Number, len(e.Figures), maxWords)
		}
		for key, v := range e.Figures {
			if !isWord(key) || !plainValue(v) {
				return deny(Absurd, "events: number %d has the figure %.80q of %.80v: use numbers, words and truths", e.Number, key, v)
			}
		}
		last = e.Number
	}
	return nil
}

// plainValue reports whether a figure is one value, and short.
func plainValue(v any) bool {
	switch v := v.(type) {
	case string:
		return len(v) <= maxDetail
	case float64, bool, nil:
		return true
	}
	return false
}
