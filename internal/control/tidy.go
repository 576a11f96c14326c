package control

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"millrace/internal/auth"
)

// A router refuses a heartbeat as a whole when something of it makes no sense. So that
// one odd figure of this node does not silence it, what cannot be told is left out here.

func tidyFigures(h *Heartbeat) {
	h.Load, h.Pulled = min(max(h.Load, 0), maxRate), min(max(h.Pulled, 0), maxRate)
	h.Viewers = min(max(h.Viewers, 0), maxViewers)
}

// tidyStreams keeps MaxCarried streams with names, and returns them.
func tidyStreams(list []Carried) []Carried {
	list = slices.DeleteFunc(list, func(c Carried) bool { return !validName(c.Name) })
	list = list[:min(len(list), MaxCarried)]
	for i := range list {
		c := &list[i]
		if !auth.ValidNodeID(c.From) {
			c.From = "" // an upstream that is no node of ours
		}
		c.Epoch = min(max(c.Epoch, 0), auth.MaxEpoch)
		c.Bitrate, c.Viewers = min(max(c.Bitrate, 0), maxRate), min(max(c.Viewers, 0), maxViewers)
		if c.Delay = min(max(c.Delay, 0), maxSpan); c.Delay != c.Delay {
			c.Delay = 0
		}
	}
	return list
}

func tidyEvents(list []Event, now time.Time) {
	for i := range list {
		e := &list[i]
		if e.At.After(now) {
			e.At = now // the clock was set back
		}
		if e.Stream != "" && !validName(e.Stream) {
			e.Stream = ""
		}
		e.From, e.To = clipText(e.From, 256), clipText(e.To, 256)
		e.Detail = clipText(e.Detail, maxDetail-len(e.From)-len(e.To))
		if hasOdd(e.Figures) {
			e.Figures = maps.Clone(e.Figures)
			maps.DeleteFunc(e.Figures, oddFigure)
		}
	}
}

// otherReason stands for reasons of closes that are no words.
const otherReason = "other"

// tidyPlayers leaves out names that cannot be told: who is in such a place is somewhere.
func tidyPlayers(p *Players) {
	p.Region, p.ISP = nameOrNone(p.Region), nameOrNone(p.ISP)
	closes := make(map[string]int, len(p.Closes))
	for reason, n := range p.Closes {
		if _, known := closes[reason]; !isWord(reason) || !known && len(closes) >= maxCloses {
			reason = otherReason
		}
		closes[reason] += n
	}
	p.Closes = closes
}

// tidyRechecks does so too, and adds up those that are the same then. Ways and outcomes
// are words of ours. It does not change list.
func tidyRechecks(list []Rechecked) []Rechecked {
	out := slices.Clone(list)
	for i := range out {
		out[i].Region, out[i].ISP = nameOrNone(out[i].Region), nameOrNone(out[i].ISP)
	}
	at, kept := map[Rechecked]int{}, out[:0]
	for _, r := range out {
		key := r
		key.Count = 0
		if i, ok := at[key]; ok {
			kept[i].Count += r.Count
			continue
		}
		at[key] = len(kept)
		kept = append(kept, r)
	}
	return kept
}

func nameOrNone(s string) string {
	if !isName(s) {
		return ""
	}
	return s
}

func hasOdd(figures map[string]any) bool {
	for key, v := range figures {
		if oddFigure(key, v) {
			return true
		}
	}
	return false
}

// oddFigure reports whether a figure cannot be told.
func oddFigure(key string, v any) bool {
	switch v := v.(type) {
	case float64:
		return !isWord(key) || v-v != 0
	case string:
		return !isWord(key) || len(v) > maxDetail
	}
	return !isWord(key)
}

// clipText returns the beginning of s that has at most n bytes, and is text.
func clipText(s string, n int) string {
	if len(s) > n {
		s = s[:n]
		for len(s) > 0 && !utf8.ValidString(s[len(s)-1:]) && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
	}
	return strings.ToValidUTF8(s, "")
}

// maxCloses bounds the reasons by which one group's connections were closed.
const maxCloses = 32

// Add adds p to q, as far as there is room for reasons of closes.
func (q *Players) Add(p *Players) {
	q.Started += p.Started
	q.FirstByte += p.FirstByte
	q.Skips += p.Skips
	q.Reports += p.Reports
	q.FirstFrames += p.FirstFrames
	q.FirstFrame += p.FirstFrame
	q.Stalls += p.Stalls
	q.Stalled += p.Stalled
	q.Played += p.Played
	q.Delays += p.Delays
	q.Delay += p.Delay
	for reason, n := range p.Closes {
		if q.Closes == nil {
			q.Closes = map[string]int{}
		}
		if _, ok := q.Closes[reason]; ok || len(q.Closes) < maxCloses {
			q.Closes[reason] += n
		}
	}
}
