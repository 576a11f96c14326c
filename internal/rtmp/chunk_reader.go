package rtmp

import (
	"encoding/binary"
	"errors"
	"io"

	"millrace/internal/flv"
	"millrace/internal/session"
)

// framing is what stands around a payload in memory, see [flv.Alloc].
const framing = flv.HeaderSize + flv.TrailerSize

const (
	// readBuffer holds four chunks of the size that encoders use; longer runs of
	// payload are read past it. Larger ones gain nothing: a socket rarely has more.
	readBuffer = 16 << 10
	// idleBuffer is what a connection begins with, and stays at if it never fills it:
	// a player, or a publisher that sends little.
	idleBuffer = 4 << 10
	// eagerBytes is how much memory a connection may have allocated for bytes that
	// were announced but have not come. Below it a message is allocated in one piece;
	// above it memory at most doubles with what has really arrived.
	eagerBytes = 64 << 10
	// lazyBytes is allocated for a message in any case.
	lazyBytes = 4 << 10
	// restartDelta bounds the delta that a type 3 chunk may inherit from a type 0 one.
	restartDelta = 5000
)

// limits bounds what a peer can make a chunkReader hold.
type limits struct {
	message int // bytes of one message
	partial int // bytes of all unfinished messages
	streams int // chunk streams

	// media is passed over without memory for it, like everything that is neither a
	// command nor about the protocol: from a peer that publishes nothing.
	skip bool
}

// skips reports whether messages of a type are passed over.
func (l *limits) skips(kind uint8) bool {
	return l.skip && kind > typePeerBandwidth && kind != typeCommand && kind != typeCommandAMF3
}

// maxOther is the limit of messages that are neither media nor commands: control
// messages have a few bytes, and nobody wants the others.
const maxOther = 64 << 10

// check looks at the length of a message before there is memory for it.
func (l *limits) check(kind uint8, n int) error {
	most, r := maxOther, session.MessageTooBig
	switch kind {
	case typeAudio, typeVideo, typeAggregate:
		most = l.message
	case typeData, typeDataAMF3:
		most = min(l.message, maxScript)
	case typeCommand, typeCommandAMF3:
		most, r = maxCommand+1, session.BadCommand // with the byte that says which AMF
	}
	if n <= most {
		return nil
	}
	return faultf(r, "message of type %d and %d bytes, at most %d are allowed", kind, n, most)
}

// chunkStream is what is remembered of a chunk stream (RTMP 1.0, section 5.3): the
// last header, which later ones refer to, and the message being put together.
type chunkStream struct {
	id     uint32
	time   uint32 // of the current message
	delta  uint32
	extend uint32 // the last extended timestamp as it was sent
	stream uint32
	length int
	kind   uint8

	extended bool // the last header had an extended timestamp
	known    bool // a header with length and type was seen
	busy     bool // a message has begun
	skip     bool // and is passed over

	wire []byte // the message as far as there is memory for it
	got  int    // payload bytes that have come
}

// chunkReader reads messages from chunks. It is owned by one goroutine. It handles
// set chunk size and abort itself and returns every other message, whole, in
// memory that is the caller's.
type chunkReader struct {
	src    io.Reader
	limits limits
	size   int // the peer's chunk size

	buf  []byte
	r, w int  // buf[r:w] is unread
	full bool // a read has filled buf: the next buffer is larger

	low     [64]*chunkStream // by id
	high    map[uint32]*chunkStream
	streams int
	held    int          // bytes allocated for unfinished messages
	got     int          // bytes received of them
	current *chunkStream // whose payload was read last

	// inside, if there is one, is called for each message that is dealt with here. Its
	// error is the reader's.
	inside func() error
	// all, if there is one, bounds what this reader and others hold together.
	all     *partials
	charged int // as far as all knows
}

func newChunkReader(src io.Reader, buffer int, l limits) *chunkReader {
	return &chunkReader{src: src, limits: l, size: defaultChunkSize, buf: make([]byte, buffer)}
}

// readMessage reads into m the next message that is not about the chunk layer
// itself. The error is io.EOF only between two messages.
func (r *chunkReader) readMessage(m *message) error {
	for {
		cs, err := r.readChunk()
		if err != nil {
			return err
		}
		if cs == nil {
			continue // unfinished
		}
		m.wire, m.stream, m.time, m.kind = cs.wire, cs.stream, cs.time, cs.kind
		m.skipped = cs.skip
		cs.wire, cs.got, cs.busy, cs.skip = nil, 0, false, false
		if m.skipped {
			return nil
		}
		switch m.kind {
		case typeSetChunkSize:
			err = r.setSize(m.payload())
		case typeAbort:
			r.abort(m.payload())
		default:
			return nil
		}
		if err == nil && r.inside != nil {
			err = r.inside()
		}
		if err != nil {
			return err
		}
	}
}

// rest returns how many bytes at least are missing of the message that is being read: 0
// between two messages, negative where that is not known.
func (r *chunkReader) rest() int {
	switch {
	case r.held > 0 && r.r == r.w && r.current != nil && r.current.busy:
		return r.current.length - r.current.got
	case r.held > 0 || r.r < r.w:
		return -1
	}
	return 0
}

// limit puts l in force. What it would have passed over and has begun loses its
// memory, and is passed over from here.
func (r *chunkReader) limit(l limits) {
	r.limits = l
	drop := func(cs *chunkStream) {
		if cs != nil && cs.busy && !cs.skip && l.skips(cs.kind) {
			r.letGo(cs)
			cs.skip = true
		}
	}
	for _, cs := range r.low {
		drop(cs)
	}
	for _, cs := range r.high {
		drop(cs)
	}
}

// letGo gives the memory of an unfinished message back.
func (r *chunkReader) letGo(cs *chunkStream) {
	if cs.wire == nil {
		return
	}
	r.held -= len(cs.wire)
	r.got -= cs.got
	cs.wire = nil
	r.charge()
}

// charge tells what is held, and reports whether it may be.
func (r *chunkReader) charge() bool {
	held := max(0, r.held-freePartial)
	if r.all == nil || held == r.charged {
		return true
	}
	if !r.all.move(r.charged, held) {
		return false
	}
	r.charged = held
	return true
}

// setSize is the set chunk size message (section 5.4.1). It counts from the next
// chunk on, also in the middle of a message.
func (r *chunkReader) setSize(p []byte) error {
	if len(p) < 4 {
		return nil
	}
	n := binary.BigEndian.Uint32(p)
	if n == 0 || n>>31 != 0 {
		return faultf(session.ProtocolError, "set chunk size of %d: must be 1 to %d", n, 1<<31-1)
	}
	r.size = int(min(n, maxChunkSize))
	return nil
}

// abort is the abort message (section 5.4.2): forget an unfinished message.
func (r *chunkReader) abort(p []byte) {
	if len(p) < 4 {
		return
	}
	cs := r.find(binary.BigEndian.Uint32(p))
	if cs == nil || !cs.busy {
		return
	}
	r.letGo(cs)
	cs.got, cs.busy, cs.skip = 0, false, false
}

func (r *chunkReader) find(id uint32) *chunkStream {
	if id < uint32(len(r.low)) {
		return r.low[id]
	}
	return r.high[id]
}

// open returns the chunk stream id, which it makes when it is new.
func (r *chunkReader) open(id uint32) (*chunkStream, error) {
	if cs := r.find(id); cs != nil {
		return cs, nil
	}
	if r.streams >= r.limits.streams {
		return nil, faultf(session.TooManyChunks, "more than %d chunk streams", r.limits.streams)
	}
	r.streams++
	cs := &chunkStream{id: id}
	if id < uint32(len(r.low)) {
		r.low[id] = cs
		return cs, nil
	}
	if r.high == nil {
		r.high = make(map[uint32]*chunkStream)
	}
	r.high[id] = cs
	return cs, nil
}

// readChunk reads one chunk. It returns its chunk stream if the chunk ended a
// message, else nil.
func (r *chunkReader) readChunk() (*chunkStream, error) {
	cs, err := r.readHeader()
	if err != nil {
		return nil, err
	}
	if !cs.busy {
		if err := r.limits.check(cs.kind, cs.length); err != nil {
			return nil, err
		}
		cs.busy, cs.skip = true, r.limits.skips(cs.kind)
	}
	if n := min(r.size, cs.length-cs.got); cs.skip {
		err = r.passOver(cs, n)
	} else {
		err = r.readPayload(cs, n)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case cs.got < cs.length:
		return nil, nil
	case cs.skip:
	case cs.wire == nil:
		cs.wire = flv.Alloc(flv.Kind(cs.kind), 0)
	default:
		wire := cs.wire
		seal(wire, cs.kind, cs.length)
		r.letGo(cs)
		cs.wire = wire
	}
	return cs, nil
}

// seal fills in what [flv.Alloc] puts around a payload.
func seal(wire []byte, kind uint8, n int) {
	flv.PutHeader(wire, flv.Kind(kind), n, 0)
	binary.BigEndian.PutUint32(wire[flv.HeaderSize+n:], uint32(flv.HeaderSize+n))
}

// headerSizes are the bytes of the message header by chunk type (section 5.3.1.2).
var headerSizes = [4]int{11, 7, 3, 0}

// readHeader reads basic header, message header and extended timestamp (section
// 5.3.1) and brings the chunk stream up to date.
func (r *chunkReader) readHeader() (*chunkStream, error) {
	if err := r.need(1); err != nil {
		if err == io.EOF && r.got+r.held > 0 {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	first := r.buf[r.r]
	form, id, size := first>>6, uint32(first&0x3f), 1
	if id < 2 { // section 5.3.1.1: the 2 and 3 byte forms
		size = 2 + int(id)
	}
	if err := r.needMore(size + headerSizes[form]); err != nil {
		return nil, err
	}
	b := r.buf[r.r:r.w]
	switch id {
	case 0:
		id = uint32(b[1]) + 64
	case 1:
		id = uint32(b[1]) + uint32(b[2])<<8 + 64
	}
	cs, err := r.open(id)
	if err != nil {
		return nil, err
	}
	b = b[size : size+headerSizes[form]]
	r.r += size + headerSizes[form]
	if !cs.known && form > 1 {
		return nil, faultf(session.ProtocolError,
			"chunk stream %d begins with a type %d chunk, which carries no length: is the chunk size announced before it is used?", id, form)
	}
	return cs, r.apply(cs, form, b)
}

// apply takes a message header in.
func (r *chunkReader) apply(cs *chunkStream, form byte, b []byte) error {
	if form == 3 {
		return r.applyType3(cs)
	}
	if form < 2 {
		length := int(b[3])<<16 | int(b[4])<<8 | int(b[5])
		if cs.busy && (length != cs.length || b[6] != cs.kind) {
			return faultf(session.ProtocolError, "chunk stream %d: a message of %d bytes begins within one of %d", cs.id, length, cs.length)
		}
		cs.length, cs.kind, cs.known = length, b[6], true
	}
	time := uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
	cs.extended = time == extendedTime
	if form == 0 {
		cs.stream = binary.LittleEndian.Uint32(b[7:])
	}
	if cs.extended {
		if err := r.needMore(4); err != nil {
			return err
		}
		time = binary.BigEndian.Uint32(r.buf[r.r:])
		cs.extend = time
		r.r += 4
	}
	if cs.busy {
		return nil // a full header repeated within its message says nothing new
	}
	if form == 0 {
		cs.time = time
		// Section 5.3.1.2.4 lets a type 3 chunk that begins a message inherit the
		// absolute time as its delta. Where that can be meant it is honoured; a large
		// one comes from senders that mean "the same time again".
		cs.delta = 0
		if time <= restartDelta {
			cs.delta = time
		}
		return nil
	}
	cs.delta = time
	cs.time += time
	return nil
}

// applyType3 continues a message, or begins one like the last. After an extended
// timestamp the specification repeats it here (section 5.3.1.3), but some senders
// leave it out: the four bytes are taken only if they are what would be repeated.
func (r *chunkReader) applyType3(cs *chunkStream) error {
	before := cs.time
	if !cs.busy {
		cs.time += cs.delta
	}
	if !cs.extended {
		return nil
	}
	n := min(4, cs.length-cs.got) // these come in either dialect
	if err := r.needMore(n); err != nil {
		return err
	}
	if !r.repeats(cs, before, n) {
		return nil
	}
	if err := r.needMore(4); err != nil {
		return err
	}
	if r.repeats(cs, before, 4) {
		r.r += 4
	}
	return nil
}

// repeats reports whether the next n bytes are the beginning of a timestamp that
// belongs to cs.
func (r *chunkReader) repeats(cs *chunkStream, before uint32, n int) bool {
	var have uint32
	for _, c := range r.buf[r.r : r.r+n] {
		have = have<<8 | uint32(c)
	}
	shift := 32 - 8*n
	return have == cs.extend>>shift || have == cs.time>>shift || have == before>>shift
}

// readPayload reads n more bytes of the message of cs.
func (r *chunkReader) readPayload(cs *chunkStream, n int) error {
	r.current = cs
	for n > 0 {
		room, err := r.room(cs)
		if err != nil {
			return err
		}
		dst := cs.wire[flv.HeaderSize+cs.got:][:min(room, n)]
		var k int
		if r.r < r.w {
			k = copy(dst, r.buf[r.r:r.w])
			r.r += k
		} else if len(dst) >= len(r.buf) {
			if k, err = r.read(dst); err != nil {
				return unexpected(err)
			}
		} else {
			if err := r.needMore(1); err != nil {
				return err
			}
			continue
		}
		cs.got += k
		r.got += k
		n -= k
	}
	return nil
}

// passOver reads n more bytes of a message that nobody wants.
func (r *chunkReader) passOver(cs *chunkStream, n int) error {
	for n > 0 {
		if err := r.needMore(1); err != nil {
			return err
		}
		k := min(n, r.w-r.r)
		r.r += k
		cs.got += k
		n -= k
	}
	return nil
}

// room returns how many more payload bytes the memory of cs takes, at least one.
func (r *chunkReader) room(cs *chunkStream) (int, error) {
	if n := len(cs.wire) - framing - cs.got; n > 0 {
		return n, nil
	}
	total := cs.length + framing
	want := 2 * len(cs.wire)
	if r.held-r.got < eagerBytes {
		want = max(want, eagerBytes+framing)
	}
	want = min(max(want, lazyBytes+framing), total)
	if r.held-len(cs.wire)+want > r.limits.partial+framing {
		return 0, faultf(session.PartialTooBig, "unfinished messages hold more than %d bytes", r.limits.partial)
	}
	grown := want - len(cs.wire)
	r.held += grown
	if !r.charge() {
		r.held -= grown
		return 0, faultf(session.PartialTooBig, "unfinished messages of all connections hold more than %d bytes", r.all.most.Load())
	}
	wire := make([]byte, want)
	copy(wire, cs.wire)
	cs.wire = wire
	return want - framing - cs.got, nil
}

// readFull reads exactly len(p) bytes that are not chunks: the handshake.
func (r *chunkReader) readFull(p []byte) error {
	for len(p) > 0 {
		if err := r.need(1); err != nil {
			return err
		}
		n := copy(p, r.buf[r.r:r.w])
		r.r += n
		p = p[n:]
	}
	return nil
}

// needMore is need in the middle of something.
func (r *chunkReader) needMore(n int) error {
	if r.w-r.r >= n {
		return nil
	}
	return unexpected(r.need(n))
}

// need waits until n bytes are buffered; n is at most 18.
func (r *chunkReader) need(n int) error {
	for r.w-r.r < n {
		if r.r == r.w {
			r.r, r.w = 0, 0
			if r.full && len(r.buf) == idleBuffer {
				r.buf = make([]byte, readBuffer)
			}
		} else if len(r.buf)-r.r < n {
			r.w = copy(r.buf, r.buf[r.r:r.w])
			r.r = 0
		}
		k, err := r.read(r.buf[r.w:])
		r.w += k
		r.full = r.w == len(r.buf)
		if err != nil && r.w-r.r < n {
			return err
		}
	}
	return nil
}

var errNoProgress = errors.New("reader returns neither bytes nor an error")

// read returns at least one byte or an error.
func (r *chunkReader) read(p []byte) (int, error) {
	for range 16 {
		if n, err := r.src.Read(p); n > 0 {
			return n, nil
		} else if err != nil {
			return 0, err
		}
	}
	return 0, errNoProgress
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
