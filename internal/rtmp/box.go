package rtmp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"unsafe"

	"github.com/sirupsen/logrus"
	gortmp "github.com/yutopp/go-rtmp"
	gomessage "github.com/yutopp/go-rtmp/message"
)

const (
	// boxChunk is the chunk size between go-rtmp and us, both ways: with it every
	// command, of at most maxCommand bytes, and every reply is one chunk.
	boxChunk = 64 << 10
	// maxStreams is how many message streams a connection may have. Encoders use one.
	maxStreams = 16
	// peerBandwidthDynamic is the limit type that other servers send (section 5.4.5).
	peerBandwidthDynamic = 2
)

// callKind is a command that go-rtmp gets to see.
type callKind uint8

const (
	callConnect callKind = iota
	callCreateStream
	callDeleteStream
	callPublish
	callPlay
)

// call is one command on its way through go-rtmp. There is one at a time: conn.Read
// gives out the next after the reply to the last has come through conn.Write.
type call struct {
	kind   callKind
	tx     float64 // the peer's transaction id
	stream uint32  // the peer's message stream id
	inner  uint32  // go-rtmp's, for deleteStream
	hidden bool    // made by us: the peer gets no reply
	args   []any

	refused *refusal // set by the callback that said no
}

// replies reports whether go-rtmp answers the call.
func (c *call) replies() bool { return c.kind != callDeleteStream }

// encode returns the command as go-rtmp is to read it: the few fields that it
// knows, in the types that it wants, as one chunk.
func (c *call) encode(inner uint32) []byte {
	var body []byte
	stream := uint32(0)
	switch c.kind {
	case callConnect:
		body = encode(append([]any{"connect", 1}, c.args...)...)
	case callCreateStream:
		body = encode("createStream", 2, nil)
	case callDeleteStream:
		body = encode("deleteStream", 0, nil, c.inner)
	case callPublish:
		body, stream = encode("publish", 0, nil, "stream", "live"), inner
	case callPlay:
		body, stream = encode("play", 0, nil, "stream", -2), inner
	}
	return appendMessage(nil, boxChunk, chunksCommand, typeCommand, stream, 0, body)
}

// boxConfig is how go-rtmp is set up for one connection.
func boxConfig(c *conn, log logrus.FieldLogger) *gortmp.ConnConfig {
	return &gortmp.ConnConfig{
		Handler:                                 &boxHandler{c: c},
		SkipHandshakeVerification:               true, // C2 of digest clients is no echo
		IgnoreMessagesOnNotExistStream:          true,
		IgnoreMessagesOnNotExistStreamThreshold: 1 << 31,
		ReaderBufferSize:                        512,
		WriterBufferSize:                        1 << 10,
		ControlState: gortmp.StreamControlStateConfig{
			DefaultChunkSize:           boxChunk,
			MaxChunkStreams:            maxStreams,
			MaxMessageStreams:          maxStreams + 1,
			DefaultAckWindowSize:       ackWindow,
			DefaultBandwidthWindowSize: ackWindow,
			DefaultBandwidthLimitType:  gomessage.LimitType(peerBandwidthDynamic),
		},
		Logger: log,
	}
}

// boxHandler has the callbacks of go-rtmp that decide something. They run in the
// reading goroutine, within the go-rtmp call that conn.Read returned to.
type boxHandler struct {
	gortmp.DefaultHandler
	c *conn
}

// errRefused makes go-rtmp send its own refusal, which conn.Write replaces.
var errRefused = errors.New("refused")

func (h *boxHandler) decide(kind callKind, f func(*call) *refusal) (err error) {
	defer h.c.recovered(&err)
	current := h.c.current
	if current == nil || current.kind != kind {
		return fmt.Errorf("go-rtmp reports a command that it was not given")
	}
	if current.refused = f(current); current.refused != nil {
		return errRefused
	}
	return nil
}

// OnConnect decides about the app of a connect command.
func (h *boxHandler) OnConnect(uint32, *gomessage.NetConnectionConnect) error {
	return h.decide(callConnect, h.c.decideConnect)
}

// OnPublish decides about a publish before it is announced.
func (h *boxHandler) OnPublish(*gortmp.StreamContext, uint32, *gomessage.NetStreamPublish) error {
	return h.decide(callPublish, h.c.decidePublish)
}

// OnPlay decides about a play before it is announced.
func (h *boxHandler) OnPlay(*gortmp.StreamContext, uint32, *gomessage.NetStreamPlay) error {
	return h.decide(callPlay, h.c.decidePlay)
}

// OnServe is called between the handshake and the first command.
func (h *boxHandler) OnServe(c *gortmp.Conn) { dropCache(c) }

// dropCache takes from go-rtmp a private buffer of 64 KB that each connection has,
// half of all that one costs. go-rtmp checks for it, and makes do with a few bytes
// when it is not there; with one small command at a time that is no loss. Should the
// field ever change its name, the test of a connection's memory fails, not the server.
func dropCache(c *gortmp.Conn) {
	f := reflect.ValueOf(c.GetChunkStreamer()).Elem().FieldByName("cacheBuffer")
	if f.IsValid() && f.Type() == reflect.TypeFor[[]byte]() {
		reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem().SetZero()
	}
}

// OnClose is called when go-rtmp is about to give the connection up. It gives up
// the role at once; what is still to be told to the peer goes out after it.
func (h *boxHandler) OnClose() {
	defer h.c.recovered(nil)
	h.c.leave()
}

// inbox is the reader of go-rtmp's replies: conn.Write puts whole chunks in.
type inbox struct{ b []byte }

func (i *inbox) Read(p []byte) (int, error) {
	if len(i.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, i.b)
	i.b = i.b[n:]
	return n, nil
}

// boxLogger returns a logger for go-rtmp that passes its warnings on to log at debug
// level: every hostile peer causes some. When that is off, go-rtmp does not even
// format them.
func boxLogger(log *slog.Logger) *logrus.Logger {
	l := logrus.New()
	l.SetOutput(io.Discard)
	l.SetLevel(logrus.PanicLevel)
	if log.Enabled(context.Background(), slog.LevelDebug) {
		l.SetLevel(logrus.WarnLevel)
		l.AddHook(&bridge{log})
	}
	return l
}

// bridge is a logrus hook that writes to slog.
type bridge struct{ log *slog.Logger }

// Levels returns what the bridge passes on.
func (b *bridge) Levels() []logrus.Level { return logrus.AllLevels }

// Fire passes one entry on.
func (b *bridge) Fire(e *logrus.Entry) error {
	b.log.Debug("go-rtmp: " + e.Message)
	return nil
}
