package rtmp

import (
	"encoding/binary"
	"math"
	"strings"

	"millrace/internal/session"
	"millrace/internal/stream"
)

// handle deals with one message of the peer.
func (c *conn) handle(m *message) error {
	if m.skipped {
		if isMedia(m.kind) || m.kind == typeDataAMF3 || m.kind == typeAggregate {
			return c.drop(session.NotPublishing)
		}
		return c.control()
	}
	switch m.kind {
	case typeAudio, typeVideo, typeData, typeDataAMF3:
		return c.media(m)
	case typeAggregate:
		if len(m.payload()) < framing {
			return c.drop(session.BadTag)
		}
		return splitAggregate(m, c.media)
	case typeCommand, typeCommandAMF3:
		if err := c.commanded(); err != nil {
			return err
		}
		return c.command(m)
	}
	if err := c.control(); err != nil {
		return err
	}
	switch m.kind {
	case typeWindowAckSize:
		// Section 5.4.4. A window of 0 would have every byte acknowledged.
		if p := m.payload(); len(p) >= 4 && binary.BigEndian.Uint32(p) > 0 {
			c.window = uint64(binary.BigEndian.Uint32(p))
			return c.acknowledge()
		}
	case typeUserControl:
		return c.userControl(m.payload())
	}
	// Acknowledgements say nothing that TCP does not know; peer bandwidth is about
	// a window that we do not use; shared objects and unknown types are none of ours.
	return nil
}

// userControl answers a ping with a pong (section 7.1.7). All other events are for
// a server that plays files.
func (c *conn) userControl(p []byte) error {
	if len(p) < 6 || binary.BigEndian.Uint16(p) != eventPing {
		return nil
	}
	pong := [6]byte{1: eventPong}
	copy(pong[2:], p[2:6])
	return c.out.control(chunksControl, typeUserControl, 0, pong[:])
}

// command is a command that came from the peer, taken apart.
type command struct {
	name   string
	tx     float64 // 0: no answer is wanted
	stream uint32
	args   []any // after the transaction id
}

// parseCommand checks a command message against the limits and takes it apart.
// The name is empty if it makes no sense.
func parseCommand(m *message) (command, error) {
	p := m.payload()
	if m.kind == typeCommandAMF3 && len(p) > 0 && p[0] == 0 {
		p = p[1:] // says that AMF0 follows; commands switch to AMF3 within values only
	}
	if len(p) > maxCommand {
		return command{}, faultf(session.BadCommand, "command of %d bytes, at most %d are allowed", len(p), maxCommand)
	}
	values, err := decodeValues(p)
	if err != nil {
		return command{}, err
	}
	cmd := command{stream: m.stream}
	if len(values) > 0 {
		cmd.name, _ = values[0].(string)
	}
	if len(values) > 1 {
		cmd.tx = toNumber(values[1])
		cmd.args = values[2:]
	}
	if math.IsNaN(cmd.tx) || math.IsInf(cmd.tx, 0) {
		cmd.tx = 0 // no answer could be told to belong to it
	}
	return cmd, nil
}

// object returns the command object.
func (c *command) object() object {
	if len(c.args) > 0 {
		o, _ := c.args[0].(object)
		return o
	}
	return nil
}

// text returns the first string among the arguments: the stream name of all
// commands that have one. Some encoders leave the null before it out.
func (c *command) text() string {
	for _, a := range c.args {
		if s, ok := a.(string); ok {
			return s
		}
	}
	return ""
}

// number returns the first number among the arguments.
func (c *command) number() float64 {
	for _, a := range c.args {
		if n, ok := a.(float64); ok {
			return n
		}
	}
	return 0
}

func (c *conn) command(m *message) error {
	cmd, err := parseCommand(m)
	if err != nil {
		return err
	}
	if !c.app.received && cmd.name != "connect" {
		// Nothing but connect makes sense yet. Answers to calls are given all the same.
		if cmd.name == "createStream" || cmd.name == "publish" || cmd.name == "play" {
			return faultf(session.BadCommand, "%s before connect", cmd.name)
		}
	}
	switch cmd.name {
	case "connect":
		c.connect(&cmd)
	case "createStream":
		c.calls = append(c.calls, &call{kind: callCreateStream, tx: cmd.tx})
	case "publish":
		return c.open(&cmd, callPublish)
	case "play":
		return c.open(&cmd, callPlay)
	case "deleteStream":
		c.deleteStream(streamID(cmd.number()))
	case "closeStream":
		c.closeStream(cmd.stream)
	case "FCUnpublish":
		if c.pub != nil && c.pub.names(cmd.text()) {
			c.unpublish()
		}
		return c.answer(&cmd, nil, "onFCUnpublish")
	case "FCPublish":
		return c.answer(&cmd, nil, "onFCPublish")
	case "FCSubscribe":
		return c.answer(&cmd, nil, "onFCSubscribe")
	case "getStreamLength":
		return c.answer(&cmd, 0, "")
	case "releaseStream", "_checkbw", "checkBandwidth":
		return c.answer(&cmd, nil, "")
	}
	// _result and _error answer nothing that we asked; unknown commands are skipped.
	return nil
}

// answer sends a _result to a call that wants one, and the event that goes with the
// command. Encoders that follow FMLE wait for either. The event says only that the
// command has come: whether the publish is accepted is decided by publish.
func (c *conn) answer(cmd *command, result any, event string) error {
	if cmd.tx != 0 {
		if err := c.send(0, encode("_result", cmd.tx, nil, result)); err != nil {
			return err
		}
	}
	if event == "" {
		return nil
	}
	info := object{{"level", levelStatus}, {"code", "NetStream." + event[2:] + ".Success"}, {"description", cmd.text()}}
	return c.send(0, encode(event, 0, nil, info))
}

// send writes a command to the peer.
func (c *conn) send(stream uint32, body []byte) error {
	return c.out.control(chunksCommand, typeCommand, stream, body)
}

// connect takes in a connect command (section 7.2.1.1). Only the first counts.
func (c *conn) connect(cmd *command) {
	if c.app.received {
		return
	}
	o := cmd.object()
	app, tcURL := o.text("app"), o.text("tcUrl")
	if app == "" {
		_, rest, _ := strings.Cut(tcURL, "://")
		_, app, _ = strings.Cut(rest, "/")
	}
	if _, query, ok := strings.Cut(tcURL, "?"); ok && !strings.Contains(app, "?") {
		app += "?" + query // a token may stand in either
	}
	_, fourCC := o.get("fourCcList").([]any)
	tx := cmd.tx
	if tx == 0 {
		tx = 1 // section 7.2.1.1: always 1, and always answered
	}
	c.app = connectInfo{app: app, agent: o.text("flashVer"), pageURL: o.text("pageUrl"), fourCC: fourCC, received: true}
	c.calls = append(c.calls, &call{kind: callConnect, tx: tx, args: []any{object{
		{"app", app},
		{"type", o.text("type")},
		{"flashVer", o.text("flashVer")},
		{"tcUrl", tcURL},
		{"fpad", o.number("fpad") != 0},
		{"capabilities", whole(o.number("capabilities"))},
		{"audioCodecs", whole(o.number("audioCodecs"))},
		{"videoCodecs", whole(o.number("videoCodecs"))},
		{"videoFunction", whole(o.number("videoFunction"))},
		{"objectEncoding", 0},
	}}})
}

// whole returns n if it is a number that go-rtmp can make an integer of.
func whole(n float64) float64 {
	if n >= 0 && n <= math.MaxInt32 {
		return math.Trunc(n)
	}
	return 0
}

func streamID(n float64) uint32 {
	if n >= 0 && n <= math.MaxUint32 {
		return uint32(n)
	}
	return 0
}

// decideConnect refuses an app with which no stream could have a name.
func (c *conn) decideConnect(*call) *refusal {
	if _, _, err := stream.ParseName(c.app.app, "app/name"); err != nil {
		return c.refusedRole(refuse(err, func(session.Reason) string { return codeConnectRejected }))
	}
	return nil
}

// open leads to a publish or play on a message stream. go-rtmp knows one use of a
// stream only, so a used one is made anew; one that was never created is made as
// well, for encoders that do not wait for the answer, or do not ask.
func (c *conn) open(cmd *command, kind callKind) error {
	if c.pub != nil || c.play != nil {
		r := &refusal{session.BadRequest, codePublishFailed, "this connection already has a stream: end that first, or use another connection"}
		c.srv.refused(r.reason)
		if kind == callPlay {
			r.code = codePlayFailed
		}
		return c.send(cmd.stream, onStatus(levelError, r.code, r.text))
	}
	if st := c.streams[cmd.stream]; st != nil && st.used {
		c.calls = append(c.calls, &call{kind: callDeleteStream, inner: st.inner})
		delete(c.streams, cmd.stream)
	}
	if c.streams[cmd.stream] == nil {
		if len(c.streams) >= maxStreams {
			return faultf(session.BadCommand, "more than %d message streams", maxStreams)
		}
		c.calls = append(c.calls, &call{kind: callCreateStream, stream: cmd.stream, hidden: true})
	}
	c.calls = append(c.calls, &call{kind: kind, stream: cmd.stream, args: []any{cmd.text()}})
	return nil
}

// deleteStream ends a message stream and the role that it has. go-rtmp hears of it
// only if it knows the stream: others would cost it the connection.
func (c *conn) deleteStream(id uint32) {
	c.closeStream(id)
	if st := c.streams[id]; st != nil {
		delete(c.streams, id)
		c.calls = append(c.calls, &call{kind: callDeleteStream, inner: st.inner})
	}
}

// closeStream ends the role of a message stream.
func (c *conn) closeStream(id uint32) {
	if c.pub != nil && c.pub.stream == id {
		c.unpublish()
	}
	if c.play != nil && c.play.stream == id {
		c.stopRole(session.PeerClosed)
	}
}

// reply passes a reply of go-rtmp on, in the words of ours. It runs in go-rtmp's
// writing goroutine.
func (c *conn) reply(m *message) error {
	current := c.current
	switch {
	case m.kind == typeWindowAckSize: // the first thing that follows an accepted connect
		if err := c.announce(); err != nil {
			return err
		}
		fallthrough
	case m.kind == typePeerBandwidth || m.kind == typeUserControl:
		return c.out.control(chunksControl, m.kind, m.stream, m.payload())
	case m.kind != typeCommand || current == nil:
		return nil // an acknowledgement of bytes that we made
	}
	cmd, err := parseCommand(m)
	if err != nil {
		return err
	}
	err = c.translate(current, &cmd)
	c.replied <- struct{}{}
	return err
}

// translate sends what the peer is to hear as the answer to a call.
func (c *conn) translate(current *call, cmd *command) error {
	switch current.kind {
	case callConnect:
		if r := current.refused; r != nil {
			return c.send(0, encode("_error", current.tx, nil, object{{"level", levelError}, {"code", r.code}, {"description", r.text}}))
		}
		return c.send(0, c.connectResult(current))
	case callCreateStream:
		return c.created(current, cmd)
	case callPublish:
		if r := current.refused; r != nil {
			return c.send(current.stream, onStatus(levelError, r.code, r.text))
		}
		return c.send(current.stream, onStatus(levelStatus, codePublishStart, c.name+" is now published"))
	case callPlay:
		if r := current.refused; r != nil {
			return c.send(current.stream, onStatus(levelError, r.code, r.text))
		}
		begin := binary.BigEndian.AppendUint32([]byte{0, eventStreamBegin}, current.stream)
		if err := c.out.control(chunksControl, typeUserControl, 0, begin); err != nil {
			return err
		}
		if err := c.send(current.stream, onStatus(levelStatus, codePlayReset, "playing "+c.name)); err != nil {
			return err
		}
		return c.send(current.stream, onStatus(levelStatus, codePlayStart, "started playing "+c.name))
	}
	return nil
}

// connectResult is the answer to an accepted connect (section 7.2.1.1). The tuple
// in fmsVer is what clients expect of a server that they may publish to. A client
// that lists FourCC codecs is told that any will do (enhanced RTMP v2, "Enhancing
// NetConnection connect Command").
func (c *conn) connectResult(current *call) []byte {
	properties := object{{"fmsVer", "FMS/3,0,1,123"}, {"capabilities", 31}, {"mode", 1}}
	if c.app.fourCC {
		properties = append(properties, property{"fourCcList", []any{"*"}})
	}
	return encode("_result", current.tx, properties, object{
		{"level", levelStatus},
		{"code", codeConnectSuccess},
		{"description", "connected to Millrace"},
		{"objectEncoding", 0},
	})
}

// created notes a message stream of go-rtmp and tells the peer its id, which is the
// same unless an id that the peer chose itself is in the way.
func (c *conn) created(current *call, cmd *command) error {
	inner := streamID(cmd.number())
	if cmd.name != "_result" || inner == 0 {
		if current.hidden {
			return nil // feed finds that the stream is missing
		}
		return c.send(0, encode("_error", current.tx, nil, object{
			{"level", levelError},
			{"code", codeCallFailed},
			{"description", "too many message streams on one connection"},
		}))
	}
	id := current.stream
	if !current.hidden {
		for id = inner; c.streams[id] != nil; id++ {
		}
	}
	c.streams[id] = &netStream{inner: inner}
	if current.hidden {
		return nil
	}
	return c.send(0, encode("_result", current.tx, nil, id))
}

// announce tells the peer our chunk size. It stands before the answer to connect.
func (c *conn) announce() error {
	size := uint32(c.srv.config().ChunkSize)
	return c.out.control(chunksControl, typeSetChunkSize, 0, binary.BigEndian.AppendUint32(nil, size))
}
