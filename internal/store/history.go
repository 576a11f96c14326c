package store

import (
	"cmp"
	"slices"
)

// version is a document with what tells one edit from all others: two routers can give
// one number to two edits, when the store between them lost its memory.
type version struct {
	Document
	ID string
}

// head returns the version without its body.
func (v version) head() Document {
	d := v.Document
	d.Body = nil
	return d
}

// history has the versions of one document by rising number. Numbers may be missing.
type history struct {
	versions  []version
	bytes     int    // of all bodies
	forgotten uint64 // up to which number versions were forgotten, as far as is known
}

// newest returns the newest version, if there is any.
func (h *history) newest() (version, bool) {
	if h == nil || len(h.versions) == 0 {
		return version{}, false
	}
	return h.versions[len(h.versions)-1], true
}

func (h *history) find(number uint64) (at int, ok bool) {
	if h == nil {
		return 0, false
	}
	return slices.BinarySearchFunc(h.versions, number, func(v version, n uint64) int { return cmp.Compare(v.Version, n) })
}

// put adds v, or replaces what has its number, and forgets the oldest beyond the bounds.
func (h *history) put(v version) {
	at, ok := h.find(v.Version)
	if ok {
		h.bytes -= len(h.versions[at].Body)
		h.versions[at] = v
	} else {
		h.versions = slices.Insert(h.versions, at, v)
	}
	h.bytes += len(v.Body)
	drop := 0
	for len(h.versions)-drop > MaxHistory || h.bytes > MaxHistoryBytes && drop < len(h.versions)-1 {
		h.bytes -= len(h.versions[drop].Body)
		drop++
	}
	if drop > 0 {
		h.forgotten = max(h.forgotten, h.versions[drop-1].Version)
	}
	h.versions = slices.Delete(h.versions, 0, drop)
}

// forget forgets the versions up to a number, but the newest.
func (h *history) forget(upTo uint64) {
	if h == nil || len(h.versions) == 0 {
		return
	}
	h.forgotten = max(h.forgotten, upTo)
	drop := 0
	for drop < len(h.versions)-1 && h.versions[drop].Version <= upTo {
		h.bytes -= len(h.versions[drop].Body)
		drop++
	}
	h.versions = slices.Delete(h.versions, 0, drop)
}

// heads returns at most limit versions without bodies, the newest first.
func (h *history) heads(limit int) []Document {
	if h == nil {
		return nil
	}
	var out []Document
	for i := len(h.versions) - 1; i >= 0 && len(out) < limit; i-- {
		out = append(out, h.versions[i].head())
	}
	return out
}

// cut forgets the versions above a number.
func (h *history) cut(above uint64) {
	if h == nil {
		return
	}
	at, ok := h.find(above)
	if ok {
		at++
	}
	for _, v := range h.versions[at:] {
		h.bytes -= len(v.Body)
	}
	h.versions = slices.Delete(h.versions, at, len(h.versions))
}
