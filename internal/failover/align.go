package failover

import (
	"cmp"
	"slices"
	"sort"
)

// Rules of the alignment.
const (
	// sameTime is how far two times of the same frame may be apart once the offset is
	// known: servers round, and repair small steps back.
	sameTime = 50
	// minRepeats and maxRepeats bound the same for a payload that stands in the window
	// more than once. The lower one fits the shortest frame there is, 10 ms of Opus.
	minRepeats, maxRepeats = 4, 10
	// sameOffset is how far offsets that different frames vote for may differ.
	sameOffset = 2
	// proof is how many different payloads must agree when nothing else speaks for an
	// offset. One keyframe and its neighbours on both tracks are more than that.
	proof = 4
	// nearby is how far, in ms, a candidate may be from what was forwarded for its
	// clock to be believed without being known.
	nearby = 5000
	// places is at how many places in the window a payload may stand to vote, the
	// newest first, and rare at how many it says much.
	places, rare = 16, 3
	// holeCost is how much a hole in what one of the two has counts against an offset,
	// however long it is: a slow reader upstream may have been made to skip.
	holeCost = 3
	// hypotheses is how many offsets are looked at closely.
	hypotheses = 8
)

// mark is what the alignment needs to know of a unit of a connection.
type mark struct {
	sum   uint64
	dts   int64 // on the connection's own clock
	track int
	frame bool
}

// evidence is what speaks for and against an offset.
type evidence struct {
	offset    int64
	matched   [tracks]int // units of the connection that the window has, where it should
	conflicts [tracks]int // where one has units that the other lacks; a hole counts as up to holeCost
	sure      [tracks]int // matched units, exact in time, whose payload stands once in the window
	exact     [tracks]int // matched units whose times agree too
	against   int         // the same, each unit counted
	payloads  [tracks]int // different payloads among the matched
	distinct  int         // the same, of all tracks
	unique    bool        // one of them stands once in each
	compared  bool        // a unit of the main track fell into the window, or behind it
	lead      int64       // newest unit against the newest forwarded frame
}

func (e *evidence) agreed() int { return e.matched[video] + e.matched[audio] }

// consistent reports whether the two agree on each track where they meet. Where many
// payloads that stand once in the window agree to the millisecond, one of the two
// may lack many others: an upstream that leaves out frames is a reason to leave it.
// And a track that is all the same, as silence is, has no say against another that
// agrees: there a conflict is a time that was rounded once too often.
func (e *evidence) consistent() bool {
	for t := range script {
		other := video + audio - t
		switch {
		case e.conflicts[t]*3 <= e.matched[t]:
		case e.sure[t] >= 2*proof && e.conflicts[t] <= 3*e.matched[t]:
		case e.payloads[t] == 1 && e.payloads[other] >= 2*proof && e.conflicts[other] == 0:
		default:
			return false
		}
	}
	return e.agreed() > 0
}

// doubt is the part of what was compared that disagreed.
func (e *evidence) doubt() float64 {
	return float64(e.against) / float64(max(1, e.against+e.agreed()))
}

// precise reports whether the offset is right to the millisecond or so, and not
// another one that is only close.
func (e *evidence) precise() bool {
	return e.exact[video]*2 >= e.matched[video] && e.exact[audio]*2 >= e.matched[audio]
}

func (e *evidence) contradicted() bool {
	return e.conflicts[video]+e.conflicts[audio] > 0 && !e.consistent()
}

// aligner finds where the units of a connection stand among those forwarded.
type aligner struct {
	w     *Window
	index [script][]place // video and audio, by digest and number
	votes []vote
	seen  map[uint64]bool // payloads that agreed, and
	offs  []int64         // how much later the window has each
}

type place struct {
	sum uint64
	at  int
}

type vote struct {
	offset int64
	weight int
}

// newAligner returns an aligner for w, which must not change while it is used.
func newAligner(w *Window) *aligner { return &aligner{w: w, seen: make(map[uint64]bool)} }

// prepare makes the index, once.
func (a *aligner) prepare() {
	for t := range a.index {
		r := &a.w.tracks[t]
		if a.index[t] != nil || r.total == 0 {
			continue
		}
		a.index[t] = make([]place, 0, r.total-r.oldest())
		for i := r.oldest(); i < r.total; i++ {
			a.index[t] = append(a.index[t], place{r.sum(i), i})
		}
		slices.SortFunc(a.index[t], func(x, y place) int {
			if x.sum != y.sum {
				return cmp.Compare(x.sum, y.sum)
			}
			return x.at - y.at
		})
	}
}

// find returns where sum stands in a track of the window, in order.
func (a *aligner) find(track int, sum uint64) []place {
	if track >= script {
		return nil
	}
	index := a.index[track]
	from := sort.Search(len(index), func(i int) bool { return index[i].sum >= sum })
	n := sort.Search(len(index)-from, func(i int) bool { return index[from+i].sum > sum })
	return index[from : from+n]
}

// clock is what is known of a connection's clock beforehand.
type clock struct {
	offset int64 // of the connection before
	known  bool  // there was one
	same   bool  // both are known to have one clock
}

// wrapped returns the offset that brings dts nearest to the window's newest frame,
// modulo 2^32 ms: one connection may have seen the clock wrap, the other not.
func (c clock) wrapped(dts, newest int64) int64 {
	return newest - dts + int64(int32(uint32(dts+c.offset)-uint32(newest)))
}

// align looks for the offset from the clock of the connection, whose units so far
// are given in order, to the forwarded one. Unless final, it waits for more when
// there is more than one answer.
//
// Equal payloads vote for the difference of their times, with the more weight the
// rarer they are. The offsets with most votes are then tried: both sides must agree
// wherever they meet, on each track. Of offsets that pass, the one that the clock
// speaks for is taken; else the only one; else, of periodic content, the one by
// which the connection is nearest to what was forwarded.
func (a *aligner) align(units []mark, c clock, final bool) (e evidence, ok bool) {
	if len(units) == 0 || !a.w.any {
		return e, false
	}
	var clocked evidence
	if c.known {
		clocked = a.try(units, c.wrapped(units[0].dts, a.w.newest))
		exact := clocked.consistent() && clocked.precise()
		near := max(clocked.lead, -clocked.lead) <= nearby
		switch {
		case c.same && exact, near && exact && (clocked.distinct >= 2 || final):
			return clocked, true
		case c.same && clocked.agreed() == 0 && !clocked.contradicted() && (clocked.compared || final):
			return clocked, true // it lies outside the window
		}
	}
	a.prepare()
	for _, limit := range []int{rare, places} {
		need := proof
		if final {
			need = 1
		}
		var best []evidence
		for _, offset := range a.elect(units, limit) {
			e := a.try(units, offset)
			if e.consistent() && e.distinct >= need && (e.distinct > 1 || e.unique) {
				best = append(best, e)
			}
		}
		if len(best) == 0 {
			continue
		}
		least := slices.MinFunc(best, func(x, y evidence) int { return cmp.Compare(x.doubt(), y.doubt()) })
		best = slices.DeleteFunc(best, func(e evidence) bool { return e.doubt() > least.doubt()+0.1 })
		others := slices.ContainsFunc(best, func(e evidence) bool {
			d := e.offset - least.offset
			return max(d, -d) > maxRepeats
		})
		if !others {
			return least, true
		}
		if !final {
			return e, false
		}
		return slices.MinFunc(best, func(x, y evidence) int {
			return cmp.Or(
				cmp.Compare(max(x.lead, -x.lead), max(y.lead, -y.lead)),
				cmp.Compare(y.distinct, x.distinct))
		}), true
	}
	return clocked, final && c.same && clocked.consistent()
}

// elect returns the offsets with most votes of payloads that stand in the window at
// no more than limit places.
func (a *aligner) elect(units []mark, limit int) []int64 {
	const most = 1 << 13
	a.votes = a.votes[:0]
	newest := units[0].dts
	for _, u := range units {
		newest = max(newest, u.dts)
		at := a.find(u.track, u.sum)
		if len(at) == 0 || limit == rare && len(at) > rare || len(a.votes) > most {
			continue
		}
		at = at[max(0, len(at)-limit):]
		for _, p := range at {
			a.votes = append(a.votes, vote{a.w.tracks[u.track].time(p.at) - u.dts, 64 / len(at)})
		}
	}
	slices.SortFunc(a.votes, func(x, y vote) int { return cmp.Compare(x.offset, y.offset) })
	elected := make([]vote, 0, 64)
	for i := 0; i < len(a.votes); { // votes that are close together are for the loudest of them
		first, all := a.votes[i], 0
		best := vote{}
		for i < len(a.votes) && a.votes[i].offset-first.offset <= 2*sameOffset {
			v := vote{offset: a.votes[i].offset}
			for ; i < len(a.votes) && a.votes[i].offset == v.offset; i++ {
				v.weight += a.votes[i].weight
			}
			all += v.weight
			if v.weight > best.weight {
				best = v
			}
		}
		elected = append(elected, vote{best.offset, all})
	}
	distance := func(v vote) int64 { d := newest + v.offset - a.w.newest; return max(d, -d) }
	slices.SortFunc(elected, func(x, y vote) int {
		return cmp.Or(cmp.Compare(y.weight, x.weight), cmp.Compare(distance(x), distance(y)))
	})
	out := make([]int64, 0, hypotheses)
	for _, v := range elected[:min(len(elected), hypotheses)] {
		out = append(out, v.offset)
	}
	return out
}

// try walks the units over the window with the given offset, and again with a better
// one if that is a little off: with the median of what the payloads that agree say.
// Only if they disagree somewhere is it worth while to look how rare these are.
func (a *aligner) try(units []mark, offset int64) evidence {
	e := a.walk(units, offset, false)
	if n := len(a.offs); n > 0 {
		slices.Sort(a.offs)
		if by := a.offs[n/2]; by != 0 {
			e = a.walk(units, offset+by, false)
		}
	}
	if e.exact[video]+e.exact[audio] >= 2*proof && !e.consistent() {
		a.prepare()
		e = a.walk(units, e.offset, true)
	}
	return e
}

func (a *aligner) walk(units []mark, offset int64, sure bool) evidence {
	e := evidence{offset: offset, lead: units[0].dts + offset - a.w.newest}
	main := a.w.main()
	var cursors [tracks]cursor
	for t := range cursors {
		cursors[t] = a.w.tracks[t].cursor()
	}
	clear(a.seen)
	a.offs = a.offs[:0]
	var lates [tracks]int // in a row
	for _, u := range units {
		dts := u.dts + offset
		e.lead = max(e.lead, dts-a.w.newest)
		r, c := &a.w.tracks[u.track], &cursors[u.track]
		if u.track == script || r.total == 0 || dts < r.time(r.oldest())-sameTime {
			continue
		}
		o, skipped, off := c.step(r, u.sum, dts)
		if o != duplicate && (!u.frame || dts < r.time(r.oldest())) {
			continue // the time of what is no frame is arbitrary
		}
		e.compared = e.compared || u.track == main
		e.conflicts[u.track] += min(skipped, holeCost)
		e.against += skipped
		switch o {
		case late:
			e.against++
			if lates[u.track]++; lates[u.track] <= holeCost {
				e.conflicts[u.track]++
			}
		case duplicate:
			e.matched[u.track]++
			if max(off, -off) <= sameOffset {
				e.exact[u.track]++
				if sure && len(a.find(u.track, u.sum)) == 1 {
					e.sure[u.track]++
				}
			}
			lates[u.track] = 0
			if !a.seen[u.sum] {
				a.seen[u.sum] = true
				e.distinct++
				e.payloads[u.track]++
				a.offs = append(a.offs, off)
			}
		case fresh:
			c.next = c.end
		}
	}
	if e.distinct == 1 {
		e.unique = a.standsOnce(units)
	}
	return e
}

// standsOnce reports whether the one payload in a.seen stands once among the units
// and once in the window.
func (a *aligner) standsOnce(units []mark) bool {
	a.prepare()
	times := 0
	for _, u := range units {
		if a.seen[u.sum] {
			if times += len(a.find(u.track, u.sum)); times > 1 {
				return false
			}
		}
	}
	return times == 1
}
