package sched

import (
	"math/bits"
	"time"

	"millrace/internal/stream"
)

// verdict is what overrides say of the nodes, for one query.
type verdict struct {
	banned, pinned nodeSet
	bans, pins     bool
}

// apply lets o, the next in order, speak. A node that a more specific override pinned
// is not banned any more, one that it banned is not pinned, and when it pinned any,
// these are all that is pinned.
func (v *verdict) apply(o *override) {
	if len(o.ban.list) > 0 {
		o.ban.addTo(&v.banned, &v.pinned)
		v.bans = true
	}
	if !v.pins && len(o.pin.list) > 0 {
		o.pin.addTo(&v.pinned, &v.banned)
		v.pins = v.pinned != nodeSet{}
	}
}

// list puts the nodes of s into room and returns them, false if they are too many.
func (s *nodeSet) list(room []int32) ([]int32, bool) {
	out := room[:0]
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			if len(out) == len(room) {
				return nil, false
			}
			out = append(out, int32(w<<6+bits.TrailingZeros64(word)))
		}
	}
	return out, true
}

// matching walks the overrides that are for a query, the most specific first: a merge
// of the lists that may have some.
type matching struct {
	lists  [3][]int32
	now    time.Time
	place  placeKey
	stream stream.Name
	bits   int // of the client's prefix, which must be inside that of the override
}

// next returns the next override, nil if there are no more.
func (m *matching) next(all []override) *override {
	for {
		least, from := int32(len(all)), -1
		for i, list := range m.lists {
			if len(list) > 0 && list[0] < least {
				least, from = list[0], i
			}
		}
		if from < 0 {
			return nil
		}
		m.lists[from] = m.lists[from][1:]
		if o := &all[least]; o.matches(m) {
			return o
		}
	}
}
