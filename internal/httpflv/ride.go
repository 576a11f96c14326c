package httpflv

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/flv"
	"millrace/internal/session"
	"millrace/internal/trunk"
)

const (
	// ridersEvery is how often it is looked whether a node on a trunk must be told
	// something, and whether it takes what it is sent.
	ridersEvery = 50 * time.Millisecond
	// riderShare is how much of one stream goes into one write while others wait.
	riderShare = 64 << 10
)

// coach sends what all streams on one trunk have for the node at its end. It has no
// goroutine: the one that writes to the trunk calls fill before each write, so what came
// of many streams goes out together, and no other goroutine is woken for a tag.
type coach struct {
	session *trunk.Session // set before there are riders

	// Guarded by mu.
	mu    sync.Mutex
	dirty []*rider // that may have something to send

	// Guarded by riding, which is held while the riders are served.
	riding sync.Mutex
	riders map[*rider]struct{}
	work   []*rider // the dirty ones of before
	later  []*rider // that have more to send than their share, behind the others
	sweep  *time.Timer
	tags   [writerTags]flv.Tag

	// Safe from any goroutine.
	due atomic.Bool // all riders are to be looked at
}

// rider is the stream of one node below on a trunk. Guarded by coach.riding, but for what
// says otherwise.
type rider struct {
	// Fixed at construction.
	coach *coach
	w     *writer
	conn  *trunk.Conn
	over  chan session.Reason // capacity 1

	rest  []byte    // of the last tag, not sent yet
	share int       // how much more may go into this write
	took  time.Time // when the trunk took something last, or there was nothing

	// Safe from any goroutine.
	marked atomic.Bool // it is among the dirty ones, or the later ones
}

func newCoach() *coach { return &coach{riders: make(map[*rider]struct{})} }

// mark has a rider served with the next write.
func (r *rider) mark() {
	if r.marked.Swap(true) {
		return
	}
	c := r.coach
	c.mu.Lock()
	c.dirty = append(c.dirty, r)
	c.mu.Unlock()
	c.session.Poke()
}

// ride serves w on its trunk until it ends, and returns why.
func (c *coach) ride(w *writer, conn *trunk.Conn) session.Reason {
	r := &rider{coach: c, w: w, conn: conn, over: make(chan session.Reason, 1), took: time.Now()}
	conn.OnRoom(r.mark)
	c.riding.Lock()
	c.riders[r] = struct{}{}
	if c.sweep == nil {
		c.sweep = time.AfterFunc(ridersEvery, c.look)
	}
	c.riding.Unlock()
	w.server.fan.riders.Add(1)
	defer w.server.fan.riders.Add(-1)
	w.rider.Store(r)
	r.mark() // there may be something already
	var why session.Reason
	select {
	case why = <-r.over:
	case <-w.left:
		why = session.PeerClosed
		if errors.Is(c.session.Err(), os.ErrDeadlineExceeded) { // the whole trunk took nothing
			why = session.Stalled
		}
	case why = <-w.kicked:
	}
	w.rider.Store(nil)
	c.leave(r)
	if why == session.PeerClosed || why == session.Draining || why == session.Stalled {
		return why
	}
	if _, err := w.send(r.rest); err != nil { // the end stands behind whole tags
		return w.failure(err)
	}
	if why == session.StreamEnded {
		return w.over()
	}
	w.finish(why)
	return why
}

// leave takes a rider out. Nobody touches its writer any more then.
func (c *coach) leave(r *rider) {
	c.riding.Lock()
	defer c.riding.Unlock()
	delete(c.riders, r)
	if len(c.riders) == 0 && c.sweep != nil {
		c.sweep.Stop()
		c.sweep = nil
	}
}

// look has all riders looked at.
func (c *coach) look() {
	c.due.Store(true)
	c.session.Poke()
}

// fill writes what the riders have. It is called before each write to the trunk.
func (c *coach) fill() {
	c.mu.Lock()
	c.work, c.dirty = c.dirty, c.work[:0]
	c.mu.Unlock()
	c.riding.Lock()
	defer c.riding.Unlock()
	now := time.Now()
	c.work = append(c.work, c.later...)
	clear(c.later)
	c.later = c.later[:0]
	for _, r := range c.work {
		r.marked.Store(false) // before looking, or something could be missed
		if _, ok := c.riders[r]; ok {
			r.serve(now)
		}
	}
	clear(c.work)
	if c.due.Swap(false) && c.sweep != nil {
		for r := range c.riders {
			r.serve(now)
			r.stalled(now)
		}
		c.sweep.Reset(ridersEvery)
	}
}

// serve writes what the node lacks, as far as the trunk takes it.
func (r *rider) serve(now time.Time) {
	w := r.w
	if r.share = riderShare; len(r.over) > 0 || !r.sendRest(now) {
		return
	}
	for {
		if r.share <= 0 {
			r.wait()
			return
		}
		// Before Peek: what it does not show was not there when this was so.
		at := w.position()
		tags := r.coach.tags[:]
		n := w.cur.Peek(tags)
		ended := n == 0 && w.cur.Ended()
		at.found(n, ended, w.cur.Epoch())
		// Before the tags, so that it is known which publish they belong to.
		if t, ok := w.link(now, at, linkBeat-ridersEvery); ok {
			r.putTag(&t)
		}
		switch {
		case ended:
			r.over <- session.StreamEnded
			return
		case n == 0:
			return
		}
		w.countSkips()
		sent := 0
		for sent < n && r.share > 0 && len(r.rest) == 0 {
			if t := &tags[sent]; !isLink(t) {
				r.putTag(t)
			}
			sent++
		}
		w.cur.Advance(sent)
		w.sess.Tags.Add(uint64(sent))
		clear(tags[:n])
		w.play.node.sentAt, r.took = now, now
		if !r.sendRest(now) {
			return
		}
	}
}

// wait has the rider served with the next write, behind those that are marked already.
func (r *rider) wait() {
	if !r.marked.Swap(true) {
		r.coach.later = append(r.coach.later, r)
	}
	r.coach.session.Poke()
}

// sendRest sends what is left of the last tag, as far as the share goes, and reports
// whether nothing is.
func (r *rider) sendRest(now time.Time) bool {
	for len(r.rest) > 0 {
		if r.share <= 0 {
			r.wait()
			return false
		}
		n := r.send(r.rest[:min(len(r.rest), r.share)])
		if n == 0 {
			return false
		}
		r.rest, r.took = r.rest[n:], now
	}
	r.rest = nil
	return true
}

// putTag sends a tag in the node's framing. What the trunk does not take is kept, and so
// is all of one that is more than a share.
func (r *rider) putTag(t *flv.Tag) {
	w := r.w
	head, body, end := w.play.framing.appendTagHead(w.head[:0], t, false), t.Wire[flv.HeaderSize:], crlfBytes
	if w.play.framing != chunked {
		end = nil
	}
	n := 0
	if len(r.rest) == 0 && len(t.Wire) <= riderShare {
		n = r.send(head, body, end)
	}
	for _, p := range [...][]byte{head, body, end} {
		k := min(n, len(p))
		r.rest = append(r.rest, p[k:]...)
		n -= k
	}
}

// send sends what the trunk takes of pieces, and returns how much that is.
func (r *rider) send(pieces ...[]byte) int {
	n := r.conn.TryWrite(pieces...)
	r.share -= n
	r.w.server.fan.relayed.Add(uint64(n))
	r.w.sess.Bytes.Add(uint64(n))
	return n
}

// stalled ends a rider that has taken nothing for the stall time.
func (r *rider) stalled(now time.Time) {
	if len(r.rest) > 0 && len(r.over) == 0 && now.Sub(r.took) >= r.w.server.fan.config().StallTimeout {
		r.over <- session.Stalled
	}
}

// position returns where the node stands that has nothing new.
func (w *writer) position() position {
	return position{w.stream.State().String(), w.stream.Epoch(), false}
}

// found changes a position for n tags that there are for the node.
func (p *position) found(n int, ended bool, epoch int64) {
	switch {
	case ended:
		p.state = LinkEnded
	case n > 0:
		*p = position{LinkLive, epoch, false}
	default:
		p.idle = true
	}
}

// isLink reports whether a tag is marked as a link, which a publisher has no business to
// send: the node below would believe it.
func isLink(t *flv.Tag) bool {
	_, link, _ := ParseLink(*t)
	return link
}
