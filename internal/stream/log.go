package stream

import (
	"sync/atomic"

	"millrace/internal/flv"
)

// blockTags is how many tags a block of the log holds: about a second of a usual
// stream, so that old tags are let go of in steps of a second.
const blockTags = 64

// entry is a published tag with what a reader must know about its place.
type entry struct {
	tag     flv.Tag
	headers *HeaderSet // valid at this tag, which is in it when it is a header
	off     int64      // media bytes published before this tag
}

// block is a run of consecutive entries. Those below n are immutable; the writer
// fills the one at n and then raises n.
type block struct {
	first   uint64 // sequence number of entries[0]
	n       atomic.Uint32
	entries [blockTags]entry
}

// window is the part of the log that can be read: whole blocks, without a gap.
// It is immutable but for the growth of its last block.
type window struct {
	blocks []*block
	first  uint64 // sequence number of the oldest entry
}

// Log is the bounded run of the tags of one stream, numbered in sequence over all
// of its publishes. One writer at a time appends; readers take no lock and no
// part in its memory: they hold a sequence number and look it up.
//
//	    first                             next
//	      ▼                                ▼
//	┌───────────┐ ┌───────────┐ ┌───────────┐
//	│ block     │ │ block     │ │ block ··· │      each one immutable up to n
//	└───────────┘ └───────────┘ └───────────┘
//	   ▲               ▲               ▲
//	let go of      newest start    the writer
//	when old          point
type Log struct {
	// Safe from any goroutine.
	window atomic.Pointer[window]
	next   atomic.Uint64

	// Owned by the writer.
	bytes int64 // media bytes ever published
}

func newLog() *Log {
	l := &Log{}
	l.window.Store(&window{})
	return l
}

// append adds a tag and makes it readable. keep is the oldest sequence number
// that must stay while maxBytes allows it, minDTS the time before which older
// tags may go.
func (l *Log) append(t flv.Tag, h *HeaderSet, keep uint64, minDTS, maxBytes int64) {
	w := l.window.Load()
	seq := l.next.Load()
	var b *block
	if len(w.blocks) > 0 {
		b = w.blocks[len(w.blocks)-1]
	}
	if b == nil || b.full(l.bytes, maxBytes/8) {
		w = l.grow(w, seq, keep, minDTS, maxBytes-maxBytes/8-int64(len(t.Wire)))
		b = w.blocks[len(w.blocks)-1]
	}
	n := b.n.Load()
	b.entries[n] = entry{tag: t, headers: h, off: l.bytes}
	l.bytes += int64(len(t.Wire))
	b.n.Store(n + 1)
	l.next.Store(seq + 1)
}

// full reports whether the next tag needs a new block: this one has no room, or
// holds an eighth of the limit already, so that big tags are let go of in time.
func (b *block) full(end, share int64) bool {
	n := b.n.Load()
	return n == blockTags || n > 0 && end-b.entries[0].off >= share
}

// grow lets go of the old blocks and adds an empty one.
func (l *Log) grow(w *window, seq, keep uint64, minDTS, room int64) *window {
	old := w.blocks
	for len(old) > 0 {
		b := old[0]
		last := &b.entries[b.n.Load()-1]
		over := l.bytes-b.entries[0].off > room
		unused := b.end() <= keep && last.tag.DTS < minDTS
		if !over && !unused {
			break
		}
		old = old[1:]
	}
	next := &window{blocks: make([]*block, 0, len(old)+1), first: seq}
	next.blocks = append(append(next.blocks, old...), &block{first: seq})
	next.first = next.blocks[0].first
	l.window.Store(next)
	return next
}

// clear lets go of everything.
func (l *Log) clear() {
	l.window.Store(&window{first: l.next.Load()})
}

// end returns the sequence number behind the last entry.
func (b *block) end() uint64 { return b.first + uint64(b.n.Load()) }

// find returns the block that holds seq, and the entry's index in it, or nil when
// seq is not in the window. Readers are nearly always near the end.
func (w *window) find(seq uint64) (at, i int) {
	for at = len(w.blocks) - 1; at >= 0; at-- {
		b := w.blocks[at]
		if seq < b.first {
			continue
		}
		if i = int(seq - b.first); i < int(b.n.Load()) {
			return at, i
		}
		return -1, 0
	}
	return -1, 0
}

// last returns the newest entry, nil when there is none.
func (w *window) last() *entry {
	for at := len(w.blocks) - 1; at >= 0; at-- {
		if n := w.blocks[at].n.Load(); n > 0 {
			return &w.blocks[at].entries[n-1]
		}
	}
	return nil
}

// at returns the entry seq, nil when it is not in the window.
func (w *window) at(seq uint64) *entry {
	b, i := w.find(seq)
	if b < 0 {
		return nil
	}
	return &w.blocks[b].entries[i]
}
