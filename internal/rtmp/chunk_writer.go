package rtmp

import (
	"encoding/binary"
	"errors"
	"net"
	"sync"

	"millrace/internal/flv"
)

// appendHeader appends a type 0 header (RTMP 1.0, section 5.3.1): every message of
// ours starts with one, so that readers need to remember nothing, and a message can
// be cut once for any number of them.
func appendHeader(dst []byte, chunks uint32, kind uint8, stream, time uint32, n int) []byte {
	short := min(time, extendedTime)
	dst = appendBasic(dst, 0, chunks)
	dst = append(dst, byte(short>>16), byte(short>>8), byte(short), byte(n>>16), byte(n>>8), byte(n), kind)
	dst = binary.LittleEndian.AppendUint32(dst, stream)
	if short == extendedTime {
		dst = binary.BigEndian.AppendUint32(dst, time)
	}
	return dst
}

// appendContinuation appends a type 3 header. The extended timestamp is repeated
// (section 5.3.1.3).
func appendContinuation(dst []byte, chunks, time uint32) []byte {
	dst = appendBasic(dst, 3, chunks)
	if time >= extendedTime {
		dst = binary.BigEndian.AppendUint32(dst, time)
	}
	return dst
}

// appendBasic appends a basic header in its shortest form (section 5.3.1.1).
func appendBasic(dst []byte, form byte, id uint32) []byte {
	switch {
	case id < 64:
		return append(dst, form<<6|byte(id))
	case id < 320:
		return append(dst, form<<6, byte(id-64))
	default:
		return append(dst, form<<6|1, byte(id-64), byte((id-64)>>8))
	}
}

// appendMessage appends a whole message cut into chunks of the given size.
func appendMessage(dst []byte, size int, chunks uint32, kind uint8, stream, time uint32, payload []byte) []byte {
	dst = appendHeader(dst, chunks, kind, stream, time, len(payload))
	for len(payload) > size {
		dst = append(dst, payload[:size]...)
		dst = appendContinuation(dst, chunks, time)
		payload = payload[size:]
	}
	return append(dst, payload...)
}

// batch is a run of media messages ready for one writev: headers of its own, and
// payloads that belong to the tags. It is reused.
type batch struct {
	heads []byte
	vec   [][]byte
	bytes int
	tags  int
}

func (b *batch) reset() {
	clear(b.vec) // let go of the tags
	b.heads, b.vec, b.bytes, b.tags = b.heads[:0], b.vec[:0], 0, 0
}

// add adds the tag t as a message of the given message stream. It keeps t's bytes
// until reset.
func (b *batch) add(size int, stream uint32, t flv.Tag) {
	chunks := uint32(chunksStatus)
	switch t.Kind {
	case flv.Audio:
		chunks = chunksAudio
	case flv.Video:
		chunks = chunksVideo
	}
	payload, time := t.Payload(), uint32(t.DTS)
	at := len(b.heads)
	b.heads = appendHeader(b.heads, chunks, uint8(t.Kind), stream, time, len(payload))
	for {
		// A slice of heads stays good when heads moves: it is never written again.
		b.vec = append(b.vec, b.heads[at:len(b.heads):len(b.heads)])
		b.bytes += len(b.heads) - at
		n := min(size, len(payload))
		if n > 0 {
			b.vec = append(b.vec, payload[:n:n])
			b.bytes += n
		}
		if payload = payload[n:]; len(payload) == 0 {
			break
		}
		at = len(b.heads)
		b.heads = appendContinuation(b.heads, chunks, time)
	}
	b.tags++
}

// maxQueued bounds the control messages that wait for the socket. A peer that
// makes us answer faster than it reads loses its connection.
const maxQueued = 64 << 10

var errQueueFull = errors.New("the peer asks for more answers than it reads")

// sink takes bytes for the peer. write blocks until all are taken or the
// connection is of no use any more; it may change bufs.
type sink interface {
	write(bufs *net.Buffers) error
}

// chunkWriter writes messages. Its methods may be called from any goroutine.
//
// Media is written by the caller and blocks. Control messages and replies never
// wait behind media: they are queued, and whoever holds the socket next sends them
// between two batches.
type chunkWriter struct {
	// Fixed at construction.
	sink sink

	// Guarded by mu, which is held while writing.
	mu   sync.Mutex
	bufs net.Buffers
	own  []byte // the queue that is being written
	err  error  // of the first write that failed

	// Guarded by queueMu.
	queueMu sync.Mutex
	queue   []byte
	size    int // chunk size of messages that are queued from now on
}

func newChunkWriter(s sink) *chunkWriter { return &chunkWriter{sink: s, size: defaultChunkSize} }

// control queues a message and sends it unless somebody else is about to.
func (w *chunkWriter) control(chunks uint32, kind uint8, stream uint32, payload []byte) error {
	w.queueMu.Lock()
	if len(w.queue)+len(payload) > maxQueued {
		w.queueMu.Unlock()
		return errQueueFull
	}
	w.queue = appendMessage(w.queue, w.size, chunks, kind, stream, 0, payload)
	if kind == typeSetChunkSize {
		w.size = int(binary.BigEndian.Uint32(payload))
	}
	w.queueMu.Unlock()
	return w.flush()
}

// raw queues bytes that are not chunks: the handshake.
func (w *chunkWriter) raw(p []byte) error {
	w.queueMu.Lock()
	w.queue = append(w.queue, p...)
	w.queueMu.Unlock()
	return w.flush()
}

// chunkSize returns what the peer has been told.
func (w *chunkWriter) chunkSize() int {
	w.queueMu.Lock()
	defer w.queueMu.Unlock()
	return w.size
}

// flush sends the queue, or leaves it to the goroutine that is writing.
func (w *chunkWriter) flush() error {
	for w.queued() {
		if !w.mu.TryLock() {
			return nil // the holder looks again when it is done
		}
		err := w.sendLocked(nil)
		w.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *chunkWriter) queued() bool {
	w.queueMu.Lock()
	defer w.queueMu.Unlock()
	return len(w.queue) > 0
}

// media writes a batch that was cut with the size of [chunkWriter.chunkSize].
func (w *chunkWriter) media(b *batch) error {
	w.mu.Lock()
	err := w.sendLocked(b)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	return w.flush()
}

// sendLocked writes what is queued and then the batch, in one write.
func (w *chunkWriter) sendLocked(b *batch) error {
	if w.err != nil {
		return w.err
	}
	w.queueMu.Lock()
	w.own, w.queue = w.queue, w.own[:0]
	w.queueMu.Unlock()
	bufs := w.bufs[:0]
	if len(w.own) > 0 {
		bufs = append(bufs, w.own)
	}
	if b != nil {
		bufs = append(bufs, b.vec...)
	}
	if len(bufs) == 0 {
		return nil
	}
	whole := bufs
	w.bufs = bufs
	w.err = w.sink.write(&w.bufs) // moves w.bufs along
	clear(whole)
	w.bufs = whole[:0]
	if cap(w.own) > 1<<10 {
		w.own = nil // the handshake need not cost memory for the rest of the connection
	}
	return w.err
}
