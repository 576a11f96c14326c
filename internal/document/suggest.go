package document

import (
	"fmt"
	"slices"
)

// Unknown returns the error for a name that is not one of known, with the
// nearest of them if one is near enough to be a slip of the finger.
func Unknown(what, name string, known []string) error {
	best, least := "", max(2, len(name)/4)+1
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return fmt.Errorf("unknown %s %q", what, name)
	}
	return fmt.Errorf("unknown %s %q; did you mean %q?", what, name, best)
}

// distance is how many letters must be added, dropped, changed or swapped with
// their neighbour to turn a into b (optimal string alignment).
func distance(a, b string) int {
	prev2, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(b)]
}
