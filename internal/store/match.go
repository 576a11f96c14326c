package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// way is how two copies of one document differ.
type way int

const (
	wayEqual  way = iota
	wayBehind     // they lack the newest of mine, which follow theirs
	wayAhead      // mine lack the newest of theirs
	wayForked     // each has what the other lacks
)

// match is how my versions of a document and theirs, which are in Redis, compare.
type match struct {
	way    way
	theirs head      // their newest
	common uint64    // the last number up to which no two are different; 0: none
	mine   []version // behind, forked: what they lack, by rising number
	cut    bool      // mine above common have other numbers by now, or are none
}

// compare takes mine by rising number, and theirs by falling number and without bodies.
// Theirs were forgotten up to a number.
//
//	mine    theirs              way
//	1 2 3   1 2 3               equal
//	1 2 3   1 2                 behind: put back 3
//	1 2 3                       behind: put back all
//	1 2     1 2 3               ahead: take 3
//	1 2 3   1 2 3'              forked: 3 was lost, and 3' made without knowing it
//	1 2 3   1 2 3' 3 3'         ahead: another router has put 3 back, as 4
//	1 2 3   800 … 1800          ahead, if they were forgotten up to 799
func compare(mine, theirs []version, forgotten uint64) match {
	var m match
	if len(theirs) > 0 {
		m.theirs = headOf(theirs[0])
	}
	switch {
	case len(mine) == 0 && len(theirs) == 0:
		return m
	case len(mine) == 0:
		m.way = wayAhead
		return m
	case len(theirs) == 0:
		m.way, m.mine = wayBehind, mine
		return m
	}
	marks, at := map[string]bool{}, map[uint64]string{}
	for _, v := range theirs {
		marks[v.ID], at[v.Version] = true, v.ID
	}
	for _, v := range mine {
		if id, ok := at[v.Version]; ok && id != v.ID {
			break // what follows may be the same again: an edit that was put back can get the number that it had
		} else if ok {
			m.common = v.Version
		}
	}
	lacking := slices.DeleteFunc(slices.Clone(mine), func(v version) bool {
		return v.Version <= max(m.common, forgotten) || marks[v.ID]
	})
	newest := mine[len(mine)-1]
	switch m.cut = newest.Version > m.common; {
	case m.common == m.theirs.number && newest.Version > m.common:
		m.way, m.mine, m.cut = wayBehind, lacking, false
	case len(lacking) > 0:
		m.way, m.mine = wayForked, lacking
	case headOf(newest) != m.theirs:
		m.way = wayAhead
	}
	return m
}

// rescue returns the versions that are to follow newest, which is in use, so that the
// edits that it does not know are in the history and it stays in use: those edits, and
// newest again. Bodies of more than one document's size in all are too much.
func rescue(lost []version, newest version) []version {
	bytes, from := 0, len(lost)
	for from > 0 && len(lost)-from < maxRescued && bytes+len(lost[from-1].Body) <= MaxBody {
		from--
		bytes += len(lost[from].Body)
	}
	if from == len(lost) {
		return []version{newest}
	}
	number := newest.Version
	var out []version
	for _, v := range lost[from:] {
		number++
		v.Version = number
		out = append(out, v)
	}
	comment := fmt.Sprintf("version %d again: redis had lost the edits before this one, and a router put them back", newest.Version)
	return append(out, newVersion(newest.Key, number+1, newest.Body, Author{newest.Name, comment}))
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
