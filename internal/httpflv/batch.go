package httpflv

import (
	"golang.org/x/sys/unix"

	"millrace/internal/flv"
)

// Bounds of one write: enough that a start of a few seconds goes out in a few of
// them, little enough that one viewer does not keep the others waiting.
const (
	batchTags  = 128
	batchBytes = 256 << 10
	// serveRounds is how many writes a viewer gets in a row.
	serveRounds = 4
)

// batch gathers what one viewer lacks into one writev:
//
//	rest of the last write │ head payload │ head payload │ … │ end of the last chunk
//
// It belongs to whoever writes, not to a viewer, and is used for one viewer after
// the other.
type batch struct {
	tags  [batchTags]flv.Tag
	start [batchTags]int // of each tag in the whole of the write
	end   [batchTags]int
	heads []byte // what stands before the payloads; never grows, or iov would be wrong
	iov   []unix.Iovec
	total int
	used  int // tags and iov hold references below this

	counts counts
}

// counts are what a batch did.
type counts struct {
	writes  uint64 // calls of writev
	partial uint64 // of those, with not everything taken
	bytes   uint64
}

func newBatch() *batch {
	return &batch{
		heads: make([]byte, 0, batchTags*maxPrefix),
		iov:   make([]unix.Iovec, 0, 2*batchTags+4),
	}
}

// outcome is how serving a viewer ended.
type outcome uint8

// The outcomes.
const (
	drained outcome = iota // the viewer has all there is
	blocked                // the socket takes no more for now
	more                   // there is more to write, and the socket may take it
	failed                 // the connection is broken
)

// serve writes to v what it lacks, until the socket takes no more.
func (b *batch) serve(v *viewer) outcome {
	for range serveRounds {
		n, last := b.gather(v)
		if b.total == 0 {
			return drained
		}
		wrote, errno := b.write(v.fd)
		switch errno {
		case 0:
		case unix.EAGAIN:
			return blocked
		default:
			return failed
		}
		b.settle(v, n, wrote)
		if wrote < b.total {
			return blocked
		}
		if last {
			return drained
		}
	}
	return more
}

func (b *batch) write(fd int) (int, unix.Errno) {
	for {
		n, errno := writev(fd, b.iov)
		if errno == unix.EINTR {
			continue
		}
		b.counts.writes++
		if errno != 0 {
			n = 0
		}
		if n < b.total {
			b.counts.partial++
		}
		b.counts.bytes += uint64(n)
		return n, errno
	}
}

func (b *batch) add(p []byte) {
	if len(p) == 0 {
		return
	}
	b.iov = append(b.iov, unix.Iovec{Base: &p[0], Len: uint64(len(p))})
	b.total += len(p)
}

// gather fills iov with the rest of the last write and the tags that come next. It
// returns how many tags there are, and whether that is all.
func (b *batch) gather(v *viewer) (n int, last bool) {
	b.iov, b.heads, b.total = b.iov[:0], b.heads[:0], 0
	b.add(v.rest.head)
	b.add(v.rest.body)
	b.add(v.rest.tail)
	if !v.begun || v.ending {
		return 0, true
	}
	n = v.cur.Peek(b.tags[:])
	last = n < batchTags
	b.used = max(b.used, n)
	if s := v.cur.Skips(); s != v.skips {
		s.Count(v.skips, v.sess)
		v.skips = s
		v.server.self.Quality.Skipped(v.info.Peer.Addr())
	}
	open := v.open
	for i := range n {
		t := &b.tags[i]
		at := len(b.heads)
		b.heads = v.framing.appendTagHead(b.heads, t, open)
		b.start[i] = b.total
		b.add(b.heads[at:])
		b.add(t.Wire[flv.HeaderSize:])
		b.end[i] = b.total
		open = v.framing == chunked
		if b.total >= batchBytes && i+1 < n {
			n, last = i+1, false
			break
		}
	}
	if open {
		b.add(crlfBytes)
	}
	return n, last
}

var crlfBytes = []byte(crlf)

// settle moves the viewer on by the wrote bytes that the socket took of n tags. The
// rest of a tag in progress stays with the viewer, all after it with the cursor.
func (b *batch) settle(v *viewer, n, wrote int) {
	v.sess.Bytes.Add(uint64(wrote))
	if left := v.rest.len(); left > 0 {
		if wrote < left {
			v.rest.skip(wrote)
			return
		}
		v.rest.clear(v)
	}
	if v.ending {
		return
	}
	taken := 0
	for taken < n && b.end[taken] <= wrote {
		taken++
	}
	v.sess.Tags.Add(uint64(taken))
	if taken > 0 {
		v.open = v.framing == chunked
	}
	if taken < n {
		if at := wrote - b.start[taken]; at > 0 {
			body := b.tags[taken].Wire[flv.HeaderSize:]
			head := b.end[taken] - b.start[taken] - len(body)
			first := b.headOf(taken, n)
			v.rest.keep(b.heads[first:first+head], body, at)
			v.open = v.framing == chunked
			taken++
		}
	} else if v.open {
		v.closeChunk(b.total - wrote)
	}
	if taken > 0 {
		v.cur.Advance(taken)
	}
}

// headOf returns where in heads the head of tag i begins.
func (b *batch) headOf(i, n int) (at int) {
	for k := range min(i, n) {
		at += b.end[k] - b.start[k] - (len(b.tags[k].Wire) - flv.HeaderSize)
	}
	return at
}

// release lets go of the tags that were written, or the last ones of a stream
// would stay in memory for as long as nothing else is written.
func (b *batch) release() {
	clear(b.tags[:b.used])
	clear(b.iov[:min(cap(b.iov), 2*b.used+4)])
	b.used = 0
}
