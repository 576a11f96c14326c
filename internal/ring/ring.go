// Package ring decides which nodes of a datacenter go back to origin for a stream,
// so that it enters the datacenter once. It is also how the center of a publish is
// chosen.
//
// Inputs are the name of the stream and the members that are alive, with their
// weights. Nothing else counts: not the order of the members, no clock, no chance. So all
// who see the same members agree without asking one another.
//
// # Decision
//
// Weighted rendezvous hashing: each member draws a score from the name and its own
// id, and the highest score owns the stream. When a member goes, only its streams
// move, each to its runner-up; when one comes, it takes its share from all others in
// proportion; a change of one weight moves streams from or to that member only.
//
// # Load
//
// A hash spreads names, not bytes. So a member has a [Bound] of what it should send:
//
//	Slack + Balance × (load of all) × (its weight) / (weight of all)
//
// and its Capacity if that is less. One that is [Over] it brings nothing new in for
// others until it is below [Return] of it. Members that are over are ranked behind those
// that are not, never taken out: when all are over, the order is again that of the scores.
//
// Loads are seen differently on each node. So each member judges itself alone, and the
// first choice of a stream alone decides who has it instead, and tells whoever asks:
// package upstream says how. Who asks it ranks by the scores, without Over.
//
// # Invariants
//
// The result is a permutation of the members with a usable weight, and the same for
// any order of the input. [Owners] does not allocate.
package ring

import (
	"math"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"millrace/internal/stream"
)

const (
	// Balance is how much more than its fair share a member may carry. With less,
	// streams leave their first choice over nothing; with more, one member runs hot
	// beside an idle one.
	Balance = 1.25
	// Slack is how much, in bytes/s, does not count: four streams of 2 Mbit/s. With
	// less to do, who has the only stream would be over its share.
	Slack = 1 << 20
	// Return is the part of its bound below which a member that was over it is not any
	// more. What it then takes back must not bring it over its bound again at once.
	Return = 0.8
)

// Member is a node that can own streams. The ids of members differ.
type Member struct {
	ID     string
	Weight float64 // share of the streams; one of 0, or less, owns none
	// Load is what it sends, in bytes/s; Capacity is what it can send, 0 for no bound.
	// Only [Bound] and [Over] look at them.
	Load     float64
	Capacity float64
	// Over says that it is over its bound.
	Over bool
}

// Bound returns how much m should send, in bytes/s, beside all members, m among them,
// whose loads are known. It is infinite for one that owns nothing.
func Bound(m Member, all []Member) float64 {
	bound := math.Inf(1)
	if !m.usable() {
		return bound
	}
	t := sum(all)
	if share := Slack + Balance*t.load*(m.Weight/t.weight); share >= 0 { // else it makes no sense
		bound = share
	}
	if m.Capacity > 0 {
		bound = min(bound, m.Capacity)
	}
	return bound
}

// Over reports whether m is over its bound now, where m.Over says whether it was so far.
func Over(m Member, all []Member) bool {
	bound := Bound(m, all)
	if m.Over {
		bound *= Return
	}
	return m.Load >= bound
}

// Owners returns the id of the member that owns n and of the one that would without
// it. They are empty where there are not so many members.
func Owners(n stream.Name, members []Member) (owner, runnerUp string) {
	h := xxhash.Sum64String(string(n))
	var first, second place
	for i := range members {
		p, ok := placeOf(h, &members[i])
		switch {
		case !ok:
		case p.before(first):
			first, second = p, first
		case p.before(second):
			second = p
		}
	}
	return first.id, second.id
}

// Rank returns the ids of all members that can own n, the owner first, the runner-up
// second.
func Rank(n stream.Name, members []Member) []string {
	h := xxhash.Sum64String(string(n))
	places := make([]place, 0, len(members))
	for i := range members {
		if p, ok := placeOf(h, &members[i]); ok {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		switch {
		case a.before(b):
			return -1
		case b.before(a):
			return 1
		}
		return 0
	})
	out := make([]string, len(places))
	for i, p := range places {
		out[i] = p.id
	}
	return out
}

// totals are the sums over all members that can own streams.
type totals struct{ weight, load float64 }

func sum(members []Member) (t totals) {
	for i := range members {
		if m := &members[i]; m.usable() {
			t.weight += m.Weight
			t.load += max(m.Load, 0)
		}
	}
	return t
}

func (m *Member) usable() bool { return m.Weight > 0 && m.ID != "" }

// place is where a member stands for one stream. The zero place is that of nobody.
type place struct {
	id    string
	over  bool
	score float64
}

// before reports whether a comes before b. No two places are equal: ids differ.
func (a place) before(b place) bool {
	switch {
	case b.id == "":
		return a.id != ""
	case a.over != b.over:
		return b.over
	case a.score != b.score:
		return a.score > b.score
	}
	return strings.Compare(a.id, b.id) < 0
}

// placeOf draws the score of m for the stream with hash h. With u evenly distributed
// over (0, 1), the highest of all weight/-ln(u) belongs to each member as often as
// its weight says.
func placeOf(h uint64, m *Member) (place, bool) {
	if !m.usable() {
		return place{}, false
	}
	const bits = 53 // of a float64
	x := mix(h ^ xxhash.Sum64String(m.ID))
	u := (float64(x>>(64-bits)) + 0.5) / (1 << bits)
	return place{id: m.ID, over: m.Over, score: m.Weight / -math.Log(u)}, true
}

// mix makes each bit of the result depend on each bit of x (the finalizer of
// MurmurHash3). It lets a name and an id be hashed once each.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return x
}
