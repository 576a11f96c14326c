// Package ring decides which nodes of a datacenter go back to origin for a stream,
// so that it enters the datacenter once. It is also how the center of a publish is
// chosen.
//
// Inputs are the name of the stream and the members that are alive, with their
// weights and, where they are known, their loads. Nothing else counts: not the order
// of the members, no clock, no chance. So all who see the same members agree without
// asking one another.
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
// A hash spreads names, not bytes. So a member is passed over while it is over its
// bound, which is
//
//	Slack + Balance × (load of all) × (its weight) / (weight of all)
//
// and its Capacity if it has one. Passed over means ranked behind those who are not,
// never taken out: when all are over, the order is again that of the scores. Who
// carries the stream already is never passed over, whatever its load: load alone
// moves no stream. One that went to the runner-up comes back once, when the first
// choice is below its bound again, and then stays.
//
// Loads that are seen differently on two nodes can make them disagree about a stream
// that nobody carries yet: it comes in twice until they see that one carries it. Who
// knows no loads leaves them 0, which passes over nobody.
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
)

// Member is a node that can own streams. The ids of members differ.
type Member struct {
	ID     string
	Weight float64 // share of the streams; one of 0, or less, owns none
	// Load is what it sends, in bytes/s; Capacity is what it can send, 0 for no bound.
	Load     float64
	Capacity float64
	// Carries says that it carries the stream in question already.
	Carries bool
}

// Owners returns the id of the member that owns n and of the one that would without
// it. They are empty where there are not so many members.
func Owners(n stream.Name, members []Member) (owner, runnerUp string) {
	h, all := xxhash.Sum64String(string(n)), sum(members)
	var first, second place
	for i := range members {
		p, ok := all.place(h, &members[i])
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
	h, all := xxhash.Sum64String(string(n)), sum(members)
	places := make([]place, 0, len(members))
	for i := range members {
		if p, ok := all.place(h, &members[i]); ok {
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

// passed says why a member is passed over: the higher, the later it comes.
type passed uint8

const (
	fits passed = iota
	overShare
	overCapacity
)

func (t totals) passed(m *Member) passed {
	switch {
	case m.Carries:
		return fits
	case m.Capacity > 0 && m.Load >= m.Capacity:
		return overCapacity
	case m.Load > Slack+Balance*t.load*m.Weight/t.weight:
		return overShare
	}
	return fits
}

// place is where a member stands for one stream. The zero place is that of nobody.
type place struct {
	id     string
	passed passed
	score  float64
}

// before reports whether a comes before b. No two places are equal: ids differ.
func (a place) before(b place) bool {
	switch {
	case b.id == "":
		return a.id != ""
	case a.passed != b.passed:
		return a.passed < b.passed
	case a.score != b.score:
		return a.score > b.score
	}
	return strings.Compare(a.id, b.id) < 0
}

// place draws the score of m for the stream with hash h. With u evenly distributed
// over (0, 1), the highest of all weight/-ln(u) belongs to each member as often as
// its weight says.
func (t totals) place(h uint64, m *Member) (place, bool) {
	if !m.usable() {
		return place{}, false
	}
	const bits = 53 // of a float64
	x := mix(h ^ xxhash.Sum64String(m.ID))
	u := (float64(x>>(64-bits)) + 0.5) / (1 << bits)
	return place{id: m.ID, passed: t.passed(m), score: m.Weight / -math.Log(u)}, true
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
