package stream

import (
	"math"
	"time"

	"millrace/internal/flv"
	"millrace/internal/session"
)

// Skips counts the tags that a slow reader did not get, by reason.
type Skips struct {
	Time, Bytes, OffLog uint64
}

// Total returns the sum.
func (s Skips) Total() uint64 { return s.Time + s.Bytes + s.OffLog }

// Count adds to sess what was skipped since before, an earlier value of the same
// cursor.
func (s Skips) Count(before Skips, sess *session.Session) {
	for _, c := range [...]struct {
		n uint64
		r session.Reason
	}{
		{s.Time - before.Time, session.SlowTime},
		{s.Bytes - before.Bytes, session.SlowBytes},
		{s.OffLog - before.OffLog, session.OffLog},
	} {
		if c.n > 0 {
			sess.Skip(c.n, c.r)
		}
	}
}

// CursorOptions say how a reader sees the stream.
type CursorOptions struct {
	// KeepClock hands out the stream's own times. Otherwise the reader's clock
	// begins at 0 and has no hole where tags were skipped.
	KeepClock bool
	// Back lets the reader begin at the newest start point that is at least so much
	// older than the newest tag, or at the oldest that there is: a node that has lost
	// its connection asks for what it has missed.
	Back time.Duration
	// OnePublish has Peek never return tags of two publishes at once, so that Epoch
	// tells of which one they are.
	OnePublish bool
	// Of has the reader get the tags of one publisher only: nothing that another wrote
	// when that one had lost the stream.
	Of *Publisher
}

// Cursor is a reader's position in a stream: the tag it needs next, the headers it
// has, and the offset of its clock. It is a value without locks that belongs to one
// goroutine at a time, and costs nothing while its reader waits.
//
// Reading is in two steps, so that a reader that could send only some of what it
// saw loses nothing: Peek, then Advance by what was taken.
type Cursor struct {
	s    *Stream
	opt  CursorOptions
	next uint64 // sequence number of the next tag; when waiting, the least one to start at
	ends uint64 // of the stream when the cursor was made

	has     *HeaderSet // what the reader has been sent
	target  *HeaderSet // what it must have before next; nil when it has that
	at      int64      // stream time of next while target is set
	sent    int        // how many of the missing headers it was sent
	base    int64      // stream time of the reader's time 0
	out     int64      // highest time that the reader has taken, on its own clock; -1: none
	shown   int64      // highest time that the newest Peek showed
	heldMS  int64      // how much media time the tags taken last are still under way
	slackMS int64      // how much further behind than the limits it may be:
	slackBy int64      // it began there, in ms of media and in bytes

	waiting bool // for a start point
	started bool
	late    session.Reason // of the newest skip
	skips   Skips
}

// NewCursor returns a cursor that will begin at the newest start point, or at the
// next one when there is none.
func (s *Stream) NewCursor(opt CursorOptions) Cursor {
	return Cursor{s: s, opt: opt, waiting: true, out: -1, ends: s.ends.Load()}
}

// Stream returns the stream that c reads.
func (c *Cursor) Stream() *Stream { return c.s }

// Started reports whether c has found where to begin.
func (c *Cursor) Started() bool { return c.started }

// Skips returns what was skipped so far.
func (c *Cursor) Skips() Skips { return c.skips }

// Ended reports whether the stream ended while c was attached and nothing is left
// to read. A stream that was published again since has not ended.
func (c *Cursor) Ended() bool {
	if c.s.State() != Idle || c.s.ends.Load() == c.ends {
		return false
	}
	return c.waiting || c.next >= c.s.log.next.Load() || len(c.s.log.window.Load().blocks) == 0
}

// Peek copies the tags that come next into dst, in order, and returns how many.
// At a start they are preceded by the headers that the reader lacks. The times are
// on the reader's clock; Wire is shared and its header holds the stream's time.
// Peek skips first when the reader is too far behind. 0 means that there is
// nothing to read now. dst must have room for four tags.
func (c *Cursor) Peek(dst []flv.Tag) int {
	w := c.s.log.window.Load()
	limit := c.opt.Of.limit()
	if !c.place(w) || c.next >= limit {
		return 0
	}
	n := 0
	if c.target != nil {
		for ; n < len(dst); n++ {
			t, ok := c.target.missing(c.has, c.sent+n)
			if !ok {
				break
			}
			t.DTS = c.clock(c.at)
			dst[n] = t
		}
	}
	at, i := w.find(c.next)
	if at < 0 {
		return n
	}
	epoch := w.blocks[at].entries[i].headers.Epoch
	for ; at < len(w.blocks); at++ {
		b := w.blocks[at]
		for end := int(b.n.Load()); i < end; i++ {
			if n == len(dst) || b.first+uint64(i) >= limit {
				return n
			}
			t := b.entries[i].tag
			if c.opt.OnePublish && b.entries[i].headers.Epoch != epoch {
				return n
			}
			t.DTS = c.clock(t.DTS)
			c.shown = max(c.shown, t.DTS)
			dst[n] = t
			n++
		}
		i = 0
	}
	return n
}

// Epoch returns when the publish of the tag that Peek returned first began at its
// origin, 0 if there is none.
func (c *Cursor) Epoch() int64 {
	if e := c.s.log.window.Load().at(c.next); e != nil {
		return e.headers.Epoch
	}
	return 0
}

// Advance takes the first n of the peeked tags as read.
func (c *Cursor) Advance(n int) {
	if c.target != nil {
		for ; n > 0; n-- {
			if _, ok := c.target.missing(c.has, c.sent); !ok {
				break
			}
			c.sent++
		}
		if _, more := c.target.missing(c.has, c.sent); more {
			return
		}
		c.has, c.target, c.sent = c.target, nil, 0
	}
	if n == 0 {
		return
	}
	c.next += uint64(n)
	if e := c.s.log.window.Load().at(c.next - 1); e != nil {
		c.has = e.headers
		c.out = max(c.out, c.clock(e.tag.DTS))
	} else { // it has left the log since Peek
		c.has = nil
		c.out = c.shown
	}
}

// Behind returns how far the next tag is behind the newest one: by their times or by when
// they came, whichever is less. What comes all at once makes nobody slow.
func (c *Cursor) Behind() (time.Duration, int64) {
	w := c.s.log.window.Load()
	_, ms, by := c.behind(w)
	return time.Duration(ms) * time.Millisecond, by
}

// behind is Behind, with media by the times alone.
func (c *Cursor) behind(w *window) (media, ms, bytes int64) {
	last := w.last()
	if c.waiting || last == nil || c.next >= c.s.log.next.Load() {
		return 0, 0, 0
	}
	e := w.at(c.next)
	switch {
	case e != nil:
	case c.next >= w.first: // it came after w
		return 0, 0, 0
	default:
		e = &w.blocks[0].entries[0] // it has left the log
	}
	media = max(0, last.tag.DTS-e.tag.DTS)
	return media, min(media, max(0, last.came-e.came)), last.off + int64(len(last.tag.Wire)) - e.off
}

// Held tells the cursor how long what was taken takes until the reader really has
// it, because it lies in a buffer between. That counts towards how far behind the
// reader may be, up to three quarters of it.
func (c *Cursor) Held(d time.Duration) { c.heldMS = d.Milliseconds() }

func (c *Cursor) held(limits *Config) int64 {
	return min(c.heldMS, limits.ViewerDelay.Milliseconds()*3/4)
}

func (c *Cursor) clock(dts int64) int64 {
	if c.opt.KeepClock {
		return dts
	}
	return max(0, dts-c.base)
}

// place brings the cursor to a tag in the window and reports whether it has one.
func (c *Cursor) place(w *window) bool {
	if c.waiting {
		return c.find(w)
	}
	if len(w.blocks) == 0 {
		return false
	}
	limits := c.s.limits.Load()
	media, ms, bytes := c.behind(w)
	switch {
	case c.next < w.first:
		return c.skip(w, session.OffLog)
	case ms+c.held(limits) > limits.ViewerDelay.Milliseconds()+c.slackMS:
		return c.skip(w, session.SlowTime)
	case bytes > limits.ViewerBytes+c.slackBy:
		return c.skip(w, session.SlowBytes)
	}
	c.slackMS, c.slackBy = min(c.slackMS, media), min(c.slackBy, bytes)
	return true
}

// find ends the wait for a start point if there is one.
func (c *Cursor) find(w *window) bool {
	head := c.s.log.next.Load() // before the start point, which may come at any moment
	sp := c.s.start.Load()
	if c.opt.Back > 0 && !c.started {
		if old := w.startBefore(c.opt.Back.Milliseconds(), c.s.since.Load()); old != nil {
			sp = old
		}
	}
	if sp != nil && sp.Seq >= c.next && sp.Seq >= w.first {
		c.jump(w, sp)
		return true
	}
	if c.started {
		c.leaveOut(head)
	}
	return false
}

// skip leaves out what the reader is too late for: up to the newest start point
// when that is near enough, else everything up to the next one. It reports whether
// the cursor has a tag again.
func (c *Cursor) skip(w *window, r session.Reason) bool {
	c.late, c.waiting, c.target, c.sent = r, true, nil, 0
	head := c.s.log.next.Load()
	if r == session.OffLog && c.opt.Back > 0 && c.slackMS > 0 {
		// It went back to the very end of the log, which moved on before it was read. What it
		// has missed may begin behind that.
		c.opt.Back = 0 // this once: who is slow falls off again
		if old := w.startBefore(math.MaxInt64, c.s.since.Load()); old != nil && old.Seq > c.next {
			c.jump(w, old)
			return true
		}
	}
	sp, last := c.s.start.Load(), w.last()
	if sp != nil && last != nil && sp.Seq > c.next && last.tag.DTS-sp.DTS <= c.s.limits.Load().ViewerDelay.Milliseconds() {
		return c.find(w)
	}
	c.leaveOut(head)
	return false
}

// leaveOut moves the cursor to seq and counts what lies before.
func (c *Cursor) leaveOut(seq uint64) {
	n := seq - c.next
	c.next = seq
	switch c.late {
	case session.SlowTime:
		c.skips.Time += n
	case session.SlowBytes:
		c.skips.Bytes += n
	case session.OffLog:
		c.skips.OffLog += n
	}
}

// jump makes sp the next tag. After a skip the reader's clock goes on a frame
// later than what it had, so that a player finds no hole.
func (c *Cursor) jump(w *window, sp *StartPoint) {
	if c.started {
		c.leaveOut(sp.Seq)
	}
	c.next, c.waiting, c.started = sp.Seq, false, true
	c.target, c.at, c.sent = sp.Headers, sp.DTS, 0
	c.base = sp.DTS
	if c.out >= 0 {
		c.base -= c.out + c.s.frame.Load()
	}
	c.slackMS, _, c.slackBy = c.behind(w)
}
