package sched

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxFaults is how many faults one error tells; who has more has one in all rows.
const maxFaults = 20

// faults gathers what is wrong with a Snapshot.
type faults struct {
	errs []error
	more int
}

// add notes a fault at a place such as "nodes[3] bj-1: capacity".
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

// count wants at most so many rows.
func (f *faults) count(where string, n, most int) {
	if n > most {
		f.add(where, "%d of them, at most %d are possible", n, most)
	}
}

// maxWord bounds names that are ours: ids, regions, ISPs, groups, datacenters.
const maxWord = 64

// word wants a name of ours: short, printable and without blanks, because it stands
// in logs, labels and text files.
func (f *faults) word(where, s string) bool {
	switch {
	case s == "":
		f.add(where, "is empty: give a name")
	case len(s) > maxWord:
		f.add(where, "%.20q… is longer than %d bytes", s, maxWord)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == ',' || r == '#' }):
		f.add(where, "%q: blanks, commas, # and control characters cannot stand in a name", s)
	default:
		return true
	}
	return false
}

// words wants a list of different names.
func (f *faults) words(where string, list []string, most int) {
	f.count(where, len(list), most)
	for i, s := range list[:min(len(list), most)] {
		if !f.word(where, s) {
			continue
		}
		for _, before := range list[:i] {
			if before == s {
				f.add(where, "%s is there twice: remove one", s)
			}
		}
	}
}

// host wants a DNS name: letters, digits, hyphens and underscores between dots, any
// case, a dot at the end allowed.
func (f *faults) host(where, s string) bool {
	name := strings.TrimSuffix(s, ".")
	ok := name != "" && len(name) <= 253
	for label := range strings.SplitSeq(name, ".") {
		ok = ok && label != "" && len(label) <= 63 && label[0] != '-' && label[len(label)-1] != '-'
		for i := 0; i < len(label); i++ {
			c := label[i] | 0x20
			ok = ok && ('a' <= c && c <= 'z' || '0' <= label[i] && label[i] <= '9' || label[i] == '-' || label[i] == '_')
		}
	}
	if !ok {
		f.add(where, "%.80q is not a DNS name: use one such as live.example.com", s)
	}
	return ok
}

// figure wants a number of lo…hi.
func (f *faults) figure(where string, v, lo, hi float64) {
	if math.IsNaN(v) || v < lo || v > hi {
		f.add(where, "%v must be between %v and %v", v, lo, hi)
	}
}
