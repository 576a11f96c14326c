package stream

import (
	"slices"
	"sync/atomic"

	"millrace/internal/flv"
)

// blockTags is how many tags a block of the log holds: about a second of a usual
// stream, so that old tags are let go of in steps of a second.
const blockTags = 64

// maxTags is how many tags a log holds whatever their size: two minutes, which is the
// longest log, of 60 pictures and 400 packets of sound a second are 55,000.
const maxTags = 1 << 16

// tagCost is what a tag costs besides its bytes: its entry, and what the allocator
// and the collector add to bytes of their own. Without it tags of two bytes would fill
// many times the memory that the log may have.
const tagCost = 64 + 16

// entry is a published tag with what a reader must know about its place.
type entry struct {
	tag     flv.Tag
	headers *HeaderSet // valid at this tag, which is in it when it is a header
	off     int64      // media bytes published before this tag
	came    int64      // when, in ms since the first tag of the stream
}

// block is a run of consecutive entries. Those below n are immutable; the writer
// fills the one at n and then raises n.
type block struct {
	first   uint64 // sequence number of entries[0]
	n       atomic.Uint32
	entries [blockTags]entry
}

// window is the part of the log that can be read: whole blocks, without a gap.
// It is immutable but for the growth of its last block. Windows that follow one
// another share the array of their blocks: the writer only writes behind the last
// block of the newest, where no reader looks.
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
	bytes int64    // media bytes ever published
	array []*block // what the window's blocks are the end of
}

func newLog() *Log {
	l := &Log{}
	l.window.Store(&window{})
	return l
}

// bounds are what a log is held to. keep is the oldest sequence number that must stay
// while bytes allows it. Older tags may go when their time is before minDTS, and they came
// before minCame: nobody has had time to read what comes all at once.
type bounds struct {
	keep            uint64
	minDTS, minCame int64
	bytes           int64
}

// append adds a tag that came at the given time, and makes it readable.
func (l *Log) append(t flv.Tag, h *HeaderSet, came int64, to bounds) {
	w := l.window.Load()
	seq := l.next.Load()
	var b *block
	if len(w.blocks) > 0 {
		b = w.blocks[len(w.blocks)-1]
	}
	if b == nil || b.n.Load() == blockTags || l.costSince(b, seq) >= to.bytes/8 {
		to.bytes -= to.bytes/8 + tagCost + int64(len(t.Wire))
		w = l.grow(w, seq, to)
		b = w.blocks[len(w.blocks)-1]
	}
	n := b.n.Load()
	b.entries[n] = entry{tag: t, headers: h, off: l.bytes, came: came}
	l.bytes += int64(len(t.Wire))
	b.n.Store(n + 1)
	l.next.Store(seq + 1)
}

// costSince returns the memory that the tags from the first of b up to seq take: a
// block with an eighth of what the log may have is followed by another one, so that
// big tags are let go of in time. b may be empty, and is if it is nil.
func (l *Log) costSince(b *block, seq uint64) int64 {
	if b == nil || b.n.Load() == 0 {
		return 0
	}
	return l.bytes - b.entries[0].off + int64(seq-b.first)*tagCost
}

// cost returns the memory that the tags of the log take, by count.
func (l *Log) cost() int64 {
	w := l.window.Load()
	if len(w.blocks) == 0 {
		return 0
	}
	return l.costSince(w.blocks[0], l.next.Load())
}

// grow lets go of the old blocks and adds an empty one.
func (l *Log) grow(w *window, seq uint64, to bounds) *window {
	next := &window{blocks: l.extend(l.live(w, seq, to), seq, to.bytes/16)}
	next.first = next.blocks[0].first
	l.window.Store(next)
	return next
}

// live returns the blocks of w that stay. Each of them has entries.
func (l *Log) live(w *window, seq uint64, to bounds) []*block {
	live := w.blocks
	for len(live) > 0 {
		b := live[0]
		last := &b.entries[b.n.Load()-1]
		over := l.costSince(b, seq) > to.bytes || seq-b.first >= maxTags
		unused := b.end() <= to.keep && last.tag.DTS < to.minDTS && last.came < to.minCame
		if !over && !unused {
			break
		}
		live = live[1:]
	}
	return live
}

// trim lets go of old blocks until the log holds no more than bytes.
func (l *Log) trim(bytes int64) {
	w, seq := l.window.Load(), l.next.Load()
	live := l.live(w, seq, bounds{bytes: bytes})
	if len(live) == len(w.blocks) {
		return
	}
	l.array = slices.Clone(live)
	next := &window{blocks: l.array, first: seq}
	if len(live) > 0 {
		next.first = live[0].first
	}
	l.window.Store(next)
}

// extend returns the blocks of live and an empty one behind them. It copies them only
// when the array is at its end, or holds more than a sixteenth of what was let go of:
// a copy for every block would cost the more the longer the log is.
func (l *Log) extend(live []*block, seq uint64, share int64) []*block {
	dead := len(l.array) - len(live)
	fresh := len(live) == 0 || len(l.array) == cap(l.array) || dead > len(live)/16 ||
		l.costSince(l.array[0], seq)-l.costSince(live[0], seq) > share
	if fresh {
		l.array = append(make([]*block, 0, len(live)+len(live)/4+4), live...)
		dead = 0
	}
	l.array = append(l.array, &block{first: seq})
	return l.array[dead:len(l.array):len(l.array)]
}

// clear lets go of everything.
func (l *Log) clear() {
	l.array = nil
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

// startBefore returns the newest start point that is at least ms older than the
// newest tag, or the oldest that there is from least on; nil when there is none. Where
// there is no keyframe it is an audio frame.
func (w *window) startBefore(ms int64, least uint64) *StartPoint {
	newest := w.last()
	if newest == nil {
		return nil
	}
	var key, sound *StartPoint
	for _, b := range slices.Backward(w.blocks) {
		for i := int(b.n.Load()) - 1; i >= 0; i-- {
			e := &b.entries[i]
			if !e.tag.Is(flv.Frame) || b.first+uint64(i) < least {
				continue
			}
			at := &sound
			if e.tag.Kind == flv.Video {
				if !e.tag.Is(flv.Keyframe) {
					continue
				}
				at = &key
			}
			if *at == nil || newest.tag.DTS-(*at).DTS < ms || (*at).DTS == e.tag.DTS && at == &key {
				*at = &StartPoint{Seq: b.first + uint64(i), DTS: e.tag.DTS, Headers: e.headers}
			}
		}
	}
	if key != nil {
		return key
	}
	return sound
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
