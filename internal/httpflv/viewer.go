package httpflv

import (
	"net"
	"sync/atomic"
	"time"

	"millrace/internal/flv"
	"millrace/internal/session"
	"millrace/internal/stream"
)

// viewer is a player whose socket a shard writes to. Until it is handed over it
// belongs to the goroutine that made it, then to the shard.
type viewer struct {
	// Owned by the shard. The first are all that it looks at in most of its visits,
	// and fit into one line of the processor's cache.
	seen    uint64        // feed.arrived when it had all there was
	served  time.Duration // when that was
	phase   uint32        // its turn among the viewers of the feed
	begun   bool          // the response header is written, or at least in rest
	blocked bool          // until the socket is writable again
	ending  bool          // rest is all it still gets; reason says why
	open    bool          // the last chunk's end of line is owed
	gone    bool
	reason  session.Reason
	framing framing // fixed at construction
	fd      int     // fixed at construction
	cur     stream.Cursor
	sess    *session.Session // nil until begun
	skips   stream.Skips     // as counted in sess
	took    time.Duration    // when the socket last took something
	rest    rest
	feed    *feed
	at      int    // index in feed.viewers
	slot    uint32 // index in shard.slots
	unacked int    // by the peer, when a stall was first suspected; -1: not looked at

	// Fixed at construction.
	conn    net.Conn // its socket is closed; closing it tells the listener
	server  *Server
	stream  *stream.Stream
	shard   *shard
	info    session.Info
	cors    string        // the header lines that let its page read an answer
	expires time.Duration // on the shard's clock; 0: never
	until   time.Duration // when waiting ends

	// Safe from any goroutine.
	kicked atomic.Uint32 // the reason, if it was kicked
}

// rest is what a socket did not take of a write that it began: at most one tag, so
// that a slow viewer keeps no more than that in memory.
type rest struct {
	head  []byte // the response header, or the rest of small
	body  []byte // of a tag; shared, never written
	tail  []byte // the end of the response
	small [maxPrefix]byte
	tag   bool // a tag is done when this is
}

func (r *rest) len() int { return len(r.head) + len(r.body) + len(r.tail) }

// keep takes what is left of a tag of which n bytes are written.
func (r *rest) keep(head, body []byte, n int) {
	r.tag = true
	if n < len(head) {
		r.head, r.body = r.small[:copy(r.small[:], head[n:])], body
		return
	}
	r.head, r.body = nil, body[n-len(head):]
}

// skip takes off n bytes.
func (r *rest) skip(n int) {
	for _, p := range []*[]byte{&r.head, &r.body, &r.tail} {
		k := min(n, len(*p))
		*p = (*p)[k:]
		n -= k
	}
}

func (r *rest) clear(v *viewer) {
	if r.tag {
		v.sess.Tags.Add(1)
	}
	r.head, r.body, r.tail, r.tag = nil, nil, nil, false
}

// closeChunk notes that left bytes of the end of a chunk were not taken.
func (v *viewer) closeChunk(left int) {
	v.open = left == len(crlf)
	if left == 1 {
		v.rest.small[0] = crlf[1]
		v.rest.head = v.rest.small[:1]
	}
}

// begin opens the session and puts the response header and the FLV header before
// all else. It is called when there is something to play: only then is it known
// what the flags of the FLV header must say.
func (v *viewer) begin() {
	v.sess = v.server.table.Open(v.info, func(r session.Reason) { v.shard.kick(v, r) })
	v.server.fan.came(v.sess)
	v.server.self.Quality.Began(v.info.Peer.Addr(), time.Since(v.info.Started))
	p := appendHead(make([]byte, 0, 512), v.framing, v.cors, time.Now())
	p = v.framing.appendFrame(p, flv.FileHeaderSize, false)
	audio, video := tracks(v.stream)
	v.rest.head = flv.AppendFileHeader(p, audio, video)
	v.open = v.framing == chunked
	v.begun = true
}

// tracks are those that the FLV header announces. When nothing is known yet both
// are, which every player copes with.
func tracks(s *stream.Stream) (audio, video bool) {
	audio, video = s.Tracks()
	if !audio && !video {
		return true, true
	}
	return audio, video
}

// end makes the rest of what is in progress the last that v gets, and a proper end
// of the body behind it.
func (v *viewer) end(r session.Reason) {
	v.ending, v.reason = true, r
	if v.framing != chunked {
		return
	}
	if v.open {
		v.rest.tail = []byte(crlf + lastChunk)
	} else {
		v.rest.tail = []byte(lastChunk)
	}
}
