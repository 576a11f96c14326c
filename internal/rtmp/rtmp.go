// Package rtmp speaks RTMP 1.0 (Adobe, December 2012) and enhanced RTMP v2: a
// [Server] for encoders and players, and a [Client] that publishes and plays.
//
// The server uses github.com/yutopp/go-rtmp for the handshake, for the state of
// connect, createStream, publish and play, and for the replies to them. It cannot
// face the internet by itself, so it sits in a box: conn is the connection that
// it is given, and conn owns everything else.
//
//	          ┌──────────────────────── conn ────────────────────────┐
//	socket ──▶│ chunkReader ─┬─ audio, video, data ──▶ stream.Hub    │
//	          │              ├─ control: ack, ping, abort, sizes     │
//	          │              └─ commands ─ validate, rewrite ─▶ Read ─▶ go-rtmp
//	socket ◀──│ chunkWriter ◀┬─ replies, told in our words ◀─ Write ◀── go-rtmp
//	          │              ├─ acks, pongs, refusals                │
//	          │              └─ media of players ◀── stream.Cursor   │
//	          └──────────────────────────────────────────────────────┘
//
// go-rtmp sees one small, well-formed command at a time, always as one chunk, and
// never a media byte. All decisions are made in its callbacks or before it, so a
// publish is announced only after the gate and the hub have agreed.
//
// Files: chunk_reader.go and chunk_writer.go are the chunk layer (RTMP 1.0,
// section 5.3), amf.go and value.go AMF0, handshake.go section 5.2, conn.go the
// box, command.go what each command means, publish.go and play.go the two roles,
// doze.go when the socket of a publisher wakes, client.go the other side of the wire.
//
// Goroutines: go-rtmp runs two for each connection, one of which reads the socket
// through conn.Read and owns the state of the connection; a publisher has one more
// that waits to be displaced, a player one that writes. No lock is held while
// another is taken, except chunkWriter.mu → chunkWriter.queueMu.
package rtmp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"millrace/internal/flv"
	"millrace/internal/session"
)

// Message types (RTMP 1.0, sections 5.4, 6.2 and 7.1).
const (
	typeSetChunkSize  = 1
	typeAbort         = 2
	typeAck           = 3
	typeUserControl   = 4
	typeWindowAckSize = 5
	typePeerBandwidth = 6
	typeAudio         = uint8(flv.Audio)
	typeVideo         = uint8(flv.Video)
	typeDataAMF3      = 15
	typeCommandAMF3   = 17
	typeData          = uint8(flv.Script)
	typeCommand       = 20
	typeAggregate     = 22
)

// User control events (RTMP 1.0, section 6.2 and 7.1.7).
const (
	eventStreamBegin = 0
	eventPing        = 6
	eventPong        = 7
)

// Chunk streams that we write on. Each message starts with a full header, so
// the choice means nothing; these are what other servers use.
const (
	chunksControl = 2
	chunksCommand = 3
	chunksAudio   = 4
	chunksStatus  = 5
	chunksVideo   = 6
)

const (
	defaultChunkSize = 128      // section 5.4.1, until a peer says otherwise
	maxChunkSize     = 0xffffff // section 5.4.1: no message is larger
	extendedTime     = 0xffffff // section 5.3.1.3: the 24 bits that mean "see the next 32"

	// ackWindow is the window that we announce, and what we assume of a peer that
	// announces none. It is what most servers use: an ack a second at 20 Mbit/s.
	ackWindow = 2_500_000
)

// message is one RTMP message. Its bytes are laid out as an FLV tag, header,
// payload and trailer, whatever its type.
type message struct {
	wire   []byte
	stream uint32 // message stream id
	time   uint32
	kind   uint8

	skipped bool // nobody wanted it: wire is nil
}

func (m *message) payload() []byte {
	return m.wire[flv.HeaderSize : len(m.wire)-flv.TrailerSize]
}

// media reports whether the message goes to the hub.
func isMedia(kind uint8) bool { return kind == typeAudio || kind == typeVideo || kind == typeData }

// fault is an error of the peer, with the reason that its connection ends with.
type fault struct {
	reason session.Reason
	text   string
}

func (f *fault) Error() string { return f.text }

func faultf(r session.Reason, format string, args ...any) error {
	return &fault{r, fmt.Sprintf(format, args...)}
}

// reasonOf says why err ends a connection.
func reasonOf(err error) session.Reason {
	var f *fault
	var opErr *net.OpError
	switch {
	case errors.As(err, &f):
		return f.reason
	case errors.Is(err, os.ErrDeadlineExceeded):
		return session.Stalled
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, io.ErrClosedPipe), errors.As(err, &opErr):
		return session.PeerClosed
	}
	return session.ProtocolError
}
