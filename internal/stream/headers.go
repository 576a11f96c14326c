package stream

import "millrace/internal/flv"

// HeaderSet is what a reader must have before it can use the tags that follow:
// the metadata and the sequence headers. It is immutable; a header that changes
// makes a new set. A zero Wire means that there is none of that kind.
type HeaderSet struct {
	Meta, Video, Audio flv.Tag
	Epoch              int64 // of the publish
}

// with returns the set that is valid from t on.
func (h *HeaderSet) with(t flv.Tag) *HeaderSet {
	next := *h
	switch {
	case t.Is(flv.Metadata):
		next.Meta = t
	case t.Kind == flv.Video:
		next.Video = t
	default:
		next.Audio = t
	}
	return &next
}

// missing returns the i-th header that a reader who has been sent had still
// lacks, in the order in which they are sent; ok is false past the last.
func (h *HeaderSet) missing(had *HeaderSet, i int) (t flv.Tag, ok bool) {
	pairs := [...][2]*flv.Tag{{&h.Meta, nil}, {&h.Video, nil}, {&h.Audio, nil}}
	if had != nil {
		pairs[0][1], pairs[1][1], pairs[2][1] = &had.Meta, &had.Video, &had.Audio
	}
	for _, p := range pairs {
		if p[0].Wire == nil || p[1] != nil && sameTag(p[0], p[1]) {
			continue
		}
		if i == 0 {
			return *p[0], true
		}
		i--
	}
	return flv.Tag{}, false
}

func sameTag(a, b *flv.Tag) bool {
	return len(a.Wire) == len(b.Wire) && string(a.Payload()) == string(b.Payload())
}

// StartPoint is a place in the log where a reader may begin.
type StartPoint struct {
	Seq     uint64
	DTS     int64
	Headers *HeaderSet // valid there; not the stream's newest
}
